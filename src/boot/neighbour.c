/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ranks of a machine stand in a circle, and each watches the next one that lives. When that one's
 * process ends, the watcher tells the job and goes on to the one behind it. So every
 * rank is watched as long as one other lives, whoever dies and in whatever order, each has
 * one descriptor however many ranks there are, and nobody is special.
 *
 * A watcher may die over its telling. Whoever comes after it walks over the same ranks and
 * tells of them again, which changes nothing where it was done.
 *
 * Only the kernel knows at once that a process has ended, and it does not wake a rank
 * that computes or sleeps on its bell. Hence a thread, which sleeps in poll() until its
 * neighbour ends; it takes no signals and is there until its process ends, because
 * a rank that has closed still has a neighbour.
 */
#include "boot/neighbour.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/world.h"
#include "boot/process.h"
#include "boot/thread.h"

enum { AGAIN_NS = 50000000 };

struct watch {
	struct job *job;
	uint32_t rank;
};

/* If nobody knows how it ended: well, if it had closed its endpoint before. */
static int status_of(const struct job *j, uint32_t rank, int fd, pid_t pid, uint64_t born)
{
	int status;
	if (process_status(fd, pid, born, &status))
		return status;
	return job_rank_state(j, rank) == RANK_CLOSED ? 0 : STATUS_UNKNOWN;
}

/* Returns when the rank's process has ended and the job knows. */
static void neighbour_see_end(struct job *j, uint32_t rank)
{
	pid_t pid = atomic_load(&j->rank[rank].pid);
	uint64_t born = atomic_load(&j->rank[rank].born);
	int fd;
	while ((fd = process_open(pid, born)) < 0 && fd != -ESRCH)
		world_real.nap(
			AGAIN_NS); /* there are no descriptors to be had: that says nothing of the rank */
	struct pollfd p = { .fd = fd, .events = POLLIN };
	while (fd >= 0 && poll(&p, 1, -1) != 1)
		;
	bool known = job_rank_state(j, rank) >= RANK_GONE; /* from a watcher that may have died over it */
	job_rank_ended(j, rank,
		       known ? atomic_load(&j->rank[rank].status) : status_of(j, rank, fd, pid, born));
	if (fd >= 0)
		close(fd);
}

static void *neighbour_main(void *arg)
{
	struct watch *w = arg;
	for (uint32_t i = 1; i < w->job->size; i++) {
		uint32_t next = (w->rank + i) % w->job->size;
		if (!job_here(w->job, next))
			continue;
		neighbour_see_end(w->job, next);
		job_tell(w->job, w->rank); /* it cannot say so itself */
		if (job_rank_state(w->job, next) == RANK_DEAD)
			job_tell_death(w->job);
	}
	return NULL;
}

int neighbour_watch(struct job *job, uint32_t rank)
{
	static struct watch watch; /* one a process, which is one rank */
	watch = (struct watch){ .job = job, .rank = rank };
	int fd = process_open(getpid(), process_born(getpid()));
	if (fd < 0)
		return error_set(fd,
				 "ranks that other launchers start watch each other with pidfd_open, which "
				 "needs Linux 5.3 and the container's consent: %s; use `tern run`",
				 strerror(-fd));
	close(fd);
	pthread_t thread;
	int rc = thread_start(&thread, neighbour_main, &watch);
	if (!rc)
		pthread_detach(thread);
	return rc ? error_set(rc, "starting the thread that watches the next rank: %s", strerror(-rc)) : 0;
}
