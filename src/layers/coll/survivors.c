/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The team of those who live. In turn each member leads a round and tells all others its view; who
 * has a view repeats it, and only who has none yet makes one of what it knows. The rounds of
 * members that have died pass when their death is known. A member that has given up another one,
 * which may live, has no say any more and gets no team. docs/collectives.md has the argument.
 */
#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "coll/message.h"

enum { VIEW_WORDS = TERN_RANKS_MAX / 64 };

/* What the leader of a round has told. */
struct view {
	uint64_t alive[VIEW_WORDS]; /* members, by their place */
	struct place place;         /* of the leader */
	bool told;
};

static struct view *view_of(tern_team *team, uint32_t leader)
{
	if (!team->views)
		team->views = memory_new(team->all.n, sizeof(struct view));
	return team->views ? &team->views[leader] : NULL;
}

void views_free(tern_team *team)
{
	memory_free(team->views);
}

static bool view_has(const struct view *v, uint32_t member)
{
	return v->alive[member / 64] >> member % 64 & 1;
}

/* Of a leader that has no say: it tells that, so that nobody waits for more. */
static bool view_empty(const struct view *v)
{
	static const uint64_t none[VIEW_WORDS];
	return memcmp(v->alive, none, sizeof none) == 0;
}

static void view_take(tern_team *team, uint64_t leader, const struct view *v)
{
	struct view *kept = leader < team->all.n ? view_of(team, (uint32_t)leader) : NULL;
	if (kept)
		*kept = *v;
}

void view_none(tern_team *team, uint32_t member)
{
	view_take(team, member, &(struct view){ .told = true });
}

static void on_view(tern *t, const tern_msg *m)
{
	struct coll *c = coll_of(t);
	struct view v = { .place = { tern_msg_word(m, 2), tern_msg_word(m, 3) }, .told = true };
	size_t len;
	const void *alive = tern_msg_data(m, &len);
	tern_team *team = team_find(c, tern_msg_word(m, 0));
	c->handled++;
	if (!alive || len > sizeof v.alive)
		return;
	memcpy(v.alive, alive, len);
	if (team)
		view_take(team, tern_msg_word(m, 1), &v);
	else if (!team_over(c, tern_msg_word(m, 0)))
		early_keep(c, m, EARLY_VIEW, &v, sizeof v);
}

void survivors_handlers(struct endpoint *e)
{
	layer_on(e, COLL_VIEW, on_view);
}

/* What this rank says in the agreement. */
struct say {
	struct view view;
	bool has;         /* it has a view */
	uint32_t gave_up; /* a member that may live, plus 1: then it says nothing */
};

/* Whether a member is lost to this rank, and not known to have ended. */
static bool member_given_up(const tern_team *team, uint32_t member)
{
	struct endpoint *e = team->coll->e;
	uint32_t rank = team->all.rank[member];
	return e->site.peer[rank].lost && job_rank_check(&e->group->job, rank) == 0;
}

/* A view of what this rank knows; who has told that it has no say is not in it. */
static void view_make(const tern_team *team, struct say *say)
{
	const struct endpoint *e = team->coll->e;
	for (uint32_t i = 0; i < team->all.n; i++) {
		const struct view *told = &team->views[i];
		if (member_given_up(team, i))
			say->gave_up = i + 1;
		if (!e->site.peer[team->all.rank[i]].lost && !(told->told && view_empty(told)))
			say->view.alive[i / 64] |= UINT64_C(1) << i % 64;
	}
	say->has = true;
}

unsigned survivors_dies_at = UINT32_MAX; /* messages that a test lets a rank send before it dies */

static int view_tell(tern_team *team, const struct view *v)
{
	struct endpoint *e = team->coll->e;
	const uint64_t words[] = { team->id, team->all.me, v->place.outbox, v->place.round };
	size_t bytes = (team->all.n + 63) / 64 * sizeof(uint64_t);
	for (uint32_t i = 0; i < team->all.n; i++) {
		if (i == team->all.me)
			continue;
		if (TERN_UNLIKELY(survivors_dies_at-- == 0))
			raise(SIGKILL);
		int rc = layer_request(e, team->all.rank[i], COLL_VIEW, v->alive, bytes, 4, words);
		/* Whoever has left needs no view. */
		if (rc && !receiver_left(rc))
			return rc;
	}
	return 0;
}

struct led {
	tern_team *team;
	uint32_t leader;
};

static bool round_over(struct endpoint *e, void *arg)
{
	const struct led *l = arg;
	return l->team->views[l->leader].told || layer_lost(e, l->team->all.rank[l->leader]);
}

static int round_lead(tern_team *team, struct say *say)
{
	if (!say->has)
		view_make(team, say);
	return say->gave_up ? 0 : view_tell(team, &say->view);
}

