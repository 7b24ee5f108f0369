/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A bounded number of records of one kind, made in batches as they are needed and never given
 * back before the end, so that a message finds its record without malloc once a program has run for
 * a while. A record has a name that can travel: its index, and a generation that tells its uses
 * apart.
 */
#ifndef TERN_BASE_POOL_H
#define TERN_BASE_POOL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* What every record begins with. */
struct record {
	struct record *next_free;
	uint16_t index;
	uint16_t generation; /* raised with each use */
	bool used;
};

enum { POOL_BATCH = 64, POOL_BATCHES = 512 };

struct pool_of {
	size_t bytes; /* of a record */
	uint32_t most, made, used;
	struct record *free;
	char *batch[POOL_BATCHES];
};

/* A record, zero but for its `record`; NULL when all are in use, or there is no memory for more. */
void *record_take(struct pool_of *p);
void record_give(struct pool_of *p, void *record);
uint32_t record_name(const void *record);
void *record_named(const struct pool_of *p, uint32_t name); /* NULL if that use of it is over */
/* The i-th that was ever made, if it is in use. */
void *record_at(const struct pool_of *p, uint32_t i);
/* To walk over all in use: the one behind `record`, which may have been given back; NULL: the
 * first. */
void *record_next(const struct pool_of *p, const void *record);
void pool_free(struct pool_of *p);

#endif
