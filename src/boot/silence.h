/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long another machine has said nothing. What counts is the time in which this process could
 * have heard it: a job that is suspended as a whole, for however long, finds nobody silent when it
 * goes on.
 */
#ifndef TERN_BOOT_SILENCE_H
#define TERN_BOOT_SILENCE_H

#include <stdbool.h>
#include <stdint.h>

enum { SILENCE_LOOK_MS = 300 }; /* how often to look */

struct silence {
	uint64_t limit; /* ns; 0: there is none */
	uint64_t heard, looked;
};

void silence_begin(struct silence *s, uint64_t seconds);
void silence_broken(struct silence *s);
bool silence_too_long(struct silence *s);

#endif
