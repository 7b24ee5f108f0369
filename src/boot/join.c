/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The launcher's process manager is asked for two things: which rank this is of how many,
 * and to carry one card from each rank to all. A card says which machine its rank is
 * on and where it can be met. Then it has done its work.
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
#include <unistd.h>

#include <tern/tern.h>

#include "base/error.h"
#include "base/kernel.h"
#include "boot/meet.h"
#include "boot/neighbour.h"
#include "boot/place.h"

struct card {
	struct place place;
	struct meet_address meet;
};
_Static_assert(sizeof(struct card) <= PMI_CARD_MAX, "a card must fit a value of the launcher's table");

/* Until networks between machines are there. */
static int check_one_machine(const struct card *card, uint32_t rank, uint32_t size)
{
	for (uint32_t r = 0; r < size; r++)
		if (!place_same(&card[r].place, &card[rank].place))
			return error_set(
				-ENOTSUP,
				"rank %u is on %.63s and rank %u on %.63s, in another machine or container, and "
				"this Tern connects ranks of one: start the job on one node "
				"(srun -N 1, mpirun --host localhost:N), without a container for each rank",
				rank, card[rank].place.host, r, card[r].place.host);
	return 0;
}

static int meet(const struct card *card, int fd, uint32_t rank, uint32_t size, struct job *job)
{
	uint32_t host = 0; /* the lowest rank of this machine */
	while (!place_same(&card[host].place, &card[rank].place))
		host++;
	if (host == rank)
		return meet_host(fd, &card[rank].meet, rank, size, job);
	return meet_guest(&card[host].meet, rank, job);
}

static int find_the_others(const struct pmi_ops *pmi, uint32_t rank, uint32_t size, struct job *job)
{
	struct card mine, *all = calloc(size, sizeof *all);
	int fd = -1;
	int rc = all ? place_here(&mine.place) : error_set(-ENOMEM, "joining %u ranks: no memory", size);
	if (!rc)
		rc = meet_open(&fd, &mine.meet);
	if (!rc)
		rc = pmi_gather(pmi, rank, size, "card", &mine, sizeof mine, all);
	if (!rc)
		rc = check_one_machine(all, rank, size);
	if (!rc)
		rc = meet(all, fd, rank, size, job);
	if (fd >= 0)
		close(fd);
	free(all);
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
