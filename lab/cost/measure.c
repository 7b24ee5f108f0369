/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An operation is played one, two and three at a time, and all that twice. What three take
 * beyond two is the steady cost of one: whatever happens once, a poll's way to the first message
 * for example, is in both. What one takes is its cost alone. A sequence so long that it
 * contains its own beginning and end is only played alone.
 */
#include "lab/cost/measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "endpoint/endpoint.h"

enum { PATIENCE_S = 60, TIMES = 2, AT_ONCE = 3, WARM = 16, LONG = 16 };

/* After the three, the steps of protocols: a side and a feature each. */
enum { STEP_FEATURES = COST_FAULT + 1 };
enum phase { SEND, RECEIVE, FINISH, STEPS, PHASES = STEPS + COST_SIDES * STEP_FEATURES };

/* What is received one at a time shares nothing with the one before it. */
static unsigned plays_of(const struct operation *o)
{
	return o->packets > LONG || o->each ? 1 : AT_ONCE;
}

/* -- In the child -------------------------------------------------------------------------- */

/* 0 is for what is not counted. */
static uint32_t handler_label(unsigned time, unsigned n, enum phase phase)
{
	return 1 + (time * AT_ONCE + n - 1) * PHASES + phase;
}

static void play_end(struct cost_board *board, struct bench *b, unsigned n, unsigned handed,
		     uint32_t label)
{
	board->label = label ? label + RECEIVE : 0;
	bench_receive(b, handed);
	board->label = label ? label + FINISH : 0;
	if (b->op->finish)
		b->op->finish(b, n);
}

void bench_step(struct bench *b, enum cost_side side, enum cost_feature feature)
{
	*b->label = b->play ? b->play + STEPS + side * STEP_FEATURES + feature : 0;
}

/* `n` operations; `label` is that of their sends. */
static void play(struct cost_board *board, struct bench *b, unsigned n, uint32_t label)
{
	bench_align(b);
	b->label = &board->label;
	b->play = label;
	if (b->op->steps) {
		b->op->steps(b);
		board->label = 0;
		return;
	}
	for (unsigned i = 0; i < n; i++) {
		board->label = label;
		b->op->send(b);
		if (b->op->each)
			play_end(board, b, 1, 1, label);
	}
	if (!b->op->each)
		play_end(board, b, n, n, label);
	board->label = 0;
}

static void play_all(struct cost_board *board, void *arg)
{
	static struct bench b;
	const struct operation *o = arg;
	alarm(PATIENCE_S);           /* ends an operation that has no end */
	setenv("TERN_GROW", "0", 1); /* a ring that has grown: the plays before those that count */
	char number[16];
	snprintf(number, sizeof number, "%d", COST_SIGNAL);
	setenv("TERN_SIGNAL", number, 1);
	int rc = bench_open(&b, o);
	if (rc) {
		board->failed = rc;
		snprintf(board->sentence, sizeof board->sentence, "%s", tern_strerror(rc));
		return;
	}
	const struct job *job = &b.t[0]->own->group->job;
	board->shared =
		(struct cost_shared){ (uintptr_t)job->base, (uintptr_t)job->base + job->bytes };
	for (int i = 0; i < WARM; i++)
		play(board, &b, 1, 0);
	for (unsigned time = 0; time < TIMES; time++)
		for (unsigned n = 1; n <= plays_of(o); n++)
			play(board, &b, n, handler_label(time, n, SEND));
}

/* -- Adding up ----------------------------------------------------------------------------- */

static enum cost_side side_of(uint32_t label)
{
	unsigned phase = (label - 1) % PHASES;
	if (phase >= STEPS)
		return (phase - STEPS) / STEP_FEATURES;
	return phase == RECEIVE ? COST_DESTINATION : COST_SOURCE;
}

static enum cost_feature whole_of(uint32_t label)
{
	unsigned phase = (label - 1) % PHASES;
	return phase >= STEPS ? (phase - STEPS) % STEP_FEATURES : COST_UNKNOWN;
}

