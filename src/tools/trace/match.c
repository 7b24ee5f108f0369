/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which handler a message ran. Both sides have counted the messages of a pair of ranks,
 * requests and replies apart; so what was sent and what was handled are sorted together,
 * and those that lie side by side with one key are one message.
 */
#include "tools/trace/merge.h"

#include <stdlib.h>

static int key_order(const struct message *x, const struct message *y)
{
	if (x->source != y->source)
		return x->source < y->source ? -1 : 1;
	if (x->target != y->target)
		return x->target < y->target ? -1 : 1;
	if (x->reply != y->reply)
		return x->reply ? 1 : -1;
	return x->sequence < y->sequence ? -1 : x->sequence > y->sequence;
}

/* A send before its arrival. */
static int message_order(const void *a, const void *b)
{
	const struct message *x = a, *y = b;
	int order = key_order(x, y);
	return order ? order : (x->from == NO_TRACK) - (y->from == NO_TRACK);
}

static void track_sends(struct merged *m, uint32_t track)
{
	const struct track *t = &m->track[track];
	for (size_t i = 0; i < t->records; i++) {
		const struct trace_record *r = &t->record[i];
		if (r->kind > RECORD_REPLY)
			continue;
		m->message[m->messages++] = (struct message){
			.sent = (int64_t)r->time,
			.from = track,
			.reply = r->kind == RECORD_REPLY,
			.handler = r->handler,
			.bytes = r->bytes,
			.sequence = r->sequence,
			.source = t->head.rank,
			.target = r->peer,
			.span = NO_SPAN,
		};
	}
}

/* As a message that has no sender yet. */
static struct message arrival_of(const struct merged *m, size_t span)
{
	const struct span *s = &m->span[span];
	return (struct message){
		.from = NO_TRACK,
		.reply = s->kind == SPAN_REPLY,
		.handler = s->handler,
		.bytes = s->bytes,
		.sequence = s->sequence,
		.source = s->peer,
		.target = m->track[s->track].head.rank,
		.span = span,
	};
}

/* Of those that are sorted: an arrival without a send stays a message of its own. */
static void sides_join(struct merged *m)
{
	size_t all = m->messages, n = 0;
	for (size_t i = 0; i < all; i++) {
		struct message x = m->message[i], *before = n ? &m->message[n - 1] : &x;
		if (n && x.from == NO_TRACK && before->span == NO_SPAN &&
		    key_order(before, &x) == 0)
			before->span = x.span;
		else
			m->message[n++] = x;
	}
	m->messages = n;
}

void messages_match(struct merged *m)
{
	for (uint32_t i = 0; i < m->tracks; i++)
		track_sends(m, i);
	for (size_t i = 0; i < m->spans; i++)
		if (m->span[i].kind <= SPAN_REPLY)
			m->message[m->messages++] = arrival_of(m, i);
	qsort(m->message, m->messages, sizeof *m->message, message_order);
	sides_join(m);
	for (size_t i = 0; i < m->messages; i++) {
		const struct message *x = &m->message[i];
		m->unsent += x->from == NO_TRACK;
		m->undelivered += x->span == NO_SPAN;
		if (x->from != NO_TRACK && x->span != NO_SPAN)
			m->span[x->span].message = i;
	}
}
