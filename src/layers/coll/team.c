/* SPDX-License-Identifier: BSD-3-Clause */
/* Teams: making them, freeing them, who is in them. */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "coll/far.h"
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
	free(team->all.rank);
	free(team->near.rank);
	free(team->heads.rank);
	free(team->machine);
	free(team->group);
	free(team->group_at);
	free(team->agents.rank);
	free(team->outbox);
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

static bool members_new(struct members *p, uint32_t n)
{
	p->rank = malloc(n * sizeof *p->rank);
	p->n = 0;
	return p->rank != NULL;
}

/* Adds a rank that is not in it. */
static void members_add(struct members *p, const struct coll *c, uint32_t rank)
{
	if (rank == c->e->t->rank)
		p->me = p->n;
	p->rank[p->n++] = rank;
}

/* Who is near, and one member of each machine: the first one. */
static void team_sort(tern_team *team)
{
	const struct coll *c = team->coll;
	uint32_t here = machine_of(c, c->e->t->rank);
	team->near.me = team->heads.me = UINT32_MAX;
	for (uint32_t i = 0; i < team->all.n; i++) {
		uint32_t rank = team->all.rank[i], machine = machine_of(c, rank), h = 0;
		if (machine == here)
			members_add(&team->near, c, rank);
		while (h < team->heads.n && machine_of(c, team->heads.rank[h]) != machine)
			h++;
		if (h == team->heads.n)
			members_add(&team->heads, c, rank);
		team->machine[i] = h;
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
	}
	team->group_at[team->heads.n] = place;
}

/*
 * Whether there is something to gain from a level of outboxes below one of messages. All members
 * come to the same: everybody who is not alone on its machine has an outbox, or none is used.
 */
static bool team_levels(const tern_team *team, const struct place *places)
{
	if (!places || team->heads.n == team->all.n)
		return false;
	for (uint32_t i = 0; i < team->all.n; i++) {
		uint32_t m = team->machine[i];
		if (team->group_at[m + 1] - team->group_at[m] > 1 &&
		    places[i].outbox == OUTBOX_NONE)
			return false;
	}
	return true;
}

/* False: no memory. The outbox of a member that has left is there: the job's memory keeps it. */
static bool team_outboxes(tern_team *team, const struct place *places)
{
	const struct job *job = &team->coll->e->group->job;
	uint32_t near = 0;
	if (!team->two_levels || team->near.n < 2)
		return true;
	struct outbox **outbox = calloc(team->near.n, sizeof *outbox);
	for (uint32_t i = 0; outbox && i < team->all.n; i++) {
		if (team->machine[i] != team->machine[team->all.me])
			continue;
		if (places[i].round > team->round)
			team->round = places[i].round;
		outbox[near++] = (struct outbox *)(void *)(job->base + places[i].outbox);
	}
	team->outbox = outbox;
	team->all_left = team->round;
	return outbox != NULL;
}

/* Who is where, and how data gets there. False: no memory. */
static bool team_lay(tern_team *team, const uint32_t *ranks, uint32_t n, const struct place *places)
{
	for (uint32_t i = 0; i < n; i++)
		members_add(&team->all, team->coll, ranks ? ranks[i] : i);
	team_sort(team);
	team_group(team);
	team->two_levels = team_levels(team, places);
	return team_outboxes(team, places);
}

static int team_refuse(const struct coll *c, uint32_t n)
{
	return error_set(-ENOMEM, "rank %u has no memory for a team of %u", c->e->t->rank, n);
}

