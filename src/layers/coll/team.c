/* SPDX-License-Identifier: BSD-3-Clause */
/* Teams: making them, freeing them, who is in them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "coll/message.h"
#include "coll/outbox.h"

/* -- The layer --------------------------------------------------------------------------------- */

static int coll_open(struct endpoint *e, void *state)
{
	struct coll *c = state;
	c->e = e;
	c->next_id = 2; /* 1 is the team of all ranks, each time it is made: see tern_team_all() */
	message_handlers(e);
	survivors_handlers(e);
	quiet_handlers(e);
	fail_handlers(e);
	layer_on(e, COLL_WAITS, on_waits);
	return 0;
}

static void team_drop(tern_team *team)
{
	views_free(team);
	*team = (tern_team){ .coll = (struct coll *)&misuse_state };
	memory_bury(team, false);
}

static tern_team no_team = { .coll = (struct coll *)&misuse_state };

void team_misused(tern_team **team, const char *call)
{
	if (*team == &no_team)
		return; /* and what was wrong is known */
	misuse_of(call, *team ? "a team that was freed" : "a team that is NULL");
	*team = *team ? *team : &no_team;
}

void team_not_set_up(tern_team **team, const char *call)
{
	misuse_of(call, OP_NOT_SET_UP);
	*team = &no_team;
}

static void coll_close(void *state)
{
	struct coll *c = state;
	for (tern_team *team = c->teams, *next; team; team = next) {
		next = team->next;
		for (struct run *r = team->first, *after; r; r = after) {
			after = r->next;
			run_free(c, r);
		}
		team_drop(team);
	}
	runs_free_spent(c);
	free(c->spare);
	early_close(c);
}

static unsigned coll_progress(void *state)
{
	struct coll *c = state;
	unsigned done = failures_tell(c);
	for (tern_team *team = c->teams; team; team = team->next)
		if (team->first)
			done += team_turn(team);
	return done;
}

uint32_t team_member(const tern_team *team, uint32_t rank)
{
	uint32_t i = 0;
	while (i < team->all.n && team->all.rank[i] != rank)
		i++;
	return i;
}

/* Only who has left well has done its part of what it called: see fail.c. */
static void team_loses(tern_team *team, uint32_t rank)
{
	struct net *net = team->coll->e->site.peer[rank].net;
	int code = net->ops->check(net, rank);
	team->gone++;
	if (code != -ESHUTDOWN)
		team_fail(team, 0, rank, code ? code : -ESHUTDOWN);
}

static void coll_lost(void *state, uint32_t rank)
{
	struct coll *c = state;
	for (tern_team *team = c->teams; team; team = team->next)
		if (team_member(team, rank) < team->all.n)
			team_loses(team, rank);
}

/* Of the calls with a handle, the first that is not over. */
static const char *coll_awaits(void *state, uint64_t *set)
{
	struct coll *c = state;
	tern_team *team = c->started ? c->teams : NULL;
	while (team && !team->first)
		team = team->next;
	if (!team)
		return NULL;
	run_awaits(team->first, set);
	run_words(team->first, c->words, sizeof c->words);
	return c->words;
}

LAYER_FITS(struct coll, COLL_WAITS, COLL_HANDLERS_END);
const struct layer coll_layer = { .bytes = sizeof(struct coll),
				  .open = coll_open,
				  .close = coll_close,
				  .progress = coll_progress,
				  .lost = coll_lost,
				  .awaits = coll_awaits };

/* -- Making ------------------------------------------------------------------------------------ */

tern_team *team_find(const struct coll *c, uint64_t id)
{
	tern_team *team = c->teams;
	while (team && team->id != id)
		team = team->next;
	return team;
}

/* Which machine a rank is on; where ranks of one do not share memory, each is its own. */
static uint32_t machine_of(const struct coll *c, uint32_t rank)
{
	for (unsigned i = 0; i < c->e->nets; i++)
		if (c->e->net[i]->ops->span == SPAN_MACHINE)
			return c->e->group->job.rank[rank].machine;
	return rank;
}

static bool same_machine(const struct coll *c, uint32_t a, uint32_t b)
{
	return machine_of(c, a) == machine_of(c, b);
}

/* The first member that is on this rank's machine, or that is not; all.n: there is none. */
static uint32_t member_here(const tern_team *team, bool here)
{
	uint32_t i = 0;
	while (i < team->all.n &&
	       same_machine(team->coll, team->all.rank[i], team->coll->e->t->rank) != here)
		i++;
	return i;
}

/* Adds a rank that is not in it. */
static void members_add(struct members *p, const struct coll *c, uint32_t rank)
{
	if (rank == c->e->t->rank)
		p->me = p->n;
	p->rank[p->n++] = rank;
}

