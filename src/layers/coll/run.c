/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs: calls under way, which have their turns in order on each team. */
#include <errno.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cpu.h"
#include "base/error.h"
#include "coll/message.h"
#include "endpoint/trace.h"

struct scratch {
	struct scratch *next;
	_Alignas(16) char bytes[];
};

/* -- Building ---------------------------------------------------------------------------------- */

int team_check(tern_team *team, const char *name)
{
	struct endpoint *e = team->coll->e;
	int rc = rules_outermost(e, name);
	if (rc)
		return rc;
	if (team->retired)
		return error_set(-ESTALE,
				 "%s was called on a team whose survivors have another one: use "
				 "that, and free this one",
				 name);
	if (!team_fails(team, team->calls))
		return 0;
	team_fail_note(team, team->calls);
	return team_failure(team);
}

int run_begin(tern_team *team, const char *name, struct run **out)
{
	struct coll *c = team->coll;
	int rc = team_check(team, name);
	if (rc)
		return rc;
	runs_free_spent(c);
	struct run *r = c->spare ? c->spare : malloc(sizeof *r);
	if (!r)
		return error_set(-ENOMEM, "%s: no memory", name);
	c->spare = NULL;
	memset(r, 0, offsetof(struct run, why));
	r->team = team;
	r->ahead = team->ahead;
	r->name = name;
	r->step = r->few;
	r->room = RUN_STEPS;
	*out = r;
	return 0;
}

void run_free(struct coll *c, struct run *r)
{
	if (r->step != r->few)
		free(r->step);
	for (struct scratch *x = r->scratch, *next; x; x = next) {
		next = x->next;
		free(x);
	}
	if (c->spare)
		free(r);
	else
		c->spare = r;
}

void run_drop(struct run *r)
{
	r->team->ahead = r->ahead;
	run_free(r->team->coll, r);
}

void runs_free_spent(struct coll *c)
{
	for (struct run *r = c->spent, *next; r; r = next) {
		next = r->next;
		run_free(c, r);
	}
	c->spent = NULL;
}

static bool steps_grow(struct run *r)
{
	struct step *more = malloc(2 * r->room * sizeof *more);
	if (!more)
		return false;
	memcpy(more, r->step, r->steps * sizeof *more);
	if (r->step != r->few)
		free(r->step);
	r->step = more;
	r->room *= 2;
	return true;
}

void step_add(struct run *r, struct step s)
{
	if (r->steps == r->room && !steps_grow(r))
		r->error = -ENOMEM;
	else
		r->step[r->steps++] = s;
}

void step_near(struct run *r, struct near_step s)
{
	if (!r->error)
		r->error = near_places(r->team, &s);
	r->near[r->nears] = s;
	step_add(r, (struct step){ .kind = STEP_NEAR, .tag = (uint16_t)r->nears++ });
}

char *run_scratch(struct run *r, size_t bytes)
{
	struct scratch *x = malloc(sizeof *x + bytes);
	if (!x) {
		r->error = -ENOMEM;
		return NULL;
	}
	x->next = r->scratch;
	r->scratch = x;
	return x->bytes;
}

/* -- Turns ------------------------------------------------------------------------------------- */

/* Whether the step is over. */
static bool step_turn(struct run *r, struct step *s)
{
	switch ((enum step_kind)s->kind) {
	case STEP_NEAR:
		return near_turn(r, &r->near[s->tag]);
	case STEP_BOARD:
		return board_turn(r, s);
	case STEP_RECV:
		return recv_turn(r, s);
	case STEP_SEND:
		return send_turn(r, s);
	case STEP_WAIT:
		return r->receiving == 0;
	case STEP_COMBINE:
		combine_apply(&r->combine, s->to, s->from, s->len);
		return true;
	case STEP_COPY:
		if (s->len)
			memmove(s->to, s->from, s->len);
		return true;
	case STEP_CALL:
		s->call(r);
		return true;
	}
	return true;
}

static unsigned run_turn(struct run *r)
{
	unsigned before = r->at;
	while (r->at < r->steps && !r->error && step_turn(r, &r->step[r->at]))
		r->at++;
	return r->at - before;
}

/* The code that its caller gets, with the sentence. */
static int run_code(const struct run *r)
{
	if (!r->error && r->result)
		error_restore(&r->why);
	return r->error ? r->error : r->result;
}

/* Takes the first run of the team out, and tells whoever waits for it. */
static void run_end(struct run *r)
{
	tern_team *team = r->team;
	struct coll *c = team->coll;
	team->first = r->next;
	if (!team->first)
		team->last = NULL;
	if (r->meets && !r->error)
		team->ahead = team->calls - r->call - 1;
	r->over = true;
	if (!r->op)
		return; /* its call frees it */
	c->started--;
	coll_work(c);
	r->next = c->spent;
	c->spent = r;
	op_end(c->e, r->op, run_code(r));
}

