/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which handler a message ran. Both sides have counted the messages of a pair of ranks,
 * requests and replies apart; so what was sent and what was handled are sorted by the
 * same key and laid side by side.
 */
#include "tools/trace/merge.h"

#include <errno.h>
#include <stdlib.h>

#include "base/error.h"

/* The arrivals, as messages that have no sender yet. */
struct arrivals {
	struct message *at;
	size_t n;
};

static int message_order(const void *a, const void *b)
{
	const struct message *x = a, *y = b;
	if (x->source != y->source)
		return x->source < y->source ? -1 : 1;
	if (x->target != y->target)
		return x->target < y->target ? -1 : 1;
	if (x->reply != y->reply)
		return x->reply ? 1 : -1;
	return x->sequence < y->sequence ? -1 : x->sequence > y->sequence;
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
			.to = NO_TRACK,
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

static struct message arrival_of(const struct merged *m, size_t span)
{
	const struct span *s = &m->span[span];
	return (struct message){
		.from = NO_TRACK,
		.to = s->track,
		.reply = s->kind == SPAN_REPLY,
		.handler = s->handler,
		.bytes = s->bytes,
		.sequence = s->sequence,
		.source = s->peer,
		.target = m->track[s->track].head.rank,
		.span = span,
	};
}

static int arrivals_collect(const struct merged *m, struct arrivals *a)
{
	a->at = calloc(m->spans + 1, sizeof *a->at);
	if (!a->at)
		return error_set(-ENOMEM, "no memory to match %zu messages", m->spans);
	for (size_t i = 0; i < m->spans; i++)
		if (m->span[i].kind <= SPAN_REPLY)
			a->at[a->n++] = arrival_of(m, i);
	qsort(a->at, a->n, sizeof *a->at, message_order);
	return 0;
}

/*
 * Both sorted: those with one key are one message; an arrival without a send becomes one of its
 * own.
 */
static void sides_join(struct merged *m, const struct arrivals *a)
{
	size_t sent = m->messages, s = 0;
	for (size_t i = 0; i < a->n; i++) {
		while (s < sent && message_order(&m->message[s], &a->at[i]) < 0)
			s++;
		if (s < sent && message_order(&m->message[s], &a->at[i]) == 0) {
			m->message[s].to = a->at[i].to;
			m->message[s].span = a->at[i].span;
			m->span[a->at[i].span].message = s;
			continue;
		}
		m->message[m->messages++] = a->at[i];
		m->unsent++;
	}
	for (size_t i = 0; i < sent; i++)
		m->undelivered += m->message[i].span == NO_SPAN;
}

int messages_match(struct merged *m)
{
	struct arrivals a = { 0 };
	for (uint32_t i = 0; i < m->tracks; i++)
		track_sends(m, i);
	qsort(m->message, m->messages, sizeof *m->message, message_order);
	int rc = arrivals_collect(m, &a);
	if (!rc)
		sides_join(m, &a);
	free(a.at);
	return rc;
}
