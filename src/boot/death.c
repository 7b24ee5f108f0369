/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/death.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/world.h"

enum { GRACE_NS = 1000000000 }; /* between SIGTERM and SIGKILL, as under `tern run` */

static void watched_open(const struct job *j, struct watched *w)
{
	w->fd = process_open(atomic_load(&j->rank[w->rank].pid),
			     atomic_load(&j->rank[w->rank].born));
}

static void launcher_open(struct deaths *d)
{
	if (d->launcher.pid > 0)
		d->launcher_fd = process_open(d->launcher.pid, d->launcher.born);
}

void deaths_open(struct deaths *d, struct job *job, struct watched *room,
		 const struct process_name *launcher)
{
	*d = (struct deaths){ .job = job, .rank = room, .launcher = *launcher, .launcher_fd = -1 };
	for (uint32_t r = 0; r < job->size; r++)
		if (job_here(job, r)) {
			room[d->count] = (struct watched){ .rank = r };
			watched_open(job, &room[d->count++]);
		}
	d->left = d->count;
	launcher_open(d);
}

unsigned deaths_polls(const struct deaths *d, struct pollfd *p)
{
	p[0] = (struct pollfd){ .fd = d->asked ? -1 : d->launcher_fd, .events = POLLIN };
	for (uint32_t i = 0; i < d->count; i++)
		p[1 + i] = (struct pollfd){ .fd = d->rank[i].ended ? -1 : d->rank[i].fd,
					    .events = POLLIN };
	return 1 + d->count;
}

/* If nobody knows how it ended: well, if it had closed its endpoint before. */
static int status_of(const struct job *j, const struct watched *w)
{
	int status;
	const struct job_rank *r = &j->rank[w->rank];
	if (job_rank_state(j, w->rank) >=
	    RANK_GONE) /* told by one before us, who may have died over it */
		return atomic_load(&r->status);
	if (process_status(w->fd, atomic_load(&r->pid), atomic_load(&r->born), &status))
		return status;
	return job_rank_state(j, w->rank) == RANK_CLOSED ? 0 : STATUS_UNKNOWN;
}

static void rank_ended(struct deaths *d, struct watched *w)
{
	w->ended = true;
	d->left--;
	job_rank_ended(d->job, w->rank, status_of(d->job, w));
	if (w->fd >= 0)
		close(w->fd);
	w->fd = -1;
}

static void ranks_signal(const struct deaths *d, int signal)
{
	for (uint32_t i = 0; i < d->count; i++)
		if (!d->rank[i].ended && d->rank[i].fd >= 0)
			process_signal(d->rank[i].fd, signal);
}

/* Whoever started the ranks has gone, and nobody else will end them. */
static void launcher_gone(struct deaths *d)
{
	d->asked = clock_ns();
	ranks_signal(d, SIGTERM);
	ranks_signal(d, SIGCONT); /* a stopped one gets it too */
}

void deaths_serve(struct deaths *d, const struct pollfd *p)
{
	if (!d->asked && d->launcher_fd < 0)
		launcher_open(d);
	if (!d->asked && ((p[0].fd >= 0 && p[0].revents) || d->launcher_fd == -ESRCH))
		launcher_gone(d);
	for (uint32_t i = 0; i < d->count; i++) {
		struct watched *w = &d->rank[i];
		if (!w->ended && w->fd < 0)
			watched_open(d->job, w);
		if (!w->ended && ((p[1 + i].fd >= 0 && p[1 + i].revents) || w->fd == -ESRCH))
			rank_ended(d, w);
	}
	if (d->asked && clock_ns() - d->asked >= GRACE_NS)
		ranks_signal(d, SIGKILL);
}

void deaths_look(struct deaths *d, uint32_t rank)
{
	for (uint32_t i = 0; i < d->count; i++) {
		struct pollfd p = { .fd = d->rank[i].fd, .events = POLLIN };
		if (d->rank[i].rank == rank && !d->rank[i].ended &&
		    (p.fd == -ESRCH || (p.fd >= 0 && world_poll(&p, 1, 0) == 1)))
			rank_ended(d, &d->rank[i]);
	}
}

bool deaths_hasty(const struct deaths *d)
{
	bool blind =
		(d->asked && d->left) || (!d->asked && d->launcher.pid > 0 && d->launcher_fd < 0);
	for (uint32_t i = 0; i < d->count; i++)
		blind |= !d->rank[i].ended && d->rank[i].fd < 0;
	return blind;
}
