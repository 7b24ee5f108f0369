/* SPDX-License-Identifier: BSD-3-Clause */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tern/stats.h>

#include "base/clock.h"
#include "base/tick.h"
#include "core/layer.h"
#include "tools/top.h"

bool top_open(struct top *t, pid_t pid)
{
	return watch_open(&t->watch, pid, "tern top") && top_begin(t);
}

bool top_begin(struct top *t)
{
	t->before = calloc(t->watch.job.size, sizeof *t->before);
	t->row = calloc(t->watch.job.size, sizeof *t->row);
	if (!t->before || !t->row) {
		fprintf(stderr, "tern top: no memory for a job of %u ranks\n", t->watch.job.size);
		top_close(t);
		return false;
	}
	return true;
}

void top_close(struct top *t)
{
	free(t->before);
	free(t->row);
	watch_close(&t->watch);
}

bool top_over(const struct top *t)
{
	for (uint32_t r = 0; r < t->watch.job.size; r++)
		if (job_rank_state(&t->watch.job, r) < RANK_GONE)
			return false;
	return true;
}

/* -- Handlers ------------------------------------------------------------------------------ */

static void handler_name(unsigned id, char *text, size_t room)
{
	if (id < TERN_HANDLER_MAX)
		snprintf(text, room, "user %u", id);
	else
		snprintf(text, room, "%s %u",
			 tern_stats_layer_name(1 + (id - TERN_HANDLER_MAX) / LAYER_HANDLERS),
			 (id - TERN_HANDLER_MAX) % LAYER_HANDLERS);
}

static void handler_sum(const struct top *t, unsigned id, struct top_handler *out)
{
	*out = (struct top_handler){ .id = id };
	for (uint32_t r = 0; r < t->watch.job.size; r++) {
		const struct stats *s = watch_stats(&t->watch, r);
		if (!s)
			continue;
		out->messages += stats_messages(&s->handler[id]);
		out->bytes += stats_message_bytes(&s->handler[id]);
		out->timed += stats_get(&s->handler[id].timed);
		out->ticks += stats_get(&s->handler[id].ticks);
	}
}

static double tick_ns(const struct top *t)
{
	for (uint32_t r = 0; r < t->watch.job.size; r++) {
		const struct stats *s = watch_stats(&t->watch, r);
		if (s)
			return tick_length(
				(struct moment){ stats_get(&s->begun_tick), stats_get(&s->begun_ns) });
	}
	return 1;
}

static int handler_compare(const void *a, const void *b)
{
	const struct top_handler *p = a, *q = b;
	return p->rate != q->rate ? (p->rate < q->rate) - (p->rate > q->rate)
				  : (p->messages < q->messages) - (p->messages > q->messages);
}

static void handlers_look(struct top *t)
{
	double tick = tick_ns(t);
	t->handlers = 0;
	for (unsigned id = 0; id < TOP_HANDLERS; id++) {
		struct top_handler *h = &t->handler[t->handlers], *before = &t->handler_before[id];
		handler_sum(t, id, h);
		if (!h->messages)
			continue;
		handler_name(id, h->name, sizeof h->name);
		h->rate = (double)(h->messages - before->messages) / t->seconds;
		h->byte_rate = (double)(h->bytes - before->bytes) / t->seconds;
		h->mean_ns = h->timed ? (double)h->ticks * tick / (double)h->timed : 0;
		*before = *h;
		t->handlers++;
	}
	qsort(t->handler, t->handlers, sizeof *t->handler, handler_compare);
}

/* -- Ranks --------------------------------------------------------------------------------- */

static double since(uint64_t now, uint64_t before, double seconds)
{
	return now > before ? (double)(now - before) / seconds : 0;
}

static uint64_t stalls_of(const struct sight *s)
{
	return s->count[PULSE_ROOM_STALLS] + s->count[PULSE_BLOCK_STALLS];
}

/* Sleeps are counted when they end; one that goes on counts from where it was seen. */
static double asleep_part(const struct sight *now, const struct sight *before, double seconds)
{
	double part = since(now->count[PULSE_SLEPT], before->count[PULSE_SLEPT], seconds) / 1e9;
	return part < 1 ? part : 1;
}

static void row_fill(struct top_row *r, const struct sight *now, const struct sight *before, double seconds)
{
	r->now = *now;
	r->figure[TOP_RANK] = r->rank;
	r->figure[TOP_HANDLED] = since(now->served, before->served, seconds);
	r->figure[TOP_SENT] = since(now->sent, before->sent, seconds);
	r->figure[TOP_BYTES] = since(now->bytes, before->bytes, seconds);
	r->figure[TOP_QUEUE] = (double)now->queue;
	r->figure[TOP_ASLEEP] = asleep_part(now, before, seconds);
	r->figure[TOP_STALLS] = since(stalls_of(now), stalls_of(before), seconds);
}

static void packets_add(struct top_packets *p, const struct sight *now, const struct sight *before,
			double seconds)
{
	const uint64_t *n = now->count, *b = before->count;
	uint64_t dropped = sight_dropped(now);
	p->any |= n[PULSE_PACKETS_SENT] || dropped;
	p->sent += since(n[PULSE_PACKETS_SENT], b[PULSE_PACKETS_SENT], seconds);
	p->received += since(n[PULSE_PACKETS_RECEIVED], b[PULSE_PACKETS_RECEIVED], seconds);
	p->again += since(n[PULSE_PACKETS_AGAIN], b[PULSE_PACKETS_AGAIN], seconds);
	p->dropped += since(dropped, sight_dropped(before), seconds);
}

static int row_compare(const void *a, const void *b, void *arg)
{
	const struct top_row *p = a, *q = b;
	enum top_column by = *(enum top_column *)arg;
	double x = p->figure[by], y = q->figure[by];
	if (by != TOP_RANK && x != y)
		return (x < y) - (x > y);
	return (p->rank > q->rank) - (p->rank < q->rank);
}

void top_order(struct top *t)
{
	qsort_r(t->row, t->watch.job.size, sizeof *t->row, row_compare, &t->sort);
}

void top_look(struct top *t)
{
	uint32_t size = t->watch.job.size;
	struct sight *now = calloc(size, sizeof *now);
	if (!now)
		return; /* the figures stay as they were */
	watch_look(&t->watch, now);
	uint64_t at = clock_ns();
	t->seconds = t->looked ? (double)(at - t->looked) / 1e9 : 1;
	t->counting = 0;
	t->packets = (struct top_packets){ 0 };
	for (uint32_t r = 0; r < size; r++) {
		const struct sight *before = t->looked ? &t->before[r] : &now[r];
		t->row[r].rank = r;
		row_fill(&t->row[r], &now[r], before, t->seconds);
		packets_add(&t->packets, &now[r], before, t->seconds);
		t->counting += now[r].counting;
	}
	free(t->before);
	t->before = now;
	t->looked = at;
	handlers_look(t);
	top_order(t);
}
