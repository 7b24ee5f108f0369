/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Joining the machine. It lies behind the job's memory, in the same file: whoever comes first makes
 * the file longer and lays the machine out.
 */
#include "net/sim/sim.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/setting.h"
#include "net/packet/packet.h"
#include "net/sim/machine/network.h"

enum { MAKING = 1, MADE, NAP_NS = 100000 };

static struct machine *here; /* of this process */
static unsigned users;

struct machine *sim_machine(void)
{
	return here;
}

/* -- The machine of the job ------------------------------------------------------------------- */

static int machine_map(struct machine *m, const struct job *job)
{
	off_t at = (off_t)((job->bytes + 4095) / 4096 * 4096);
	size_t bytes = machine_bytes(&m->profile, job->size);
	struct stat s;
	if (fstat(job->fd, &s) != 0 ||
	    (s.st_size < at + (off_t)bytes && ftruncate(job->fd, at + (off_t)bytes) != 0))
		return error_set(-errno, "making the memory of the simulated machine: %s",
				 strerror(errno));
	void *base =
		mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, job->fd, at);
	if (base == MAP_FAILED)
		return error_set(-errno, "mapping the memory of the simulated machine: %s",
				 strerror(errno));
	machine_lay(m, base, job->size);
	return 0;
}

/* One process lays it out; the others wait for that, in real time. */
static void machine_begin(struct machine *m, uint32_t nodes)
{
	uint32_t nobody = 0;
	if (atomic_compare_exchange_strong(&m->shared->state, &nobody, MAKING)) {
		machine_init(m, nodes);
		atomic_store(&m->shared->state, MADE);
	}
	while (atomic_load(&m->shared->state) != MADE)
		world_real.nap(NAP_NS);
}

static int machine_open(struct job *job)
{
	struct machine *m = calloc(1, sizeof *m);
	int rc = m ? profile_load(&m->profile, setting_text(SETTING_SIM))
		   : error_set(-ENOMEM, "opening the simulated machine: no memory");
	const struct sim_network *n = rc ? NULL : network_named(m->profile.network);
	if (!rc && n->judge)
		rc = n->judge(&m->profile, job->size);
	if (!rc)
		rc = machine_map(m, job);
	if (rc) {
		free(m);
		return rc;
	}
	m->job = job;
	machine_begin(m, job->size);
	here = m;
	return 0;
}

int sim_join(struct job *job, uint32_t node)
{
	int rc = here ? 0 : machine_open(job);
	if (rc)
		return rc;
	users++;
	baton_join(here, node);
	return 0;
}

void sim_leave(uint32_t node)
{
	baton_leave(here, node);
	if (--users)
		return;
	sim_world_leave(baton_time(here) / PS_NS);
	munmap(here->shared, here->bytes);
	free(here);
	here = NULL;
}
