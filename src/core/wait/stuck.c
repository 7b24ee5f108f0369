/* SPDX-License-Identifier: BSD-3-Clause */
/* A wait in words: for whoever looks from outside, and on standard error when it takes long. */
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "core/layers.h"
#include "core/wait.h"

enum {
	STUCK_LOOKS = 6, /* at other ranks: each shows its wait now and then */
	STUCK_LOOK_NS = 1000000,
	STUCK_NAMED = 8, /* ranks, before they are only counted */
};

uint32_t wait_rank(const struct endpoint *e, const struct wait *w)
{
	return w->whom ? job_member_rank(&e->group->job, w->whom - 1) + 1 : 0;
}

void wait_words(const struct endpoint *e, const struct wait *w, char *text, size_t room)
{
	char id[24] = "", whom[32] = "";
	if (w->has_id)
		snprintf(id, sizeof id, " %#llx", (unsigned long long)w->id);
	if (w->way)
		snprintf(whom, sizeof whom, w->whom ? " %s rank %u" : " %s any rank", w->way,
			 wait_rank(e, w) - 1);
	snprintf(text, room, "%s%s%s%s%s", w->call ? w->call : "a call", id, whom,
		 w->lack ? ": " : "", w->lack ? w->lack : "");
}

/* As far as it shows: a rank of another machine shows nothing here. */
static bool waits_alike(const struct job *j, uint32_t rank, const char *call)
{
	struct rank_wait p;
	return !job_here(j, rank) || job_rank_state(j, rank) > RANK_OPEN ||
	       (pulse_read(&j->pulse[rank], &p) && strcmp(p.text, call) == 0);
}

/* Which ranks have come, in bits; more of them with each look. */
static void look_around(const struct endpoint *e, const char *call, bool *come)
{
	const struct job *j = &e->group->job;
	for (int i = 0; i < STUCK_LOOKS; i++) {
		for (uint32_t r = 0; r < j->size; r++)
			come[r] |= r == e->t->rank || waits_alike(j, r, call);
		e->world->nap(STUCK_LOOK_NS);
	}
}

/* "; not there: rank 1, 3 and 4 others" */
static void absent_text(const struct endpoint *e, const char *call, char *text, size_t room)
{
	bool come[TERN_RANKS_MAX] = { false };
	uint32_t count = 0;
	size_t used = 0;
	look_around(e, call, come);
	for (uint32_t r = 0; r < e->t->size; r++) {
		if (come[r])
			continue;
		if (count++ < STUCK_NAMED)
			used += (size_t)snprintf(text + used, room - used, "%s %u",
						 used ? "," : "; not there: rank", r);
	}
	if (count > STUCK_NAMED)
		snprintf(text + used, room - used, " and %u others", count - STUCK_NAMED);
}

void stuck_report(struct endpoint *e, struct wait *w, uint64_t ns)
{
	char call[PULSE_TEXT], absent[160] = "";
	if (!e->waiting.stuck_ns || w->told || ns < e->waiting.stuck_ns)
		return;
	w->told = true;
	wait_words(e, w, call, sizeof call);
	if (strcmp(call, "tern_barrier") == 0)
		absent_text(e, call, absent, sizeof absent);
	error_warn("rank %u has waited for %llu s in %s%s; `tern why` shows the other ranks",
		   e->t->rank, (unsigned long long)(ns / 1000000000), call, absent);
	layers_report(e, 2);
	for (unsigned i = 0; i < e->nets; i++)
		if (e->net[i]->ops->report)
			e->net[i]->ops->report(e->net[i]);
}