int team_make(struct coll *c, uint64_t id, const uint32_t *ranks, uint32_t n,
	      const struct place *places, struct outbox *own, tern_team **out)
{
	tern_team *team = malloc(sizeof *team);
	if (!team)
		return team_refuse(c, n);
	*team = (tern_team){ .coll = c, .id = id, .fails = UINT64_MAX, .failed = UINT64_MAX };
	if (!members_new(&team->all, n) || !members_new(&team->near, n) ||
	    !members_new(&team->heads, n) || !members_new(&team->agents, n) ||
	    !(team->machine = malloc(n * sizeof *team->machine)) ||
	    !(team->group = malloc(n * sizeof *team->group)) ||
	    !(team->group_at = malloc((n + 1) * sizeof *team->group_at)) ||
	    !team_lay(team, ranks, n, places)) {
		team_drop(team);
		return team_refuse(c, n);
	}
	team->is_near = team->near.n == n && team->outbox;
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

/* Members of the caller's color, by key; places in the parent. */
static uint32_t offers_pick(const struct offer *offers, uint32_t n, int32_t color, uint32_t *place)
{
	uint32_t count = 0;
	for (uint32_t i = 0; i < n; i++) {
		if (offers[i].color != color)
			continue;
		uint32_t at = count++;
		for (; at && offers[place[at - 1]].key > offers[i].key; at--)
			place[at] = place[at - 1];
		place[at] = i;
	}
	return count;
}

static int team_from_offers(tern_team *parent, const struct offer *offers, int32_t color,
			    struct outbox *own, tern_team **out)
{
	struct coll *c = parent->coll;
	uint32_t n = parent->all.n, *place = malloc(2 * n * sizeof *place), *rank = place + n;
	struct place *places = malloc(n * sizeof *places);
	uint64_t id = 0;
	int rc = -ENOMEM;
	for (uint32_t i = 0; i < n; i++)
		id = offers[i].next_id > id ? offers[i].next_id : id;
	if (place && places) {
		uint32_t count = offers_pick(offers, n, color, place);
		for (uint32_t i = 0; i < count; i++) {
			rank[i] = parent->all.rank[place[i]];
			places[i] = offers[place[i]].place;
		}
		rc = team_make(c, id, rank, count, places, own, out);
	}
	if (!rc) /* early messages of the new team are kept until it is there */
		c->next_id = id + 1;
	free(place);
	free(places);
	return rc;
}

_Static_assert(sizeof(struct offer) <= sizeof((struct job_offer *)0)->words, "it fits");

/* The team of all ranks is the one without outboxes: see tern_team_all(). */
static void offers_exchange(struct run *r, const struct offer *mine, struct offer *offers)
{
	const tern_team *team = r->team;
	if (team->is_near)
		step_near(r, (struct near_step){ .kind = NEAR_ALLGATHER,
						 .in = (const char *)mine,
						 .out = (char *)offers,
						 .len = sizeof *mine });
	else if (team->id == TEAM_FIRST && team->near.n == team->all.n)
		step_add(r, (struct step){ .kind = STEP_BOARD,
					   .from = (const char *)mine,
					   .to = (char *)offers,
					   .len = sizeof *mine });
	else
		far_allgather(r, 0, mine, offers, sizeof *mine);
}

/*
 * Whether each list has been given by all that are in it: then the member behind each has given the
 * same one, all around. All members see the same offers, so they come to the same.
 */
static int offers_check(tern_team *parent, uint64_t call, const struct offer *offers)
{
	const uint32_t *rank = parent->all.rank;
	if (team_fails(parent, call)) /* somebody has no team */
		return team_failure(parent);
	for (uint32_t i = 0; i < parent->all.n; i++) {
		const struct list *list = &offers[i].list, *other = &offers[list->next].list;
		if (list->n && (other->n != list->n || other->hash != list->hash))
			return error_set(-EINVAL,
					 "rank %u calls tern_team_list with %u ranks, and rank %u, "
					 "which is one of them, with another list",
					 rank[i], list->n, rank[list->next]);
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
	struct offer *offers = malloc(n * sizeof *offers);
	struct outbox *own = NULL;
	struct run *r;
	if (!offers)
		return error_set(-ENOMEM, "%s: no memory", name);
	uint64_t call = parent->calls;
	int rc = run_begin(parent, name, &r);
	if (!rc) {
		own = color == TERN_COLOR_NONE ? NULL : outbox_take(c, &mine.place);
		run_agree(r, "%s", "");
		offers_exchange(r, &mine, offers);
		r->meets = true;
		rc = run_go(r, NULL);
	}
	tern_team *team = NULL;
	if (!rc)
		rc = offers_check(parent, call, offers);
	if (!rc && color != TERN_COLOR_NONE)
		rc = team_from_offers(parent, offers, color, own, &team);
	bool checked = team != NULL;
	for (uint32_t i = 0; !rc && i < n; i++) {
		checked = checked && offers[i].checked;
		if (offers[i].next_id >= c->next_id)
			c->next_id = offers[i].next_id + 1;
	}
	if (checked)
		team_check_calls(team);
	free(offers);
	if (!rc) {
		*out = team;
		if (team) {
			team->parent = parent->id;
			team->maker = call;
		}
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
		rc = team_make(c, TEAM_FIRST, NULL, t->size, NULL, NULL, &base);
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
	if (rc)
		return rc;
	return team_offer(team, (int)team->machine[team->all.me], 0, NO_LIST, "tern_team_machine()",
			  out);
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
