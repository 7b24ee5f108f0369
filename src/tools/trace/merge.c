/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts the ranks' traces together: spans from events, on one clock. */
#include "tools/trace/merge.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tern/tern.h>

#include "base/error.h"
#include "endpoint/handler.h"

/* -- Names ------------------------------------------------------------------------------- */

/* The first rank that says so. */
static const char *name_of(const struct merged *m, unsigned handler)
{
	for (uint32_t i = 0; i < m->tracks; i++)
		if (m->track[i].name && m->track[i].name[handler][0])
			return m->track[i].name[handler];
	return NULL;
}

void handler_name(char text[HANDLER_TEXT], const struct merged *m, unsigned handler)
{
	handler_number(handler, "handler", name_of(m, handler), text);
}

/* The number of a call's name, which ranks number each for itself, plus 1. */
static uint32_t call_of(struct merged *m, const struct track *t, uint32_t number)
{
	const char *name = t->name && number && number <= RECORD_CALLS
				   ? t->name[TERN_HANDLER_SLOTS + number - 1]
				   : "";
	for (uint32_t i = 0; i < m->calls; i++)
		if (strcmp(m->call[i], name) == 0)
			return i + 1;
	if (!*name)
		return 0;
	m->call[m->calls++] = name;
	return m->calls;
}

static void wait_name(char text[HANDLER_TEXT], const struct merged *m, const struct span *s)
{
	static const char *const what[WAIT_KINDS] = { "operation", "flag", "room", "block" };
	unsigned kind = s->handler < WAIT_KINDS ? s->handler : WAIT_OPERATION;
	const char *call = s->call ? m->call[s->call - 1] : NULL;
	snprintf(text, HANDLER_TEXT, call ? "wait: %s (%s)" : "wait: %s", what[kind], call);
}

void span_name(char text[HANDLER_TEXT], const struct merged *m, const struct span *s)
{
	if (s->kind == SPAN_WAIT)
		wait_name(text, m, s);
	else if (s->kind == SPAN_BARRIER)
		snprintf(text, HANDLER_TEXT, "barrier %u", s->sequence);
	else if (s->kind == SPAN_CALL)
		snprintf(text, HANDLER_TEXT, "%s", s->call ? m->call[s->call - 1] : "call");
	else if (s->kind == SPAN_THREAD)
		snprintf(text, HANDLER_TEXT, "thread %u", s->peer);
	else
		handler_name(text, m, s->handler);
}

const char *span_kind_name(enum span_kind kind)
{
	static const char *const name[SPAN_KINDS] = { "request", "reply", "wait",
						      "barrier", "call",  "thread" };
	return name[kind];
}

/* -- Spans ------------------------------------------------------------------------------- */

enum { STACK_MOST = 64, LANES_MOST = 64 };

/* The spans of one lane that have begun and not ended. */
struct stack {
	size_t at[STACK_MOST];
	unsigned depth, deepest;
	uint16_t thread;
};

/* Of one track; a lane whose thread has ended is for the next one. */
struct stacks {
	struct stack lane[LANES_MOST];
	uint16_t lanes;
};

/* What a record is to a span of its kind. */
static const struct {
	enum span_kind kind;
	enum { NO_PART, BEGINS, ENDS } part;
} record_of[RECORD_KINDS] = {
	[RECORD_HANDLE] = { SPAN_REQUEST, BEGINS }, [RECORD_HANDLE_RE] = { SPAN_REPLY, BEGINS },
	[RECORD_RETURN] = { SPAN_REQUEST, ENDS },   [RECORD_WAIT] = { SPAN_WAIT, BEGINS },
	[RECORD_WAITED] = { SPAN_WAIT, ENDS },      [RECORD_BARRIER] = { SPAN_BARRIER, BEGINS },
	[RECORD_PASSED] = { SPAN_BARRIER, ENDS },   [RECORD_CALL] = { SPAN_CALL, BEGINS },
	[RECORD_CALLED] = { SPAN_CALL, ENDS },      [RECORD_THREAD] = { SPAN_THREAD, BEGINS },
	[RECORD_ENDED] = { SPAN_THREAD, ENDS },
};

/* Handlers and barriers have no thread: they are in the program's lane. */
static uint16_t thread_of(const struct trace_record *r)
{
	enum span_kind kind = record_of[r->kind].kind;
	return kind == SPAN_WAIT || kind == SPAN_CALL || kind == SPAN_THREAD ? r->peer : 0;
}

/* The lane of a thread, or with `begins` one that is free; NULL if there is none. */
static struct stack *stack_of(struct stacks *all, uint16_t thread, bool begins)
{
	struct stack *spare = NULL;
	for (uint16_t i = 0; i < all->lanes; i++) {
		struct stack *s = &all->lane[i];
		if (s->thread == thread && (s->depth || !i))
			return s;
		if (i && !s->depth && !spare)
			spare = s;
	}
	if (!spare && begins && all->lanes < LANES_MOST)
		spare = &all->lane[all->lanes++];
	if (!spare || !begins)
		return NULL;
	spare->thread = thread;
	return spare;
}

static void span_begin(struct merged *m, struct stacks *all, uint32_t track,
		       const struct trace_record *r)
{
	struct stack *s = stack_of(all, thread_of(r), true);
	if (!s || s->depth == STACK_MOST)
		return;
	enum span_kind kind = record_of[r->kind].kind;
	bool calls = kind == SPAN_WAIT || kind == SPAN_CALL;
	m->span[m->spans] = (struct span){
		.begin = (int64_t)r->time,
		.track = track,
		.kind = kind,
		.handler = r->handler,
		.peer = r->peer,
		.lane = (uint16_t)(s - all->lane),
		.call = calls ? call_of(m, &m->track[track], r->bytes) : 0,
		.bytes = r->bytes,
		.sequence = r->sequence,
		.depth = s->depth,
		.around = s->depth ? s->at[s->depth - 1] : NO_SPAN,
		.message = NO_MESSAGE,
	};
	s->at[s->depth++] = m->spans++;
	s->deepest = s->depth > s->deepest ? s->depth : s->deepest;
}

