/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The trace event format. A rank is a process with a thread for each lane; handlers, waits,
 * barriers and calls are complete events (X), a send is one that takes no time, and a flow (s, f)
 * leads from it to its handler.
 */
#include <tern/tern.h>

#include "tools/common/json.h"
#include "tools/trace/show.h"

enum { SEND_NS = 1 }; /* shown: a flow begins in a slice, and one of no length is none */

/* Chrome and Perfetto want numbers that no other rank's lanes have. */
static uint32_t lane_number(uint32_t rank, unsigned lane)
{
	return rank + lane * TERN_RANKS_MAX;
}

/* Begins an event and leaves it open for what only its kind has. */
static void event_begin(struct json *j, const char *phase, const char *name, const char *category,
			uint32_t rank, unsigned lane, int64_t time)
{
	json_begin(j, NULL, '{');
	json_text(j, "ph", phase);
	json_text(j, "name", name);
	json_text(j, "cat", category);
	json_whole(j, "pid", rank);
	json_whole(j, "tid", lane_number(rank, lane));
	json_micros(j, "ts", time);
}

static void name_event(struct json *j, const char *what, uint32_t rank, unsigned lane,
		       const char *name)
{
	json_begin(j, NULL, '{');
	json_text(j, "ph", "M");
	json_text(j, "name", what);
	json_whole(j, "pid", rank);
	json_whole(j, "tid", lane_number(rank, lane));
	json_begin(j, "args", '{');
	json_text(j, "name", name);
	json_end(j, '}');
	json_end(j, '}');
}

static void track_names(struct json *j, const struct merged *m, uint32_t track)
{
	const struct trace_head *h = &m->track[track].head;
	char name[128];
	unsigned lanes = 0;
	snprintf(name, sizeof name, "rank %u", h->rank);
	name_event(j, "thread_name", h->rank, 0, name);
	for (size_t i = m->first_span[track]; i < m->first_span[track + 1]; i++)
		lanes = m->span[i].lane > lanes ? m->span[i].lane : lanes;
	for (unsigned i = 1; i <= lanes; i++) {
		snprintf(name, sizeof name, "rank %u, light threads %u", h->rank, i);
		name_event(j, "thread_name", h->rank, i, name);
	}
	snprintf(name, sizeof name, "rank %u (%s, pid %u)", h->rank, h->program, h->pid);
	name_event(j, "process_name", h->rank, 0, name);
}

/* `message` is the number that the flow has, too. */
static void message_arguments(struct json *j, const char *side, uint32_t peer, uint32_t bytes,
			      uint32_t sequence, size_t message)
{
	json_whole(j, side, peer);
	json_whole(j, "bytes", bytes);
	json_whole(j, "sequence", sequence);
	if (message != NO_MESSAGE)
		json_whole(j, "message", message);
}

static void span_event(struct json *j, const struct merged *m, const struct span *s)
{
	char name[HANDLER_TEXT];
	span_name(name, m, s);
	event_begin(j, "X", name, span_kind_name(s->kind), m->track[s->track].head.rank, s->lane,
		    s->begin);
	json_micros(j, "dur", s->end - s->begin);
	json_begin(j, "args", '{');
	if (s->kind <= SPAN_REPLY)
		message_arguments(j, "from", s->peer, s->bytes, s->sequence, s->message);
	json_whole(j, "row", s->row);
	if (s->unended)
		json_truth(j, "unended", true);
	json_end(j, '}');
	json_end(j, '}');
}

static void flow_event(struct json *j, const char *phase, size_t id, uint32_t rank, int64_t time)
{
	event_begin(j, phase, "message", "message", rank, 0, time);
	json_whole(j, "id", id);
	if (*phase == 'f')
		json_text(j, "bp", "e");
	json_end(j, '}');
}

static void message_event(struct json *j, const struct merged *m, size_t i, bool flows)
{
	const struct message *x = &m->message[i];
	char handler[HANDLER_TEXT], name[HANDLER_TEXT + 8];
	if (x->from == NO_TRACK)
		return;
	handler_name(handler, m, x->handler);
	snprintf(name, sizeof name, "send %s", handler);
	event_begin(j, "X", name, x->reply ? "send reply" : "send request", x->source, 0, x->sent);
	json_micros(j, "dur", SEND_NS);
	json_begin(j, "args", '{');
	message_arguments(j, "to", x->target, x->bytes, x->sequence, i);
	json_end(j, '}');
	json_end(j, '}');
	if (x->span == NO_SPAN || !flows)
		return;
	flow_event(j, "s", i, x->source, x->sent);
	flow_event(j, "f", i, x->target, m->span[x->span].begin);
}

static void rank_records(struct json *j, const struct merged *m)
{
	json_begin(j, "ranks", '[');
	for (uint32_t i = 0; i < m->tracks; i++) {
		json_begin(j, NULL, '{');
		json_whole(j, "rank", m->track[i].head.rank);
		json_text(j, "program", m->track[i].head.program);
		json_truth(j, "closed", track_closed(&m->track[i]));
		json_micros(j, "correction_us", m->offset[i].correction);
		json_micros(j, "estimate_us", m->offset[i].estimate);
		json_end(j, '}');
	}
	json_end(j, ']');
}

static void events(struct json *j, const struct merged *m, bool flows)
{
	json_begin(j, NULL, '[');
	for (uint32_t i = 0; i < m->tracks; i++)
		track_names(j, m, i);
	for (size_t i = 0; i < m->spans; i++)
		span_event(j, m, &m->span[i]);
	for (size_t i = 0; i < m->messages; i++)
		message_event(j, m, i, flows);
	json_end(j, ']');
}

void show_events(const struct merged *m, bool flows, FILE *to)
{
	struct json other = { .to = to, .depth = 1 }, list = { .to = to };
	fputs("{\"displayTimeUnit\": \"ns\",", to);
	json_begin(&other, "otherData", '{');
	json_whole(&other, "dropped", m->dropped);
	json_micros(&other, "length_us", m->length);
	json_whole(&other, "undelivered", m->undelivered);
	json_whole(&other, "unsent", m->unsent);
	rank_records(&other, m);
	json_end(&other, '}');
	fputs(",\n\"traceEvents\": ", to);
	events(&list, m, flows); /* an array of its own: one event, one line */
	fputs("}\n", to);
}

void show_json(const struct merged *m, FILE *to)
{
	show_events(m, true, to);
}