/* Who is near, and one member of each machine: the first one. Apart: each is a machine. */
static void team_sort(tern_team *team, bool apart)
{
	const struct coll *c = team->coll;
	team->near.n = team->heads.n = 0;
	team->near.me = team->heads.me = UINT32_MAX;
	for (uint32_t i = 0; i < team->all.n; i++) {
		uint32_t rank = team->all.rank[i], h = apart ? i : 0;
		while (h < team->heads.n && !same_machine(c, team->heads.rank[h], rank))
			h++;
		if (h == team->heads.n)
			members_add(&team->heads, c, rank);
		team->machine[i] = h;
		if (apart ? rank == c->e->t->rank : same_machine(c, rank, c->e->t->rank))
			members_add(&team->near, c, rank);
	}
}

/* Members of each machine follow each other. */
static void team_group(tern_team *team)
{
	uint32_t place = 0;
	for (uint32_t m = 0; m < team->heads.n; m++) {
		team->group_at[m] = place;
		for (uint32_t i = 0; i < team->all.n; i++)
			if (team->machine[i] == m)
				team->group[i] = place++;
		team->group_size[m] = place - team->group_at[m];
	}
}

/*
 * Whether there is a level of outboxes below one of messages. All members come to the same:
 * everybody who is not alone on its machine has an outbox, or none is used.
 */
static bool team_levels(const tern_team *team, const struct seat *seat)
{
	for (uint32_t i = 0; i < team->all.n; i++)
		if (!seat ||
		    (team->group_size[team->machine[i]] > 1 && seat[i].place.outbox == OUTBOX_NONE))
			return false;
	return true;
}

/* The outbox of a member that has left is there: the job's memory keeps it. */
static void team_outboxes(tern_team *team, const struct seat *seat)
{
	const struct job *job = &team->coll->e->group->job;
	uint32_t near = 0;
	for (uint32_t i = 0; team->near.n > 1 && i < team->all.n; i++) {
		if (team->machine[i] != team->machine[team->all.me])
			continue;
		if (seat[i].place.round > team->round)
			team->round = seat[i].place.round;
		team->outbox[near++] = (void *)(job->base + seat[i].place.outbox);
	}
	team->all_left = team->round;
}

/*
 * All that has an element for each member lies behind the team, not cleared: of a thousand members
 * it is many pages, of which few are used. NULL: no memory.
 */
static tern_team *team_new(uint32_t n)
{
	tern_team *team;
	size_t each = sizeof *team->outbox + sizeof *team->group_size + 7 * sizeof *team->group;
	team = malloc(sizeof *team + n * each);
	if (!team)
		return NULL;
	memset(team, 0, sizeof *team + n * sizeof(void *)); /* and its outboxes */
	team->outbox = (void *)(team + 1);
	team->group_size = (void *)(team->outbox + n);
	team->machine = (void *)(team->group_size + n);
	team->group = team->machine + n;
	team->group_at = team->group + n;
	team->all.rank = team->group_at + n;
	team->near.rank = team->all.rank + n;
	team->heads.rank = team->near.rank + n;
	team->agents.rank = team->heads.rank + n;
	return team;
}

int team_make(struct coll *c, uint64_t id, struct maker maker, const struct seat *seat, uint32_t n,
	      struct outbox *own, tern_team **out)
{
	tern_team *team = team_new(n);
	if (!team)
		return error_set(-ENOMEM, "rank %u has no memory for a team of %u", c->e->t->rank,
				 n);
	team->coll = c;
	team->id = id;
	team->fails = team->failed = UINT64_MAX;
	for (uint32_t i = 0; i < n; i++)
		members_add(&team->all, c, seat ? seat[i].rank : i);
	team_sort(team, false);
	team_group(team);
	if (!team_levels(team, seat)) {
		team_sort(team, true);
		team_group(team);
	}
	team_outboxes(team, seat);
	/* A near step alone would not be checked. */
	team->is_near = n > 1 && team->near.n == n && !maker.checked;
	team->maker = maker;
	team->own_outbox = own;
	team->next = c->teams;
	c->teams = team;
	for (uint32_t i = 0; i < n; i++)
		if (layer_lost(c->e, team->all.rank[i]))
			team_loses(team, team->all.rank[i]);
	uint64_t call;
	struct failure why;
	while (early_take(team, EARLY_FAILURE, &call, &why, sizeof why))
		team_fail_as(team, call, &why);
	*out = team;
	return 0;
}

static void team_unlink(tern_team *team)
{
	tern_team **at = &team->coll->teams;
	while (*at != team)
		at = &(*at)->next;
	*at = team->next;
}

/*
 * The list of tern_team_list(), as a number and a hash of its ranks, 0: there is none; and the
 * member behind this one in it, the first one behind the last.
 */
