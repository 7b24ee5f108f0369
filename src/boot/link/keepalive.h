/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How long another machine has said nothing. What counts is the time in which this process could
 * have heard it: a job that is suspended as a whole, for however long, finds nobody silent when it
 * goes on.
 */
#ifndef TERN_BOOT_LINK_KEEPALIVE_H
#define TERN_BOOT_LINK_KEEPALIVE_H

#include <stdbool.h>

#include "base/clock.h"

enum { KEEPALIVE_LOOK_MS = 300 }; /* how often to look */

struct keepalive {
	uint64_t limit; /* ns; 0: there is none */
	uint64_t heard, looked;
};

static inline void keepalive_begin(struct keepalive *k, uint64_t seconds)
{
	uint64_t now = clock_ns();
	*k = (struct keepalive){ .limit = seconds * UINT64_C(1000000000),
				 .heard = now,
				 .looked = now };
}

static inline void keepalive_heard(struct keepalive *k)
{
	k->heard = clock_ns();
}

/*
 * A process that has not looked for more than a second was stopped, or nearly so: it has yet to
 * read what came meanwhile.
 */
static inline bool keepalive_expired(struct keepalive *k)
{
	uint64_t now = clock_ns();
	if (now - k->looked > UINT64_C(1000000000))
		k->heard = now;
	k->looked = now;
	return k->limit && now - k->heard >= k->limit;
}

#endif
