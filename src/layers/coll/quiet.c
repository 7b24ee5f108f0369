/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whether a program of active messages has come to its end. docs/collectives.md, Termination, has
 * the argument; the order of mark, barrier and state in a round is what it rests on.
 */
#include <errno.h>

#include "coll/run.h"
#include "core/layers.h"
#include "core/rules.h"

static void on_mark(tern *t, const tern_msg *m)
{
	const uint64_t words[] = { tern_msg_word(m, 0), tern_msg_word(m, 1) };
	coll_of(t)->handled++;
	layer_reply(t->own, COLL_MARKED, NULL, 0, 2, words);
}

/* Answers to a pass that failed may come in a later one: they do not count. */
static void on_marked(tern *t, const tern_msg *m)
{
	struct coll *c = coll_of(t);
	tern_team *team = team_find(c, tern_msg_word(m, 0));
	c->handled++;
	if (team && team->pass == tern_msg_word(m, 1))
		team->marks--;
}

void quiet_handlers(struct endpoint *e)
{
	layer_on(e, COLL_MARK, on_mark);
	layer_on(e, COLL_MARKED, on_marked);
}

/* Who has left cannot have been in this call to its end. */
static bool marks_over(struct endpoint *e, void *arg)
{
	const tern_team *team = arg;
	(void)e;
	return !team->marks || team->gone || team_fails(team, team->calls);
}

/*
 * Puts a mark behind what was sent to each member, and waits for the answers. Without one of them
 * the next call on the team fails.
 */
static void marks_pass(tern_team *team)
{
	struct endpoint *e = team->coll->e;
	const uint64_t words[] = { team->id, ++team->pass };
	team->marks = 0;
	for (uint32_t i = 0; i < team->all.n; i++) {
		uint32_t rank = team->all.rank[i];
		if (!e->t->lane[rank].base) /* nothing was ever sent */
			continue;
		int rc = layer_request(e, rank, COLL_MARK, NULL, 0, 2, words);
		if (rc) {
			team_fail(team, team->calls, rank, rc);
			break;
		}
		team->marks++;
	}
	struct wait w = { .call = "tern_team_quiet()", .stop = team_stop };
	wait_through(e, marks_over, team, &w);
	for (uint32_t i = 0; i < team->all.n && team->gone; i++)
		if (layer_lost(e, team->all.rank[i]))
			team_fail(team, team->calls, team->all.rank[i], -ESHUTDOWN);
}

/* Other threads than the one that calls, and a deferred function that waits in one of them. */
bool threads_run(const struct endpoint *e)
{
	bool self = e->site.context && e->site.context();
	return e->threads > (self ? 1u : 0u) || e->defer.running;
}

static int quiet_allowed(tern_team *team)
{
	struct endpoint *e = team->coll->e;
	int rc = team_check(team, "tern_team_quiet()");
	if (!rc)
		rc = rules_wait(e, "tern_team_quiet()");
	if (!rc && e->defer.running && e->defer.by == attach_token() &&
	    e->defer.thread == (e->site.context ? e->site.context() : 0))
		rc = rule_broken(RULE_DELIVERY, "tern_team_quiet() was called in a deferred "
						"function, whose return it would wait for");
	return rc;
}

int tern_team_quiet(tern_team *team)
{
	INSIDE struct scope scope = team_scope(&team, __func__);
	struct coll *c = team->coll;
	struct endpoint *e = c->e;
	int rc = quiet_allowed(team);
	uint64_t before = UINT64_MAX, any = 1;
	for (bool was_busy = true; !rc && any;) {
		marks_pass(team);
		rc = call_barrier(team, NULL, "tern_team_quiet()");
		if (rc)
			break;
		uint64_t handled = endpoint_served(e) - c->handled;
		bool busy = layers_busy(e, LAYER_COLL) || threads_run(e);
		uint64_t active = handled != before || busy || was_busy;
		before = handled;
		was_busy = busy;
		rc = call_max(team, &active, &any, "tern_team_quiet()");
		/* A round may wait for nobody; what is put off needs a step all the same. */
		wait_step(e, &(struct wait){ .call = "tern_team_quiet()" });
	}
	return rc;
}
