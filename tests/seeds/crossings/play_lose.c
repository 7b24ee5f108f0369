/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank leaves or dies about a call on a team. The others make the call, a few more on that team,
 * and meet as survivors.
 */
#include <pthread.h>
#include <signal.h>
#include <time.h>
#include <unistd.h>

#include "net/sim/sim.h"
#include "play.h"

/* -- The rank that is lost -------------------------------------------------------------------- */

/* A simulated node crashes at its n-th event from now on. */
static void crash_at_event(unsigned n)
{
	sim_machine()->crash_wait = sim_machine()->waits + n;
}

__attribute__((noreturn)) static void die(const struct step *s)
{
	fflush(stdout);
	if (simulated)
		for (crash_at_event(1);;)
			(void)!tern_poll(t);
	if (s->value >> 3 & 1)
		_exit(130); /* which the launcher takes for a death, too */
	raise(SIGKILL);
	for (;;)
		pause();
}

static unsigned dies_after(const struct step *s)
{
	return s->after[me != s->from];
}

static void *die_soon(void *arg)
{
	const struct step *s = arg;
	struct timespec nap = { .tv_nsec = (long)dies_after(s) * 1000 };
	nanosleep(&nap, NULL);
	die(s);
}

static void die_in_call(const struct step *s)
{
	static pthread_t killer;
	if (simulated)
		crash_at_event(dies_after(s));
	else if (pthread_create(&killer, NULL, die_soon, (void *)(uintptr_t)s) != 0)
		die(s);
}

/* -- The call --------------------------------------------------------------------------------- */

static int split_or_list(const struct step *s, const struct place *p, tern_team **out)
{
	uint32_t list[RANKS_MOST];
	int key, color = model_color(s, me, &key);
	if (s->call == C_SPLIT)
		return tern_team_split(p->team, color, key, out);
	return tern_team_list(p->team, list, model_list(s, &p->group, list), out);
}

/* Any call; `out` gets a team if it makes one. */
static int any_call(const struct step *s, const struct place *p, int may, tern_team **out)
{
	switch (s->call) {
	case C_QUIET:
		return tern_team_quiet(p->team);
	case C_SPLIT:
	case C_LIST:
		return split_or_list(s, p, out);
	case C_MACHINE:
		return tern_team_machine(p->team, out);
	case C_FREE:
		return tern_team_free(p->team);
	case C_SURVIVORS:
		return tern_team_survivors(p->team, out);
	case C_MEMORY:
	case C_TRAFFIC:
		return 0;
	default:
		return call_make(s, p->team, &p->group, false, may, s->lost == DIES_BEFORE);
	}
}

/* For a while, with a lock now and then. */
static void serve(const struct step *s)
{
	if (s->value >> 12 & 1)
		traffic_lock(s, true);
	for (unsigned i = 0; i < (simulated ? 100 : 20 * dies_after(s)); i++)
		(void)!tern_poll(t);
}

__attribute__((noreturn)) static void lost_rank(const struct step *s, const struct place *p)
{
	tern_team *out = NULL;
	if (s->lost == DIES_BEFORE || (!p->team && s->lost != LEAVES))
		die(s);
	uint64_t began = simulated ? sim_machine()->waits : 0;
	if (s->lost == DIES_IN)
		die_in_call(s);
	if (s->call == C_TRAFFIC)
		serve(s);
	int rc = p->team ? any_call(s, p, s->lost == DIES_IN ? -EOWNERDEAD : 0, &out) : 0;
	if (simulated && s->lost == DIES_IN)
		printf("rank %u: the call takes %llu events\n", me,
		       (unsigned long long)(sim_machine()->waits - began));
	if (s->lost != LEAVES)
		die(s);
	code_is(s, call_names[s->call], rc, 0);
	code_is(s, "tern_close()", tern_close(t), 0);
	exit(failed());
}

static bool group_loses(const struct group *g, const struct step *s)
{
	for (uint32_t i = 0; i < g->n; i++)
		if (step_has(s->victims, g->rank[i]))
			return true;
	return false;
}

/* -- The others ------------------------------------------------------------------------------- */

