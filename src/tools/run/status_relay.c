/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Makes the job's memory on an agent's host, and passes status records between it and the launcher.
 */
#include "tools/run/status_relay.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/kernel.h"
#include "base/setting.h"
#include "tools/run/hosts.h"

static int job_open(struct status_relay *h, const struct run_options *o)
{
	uint64_t budget;
	uint32_t *machine = calloc(o->total, sizeof *machine);
	int rc = machine ? setting_number(SETTING_MEMORY, &budget) : -ENOMEM;
	if (!rc)
		rc = job_create(&h->job, o->total, budget);
	if (!rc) {
		for (uint32_t i = 0, r = 0; i < o->host_count; i++)
			for (uint32_t n = 0; n < o->share[i]; n++)
				machine[r++] = i;
		job_spread(&h->job, machine, o->host, o->host_count);
		job_identify(&h->job, o->id, o->key);
	}
	free(machine);
	return rc;
}

int status_relay_open(struct status_relay *h, struct run_options *o)
{
	uint16_t port = 0;
	*h = (struct status_relay){ .first = o->first, .ranks = o->ranks };
	h->told = calloc(o->ranks, sizeof *h->told);
	h->fd = loopback_listen(&port);
	if (!h->told || h->fd < 0)
		return error_set(h->told ? h->fd : -ENOMEM,
				 "listening for news of the ranks here: %s",
				 strerror(h->told ? -h->fd : ENOMEM));
	int rc = job_open(h, o);
	if (rc)
		return rc;
	for (uint32_t i = 0; i < h->ranks; i++) {
		h->told[i] = atomic_load(&h->job.rank[h->first + i].serial);
		atomic_store(&h->job.rank[h->first + i].notice, port);
	}
	o->job_fd = h->job.fd;
	return 0;
}

void status_relay_tell(struct status_relay *h, struct wire *w)
{
	struct rank_status b;
	loopback_drain(h->fd);
	for (uint32_t i = 0; i < h->ranks; i++) {
		if (atomic_load(&h->job.rank[h->first + i].serial) == h->told[i])
			continue;
		rank_status_read(&h->job, h->first + i, &b);
		wire_send(w, FRAME_RANK_STATUS, &b, sizeof b);
		h->told[i] = b.serial;
	}
}

bool status_relay_hear(struct status_relay *h, const struct frame *f)
{
	struct rank_status b;
	if (f->len != sizeof b)
		return false;
	memcpy(&b, f->data, sizeof b);
	return rank_status_take(&h->job, &b) != RANK_STATUS_NONSENSE;
}
