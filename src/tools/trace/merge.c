/* SPDX-License-Identifier: BSD-3-Clause */
/* Puts the ranks' traces together: spans from events, on one clock. */
#include "tools/trace/merge.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

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
	const char *name = name_of(m, handler);
	char number[24];
	handler_number(handler, number, sizeof number);
	if (handler < TERN_HANDLER_MAX)
		snprintf(number, sizeof number, "handler %u", handler);
	snprintf(text, HANDLER_TEXT, name ? "%s (%s)" : "%s", number, name);
}

void span_name(char text[HANDLER_TEXT], const struct merged *m, const struct span *s)
{
	static const char *const what[WAIT_KINDS] = { "wait: operation", "wait: flag", "wait: room",
						      "wait: block" };
	if (s->kind == SPAN_WAIT)
		snprintf(text, HANDLER_TEXT, "%s",
			 what[s->handler < WAIT_KINDS ? s->handler : WAIT_OPERATION]);
	else if (s->kind == SPAN_BARRIER)
		snprintf(text, HANDLER_TEXT, "barrier %u", s->sequence);
	else
		handler_name(text, m, s->handler);
}

const char *span_kind_name(enum span_kind kind)
{
	static const char *const name[SPAN_KINDS] = { "request", "reply", "wait", "barrier" };
	return name[kind];
}

/* -- Spans ------------------------------------------------------------------------------- */

enum { STACK_MOST = 64 };

/* The spans of one track that have begun and not ended. */
struct stack {
	size_t at[STACK_MOST];
	unsigned depth;
};

static enum span_kind kind_of(enum record_kind k)
{
	switch (k) {
	case RECORD_HANDLE:
		return SPAN_REQUEST;
	case RECORD_HANDLE_RE:
		return SPAN_REPLY;
	case RECORD_BARRIER:
	case RECORD_PASSED:
		return SPAN_BARRIER;
	default:
		return SPAN_WAIT;
	}
}

static void span_begin(struct merged *m, struct stack *s, uint32_t track,
		       const struct trace_record *r)
{
	if (s->depth == STACK_MOST)
		return;
	m->span[m->spans] = (struct span){
		.begin = (int64_t)r->time,
		.track = track,
		.kind = kind_of((enum record_kind)r->kind),
		.handler = r->handler,
		.peer = r->peer,
		.bytes = r->bytes,
		.sequence = r->sequence,
		.depth = s->depth,
		.message = NO_MESSAGE,
	};
	s->at[s->depth++] = m->spans++;
}

static bool span_ends(const struct span *s, const struct trace_record *r)
{
	if (r->kind == RECORD_RETURN)
		return s->kind <= SPAN_REPLY && s->handler == r->handler && s->peer == r->peer &&
		       s->sequence == r->sequence;
	return s->kind == kind_of((enum record_kind)r->kind);
}

static void span_end(struct merged *m, struct stack *s, const struct trace_record *r)
{
	if (!s->depth || !span_ends(&m->span[s->at[s->depth - 1]], r))
		return; /* it began where records were dropped */
	m->span[s->at[--s->depth]].end = (int64_t)r->time;
}

/* Where records are missing, nobody knows when what had begun was over. */
static void spans_give_up(struct merged *m, struct stack *s, uint64_t time)
{
	while (s->depth) {
		struct span *open = &m->span[s->at[--s->depth]];
		open->end = (int64_t)time;
		open->unended = true;
	}
}

static void track_spans(struct merged *m, uint32_t track)
{
	const struct track *t = &m->track[track];
	struct stack s = { .depth = 0 };
	for (size_t i = 0; i < t->records; i++) {
		const struct trace_record *r = &t->record[i];
		switch (r->kind) {
		case RECORD_HANDLE:
		case RECORD_HANDLE_RE:
		case RECORD_WAIT:
		case RECORD_BARRIER:
			span_begin(m, &s, track, r);
			break;
		case RECORD_RETURN:
		case RECORD_WAITED:
		case RECORD_PASSED:
			span_end(m, &s, r);
			break;
		case RECORD_DROPPED:
			spans_give_up(m, &s, r->time);
			m->dropped += r->sequence;
			break;
		}
	}
	if (t->records)
		spans_give_up(m, &s, t->record[t->records - 1].time);
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
	if (m->offset && m->first_span && m->span && m->message)
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
	rc = messages_match(m);
	if (!rc)
		rc = clocks_compare(m);
	if (!rc)
		times_shift(m);
	return rc;
}

void merge_free(struct merged *m)
{
	free(m->offset);
	free(m->first_span);
	free(m->span);
	free(m->message);
}