/* A team that came of the call, though others may have failed to make it. */
static void new_team_check(const struct step *s, const struct place *p, tern_team *team)
{
	struct group g = { 0 };
	if (s->call == C_MACHINE)
		machine_group(&p->group, &g);
	if (!team || (s->call != C_MACHINE && !model_family(s, &p->group, &g)))
		return;
	bool with = group_loses(&g, s);
	int rc = tern_team_barrier(team);
	if (with)
		code_is(s, "a barrier of the new team, which the lost rank is in", rc, gone_code);
	else if (rc != -EOWNERDEAD || s->lost == LEAVES)
		code_is(s, "a barrier of the new team", rc, 0);
	code_is(s, "tern_team_free() of the new team", tern_team_free(team), 0);
}

/* The same team at every member that has got one: without the lost rank, or soon without it. */
static void survive(const struct step *s, struct place *p)
{
	for (;;) {
		tern_team *left = NULL;
		uint64_t set = 0, all[RANKS_MOST];
		if (!code_is(s, "tern_team_survivors()", tern_team_survivors(p->team, &left), 0))
			return;
		code_is(s, "tern_team_free() of the old team", tern_team_free(p->team), 0);
		p->team = left;
		for (uint32_t i = 0; i < tern_team_size(left); i++)
			set |= UINT64_C(1) << tern_team_member(left, i);
		int rc = tern_team_allgather(left, &set, all, sizeof set);
		if (!(set & gone)) {
			code_is(s, "an allgather of the survivors", rc, 0);
			for (uint32_t i = 0; i < tern_team_size(left) && !rc; i++)
				number_is(s, "the team at another member", all[i], set);
			return;
		}
		code_is(s, "an allgather with the lost rank", rc, gone_code);
	}
}

static void group_without(struct group *g, uint64_t ranks)
{
	struct group out = { 0 };
	for (uint32_t i = 0; i < g->n; i++) {
		if (step_has(ranks, g->rank[i]))
			continue;
		if (g->rank[i] == me)
			out.me = out.n;
		out.rank[out.n++] = g->rank[i];
	}
	*g = out;
}

/* Meets with those who are left, and goes on with a team that has no lost member. */
static void heal(const struct step *s, struct place *p)
{
	survive(s, p);
	group_without(&p->group, gone);
	number_is(s, "the number of survivors", tern_team_size(p->team), p->group.n);
	p->lost = 0;
}

static int lost_code(const struct step *s)
{
	return s->lost == LEAVES ? -ESHUTDOWN : -EOWNERDEAD;
}

/* Whoever leaves has done its part: then the call has all it needs. */
static int may_end_with(const struct step *s, const struct place *p)
{
	return s->lost != LEAVES && group_loses(&p->group, s) ? -EOWNERDEAD : 0;
}

static void lost_everywhere(const struct step *s)
{
	gone |= s->victims;
	gone_code = lost_code(s);
	for (unsigned f = 0; f < FAMILIES; f++)
		if (place[f].team && group_loses(&place[f].group, s))
			place[f].lost = gone_code;
}

/* The same call by those who are left. */
static void again(const struct step *s, const struct place *p)
{
	tern_team *out = NULL;
	int rc = any_call(s, p, 0, &out);
	if (s->call >= C_WITH_HANDLE)
		code_is(s, "the same call of the survivors", rc, 0);
	if (out)
		code_is(s, "freeing what it made", tern_team_free(out), 0);
}

static bool told;

static void traffic_ended(struct pending *w, int rc)
{
	if (rc)
		code_is(w->s, "an operation with the lost rank", rc, gone_code);
	told |= rc != 0;
}

/* Nobody receives what is sent, so some of this ends with the rank. */
static void traffic_send(const struct step *s, uint32_t rank, size_t len)
{
	static const unsigned flags[] = { 0, TERN_SEND_AUTO, TERN_SEND_RENDEZVOUS, TERN_SEND_SYNC };
	const tern_id id = (tern_id)(1000 + s->number) << 16;
	for (unsigned i = 0; i < 4; i++) {
		struct pending *w = pending_new(s, i, len, traffic_ended);
		pending_begun(
			w, tern_send_start(t, rank, id | (i + 1), w->bytes, len, flags[i], &w->op),
			true);
	}
	struct pending *w = pending_new(s, 0, len, traffic_ended);
	const tern_match match = { .rank = rank, .id = id | 9 };
	pending_begun(w, tern_recv_start(t, &match, w->bytes, len, &w->env, &w->op), true);
}