struct list {
	uint64_t hash;
	uint32_t n, next;
};

#define NO_LIST ((struct list){ .n = 0 })

/* What a member says when a team is made. */
struct offer {
	uint64_t next_id;
	int32_t color, key;
	struct place place;
	uint64_t checked; /* TERN_CHECK */
	struct list list;
};

/* What a member says in a call; without an array of offers it is on the board. */
static const struct offer *offer_of(const tern_team *team, uint64_t call,
				    const struct offer *offers, uint32_t i)
{
	return offers ? &offers[i] : board_offer(team, call, i);
}

/* Members of the caller's color, by key. */
static uint32_t offers_pick(const tern_team *parent, uint64_t call, const struct offer *offers,
			    int32_t color, struct seat *seat)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < parent->all.n; i++) {
		const struct offer *o = offer_of(parent, call, offers, i);
		if (o->color != color)
			continue;
		uint32_t at = count++;
		for (; at && seat[at - 1].key > o->key; at--)
			seat[at] = seat[at - 1];
		seat[at] = (struct seat){ parent->all.rank[i], o->key, o->place };
	}
	return count;
}

_Static_assert(sizeof(struct offer) <= sizeof((struct job_offer *)0)->words, "it fits");

static void offers_exchange(struct run *r, const struct offer *mine, struct offer *offers)
{
	if (offers)
		steps_allgather(r, mine, offers, sizeof *mine);
	else
		step_add(r, (struct step){ .kind = STEP_BOARD,
					   .from = (const char *)mine,
					   .len = sizeof *mine });
}

/*
 * Whether each list has been given by all that are in it: then the member behind each has given the
 * same one, all around. All members see the same offers, so they come to the same, also to the id
 * of the team and to whether it is checked.
 */
static int offers_check(tern_team *parent, uint64_t call, const struct offer *offers, uint64_t *id,
			bool *checked)
{
	if (team_fails(parent, call)) /* somebody has no team */
		return team_failure(parent);
	for (uint32_t i = 0; i < parent->all.n; i++) {
		const struct offer *o = offer_of(parent, call, offers, i);
		const struct list *list = &o->list,
				  *other = &offer_of(parent, call, offers, list->next)->list;
		if (list->n && (other->n != list->n || other->hash != list->hash))
			return error_set(-EINVAL,
					 "rank %u calls tern_team_list with %u ranks, and rank %u, "
					 "which is one of them, with another list",
					 parent->all.rank[i], list->n,
					 parent->all.rank[list->next]);
		*id = o->next_id > *id ? o->next_id : *id;
		*checked &= o->checked;
	}
	return 0;
}

static int team_offer(tern_team *parent, int32_t color, int32_t key, struct list list,
		      const char *name, tern_team **out)
{
	struct coll *c = parent->coll;
	uint32_t n = parent->all.n;
	if (!out)
		return error_set(-EINVAL, "%s was given no place for the team", name);
	struct offer mine = { .next_id = c->next_id, .color = color, .key = key, .list = list };
	mine.checked = c->e->owner.checked;
	uint64_t call = parent->calls;
	/* The team of all ranks is the one without outboxes: see tern_team_all(). */
	bool board = parent->id == TEAM_FIRST && member_here(parent, false) == n;
	struct seat *seat = malloc(n * (sizeof *seat + (board ? 0 : sizeof mine)));
	struct offer *offers = board ? NULL : (void *)(seat + n);
	struct outbox *own = NULL;
	struct run *r;
	if (!seat)
		return error_set(-ENOMEM, "%s: no memory", name);
	int rc = run_begin(parent, name, &r);
	if (!rc) {
		own = color == TERN_COLOR_NONE ? NULL : outbox_take(c, &mine.place);
		run_agree(r, "%s", "");
		offers_exchange(r, &mine, offers);
		r->meets = true;
		rc = run_go(r, NULL);
	}
	tern_team *team = NULL;
	struct maker maker = { parent->id, call, true };
	uint64_t id = 0;
	if (!rc)
		rc = offers_check(parent, call, offers, &id, &maker.checked);
	if (!rc && color != TERN_COLOR_NONE) {
		n = offers_pick(parent, call, offers, color, seat);
		rc = team_make(c, id, maker, seat, n, own, &team);
	}
	free(seat);
	if (!rc) { /* early messages of the new team are kept until it is there */
		c->next_id = id + 1;
		*out = team;
	} else if (parent->calls > call &&
		   rc != -EINVAL) { /* others may have it, with the outbox */
		team_fail(parent, call, c->e->t->rank, rc);
		team_fail_tell(parent, call);
	} else if (own) {
		outbox_give(c, own);
	}
	return rc;
}

