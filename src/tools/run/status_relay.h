/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What an agent has to do with the job's memory on its host: it makes it, and carries status
 * records in and out.
 */
#ifndef TERN_TOOLS_RUN_STATUS_RELAY_H
#define TERN_TOOLS_RUN_STATUS_RELAY_H

#include "job/exchange.h"
#include "tools/run/options.h"
#include "tools/run/wire.h"

struct status_relay {
	struct job job;
	uint32_t first, ranks; /* that are here */
	int fd;                /* readable when there may be news of them */
	uint64_t *told;        /* the serial of what the others have heard, one for each of those */
};

/* o->job_fd becomes the memory's. */
int status_relay_open(struct status_relay *h, struct run_options *o);
/*
 * When `fd` is readable: what is new of our ranks, to the launcher and from there to all other
 * hosts.
 */
void status_relay_tell(struct status_relay *h, struct wire *w);
/* News of others; false if it is none. */
bool status_relay_hear(struct status_relay *h, const struct frame *f);

#endif
