/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The launcher's process manager is asked for two things: which rank this is of how many,
 * and to carry one card from each rank to all. A card says which machine its rank is
 * on and where it can be met; if they are on several, a second one says where its herald can be reached, and whether there
 * is a fabric. Then it has done its work.
 *
 * It is closed at once, so that a rank may end as it likes afterwards; but PMIx with the
 * endpoint, because MPI in the same process shares it, and Open MPI's mpirun lets nobody in
 * again who has left. mpirun also calls it an improper end if a process leaves
 * PMIx open, so one that returns without tern_close() closes it on its way out.
 */
#include "boot/join.h"

#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include <tern/tern.h>

#include "base/error.h"
#include "base/kernel.h"
#include "boot/herald.h"
#include "boot/meet.h"
#include "boot/neighbour.h"
#include "boot/place.h"
#include "net/reach.h"

struct card {
	struct place place;
	struct meet_address meet;
	uint64_t id; /* rank 0's is the job's, */
	uint8_t key[JOB_KEY];
};
_Static_assert(sizeof(struct card) <= PMI_CARD_MAX, "a card must fit a value of the launcher's table");

/* A second one, of a job over several machines. */
struct far_card {
	struct sockaddr_in6 herald; /* where it can be reached */
	uint32_t fabric;            /* whether its machine has one */
};

/* A job that is being joined. */
struct joining {
	const struct pmi_ops *pmi;
	uint32_t rank, size;
	struct card *card; /* one a rank */
	uint32_t *machine; /* one a rank: the number of its machine, in the order of their lowest ranks */
	uint32_t machines;
	int meeting;
	struct job *job;
};

static int card_make(struct card *c, int *meeting)
{
	*c = (struct card){ .id = 0 };
	int rc = place_here(&c->place);
	if (!rc)
		rc = meet_open(meeting, &c->meet);
	if (!rc && (getrandom(&c->id, sizeof c->id, 0) != sizeof c->id ||
		    getrandom(c->key, sizeof c->key, 0) != sizeof c->key))
		rc = error_set(-ENOTSUP, "the kernel has no random bytes for the key of a job");
	return rc;
}

/* The lowest rank on the machine of `rank`. */
static uint32_t host_of(const struct joining *j, uint32_t rank)
{
	uint32_t host = 0;
	while (!place_same(&j->card[host].place, &j->card[rank].place))
		host++;
	return host;
}

static void machines_count(struct joining *j)
{
	for (uint32_t r = 0; r < j->size; r++) {
		uint32_t host = host_of(j, r);
		j->machine[r] = host < r ? j->machine[host] : j->machines++;
	}
}

static int meet(const struct joining *j)
{
	struct meet_plan plan = { .size = j->size, .machine = j->machine, .machines = j->machines };
	uint32_t host = host_of(j, j->rank);
	if (host != j->rank)
		return meet_guest(&j->card[host].meet, j->rank, j->job);
	plan.id = j->card[0].id;
	memcpy(plan.key, j->card[0].key, sizeof plan.key);
	return meet_host(j->meeting, &j->card[j->rank].meet, j->rank, &plan, j->job);
}

/* Only a job that needs it opens a port that others can reach. */
static int meet_machines(const struct joining *j)
{
	struct far_card mine = { .fabric = reach_fabric_here() }, *all = calloc(j->size, sizeof *all);
	struct sockaddr_in6 *address = calloc(j->size, sizeof *address);
	int listener = -1,
	    rc = all && address
			 ? herald_open(&listener, &mine.herald)
			 : error_set(-ENOMEM, "joining %u ranks on several machines: no memory", j->size);
	if (!rc)
		rc = pmi_gather(j->pmi, j->rank, j->size, "herald", &mine, sizeof mine, all);
	bool fabric = true;
	for (uint32_t r = 0; !rc && r < j->size; r++) {
		address[r] = all[r].herald;
		fabric &= all[r].fabric != 0;
	}
	if (!rc)
		reach_agreed(j->job->head, fabric);
	if (!rc)
		rc = herald_begin(j->job, j->rank, listener, address);
	if (rc && listener >= 0)
		close(listener);
	free(address);
	free(all);
	return rc;
}

static int cards_exchange(struct joining *j)
{
	struct card mine;
	int rc = card_make(&mine, &j->meeting);
	if (!rc)
		rc = pmi_gather(j->pmi, j->rank, j->size, "card", &mine, sizeof mine, j->card);
	return rc;
}

static int find_the_others(const struct pmi_ops *pmi, uint32_t rank, uint32_t size, struct job *job)
{
	struct joining j = { .pmi = pmi, .rank = rank, .size = size, .meeting = -1, .job = job };
	j.card = calloc(size, sizeof *j.card);
	j.machine = calloc(size, sizeof *j.machine);
	int rc = j.card && j.machine ? cards_exchange(&j)
				     : error_set(-ENOMEM, "joining %u ranks: no memory", size);
	if (!rc) {
		machines_count(&j);
		rc = meet(&j);
	}
	if (!rc && j.machines > 1)
		rc = meet_machines(&j);
	if (j.meeting >= 0)
		close(j.meeting);
	free(j.machine);
	free(j.card);
	return rc;
}

/* What came of joining, through each process manager that was tried. */
struct joined {
	const struct pmi_ops *through;
	struct boot boot;
	struct job job;
	int rc;
	struct error_kept said;
};

/* A manager to be closed later, and the process that has to: a child that it forks has not. */
static struct {
	const struct pmi_ops *manager;
	pid_t pid;
} kept;

void join_leave(void)
{
	herald_settle();
	if (kept.manager && kept.pid == getpid())
		kept.manager->close();
	kept.manager = NULL;
}

static void manager_keep(const struct pmi_ops *manager)
{
	kept.manager = manager;
	kept.pid = getpid();
	atexit(join_leave);
}

static int join(struct joined *j)
{
	struct boot *b = &j->boot;
	barrier_register(); /* cheap only before the manager's library starts threads */
	int rc = j->through->open(&b->rank, &b->size);
	if (rc)
		return rc;
	b->fd = -1;
	if (b->size > TERN_RANKS_MAX)
		rc = error_set(-ERANGE, "a job of %u ranks was started; it may have %d", b->size,
			       TERN_RANKS_MAX);
	else if (b->rank >= b->size)
		rc = error_set(-EPROTO, "%s says that this is rank %u of %u, which there cannot be",
			       j->through->name, b->rank, b->size);
	else if (b->size > 1)
		rc = find_the_others(j->through, b->rank, b->size, &j->job);
	if (j->through->shared)
		manager_keep(j->through);
	else
		j->through->close();
	if (rc || b->size == 1)
		return rc;
	b->fd = j->job.fd;
	return neighbour_watch(&j->job, b->rank);
}

/*
 * Once: the others come once, and to try again alone would be to wait for ever. So a
 * later session finds what the first one found, be it an error.
 */
int join_through(const struct pmi_ops *pmi, struct boot *b)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	static struct joined tried[PMI_PROTOCOLS];
	struct joined *j = tried;
	pthread_mutex_lock(&lock);
	while (j->through && j->through != pmi)
		j++;
	if (!j->through) {
		j->through = pmi;
		j->rc = join(j);
		error_keep(&j->said);
	}
	pthread_mutex_unlock(&lock);
	*b = j->boot;
	if (j->rc)
		error_restore(&j->said);
	return j->rc;
}