static bool span_ends(const struct span *s, const struct trace_record *r)
{
	if (r->kind == RECORD_RETURN)
		return s->kind <= SPAN_REPLY && s->handler == r->handler && s->peer == r->peer &&
		       s->sequence == r->sequence;
	return s->kind == record_of[r->kind].kind;
}

static void span_end(struct merged *m, struct stacks *all, const struct trace_record *r)
{
	struct stack *s = stack_of(all, thread_of(r), false);
	if (!s || !s->depth || !span_ends(&m->span[s->at[s->depth - 1]], r))
		return; /* it began where records were dropped */
	m->span[s->at[--s->depth]].end = (int64_t)r->time;
}

/* Where records are missing, nobody knows when what had begun was over. */
static void spans_give_up(struct merged *m, struct stacks *all, uint64_t time)
{
	for (struct stack *s = all->lane; s < all->lane + all->lanes; s++)
		while (s->depth) {
			struct span *open = &m->span[s->at[--s->depth]];
			open->end = (int64_t)time;
			open->unended = true;
		}
}

/* The rows of a lane are below those of the lane before. */
static void spans_place(struct merged *m, const struct stacks *all, size_t first)
{
	unsigned top[LANES_MOST] = { 0 };
	for (uint16_t i = 1; i < all->lanes; i++)
		top[i] = top[i - 1] + all->lane[i - 1].deepest;
	for (size_t i = first; i < m->spans; i++)
		m->span[i].row = top[m->span[i].lane] + m->span[i].depth;
}

static void track_spans(struct merged *m, uint32_t track)
{
	const struct track *t = &m->track[track];
	struct stacks s = { .lanes = 1 };
	size_t first = m->spans;
	for (size_t i = 0; i < t->records; i++) {
		const struct trace_record *r = &t->record[i];
		if (record_of[r->kind].part == BEGINS)
			span_begin(m, &s, track, r);
		else if (record_of[r->kind].part == ENDS)
			span_end(m, &s, r);
		if (r->kind != RECORD_DROPPED)
			continue;
		spans_give_up(m, &s, r->time);
		m->dropped += r->sequence;
	}
	if (t->records)
		spans_give_up(m, &s, t->record[t->records - 1].time);
	spans_place(m, &s, first);
}

/* -- The whole --------------------------------------------------------------------------- */

static int track_order(const void *a, const void *b)
{
	const struct track *x = a, *y = b;
	return x->head.rank < y->head.rank ? -1 : x->head.rank > y->head.rank;
}

static int tracks_check(const struct track *t, uint32_t tracks)
{
	for (uint32_t i = 1; i < tracks; i++) {
		if (t[i].head.rank == t[i - 1].head.rank)
			return error_set(
				-EINVAL,
				"%s and %s are both of rank %u: give one file for each rank",
				t[i - 1].path, t[i].path, t[i].head.rank);
		if (t[i].head.job != t[0].head.job || t[i].head.size != t[0].head.size)
			return error_set(
				-EINVAL,
				"%s is of another job than %s: their messages do not match",
				t[i].path, t[0].path);
	}
	return 0;
}

static int merge_allocate(struct merged *m)
{
	size_t records = 0;
	for (uint32_t i = 0; i < m->tracks; i++)
		records += m->track[i].records;
	m->offset = calloc(m->tracks, sizeof *m->offset);
	m->first_span = calloc(m->tracks + 1, sizeof *m->first_span);
	m->span = calloc(records + 1, sizeof *m->span);
	m->message = calloc(records + 1, sizeof *m->message);
	m->call = calloc(m->tracks * RECORD_CALLS, sizeof *m->call);
	if (m->offset && m->first_span && m->span && m->message && m->call)
		return 0;
	return error_set(-ENOMEM, "no memory to merge %zu records", records);
}

/* Puts every time on the common clock, which begins with the first event. */
static void times_shift(struct merged *m)
{
	int64_t first = INT64_MAX, last = INT64_MIN;
	for (uint32_t i = 0; i < m->tracks; i++) {
		const struct track *t = &m->track[i];
		if (!t->records)
			continue;
		int64_t begins = (int64_t)t->record[0].time + m->offset[i].correction;
		int64_t ends = (int64_t)t->record[t->records - 1].time + m->offset[i].correction;
		first = begins < first ? begins : first;
		last = ends > last ? ends : last;
	}
	for (size_t i = 0; i < m->spans; i++) {
		int64_t by = m->offset[m->span[i].track].correction - first;
		m->span[i].begin += by;
		m->span[i].end += by;
	}
	for (size_t i = 0; i < m->messages; i++)
		if (m->message[i].from != NO_TRACK)
			m->message[i].sent += m->offset[m->message[i].from].correction - first;
	m->length = last > first ? last - first : 0;
}

int merge(struct merged *m, struct track *track, uint32_t tracks)
{
	*m = (struct merged){ .track = track, .tracks = tracks };
	qsort(track, tracks, sizeof *track, track_order);
	int rc = tracks_check(track, tracks);
	if (!rc)
		rc = merge_allocate(m);
	if (rc)
		return rc;
	for (uint32_t i = 0; i < tracks; i++) {
		m->first_span[i] = m->spans;
		track_spans(m, i);
	}
	m->first_span[tracks] = m->spans;
	messages_match(m);
	rc = clocks_compare(m);
	if (!rc)
		times_shift(m);
	return rc;
}
