/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sparse lower triangular matrices. The elements of a row are scaled so that their sum is at most
 * 1: then no solution grows without limit, whatever a file has.
 */
#include "frame/triangle.h"

#include <math.h>
#include <stdlib.h>

#include "frame/market.h"

static void scale_rows(struct triangle *m)
{
	for (uint64_t i = 0; i < m->rows; i++) {
		double sum = 0;
		for (uint64_t e = m->from[i]; e < m->from[i + 1]; e++)
			sum += fabs(m->a[e]);
		for (uint64_t e = m->from[i]; e < m->from[i + 1]; e++)
			m->a[e] = sum > 1 ? m->a[e] / sum : m->a[e];
	}
}

static void find_levels(struct app_job *j, struct triangle *m)
{
	m->level = app_memory(j, (double)m->rows * sizeof *m->level);
	m->levels = 0;
	for (uint64_t i = 0; i < m->rows; i++) {
		for (uint64_t e = m->from[i]; e < m->from[i + 1]; e++)
			if (m->level[m->column[e]] >= m->level[i])
				m->level[i] = m->level[m->column[e]] + 1;
		if (m->level[i] >= m->levels)
			m->levels = m->level[i] + 1;
	}
}

static void allocate(struct app_job *j, struct triangle *m, uint64_t rows, double elements)
{
	m->rows = rows;
	m->from = app_memory(j, ((double)rows + 2) * sizeof *m->from);
	m->column = app_memory(j, elements * sizeof *m->column);
	m->a = app_memory(j, elements * sizeof *m->a);
}

static int has_column(const struct triangle *m, uint64_t first, uint64_t end, uint64_t column)
{
	for (; first < end; first++)
		if (m->column[first] == column)
			return 1;
	return 0;
}

void triangle_generate(struct app_job *j, uint64_t rows, uint64_t degree, uint64_t span,
		       struct triangle *m)
{
	uint64_t n = 0;
	allocate(j, m, rows, (double)rows * (double)degree);
	for (uint64_t i = 0; i < rows; i++) {
		uint64_t reach = i < span ? i : span;
		for (uint64_t d = 0; d < degree && reach; d++) {
			uint64_t h = app_hash(i * 64 + d), column = i - 1 - h % reach;
			if (has_column(m, m->from[i], n, column))
				continue;
			m->column[n] = (uint32_t)column;
			m->a[n++] = (double)(h >> 40) / 0x1p24 - 0.5;
		}
		m->from[i + 1] = n;
	}
	scale_rows(m);
	find_levels(j, m);
}

/* Of a symmetric matrix the file may have either triangle. */
static int lower_entry(const struct market *file, uint64_t i, uint32_t *row, uint32_t *column)
{
	*row = file->entry[i].row;
	*column = file->entry[i].column;
	if (*row < *column && file->symmetric) {
		*row = file->entry[i].column;
		*column = file->entry[i].row;
	}
	return *row > *column;
}

void triangle_read(struct app_job *j, const char *path, struct triangle *m)
{
	struct market file;
	char why[512];
	uint32_t row, column;
	if (market_read(path, &file, why, sizeof why))
		app_refuse(j, "--matrix %s", why);
	if (file.rows != file.columns)
		app_refuse(j, "--matrix %s: %u by %u is not square", path, file.rows, file.columns);
	allocate(j, m, file.rows, (double)file.n);
	for (uint64_t i = 0; i < file.n; i++)
		if (lower_entry(&file, i, &row, &column))
			m->from[row + 2]++;
	for (uint64_t i = 0; i < m->rows; i++)
		m->from[i + 2] += m->from[i + 1];
	for (uint64_t i = 0; i < file.n; i++)
		if (lower_entry(&file, i, &row, &column)) {
			m->column[m->from[row + 1]] = column;
			m->a[m->from[row + 1]++] = file.entry[i].value;
		}
	free(file.entry);
	scale_rows(m);
	find_levels(j, m);
}

void triangle_free(struct app_job *j, struct triangle *m)
{
	app_memory_free(j, m->from);
	app_memory_free(j, m->column);
	app_memory_free(j, m->a);
	app_memory_free(j, m->level);
}
