/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads sparse matrices in Matrix Market format: coordinates of real, integer or no values. */
#ifndef TERN_APPS_FRAME_MARKET_H
#define TERN_APPS_FRAME_MARKET_H

#include <stddef.h>
#include <stdint.h>

struct market_entry {
	uint32_t row, column; /* from 0 */
	double value;         /* 1 where the file has none */
};

struct market {
	uint32_t rows, columns;
	int symmetric; /* the file has one triangle only */
	uint64_t n;
	struct market_entry *entry; /* free() it */
};

/* 0; or -1 and a sentence with the line that is wrong. */
int market_read(const char *path, struct market *m, char *why, size_t room);

#endif