int tern_team_all(tern *t, tern_team **team)
{
	INSIDE struct scope scope = scope_given(t);
	struct coll *c = coll_of(t);
	int rc = rules_rank_waits(t->own, "tern_team_all()");
	/* Id 1 is a team without outboxes, on which this call alone is made. */
	tern_team *base = team_find(c, TEAM_FIRST);
	if (!rc && !base)
		rc = team_make(c, TEAM_FIRST, (struct maker){ 0 }, NULL, t->size, NULL, &base);
	return rc ? rc : team_offer(base, 0, 0, NO_LIST, "tern_team_all()", team);
}

int tern_team_split(tern_team *team, int color, int key, tern_team **out)
{
	INSIDE struct scope scope = team_scope(&team, __func__);
	if (color < 0 && color != TERN_COLOR_NONE)
		return error_set(-EINVAL,
				 "tern_team_split() was given color %d; colors are 0 or more, "
				 "or TERN_COLOR_NONE",
				 color);
	return team_offer(team, color, key, NO_LIST, "tern_team_split()", out);
}

/* A list is known by the place in the team of its first member: lists have no member in common. */
int tern_team_list(tern_team *team, const uint32_t *ranks, uint32_t n, tern_team **out)
{
	INSIDE struct scope scope = team_scope(&team, __func__);
	int key = -1, rc = rules_forked(team->coll->e);
	if (rc)
		return rc;
	struct list list = { .n = n };
	if (!ranks && n)
		return error_set(-EINVAL, "tern_team_list() was given no list of %u ranks", n);
	for (uint32_t i = 0; i < n; i++) {
		uint32_t twice = 0;
		while (ranks[twice] != ranks[i])
			twice++;
		if (team_member(team, ranks[i]) == team->all.n || twice < i)
			return error_set(-EINVAL, "tern_team_list() was given rank %u, which is %s",
					 ranks[i],
					 twice < i ? "in the list twice" : "not in the team");
		if (ranks[i] == team->coll->e->t->rank)
			key = (int)i;
		if (ranks[i ? i - 1 : n - 1] == team->coll->e->t->rank)
			list.next = team_member(team, ranks[i]);
		list.hash = (list.hash ^ ranks[i]) * UINT64_C(0x100000001b3) + i;
	}
	if (key < 0)
		return team_offer(team, TERN_COLOR_NONE, 0, NO_LIST, "tern_team_list()", out);
	return team_offer(team, (int)team_member(team, ranks[0]), key, list, "tern_team_list()",
			  out);
}

int tern_team_machine(tern_team *team, tern_team **out)
{
	INSIDE struct scope scope = team_scope(&team, __func__);
	int rc = rules_forked(team->coll->e);
	return rc ? rc
		  : team_offer(team, (int)member_here(team, true), 0, NO_LIST,
			       "tern_team_machine()", out);
}

/* -- Freeing ----------------------------------------------------------------------------------- */

int tern_team_free(tern_team *team)
{
	if (!team)
		return 0;
	INSIDE struct scope scope = team_scope(&team, __func__);
	int rc = rules_wait(team->coll->e, "tern_team_free()");
	if (rc)
		return rc;
	if (team->first)
		return error_set(-EBUSY, "tern_team_free() was called while %s is under way",
				 team->first->name);
	/* Others may still read data in our outbox: all say that they do not. */
	bool whole = !team_fails(team, team->calls) && !team->retired;
	rc = whole ? call_barrier(team, NULL, "tern_team_free()") : 0;
	if (rc == -EINVAL) /* others call something else: see agree.c */
		return rc;
	whole = whole && !rc;
	team_fail_told(team, "tern_team_free()");
	team_unlink(team);
	early_forget(team->coll, team->id);
	/* Of a team that has lost a member the outbox stays: who is still in a call may read it. */
	if (team->own_outbox && whole)
		outbox_give(team->coll, team->own_outbox);
	team_drop(team);
	return 0;
}

uint32_t tern_team_rank(const tern_team *team)
{
	return team ? team->all.me : UINT32_MAX;
}

uint32_t tern_team_size(const tern_team *team)
{
	return team ? team->all.n : 0;
}

uint32_t tern_team_member(const tern_team *team, uint32_t i)
{
	return team && i < team->all.n ? team->all.rank[i] : TERN_RANK_NONE;
}

/*
 * Numbers of teams are not used again, and a team of survivors has its parent's in another
 * generation. So 31 bits of both tell the last 16 million teams of a rank apart.
 */
tern_id tern_team_id(const tern_team *team, uint32_t id)
{
	if (!team)
		return TERN_ID_TEAM | id;
	uint64_t generation = team->id >> ID_BITS & 0x7f, number = team->id & 0xffffff;
	return TERN_ID_TEAM | generation << 56 | number << 32 | id;
}
