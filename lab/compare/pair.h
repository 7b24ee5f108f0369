/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * For libraries that start no processes and have no collectives: two ranks, the second one a fork
 * of the first. What is needed around the measurement goes through memory that they share.
 *
 * A back end defines pair_open() and pair_close(), which peer_open() and peer_close() call, and
 * pair_progress(), which is called while a rank waits for the other outside of the library.
 */
#ifndef COMPARE_PAIR_H
#define COMPARE_PAIR_H

#include <stddef.h>

void pair_open(void);
void pair_close(void);
void pair_progress(void);

/* Gives the other rank up to 4 KiB, and gets its. */
void pair_exchange(const void *mine, void *theirs, size_t len);
/* A poll found nothing: gives up the core where both ranks have only one. */
void pair_idle(void);
/* A call of the library failed: a sentence, and the end of both ranks. */
__attribute__((noreturn)) void pair_fail(const char *call, const char *why);
/* Memory that both ranks have at the same address, from before the fork; 256 MiB in all. */
void *pair_shared(size_t bytes);

#endif