void run_fail(struct run *r, uint32_t rank, int code)
{
	tern_team *team = r->team;
	team_fail(team, r->call, rank, code);
	team_fail_note(team, r->call);
	r->error = team_failure(team);
}

/* A member that has left, and that the run waits for, plus 1; 0: none. */
static uint32_t run_lacks(const struct run *r)
{
	const struct endpoint *e = r->team->coll->e;
	const struct step *now = &r->step[r->at];
	if (now->kind == STEP_NEAR)
		return near_lacks(r, &r->near[now->tag]);
	if (now->kind == STEP_BOARD)
		return board_lacks(r);
	if (now->kind != STEP_WAIT)
		return layer_lost(e, now->peer) ? now->peer + 1 : 0;
	for (const struct step *s = r->step; s < now; s++)
		if (s->kind == STEP_RECV && !s->over && layer_lost(e, s->peer))
			return s->peer + 1;
	return 0;
}

/* Whether it cannot complete; no effects. */
static bool run_hopeless(const struct run *r)
{
	return team_fails(r->team, r->call) || (r->team->gone && run_lacks(r));
}

unsigned team_turn(tern_team *team)
{
	struct endpoint *e = team->coll->e;
	unsigned done = 0;
	library_hold(e);
	while (team->first) {
		struct run *r = team->first;
		done += run_turn(r);
		if (!r->error && r->at < r->steps) {
			if (!run_hopeless(r))
				break;
			run_fail(r, run_lacks(r) - 1, -ESHUTDOWN); /* or why the team fails */
		}
		done++;
		run_end(r);
	}
	library_release(e);
	return done;
}

/* -- For whoever asks what a rank waits for ---------------------------------------------------- */

void run_words(const struct run *r, char *words, size_t room)
{
	uint64_t id = r->team->id, low = (UINT64_C(1) << ID_BITS) - 1;
	char survivors[32] = "";
	if (id > low)
		snprintf(survivors, sizeof survivors, " (survivors %u)", (unsigned)(id >> ID_BITS));
	snprintf(words, room, "%s of team %llu%s, call %llu", r->name,
		 (unsigned long long)(id & low), survivors, (unsigned long long)r->call);
}

void run_awaits(const struct run *r, uint64_t *set)
{
	const struct step *now = &r->step[r->at];
	if (r->at == r->steps)
		return;
	if (now->kind == STEP_NEAR)
		near_awaits(r, &r->near[now->tag], set);
	else if (now->kind != STEP_WAIT)
		set_add(set, now->peer);
	for (unsigned i = 0; i < r->at; i++)
		if (r->step[i].kind == STEP_RECV && !r->step[i].over)
			set_add(set, r->step[i].peer);
}

/* -- Waiting ----------------------------------------------------------------------------------- */

struct run_wait {
	struct wait wait;
	struct run *run;
	const struct run *first; /* of the team when the wait began, and how far it was */
	unsigned at;
	uint32_t seen; /* members that the step does not wait for any more */
	bool dozes;
	unsigned asked;
	uint32_t untold; /* members that do not know of a wait that lasts */
	char words[PULSE_TEXT];
};

static const struct step *step_now(const struct run *r)
{
	return &r->step[r->at];
}

/*
 * Whether a turn would get somewhere; no effects on the run. Where a poll has taken the steps of a
 * call with a handle meanwhile, the next one may need another kind of wait.
 */
static bool run_ready(struct endpoint *e, void *arg)
{
	struct run_wait *rw = arg;
	const struct run *r = rw->run;
	(void)e;
	const struct run *first = r->team->first;
	if (r->over || first != rw->first || first->at != rw->at || run_hopeless(first))
		return true;
	const struct step *s = step_now(first);
	return s->kind == STEP_NEAR    ? near_ready(first, &first->near[s->tag], &rw->seen)
	       : s->kind == STEP_BOARD ? board_ready(first, &rw->seen)
				       : first->receiving == 0;
}

/* For what only a turn finds out: one step of the wait, and it is asked again. */
static bool run_retry(struct endpoint *e, void *arg)
{
	struct run_wait *rw = arg;
	(void)e;
	return rw->asked++ % 2;
}

/* Of a wait that lasts: ranks that left without a word are found, and writers know of us. */
static int run_lasts(struct endpoint *e, struct wait *w)
{
	struct run_wait *rw = w->arg;
	if (!w->since)
		return 0;
	lost_look(e);
	if (w->call != rw->words) {
		run_words(rw->run, rw->words, sizeof rw->words);
		w->call = rw->words;
	}
	if (rw->untold && !threads_run(e))
		rw->untold = members_tell(rw->run->team, rw->untold, COLL_WAITS, rw->run->call,
					  rw->words, sizeof rw->words);
	if (!rw->dozes && rw->run->team->near.n > 1) {
		rw->dozes = true;
		near_doze(rw->run->team, true);
	}
	return 0;
}

/* Runs of a team have their turns in order, so it waits for whom the first one does. */
static void wait_awaits(struct endpoint *e, struct wait *w, uint64_t *set)
{
	const struct run_wait *rw = w->arg;
	(void)e;
	if (rw->run->team->first)
		run_awaits(rw->run->team->first, set);
}

