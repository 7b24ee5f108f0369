/* SPDX-License-Identifier: BSD-3-Clause */
/* Steps of the LU factorisation on one block. */
#include "frame/number.h"

void app_block_factor(double *a, uint64_t edge)
{
	for (uint64_t p = 0; p < edge; p++)
		for (uint64_t i = p + 1; i < edge; i++) {
			a[i * edge + p] /= a[p * edge + p];
			for (uint64_t k = p + 1; k < edge; k++)
				a[i * edge + k] -= a[i * edge + p] * a[p * edge + k];
		}
}

void app_block_divide_row(double *a, const double *d, uint64_t edge)
{
	for (uint64_t p = 0; p < edge; p++)
		for (uint64_t i = p + 1; i < edge; i++)
			for (uint64_t k = 0; k < edge; k++)
				a[i * edge + k] -= d[i * edge + p] * a[p * edge + k];
}

void app_block_divide_column(double *a, const double *d, uint64_t edge)
{
	for (uint64_t i = 0; i < edge; i++)
		for (uint64_t p = 0; p < edge; p++) {
			a[i * edge + p] /= d[p * edge + p];
			for (uint64_t k = p + 1; k < edge; k++)
				a[i * edge + k] -= a[i * edge + p] * d[p * edge + k];
		}
}

void app_block_inner(double *restrict c, const double *restrict a, const double *restrict b,
		     uint64_t edge)
{
	for (uint64_t i = 0; i < edge; i++)
		for (uint64_t p = 0; p < edge; p++)
			for (uint64_t k = 0; k < edge; k++)
				c[i * edge + k] -= a[i * edge + p] * b[p * edge + k];
}
