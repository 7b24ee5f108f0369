/* SPDX-License-Identifier: BSD-3-Clause */
/* Handlers that do not return, seen from outside. */
#include "tools/run/overdue.h"

#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/process.h"
#include "base/setting.h"
#include "endpoint/handler.h"

enum {
	LOOKS = 8,               /* within the limit */
	SECONDS_MOST = 10000000, /* four months, for which poll(2) has a number */
};

/* What a member handled when it was last looked at, and since when. */
struct reading {
	uint64_t inlet, message, head, served; /* inlet 0: nothing */
	uint64_t used;                         /* by its process, on cores, ns */
	uint64_t lasted;
	bool told;
};

int overdue_open(struct overdue *o, struct job *job)
{
	uint64_t seconds, ends;
	int rc = setting_number(SETTING_OVERDUE, &seconds);
	if (!rc)
		rc = setting_number(SETTING_WATCHDOG_END, &ends);
	if (rc || !seconds)
		return rc;
	o->reading = calloc(job->size + job->seats, sizeof *o->reading);
	if (!o->reading)
		return -ENOMEM;
	o->job = job;
	o->ends = ends;
	o->limit_ns = (seconds < SECONDS_MOST ? seconds : SECONDS_MOST) * 1000000000;
	o->next = clock_ns() + o->limit_ns / LOOKS;
	return 0;
}

int overdue_wait(const struct overdue *o)
{
	uint64_t now = clock_ns();
	if (!o->limit_ns)
		return -1;
	return o->next <= now ? 0 : (int)((o->next - now) / 1000000 + 1);
}

/* -- What a rank does ------------------------------------------------------------------------- */

/* A word of another process; 0 if it cannot be read. */
static uint64_t word_of(pid_t pid, uint64_t at)
{
	uint64_t word = 0;
	struct iovec here = { &word, sizeof word };
	struct iovec there = { (void *)(uintptr_t)at, sizeof word };
	return at && process_vm_readv(pid, &here, 1, &there, 1, 0) == sizeof word ? word : 0;
}

/* It goes on meanwhile: only what is the same at the next look means something. */
static struct reading reading_at(const struct pulse *p, pid_t pid)
{
	struct reading g = { .inlet = word_of(pid, stats_get(&p->inlet_at)) };
	if (!g.inlet)
		return g;
	uint64_t at = stats_get(&p->current_at);
	g.message = word_of(pid, at);
	if (g.message != at - offsetof(tern, current)) /* else it is answered: tern_answered_() */
		g.head = word_of(pid, g.message);
	g.served = stats_get(&p->served);
	return g;
}

/* Of the time since the last look, what counts. */
static uint64_t time_counted(pid_t pid, uint64_t passed, uint64_t *used)
{
	uint64_t ticks = 0, before = *used;
	char state = process_state(pid, &ticks);
	*used = ticks * (1000000000 / (uint64_t)sysconf(_SC_CLK_TCK));
	uint64_t on_core = *used - before;
	return on_core < passed && state != 'S' && state != 'D' ? on_core : passed;
}

/* It lasts if it is the handler of the last look. */
static void reading_renew(struct reading *g, const struct pulse *p, pid_t pid, uint64_t passed)
{
	struct reading now = reading_at(p, pid);
	now.used = g->used;
	uint64_t counted = time_counted(pid, passed, &now.used);
	if (now.inlet && now.inlet == g->inlet && now.message == g->message &&
	    now.head == g->head && now.served == g->served) {
		now.lasted = g->lasted + counted;
		now.told = g->told;
	}
	*g = now;
}

/* -- Looking ---------------------------------------------------------------------------------- */

static void overdue_say(const struct overdue *o, const struct reading *g, uint32_t rank, char *text)
{
	char label[LABEL_ROOM] = "a handler that has replied", name[JOB_NAME], from[48] = "";
	unsigned id = (unsigned)(g->head >> TERN_ID_SHIFT) % TERN_HANDLER_SLOTS;
	if (g->head) {
		handler_label_of(id, job_name_get(o->job, id, name) ? name : NULL, label);
		snprintf(from, sizeof from, ", of a message from rank %u,",
			 (unsigned)(g->head >> TERN_SRC_SHIFT) & 0xffff);
	}
	snprintf(text, OVERDUE_TEXT, "rank %u: %s%s has run for %llu s%s", rank, label, from,
		 (unsigned long long)(g->lasted / 1000000000),
		 o->ends ? "; the job ends (TERN_HANDLER_LIMIT)" : "");
}

bool overdue_look(struct overdue *o, uint32_t *rank, char text[OVERDUE_TEXT])
{
	uint64_t now = clock_ns(), passed;
	if (!o->limit_ns || now < o->next)
		return false;
	passed = now - o->next + o->limit_ns / LOOKS;
	o->next = now + o->limit_ns / LOOKS;
	uint32_t most = o->job->size + o->job->seats, members = job_members(o->job);
	bool found = false;
	for (uint32_t m = 0; m < members && m < most; m++) {
		struct reading *g = &o->reading[m];
		uint32_t r = job_member_rank(o->job, m);
		pid_t pid = r < o->job->size ? atomic_load(&o->job->rank[r].pid) : 0;
		if (!pid || job_rank_state(o->job, r) != RANK_OPEN) {
			*g = (struct reading){ 0 };
			continue;
		}
		reading_renew(g, job_pulse(o->job, m), pid, passed);
		if (found || g->told || g->lasted < o->limit_ns)
			continue;
		found = g->told = true;
		*rank = r;
		overdue_say(o, g, r, text);
	}
	return found;
}