/* On the outboxes a moment decides: looks there before it waits as all calls do. */
static bool run_look(struct endpoint *e, struct run_wait *rw)
{
	for (uint32_t i = 0; i < e->waiting.spin && i < LOOKS_MOST; i++) {
		if (run_ready(e, rw))
			return true;
		cpu_relax();
	}
	return false;
}

static void run_wait(struct run *r)
{
	struct endpoint *e = r->team->coll->e;
	struct run_wait rw = { .run = r, .untold = r->team->maker.checked ? r->team->all.n : 0 };
	rw.wait = (struct wait){ .call = r->name, .stop = run_lasts, .awaits = wait_awaits };
	r->team->coll->waits = r;
	for (;;) {
		team_turn(r->team);
		if (r->over)
			break;
		const struct run *first = r->team->first;
		const struct step *s = step_now(first);
		bool shared = s->kind == STEP_NEAR || s->kind == STEP_BOARD;
		rw.first = first, rw.at = first->at, rw.seen = 0;
		if (shared && run_look(e, &rw))
			continue;
		/* No bell rings for room, for a receiver that is ready, or for a free cell. */
		rw.wait.bounded = s->kind == STEP_NEAR ? near_full(&first->near[s->tag])
						       : s->kind != STEP_WAIT && !shared;
		bool retry = s->kind == STEP_SEND || s->kind == STEP_RECV;
		wait_through(e, retry ? run_retry : run_ready, &rw, &rw.wait);
	}
	r->team->coll->waits = NULL;
	if (rw.dozes)
		near_doze(r->team, false);
}

/*
 * A step whose numbers come within a moment each needs no run. One that must wait goes on in a run,
 * from where it is; the memory for that is there before others see that it has begun.
 */
static bool near_quick(tern_team *team, struct near_step *s, const struct combine *k)
{
	struct endpoint *e = team->coll->e;
	struct run quick; /* of which a turn reads the team and how to combine */
	uint32_t looks = near_looks(e);
	quick.team = team;
	if (k)
		quick.combine = *k;
	for (uint32_t i = 0; i < looks; i++) {
		uint64_t round = team->round;
		if (near_turn(&quick, s))
			return true;
		if (team->round != round)
			i = 0;
		if (!near_rest(e))
			return false;
	}
	return false;
}

/*
 * Whether a step may be tried without a run: `reach` says that this is the program, outside
 * handlers, and that nobody else delivers. So what a run checks would be right.
 */
static bool quick_may(const tern_team *team)
{
	const struct endpoint *e = team->coll->e;
	return e->t->reach && !e->turn && !held(e) && !team->first &&
	       !team_fails(team, team->calls) && !team->retired && team->coll->spare &&
	       !wait_scheduler;
}

/* Whether near_meet() knows it. */
static bool meet_may(const struct near_step *s, const struct combine *k)
{
	return s->kind == NEAR_ALLREDUCE ? s->len - 1 < CELL_LINE && k->fn : !s->kind;
}

static int run_start(struct run *r, tern_op *op)
{
	tern_team *team = r->team;
	struct coll *c = team->coll;
	int rc = r->error;
	if (!rc && !op)
		rc = rules_wait(c->e, r->name);
	else if (rc)
		error_set(rc, "%s: no memory", r->name);
	if (rc) {
		run_drop(r);
		return rc;
	}
	r->call = team->calls++;
	r->op = op;
	*(team->last ? &team->last->next : &team->first) = r;
	team->last = r;
	if (op) {
		op->pending++;
		c->started++;
		coll_work(c);
		team_turn(team);
		return 0;
	}
	run_wait(r);
	rc = run_code(r);
	run_free(c, r);
	return rc;
}

/* In a trace, the time that the program spends in it. */
static void call_trace(struct endpoint *e, enum record_kind kind, const char *name)
{
	if (TERN_UNLIKELY(e->trace))
		trace_call(e, kind, name);
}

int run_go(struct run *r, tern_op *op)
{
	struct endpoint *e = r->team->coll->e;
	const char *name = r->name;
	call_trace(e, RECORD_CALL, name);
	int rc = run_start(r, op);
	call_trace(e, RECORD_CALLED, name);
	return rc;
}

int run_near(tern_team *team, const char *name, struct near_step *s, const struct combine *k,
	     tern_op *op)
{
	struct run *r;
	if (!op && quick_may(team)) {
		bool over = false;
		if (meet_may(s, k))
			over = near_meet(team, s, k);
		else if (!team->coll->e->trace && near_placed(team, s) && (!k || k->fn))
			over = near_quick(team, s, k);
		team->calls += over;
		if (over)
			return 0;
	}
	int rc = run_begin(team, name, &r);
	if (rc)
		return rc;
	if (k)
		r->combine = *k;
	step_near(r, *s);
	return run_go(r, op);
}
