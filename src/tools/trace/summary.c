/* SPDX-License-Identifier: BSD-3-Clause */
/* What a merged trace says in a page of text. */
#include <inttypes.h>

#include <tern/tern.h>

#include "tools/trace/show.h"

enum { LONGEST = 10 }; /* entries of each list */

/* What one rank did; ns. */
struct account {
	uint64_t sent, handled, waits, barriers, calls;
	int64_t busy, waiting;
};

/*
 * Waits and handlers nest: what runs within a wait is not waiting, and a handler within a
 * handler is not busy twice. So each span's time is taken off the one that it stands in.
 */
static void account_span(struct account *a, const struct span *s, const struct span *around)
{
	int64_t took = s->end - s->begin;
	bool handler = s->kind <= SPAN_REPLY;
	if (s->kind == SPAN_THREAD)
		return;
	*(handler ? &a->busy : &a->waiting) += took;
	if (around && around->kind != SPAN_THREAD)
		*(around->kind <= SPAN_REPLY ? &a->busy : &a->waiting) -= took;
	a->handled += handler;
	a->waits += s->kind == SPAN_WAIT;
	a->barriers += s->kind == SPAN_BARRIER;
	a->calls += s->kind == SPAN_CALL;
}

static struct account account_of(const struct merged *m, uint32_t track)
{
	struct account a = { 0 };
	for (size_t i = m->first_span[track]; i < m->first_span[track + 1]; i++) {
		const struct span *s = &m->span[i];
		account_span(&a, s, s->around == NO_SPAN ? NULL : &m->span[s->around]);
	}
	for (size_t i = 0; i < m->messages; i++)
		a.sent += m->message[i].from == track;
	return a;
}

static double share(int64_t part, int64_t whole)
{
	return whole ? 100.0 * (double)part / (double)whole : 0;
}

static void show_ranks(const struct merged *m, FILE *to)
{
	fprintf(to, "%6s %9s %9s %9s %9s %9s %8s %9s\n", "rank", "sent", "handled", "waits",
		"barriers", "calls", "busy %", "waiting %");
	for (uint32_t i = 0; i < m->tracks; i++) {
		struct account a = account_of(m, i);
		fprintf(to,
			"%6u %9" PRIu64 " %9" PRIu64 " %9" PRIu64 " %9" PRIu64 " %9" PRIu64
			" %8.2f %9.2f\n",
			m->track[i].head.rank, a.sent, a.handled, a.waits, a.barriers, a.calls,
			share(a.busy, m->length), share(a.waiting, m->length));
	}
}

static int64_t length_of(const struct merged *m, size_t span)
{
	return m->span[span].end - m->span[span].begin;
}

/* The longest spans of handlers, or of waits and calls; how many. */
static unsigned spans_longest(const struct merged *m, bool handlers, size_t at[LONGEST + 1])
{
	unsigned n = 0;
	for (size_t i = 0; i < m->spans; i++) {
		if ((m->span[i].kind <= SPAN_REPLY) != handlers || m->span[i].kind == SPAN_THREAD)
			continue;
		unsigned k = n < LONGEST ? n++ : LONGEST;
		for (; k && length_of(m, at[k - 1]) < length_of(m, i); k--)
			at[k] = at[k - 1];
		at[k] = i;
	}
	return n;
}

static void show_longest(const struct merged *m, FILE *to, const char *title, bool handlers)
{
	size_t at[LONGEST + 1];
	unsigned n = spans_longest(m, handlers, at);
	fprintf(to, "\n%s\n", title);
	for (unsigned i = 0; i < n; i++) {
		const struct span *s = &m->span[at[i]];
		char name[HANDLER_TEXT];
		span_name(name, m, s);
		fprintf(to, "%12.3f us  %-26s rank %u, at %.3f us",
			(double)length_of(m, at[i]) / 1e3, name, m->track[s->track].head.rank,
			(double)s->begin / 1e3);
		if (handlers)
			fprintf(to, ", a %s from rank %u", span_kind_name(s->kind), s->peer);
		fprintf(to, "%s\n", s->unended ? ", whose end is not recorded" : "");
	}
}

static void show_handlers(const struct merged *m, FILE *to)
{
	static struct {
		uint64_t calls;
		int64_t sum, most;
	} of[TERN_HANDLER_SLOTS];
	for (size_t i = 0; i < m->spans; i++) {
		const struct span *s = &m->span[i];
		int64_t took = s->end - s->begin;
		if (s->kind > SPAN_REPLY)
			continue;
		of[s->handler].calls++;
		of[s->handler].sum += took;
		of[s->handler].most = took > of[s->handler].most ? took : of[s->handler].most;
	}
	fprintf(to, "\n%-28s %9s %12s %12s\n", "handler", "calls", "mean us", "longest us");
	for (unsigned h = 0; h < TERN_HANDLER_SLOTS; h++) {
		char name[HANDLER_TEXT];
		handler_name(name, m, h);
		if (of[h].calls)
			fprintf(to, "%-28s %9" PRIu64 " %12.3f %12.3f\n", name, of[h].calls,
				(double)of[h].sum / 1e3 / (double)of[h].calls,
				(double)of[h].most / 1e3);
	}
}

void show_remarks(const struct merged *m, FILE *to)
{
	for (uint32_t i = 0; i < m->tracks; i++) {
		const struct track *t = &m->track[i];
		if (!track_closed(t))
			fprintf(to, "rank %u did not close%s: its trace ends with the last flush\n",
				t->head.rank, t->cut ? " and its file ends inside a record" : "");
		if (m->offset[i].correction)
			fprintf(to, "rank %u: its clock was corrected by %+.3f us\n", t->head.rank,
				(double)m->offset[i].correction / 1e3);
	}
	if (m->tracks < m->track[0].head.size)
		fprintf(to, "%u of %u ranks are here\n", m->tracks, m->track[0].head.size);
	if (m->dropped)
		fprintf(to,
			"%" PRIu64
			" events were dropped: their files were not written fast enough\n",
			m->dropped);
}

void show_summary(const struct merged *m, FILE *to)
{
	size_t matched = m->messages - m->undelivered - m->unsent;
	fprintf(to, "%s, %u ranks, %.3f ms\n", m->track[0].head.program, m->track[0].head.size,
		(double)m->length / 1e6);
	fprintf(to,
		"%zu messages: %zu from send to handler, %zu never seen to be handled, %zu never "
		"seen to be sent\n",
		m->messages, matched, m->undelivered, m->unsent);
	show_remarks(m, to);
	fputc('\n', to);
	show_ranks(m, to);
	show_handlers(m, to);
	show_longest(m, to, "slowest handlers", true);
	show_longest(m, to, "longest waits", false);
}
