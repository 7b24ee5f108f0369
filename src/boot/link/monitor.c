/* SPDX-License-Identifier: BSD-3-Clause */
/* Holds a descriptor for each rank of this machine, and says who has ended. */
#include "boot/link/monitor.h"

#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "base/clock.h"

enum {
	GRACE_NS = 1000000000,    /* between SIGTERM and SIGKILL, as under `tern run` */
	PATIENCE_NS = 2000000000, /* until SIGTERM, after a rank has ended the job */
	CORE_TICKS = 10,          /* time on a core, in the kernel's ticks, in which a rank that
				     calls Tern ends by itself */
};

/* Until SIGTERM, where ranks wait for a core. */
#define PATIENCE_MOST_NS UINT64_C(30000000000)

static void watched_open(const struct job *j, struct watched *w)
{
	w->fd = process_open(atomic_load(&j->rank[w->rank].pid),
			     atomic_load(&j->rank[w->rank].born));
}

static void launcher_open(struct monitor *m)
{
	const struct process_name *launcher = &m->job->head->launcher;
	if (launcher->pid > 0)
		m->launcher_fd = process_open(launcher->pid, launcher->born);
}

void monitor_open(struct monitor *m, struct job *job, struct watched *room)
{
	*m = (struct monitor){ .job = job, .rank = room, .launcher_fd = -1 };
	for (uint32_t r = 0; r < job->size; r++)
		if (job_here(job, r)) {
			room[m->count] = (struct watched){ .rank = r };
			watched_open(job, &room[m->count++]);
		}
	m->left = m->count;
	launcher_open(m);
}

unsigned monitor_polls(const struct monitor *m, struct pollfd *p)
{
	p[0] = (struct pollfd){ .fd = m->asked ? -1 : m->launcher_fd, .events = POLLIN };
	for (uint32_t i = 0; i < m->count; i++)
		p[1 + i] = (struct pollfd){ .fd = m->rank[i].ended ? -1 : m->rank[i].fd,
					    .events = POLLIN };
	return 1 + m->count;
}

/* If nobody knows how it ended: well, if it had closed its endpoint before. */
static int watched_status(const struct job *j, const struct watched *w)
{
	int status;
	const struct job_rank *r = &j->rank[w->rank];
	/* A link before us may have told that, and died. */
	if (job_rank_state(j, w->rank) >= RANK_GONE)
		return atomic_load(&r->status);
	if (process_status(w->fd, atomic_load(&r->pid), atomic_load(&r->born), &status))
		return status;
	return job_rank_state(j, w->rank) == RANK_CLOSED ? 0 : STATUS_UNKNOWN;
}

static void watched_ended(struct monitor *m, struct watched *w)
{
	w->ended = true;
	m->left--;
	job_rank_ended(m->job, w->rank, watched_status(m->job, w));
	if (w->fd >= 0)
		close(w->fd);
	w->fd = -1;
}

static void ranks_signal(const struct monitor *m, int signal)
{
	for (uint32_t i = 0; i < m->count; i++)
		if (!m->rank[i].ended && m->rank[i].fd >= 0)
			process_signal(m->rank[i].fd, signal);
}

/* Nobody else will. */
static void ranks_end(struct monitor *m)
{
	m->asked = clock_ns();
	ranks_signal(m, SIGTERM);
	ranks_signal(m, SIGCONT); /* a stopped one gets it too */
}

static void ranks_note(struct monitor *m)
{
	for (uint32_t i = 0; i < m->count; i++)
		process_state(atomic_load(&m->job->rank[m->rank[i].rank].pid), &m->rank[i].used);
}

/* Whether some rank wants to run and has hardly done so since the job was ended. */
static bool ranks_starve(const struct monitor *m)
{
	for (uint32_t i = 0; i < m->count; i++) {
		const struct watched *w = &m->rank[i];
		uint64_t used = w->used;
		if (!w->ended &&
		    process_state(atomic_load(&m->job->rank[w->rank].pid), &used) == 'R' &&
		    used - w->used < CORE_TICKS)
			return true;
	}
	return false;
}

/*
 * A rank has ended the job. The ranks that call the library end by themselves, with the job's
 * status, when they are told that one has ended, and the launcher may end them all. Only after a
 * while those that are left are told to; on a busy machine not before they have had a core.
 */
static void job_look(struct monitor *m)
{
	struct job_end end;
	if (!m->ended && job_end_read(m->job, &end)) {
		m->ended = clock_ns();
		ranks_note(m);
	}
	uint64_t waited = m->ended ? clock_ns() - m->ended : 0;
	if (!m->asked && waited >= PATIENCE_NS && (waited >= PATIENCE_MOST_NS || !ranks_starve(m)))
		ranks_end(m);
}

void monitor_serve(struct monitor *m, const struct pollfd *p)
{
	if (!m->asked && m->launcher_fd < 0)
		launcher_open(m);
	if (!m->asked && ((p[0].fd >= 0 && p[0].revents) || m->launcher_fd == -ESRCH))
		ranks_end(m); /* whoever started them has gone */
	job_look(m);
	for (uint32_t i = 0; i < m->count; i++) {
		struct watched *w = &m->rank[i];
		if (!w->ended && w->fd < 0)
			watched_open(m->job, w);
		if (!w->ended && ((p[1 + i].fd >= 0 && p[1 + i].revents) || w->fd == -ESRCH ||
				  job_rank_state(m->job, w->rank) >= RANK_GONE))
			watched_ended(m, w);
	}
	if (m->asked && clock_ns() - m->asked >= GRACE_NS)
		ranks_signal(m, SIGKILL);
}

bool monitor_must_retry(const struct monitor *m)
{
	bool blind = ((m->asked || job_end_word(m->job)) && m->left) ||
		     (!m->asked && m->job->head->launcher.pid > 0 && m->launcher_fd < 0);
	for (uint32_t i = 0; i < m->count; i++)
		blind |= !m->rank[i].ended && m->rank[i].fd < 0;
	return blind;
}