static void traffic(const struct step *s, uint32_t rank)
{
	if (s->value >> 13 & 1)
		traffic_lock(s, false);
	/* A rank that leaves answers as long as it is asked: then a receive ends with it. */
	for (told = false; !told;) {
		traffic_memory(s, rank, s->len, traffic_ended);
		if (s->lost == LEAVES || content_of(s->value, 600 + me) & 1)
			traffic_send(s, rank, s->len);
		pending_wait_all();
	}
}

static void others_call(const struct step *s, struct place *p)
{
	tern_team *out = NULL;
	int may = may_end_with(s, p);
	if (s->call == C_SURVIVORS) {
		heal(s, p);
		return;
	}
	if (s->call == C_MEMORY)
		memory_lost(s, s->from, (enum kind)(PUT + s->value % 3));
	if (s->call == C_TRAFFIC)
		traffic(s, s->from);
	int rc = any_call(s, p, may, &out);
	if (s->call >= C_WITH_HANDLE && rc != may)
		code_is(s, call_names[s->call], rc, 0);
	if (s->call == C_FREE) {
		*p = (struct place){ 0 };
		return;
	}
	if (out)
		new_team_check(s, p, out);
	if (!group_loses(&p->group, s))
		return;
	for (unsigned i = 0; i < s->count; i++)
		code_is(s, "a barrier with the lost rank", tern_team_barrier(p->team), gone_code);
	heal(s, p);
	again(s, p);
}

/* Who is lost may take messages with it that others need: so all of them have what came before. */
void others_are_ready(const struct step *s)
{
	const tern_id id = (tern_id)(1000 + s->number) << 16;
	struct place *p = &place[s->family];
	uint64_t word;
	pending_wait_all();
	if (p->team && p->lost) /* of an earlier loss */
		heal(s, p);
	for (uint32_t r = 0; r < program.ranks; r++) {
		if (step_has(gone, r) || step_has(s->victims, r) == step_has(s->victims, me))
			continue;
		if (step_has(s->victims, me))
			code_is(s, "tern_recv()", tern_recv(t, r, id, &word, sizeof word, NULL), 0);
		else
			code_is(s, "tern_send()",
				tern_send(t, r, id, &(uint64_t){ 1 }, sizeof(uint64_t)), 0);
	}
}

void lose_play(const struct step *s)
{
	struct place *p = &place[s->family];
	if (step_has(s->victims, me))
		lost_rank(s, p);
	lost_everywhere(s);
	if (p->team)
		others_call(s, p);
}

/* -- Afterwards ------------------------------------------------------------------------------- */

/* A receive tells that the rank is lost; from then on every call with it does. */
void lost_play(const struct step *s, uint32_t other)
{
	static const enum kind uses[] = { PUT, GET, AMO, SIGNAL };
	const tern_id id = (tern_id)(1000 + s->number) << 16;
	char bytes[64] = { 0 };
	int rc = 0;
	if (s->from == me && s->value % 4 == 0) { /* or its memory does */
		memory_lost(s, other, uses[s->value / 4 % 4]);
	} else {
		rc = tern_recv(t, other, id, bytes, sizeof bytes, NULL);
		code_is(s, "a receive from the lost rank", rc, gone_code);
	}
	rc = tern_send(t, other, id, bytes, sizeof bytes);
	code_is(s, "a send to the lost rank", rc, gone_code);
	for (unsigned i = 0; i < 4; i++)
		memory_lost_at_once(s, other, uses[(s->value + i) % 4]);
	request_lost(s, other);
}

void left_meet(void)
{
	const struct step *s = &program.step[program.steps - 1];
	while (s->kind != LOSE)
		s--;
	pending_wait_all();
	if (place[0].lost)
		heal(s, &place[0]);
	if (place[0].team)
		code_is(s, "tern_team_quiet() of all who are left", tern_team_quiet(place[0].team),
			0);
	if (place[0].team)
		code_is(s, "a barrier of all who are left", tern_team_barrier(place[0].team), 0);
}
