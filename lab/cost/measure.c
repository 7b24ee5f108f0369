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

struct cost_site attribute(struct cost_map *map, uintptr_t at, const struct cost_site *before,
			   enum cost_feature whole)
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

/* The C library's memcpy(), or what stands in for it. */
static bool is_copy(const struct cost_site *s)
{
	return s->feature != COST_PROGRAM &&
	       (s->library || strcmp(s->file, "src/layers/mem/wide.c") == 0);
}

static void tally_passage(struct cost_map *map, const struct cost_trace *t,
			  const struct cost_passage *p, struct cost_tally *sum)
{
	enum cost_side side = side_of(p->label);
	struct cost_site s = { .feature = COST_UNKNOWN };
	for (size_t i = p->first; i < p->first + p->n; i++) {
		s = attribute(map, t->insn[i].at, &s, whole_of(p->label));
		sum->n[side][s.feature][s.step][t->insn[i].kind]++;
		sum->copy[side] += is_copy(&s);
	}
}

/* The sum of one play; they are counted from 0, TIMES times the same. */
static struct cost_tally tally_play(struct cost_map *map, const struct cost_trace *t,
				    unsigned number)
{
	struct cost_tally sum = { 0 };
	for (size_t i = 0; i < t->passages; i++)
		if (play_of(t->passage[i].label) == number)
			tally_passage(map, t, &t->passage[i], &sum);
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

/* -- The steady operation, instruction by instruction -------------------------------------- */

static void strand_add(struct cost_result *r, const struct cost_passage *of, size_t first, size_t n)
{
	if (n && r->strands < STRANDS_MOST)
		r->strand[r->strands++] =
			(struct cost_strand){ side_of(of->label), first, n, whole_of(of->label) };
}

/* What `more` has beyond `less`, if that is one piece; it may begin within what it repeats. */
static void strand_between(struct cost_result *r, const struct cost_passage *less,
			   const struct cost_passage *more)
{
	const struct cost_insn *a = &r->trace.insn[less->first], *b = &r->trace.insn[more->first];
	size_t n = more->n - less->n, at = 0;
	while (at < less->n && a[at].at == b[at].at)
		at++;
	for (size_t i = at; i < less->n; i++)
		if (a[i].at != b[i + n].at)
			return; /* it is not: there is nothing to list */
	strand_add(r, more, more->first + at, n);
}

static const struct cost_passage *passage_last(const struct cost_trace *t, unsigned play,
					       enum phase phase)
{
	for (size_t i = t->passages; i-- > 0;)
		if (play_of(t->passage[i].label) == play &&
		    (t->passage[i].label - 1) % PHASES == phase)
			return &t->passage[i];
	return NULL;
}

static void strands_find(struct cost_result *r)
{
	unsigned most = plays_of(r->op) - 1;
	const struct cost_trace *t = &r->trace;
	for (size_t i = 0; r->op->steps && i < t->passages / TIMES; i++)
		strand_add(r, &t->passage[i], t->passage[i].first, t->passage[i].n);
	for (enum phase phase = SEND; phase < STEPS; phase++) {
		const struct cost_passage *more = passage_last(&r->trace, most, phase);
		if (!more)
			continue;
		if (phase == SEND || !most)
			strand_add(r, more, more->first, more->n);
		else
			strand_between(r, passage_last(&r->trace, most - 1, phase), more);
	}
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
	strands_find(r);
	return 0;
}

void result_free(struct cost_result *r)
{
	trace_free(&r->trace);
}