static unsigned play_of(uint32_t label)
{
	return (label - 1) / PHASES;
}

/*
 * What an instruction is for, given the one executed before it: what has no line, as a library's
 * code, is for the same. In a step of a protocol (`whole`) the lines of the protocol tell buffers,
 * order and fault tolerance apart, and so do those that call what is in line; the rest, a message
 * with all that it takes, is for what the message is for.
 */
static struct cost_site attribute(struct cost_map *map, uintptr_t at,
				  const struct cost_site *before, enum cost_feature whole)
{
	struct cost_site s = *map_site(map, at);
	if (whole != COST_UNKNOWN && !s.library && s.feature != COST_PROGRAM) {
		bool told = s.protocol > COST_BASE && s.protocol <= COST_FAULT;
		s.feature = told ? s.protocol : whole;
	}
	if (s.library || !s.line) { /* clang leaves some of what it makes without a line */
		s.feature = before->feature;
		s.step = before->step;
	}
	return s;
}

/* The instructions of one play; plays are counted from 0, TIMES times the same. */
static void play_each(struct cost_map *map, const struct cost_trace *t, unsigned number,
		      cost_visit *visit, void *arg)
{
	for (size_t i = 0; i < t->passages; i++) {
		const struct cost_passage *p = &t->passage[i];
		struct cost_site s = { .feature = COST_UNKNOWN };
		if (play_of(p->label) != number)
			continue;
		for (size_t k = p->first; k < p->first + p->n; k++) {
			s = attribute(map, t->insn[k].at, &s, whole_of(p->label));
			visit(&t->insn[k], side_of(p->label), &s, arg);
		}
	}
}

void result_each(struct cost_map *map, const struct cost_result *r, cost_visit *visit, void *arg)
{
	play_each(map, &r->trace, 0, visit, arg);
}

/* The C library's memcpy(), or what stands in for it. */
static bool is_copy(const struct cost_site *s)
{
	return s->feature != COST_PROGRAM &&
	       (s->library || strcmp(s->file, "src/layers/mem/wide.c") == 0);
}

static void tally_add(const struct cost_insn *insn, enum cost_side side, const struct cost_site *s,
		      void *sum)
{
	struct cost_tally *t = sum;
	t->n[side][s->feature][s->step][insn->kind]++;
	t->copy[side] += is_copy(s);
}

static struct cost_tally tally_play(struct cost_map *map, const struct cost_trace *t,
				    unsigned number)
{
	struct cost_tally sum = { 0 };
	play_each(map, t, number, tally_add, &sum);
	return sum;
}

static bool passage_same(const struct cost_trace *t, const struct cost_passage *a,
			 const struct cost_passage *b)
{
	if (a->n != b->n)
		return false;
	for (size_t i = 0; i < a->n; i++)
		if (t->insn[a->first + i].at != t->insn[b->first + i].at ||
		    t->insn[a->first + i].kind != t->insn[b->first + i].kind)
			return false;
	return true;
}

static bool trace_same(const struct cost_trace *t)
{
	size_t half = t->passages / TIMES;
	bool same = t->passages % TIMES == 0;
	for (size_t i = 0; same && i < half; i++)
		same = passage_same(t, &t->passage[i], &t->passage[half + i]);
	return same;
}

int measure(struct cost_map *map, const struct operation *o, struct cost_result *r, char *why,
	    size_t len)
{
	*r = (struct cost_result){ .op = o };
	int rc = counter_run(play_all, (void *)(uintptr_t)o, &r->trace, why, len);
	if (rc)
		return rc;
	r->same = trace_same(&r->trace);
	r->alone = tally_play(map, &r->trace, 0);
	r->steady = r->alone;
	if (plays_of(o) == AT_ONCE) {
		struct cost_tally two = tally_play(map, &r->trace, 1);
		r->steady = tally_play(map, &r->trace, 2);
		cost_add(&r->steady, &two, -1);
	}
	return 0;
}

void result_free(struct cost_result *r)
{
	trace_free(&r->trace);
}
