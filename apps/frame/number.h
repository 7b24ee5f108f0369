/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a program's input is made of, and how things are dealt out to ranks: numbers alone, without
 * Tern. The programs of lab/compare/programs have the same inputs from here.
 */
#ifndef TERN_APPS_FRAME_NUMBER_H
#define TERN_APPS_FRAME_NUMBER_H

#include <complex.h>
#include <stdint.h>

/* A number that looks random and depends on `x` alone. */
static inline uint64_t app_hash(uint64_t x)
{
	x += UINT64_C(0x9e3779b97f4a7c15);
	x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
	x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
	return x ^ x >> 31;
}

/* Of n things in blocks, a part has app_part(n, parts, part) to the first of the next part. */
static inline uint64_t app_part(uint64_t n, uint64_t parts, uint64_t part)
{
	return n * part / parts;
}

/* The greatest part with app_part(n, parts, part) <= i. */
static inline uint32_t app_part_of(uint64_t n, uint64_t parts, uint64_t i)
{
	return (uint32_t)((parts * (i + 1) - 1) / n);
}

/* The ranks as a grid, as square as can be: rank = row * columns + column. */
struct app_grid {
	uint32_t rows, columns, row, column;
};

static inline struct app_grid app_grid_of(uint32_t ranks, uint32_t rank)
{
	struct app_grid g = { .rows = 1 };
	for (uint32_t d = 1; d * d <= ranks; d++)
		if (ranks % d == 0)
			g.rows = d;
	g.columns = ranks / g.rows;
	g.row = rank / g.columns;
	g.column = rank % g.columns;
	return g;
}

/* -- Inputs ------------------------------------------------------------------------------ */

/* An update of a table: the k-th of a rank; with `bell` the sum of so many throws. */
struct app_update {
	uint64_t index, value;
};

static inline struct app_update app_update_of(uint64_t table, uint64_t bell, uint32_t rank,
					      uint64_t k)
{
	uint64_t random = app_hash((uint64_t)rank << 40 | k);
	struct app_update u = { random % table, random | 1 };
	if (!bell)
		return u;
	u = (struct app_update){ 0, 1 };
	for (uint64_t i = 0; i < bell; i++)
		u.index += app_hash(random + i) % table;
	u.index /= bell;
	return u;
}

/* A key of the sort; its bucket is a rank. */
enum { APP_KEY_BITS = 48 };

static inline uint64_t app_key(uint64_t i)
{
	return app_hash(i) >> (64 - APP_KEY_BITS);
}

static inline uint32_t app_key_bucket(uint64_t key, uint32_t ranks)
{
	return (uint32_t)(key * ranks >> APP_KEY_BITS);
}

static inline int app_key_compare(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
	return (x > y) - (x < y);
}

/* A point that is transformed. */
static inline double complex app_point(uint64_t i)
{
	uint64_t h = app_hash(i);
	return (double)(h & 0xffff) / 0x8000 - 1 + I * ((double)(h >> 16 & 0xffff) / 0x8000 - 1);
}

/* A pixel; neighbouring ones are alike. */
static inline uint16_t app_pixel(uint64_t bits, uint64_t row, uint64_t column)
{
	uint64_t h = app_hash((row / 4) << 32 | column / 4) + app_hash(row << 32 | column) % 5;
	return (uint16_t)(h & ((1u << bits) - 1));
}

/* The length of an edge of a graph, of which `density` in 100 are there. */
enum { APP_NO_PATH = UINT32_MAX / 4 };

static inline uint32_t app_edge(uint64_t density, uint64_t from, uint64_t to)
{
	uint64_t h = app_hash(from << 32 | to);
	return from == to ? 0 : h % 100 < density ? (uint32_t)(h >> 32) % 1000 + 1 : APP_NO_PATH;
}

/* An element of a matrix of so many rows whose diagonal outweighs the rest. */
static inline double app_element(uint64_t rows, uint64_t i, uint64_t k)
{
	double x = (double)(app_hash(i << 32 | k) % 2001) / 1000 - 1;
	return i == k ? x + 2 * (double)rows : x;
}

/*
 * A sparse symmetric system: the diagonal is 2 * offsets + 1, and the elements in the columns of
 * app_row_columns() are -1. Returns how many there are. app_solution() solves it.
 */
enum { APP_OFFSETS_MOST = 16 };

static inline unsigned app_row_columns(uint64_t rows, uint64_t offsets, uint64_t i,
				       uint64_t column[2 * APP_OFFSETS_MOST])
{
	unsigned n = 0;
	for (uint64_t d = 0; d < offsets; d++) {
		uint64_t distance = 1 + d * d * 37 + d * 5;
		if (i >= distance)
			column[n++] = i - distance;
		if (i + distance < rows)
			column[n++] = i + distance;
	}
	return n;
}

static inline double app_solution(uint64_t i)
{
	return 1 + (double)(app_hash(i) % 1000) / 1000;
}

/* -- Blocks of a matrix, `edge` rows and columns: block.c -------------------------------------- */

void app_block_factor(double *a, uint64_t edge);                         /* into L and U */
void app_block_divide_row(double *a, const double *d, uint64_t edge);    /* a = L^-1 a, L of d */
void app_block_divide_column(double *a, const double *d, uint64_t edge); /* a = a U^-1, U of d */
void app_block_inner(double *restrict c, const double *restrict a, const double *restrict b,
		     uint64_t edge); /* c -= a b */

/* -- Serial results: serial.c --------------------------------------------------------------- */

/* The transform of app_point(0) to app_point(points - 1). */
void app_serial_fft(double complex *y, uint64_t points);
/* The place in it of row `row` of a butterfly's last column. */
uint64_t app_fft_place(uint64_t row, uint64_t points);
/* The lengths of the shortest paths, of vertices^2 edges in place. */
void app_serial_paths(uint32_t *distance, uint64_t vertices, uint64_t density);
/* The factors L and U of app_element(), in one matrix. */
void app_serial_lu(double *a, uint64_t rows);
/*
 * Counts the pairs of pixels that lie `right` and `below` each other: h has their sums, and behind
 * 2 << bits of those their differences. Returns how many pairs there are.
 */
uint64_t app_serial_pairs(uint32_t *h, uint64_t bits, uint64_t side, int right, int below);
/* Adds to out[0] the entropy of bins of a histogram of n pairs, and to out[1] their energy. */
void app_describe(const uint32_t *h, uint64_t bins, double n, double out[2]);

#endif
