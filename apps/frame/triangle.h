/* SPDX-License-Identifier: BSD-3-Clause */
/* Sparse lower triangular matrices with ones on the diagonal, generated or read from a file. */
#ifndef TERN_APPS_FRAME_TRIANGLE_H
#define TERN_APPS_FRAME_TRIANGLE_H

#include "frame/app.h"

/* Row i has a[from[i]] to a[from[i + 1] - 1], in columns column[...] that are less than i. */
struct triangle {
	uint64_t rows, *from;
	uint32_t *column;
	double *a;
	uint32_t *level; /* of a row: 0 without elements, else one more than those it depends on */
	uint32_t levels;
};

/* `degree` elements in each row, at most `span` from the diagonal; fewer in the first rows. */
void triangle_generate(struct app_job *j, uint64_t rows, uint64_t degree, uint64_t span,
		       struct triangle *m);
/* The lower triangle of a Matrix Market file; what is wrong with it is refused. */
void triangle_read(struct app_job *j, const char *path, struct triangle *m);
void triangle_free(struct app_job *j, struct triangle *m);

#endif