static int round_pass(tern_team *team, uint32_t leader, struct say *say)
{
	struct led led = { team, leader };
	if (leader == team->all.me)
		return round_lead(team, say);
	struct wait w = { .call = "tern_team_survivors()",
			  .way = "from",
			  .whom = team->all.rank[leader] + 1,
			  .stop = team_stop };
	wait_through(team->coll->e, round_over, &led, &w);
	const struct view *told = &team->views[leader];
	if (told->told && !view_empty(told)) {
		memcpy(say->view.alive, told->alive, sizeof say->view.alive);
		say->has = true;
	} else if (!told->told && member_given_up(team, leader)) {
		say->gave_up = leader + 1; /* others may have got its view */
	}
	return 0;
}

/*
 * Who has given up a member waits for nobody any more: that member may wait for it. Others do not
 * wait for it either, if it has not told its view yet.
 */
static int say_nothing(tern_team *team, struct say *say, bool led)
{
	memset(say->view.alive, 0, sizeof say->view.alive);
	int rc = led ? 0 : view_tell(team, &say->view);
	return rc ? rc
		  : error_set(-EHOSTUNREACH,
			      "tern_team_survivors(): rank %u gets no team, because it cannot "
			      "reach rank %u, which may live: it should end",
			      team->coll->e->t->rank, team->all.rank[say->gave_up - 1]);
}

static int rounds_pass(tern_team *team, struct say *say)
{
	int rc = 0;
	for (uint32_t leader = 0; leader < team->all.n && !rc; leader++) {
		rc = round_pass(team, leader, say);
		if (!rc && say->gave_up)
			rc = say_nothing(team, say, leader > team->all.me);
	}
	return rc;
}

/*
 * All members of the new team have called this, so none of them uses an outbox of the old one any
 * more. Numbers of rounds that were not left may be in its cells: it goes on behind them.
 */
static void outbox_reclaim(tern_team *team)
{
	struct outbox *d = team->own_outbox;
	if (!d)
		return;
	atomic_store(&d->left, team->round + OUTBOX_CELLS);
	atomic_store(&d->sleepers, 0);
	outbox_give(team->coll, d);
	team->own_outbox = NULL;
}

static int survivors_make(tern_team *team, const struct view *view, struct outbox *own,
			  tern_team **out)
{
	struct maker maker = { team->id, CALL_SURVIVORS, team->maker.checked };
	struct seat *seat = calloc(team->all.n, sizeof *seat);
	uint32_t n = 0;
	if (!seat)
		return error_set(-ENOMEM, "tern_team_survivors(): no memory");
	for (uint32_t i = 0; i < team->all.n; i++) {
		if (!view_has(view, i))
			continue;
		seat[n].rank = team->all.rank[i];
		seat[n++].place = i == team->all.me ? view->place : team->views[i].place;
	}
	int rc = team_make(team->coll, team->id + (UINT64_C(1) << ID_BITS), maker, seat, n, own,
			   out);
	free(seat);
	return rc;
}

/* What is under way on the team fails first: its members are not all there. */
static int survivors_begin(tern_team *team, tern_team **out)
{
	int rc = rules_wait(team->coll->e, "tern_team_survivors()");
	if (!rc && !out)
		rc = error_set(-EINVAL, "tern_team_survivors() was given no place for the team");
	if (!rc && team->retired)
		rc = team_check(team, "tern_team_survivors()");
	if (!rc && team->first)
		rc = error_set(-EBUSY,
			       "tern_team_survivors() was called while %s is under way: wait for "
			       "it first",
			       team->first->name);
	if (!rc && !view_of(team, 0))
		rc = error_set(-ENOMEM, "tern_team_survivors(): no memory");
	struct view v;
	uint64_t leader;
	while (!rc && early_take(team, EARLY_VIEW, &leader, &v, sizeof v))
		view_take(team, leader, &v);
	return rc;
}

int tern_team_survivors(tern_team *team, tern_team **out)
{
	INSIDE struct scope scope = team_scope(&team, __func__);
	struct say say = { .has = false };
	int rc = survivors_begin(team, out);
	if (rc)
		return rc;
	team_fail_told(team, "tern_team_survivors()");
	lost_look(team->coll->e);
	struct outbox *own = outbox_take(team->coll, &say.view.place);
	rc = rounds_pass(team, &say);
	if (!rc && (rc = survivors_make(team, &say.view, own, out))) {
		team_fail(team, team->calls, team->coll->e->t->rank, rc);
		team_fail_tell(team, CALL_SURVIVORS);
	}
	if (!rc)
		outbox_reclaim(team);
	team->retired = !rc;
	return rc;
}
