/* SPDX-License-Identifier: BSD-3-Clause */
/* What programs compare their results with: computed by one rank, in another way. */
#include "frame/number.h"

#include <math.h>

/* By recursion, decimation in time: x[0], x[step], ... into y[0] to y[n - 1]. */
static void fft(double complex *y, uint64_t first, uint64_t n, uint64_t step)
{
	if (n == 1) {
		y[0] = app_point(first);
		return;
	}
	fft(y, first, n / 2, 2 * step);
	fft(y + n / 2, first + step, n / 2, 2 * step);
	for (uint64_t k = 0; k < n / 2; k++) {
		double complex odd = cexp(-2 * M_PI * I * (double)k / (double)n) * y[k + n / 2];
		y[k + n / 2] = y[k] - odd;
		y[k] += odd;
	}
}

void app_serial_fft(double complex *y, uint64_t points)
{
	fft(y, 0, points, 1);
}

/* The bits of `row` in the other order. */
uint64_t app_fft_place(uint64_t row, uint64_t points)
{
	uint64_t reversed = 0;
	for (uint64_t bit = 1; bit < points; bit *= 2)
		reversed = reversed * 2 | !!(row & bit);
	return reversed;
}

void app_serial_paths(uint32_t *d, uint64_t n, uint64_t density)
{
	for (uint64_t i = 0; i < n * n; i++)
		d[i] = app_edge(density, i / n, i % n);
	for (uint64_t k = 0; k < n; k++)
		for (uint64_t i = 0; i < n; i++)
			for (uint64_t l = 0; l < n; l++) {
				uint32_t by = d[i * n + k] + d[k * n + l];
				if (by < d[i * n + l])
					d[i * n + l] = by;
			}
}

/* Row by row, without blocks. */
void app_serial_lu(double *a, uint64_t rows)
{
	for (uint64_t i = 0; i < rows * rows; i++)
		a[i] = app_element(rows, i / rows, i % rows);
	for (uint64_t i = 1; i < rows; i++)
		for (uint64_t p = 0; p < i; p++) {
			double factor = a[i * rows + p] /= a[p * rows + p];
			for (uint64_t k = p + 1; k < rows; k++)
				a[i * rows + k] -= factor * a[p * rows + k];
		}
}

/* Pair by pair, by their corners: whatever the ranks' rows are. */
uint64_t app_serial_pairs(uint32_t *h, uint64_t bits, uint64_t side, int right, int below)
{
	uint64_t pairs = 0, bins = UINT64_C(2) << bits;
	for (int64_t r = 0; r + below < (int64_t)side; r++)
		for (int64_t c = right < 0 ? -right : 0; c < (int64_t)side; c++) {
			if (c + right >= (int64_t)side)
				continue;
			int one = app_pixel(bits, (uint64_t)r, (uint64_t)c);
			int two = app_pixel(bits, (uint64_t)(r + below), (uint64_t)(c + right));
			h[one + two]++;
			h[bins + (uint64_t)((int)(bins / 2) + one - two)]++;
			pairs++;
		}
	return pairs;
}

/* -p log p and p^2. */
void app_describe(const uint32_t *h, uint64_t bins, double n, double out[2])
{
	for (uint64_t i = 0; i < bins; i++)
		if (h[i]) {
			double p = h[i] / n;
			out[0] -= p * log(p);
			out[1] += p * p;
		}
}
