/* SPDX-License-Identifier: BSD-3-Clause */
/* Conjugate gradients, the direction by MPI_Allgather: sizes are rows and offsets. */
#include "program.h"

#include <math.h>
#include <string.h>

const char *const program_name = "cg";

enum { ITERATIONS_MOST = 200 };
static uint64_t rows, offsets, room, mine, *starts, *place;
static double *x, *r, *ap, *own, *p; /* own: this rank's part of the direction; p: all parts */

/* Rows are dealt out in turns: row k is place k / ranks of rank k % ranks. */
void program_open(const uint64_t *size)
{
	uint64_t column[2 * APP_OFFSETS_MOST], n = (uint64_t)ranks;
	rows = size[0], offsets = size[1];
	room = rows / n + 1;
	mine = rows / n + (rows % n > (uint64_t)rank);
	p = memory(room * n, sizeof *p);
	own = memory(4 * room, sizeof *own);
	x = own + room, r = x + room, ap = r + room;
	starts = memory(mine + 1, sizeof *starts);
	place = memory(mine * 2 * APP_OFFSETS_MOST, sizeof *place);
	for (uint64_t l = 0; l < mine; l++) {
		starts[l + 1] = starts[l];
		for (unsigned e = app_row_columns(rows, offsets, l * n + (uint64_t)rank, column);
		     e-- > 0;)
			place[starts[l + 1]++] = column[e] % n * room + column[e] / n;
	}
}

void program_reset(void)
{
	uint64_t column[2 * APP_OFFSETS_MOST];
	memset(x, 0, room * sizeof *x);
	for (uint64_t l = 0; l < mine; l++) {
		uint64_t i = l * (uint64_t)ranks + (uint64_t)rank;
		r[l] = (double)(2 * offsets + 1) * app_solution(i);
		for (unsigned e = app_row_columns(rows, offsets, i, column); e-- > 0;)
			r[l] -= app_solution(column[e]);
	}
}

static double dot(const double *a, const double *b)
{
	double value = 0;
	for (uint64_t l = 0; l < mine; l++)
		value += a[l] * b[l];
	return sum_all(value);
}

static double iterate(double rr)
{
	MPI_Allgather(own, (int)room, MPI_DOUBLE, p, (int)room, MPI_DOUBLE, MPI_COMM_WORLD);
	for (uint64_t l = 0; l < mine; l++) {
		ap[l] = (double)(2 * offsets + 1) * own[l];
		for (uint64_t e = starts[l]; e < starts[l + 1]; e++)
			ap[l] -= p[place[e]];
	}
	double alpha = rr / dot(own, ap);
	for (uint64_t l = 0; l < mine; l++) {
		x[l] += alpha * own[l];
		r[l] -= alpha * ap[l];
	}
	double next = dot(r, r);
	for (uint64_t l = 0; l < mine; l++)
		own[l] = r[l] + next / rr * own[l];
	return next;
}

void program_run(void)
{
	double rr = dot(r, r), least = 1e-24 * rr;
	memcpy(own, r, mine * sizeof *own);
	for (int i = 0; i < ITERATIONS_MOST && rr > least; i++)
		rr = iterate(rr);
}

uint64_t program_wrong(void)
{
	uint64_t wrong = 0;
	for (uint64_t l = 0; l < mine; l++)
		wrong += !(fabs(x[l] - app_solution(l * (uint64_t)ranks + (uint64_t)rank)) <= 1e-8);
	return wrong;
}
