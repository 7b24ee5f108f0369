/* SPDX-License-Identifier: BSD-3-Clause */
/* `tern top`: looks at the ranks of a job twice, makes rates of the differences, and shows them. */
#include "tools/watch/top.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "tools/tools.h"

bool top_begin(struct top *t)
{
	t->before = calloc(watch_most(&t->watch), sizeof *t->before);
	t->row = calloc(watch_most(&t->watch), sizeof *t->row);
	t->worker = t->row ? t->row + t->watch.job.size : NULL;
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
			return tick_length((struct moment){ stats_get(&s->begun_tick),
							    stats_get(&s->begun_ns) });
	}
	return 1;
}

static int handler_compare(const void *a, const void *b)
{
	const struct top_handler *p = a, *q = b;
	return p->rate != q->rate ? (p->rate < q->rate) - (p->rate > q->rate)
				  : (p->messages < q->messages) - (p->messages > q->messages);
}

/* Less than before when a rank has closed meanwhile, and does not count any more. */
static double handler_rate(const struct top *t, uint64_t now, uint64_t before)
{
	return now > before ? (double)(now - before) / t->seconds : 0;
}

/* Counts begin at 0 with each session. */
static void handlers_renew(struct top *t)
{
	uint32_t session = atomic_load(&t->watch.job.head->session);
	if (session != t->session)
		memset(t->handler_before, 0, sizeof t->handler_before);
	t->session = session;
}

static void handlers_look(struct top *t)
{
	double tick = tick_ns(t);
	handlers_renew(t);
	t->handlers = 0;
	for (unsigned id = 0; id < TOP_HANDLERS; id++) {
		struct top_handler *h = &t->handler[t->handlers], *before = &t->handler_before[id];
		handler_sum(t, id, h);
		if (!h->messages)
			continue;
		watch_handler(&t->watch, h->id, h->name);
		h->rate = handler_rate(t, h->messages, before->messages);
		h->byte_rate = handler_rate(t, h->bytes, before->bytes);
		h->mean_ns = h->timed ? (double)h->ticks * tick / (double)h->timed : 0;
		*before = *h;
		t->handlers++;
	}
	qsort(t->handler, t->handlers, sizeof *t->handler, handler_compare);
}

/* -- Ranks --------------------------------------------------------------------------------- */

struct span {
	const struct rank_view *now, *before;
	double seconds;
};

/* How fast a count has grown, per second. */
static double since(const struct span *s, uint64_t now, uint64_t before)
{
	return (double)view_growth(s->now, s->before, now, before) / s->seconds;
}

static uint64_t stalls_of(const struct rank_view *s)
{
	return s->count[PULSE_ROOM_STALLS] + s->count[PULSE_BLOCK_STALLS];
}

/* Sleeps are counted when they end; one that goes on counts from where it was seen. */
static double asleep_part(const struct span *s)
{
	double part = since(s, s->now->count[PULSE_SLEPT], s->before->count[PULSE_SLEPT]) / 1e9;
	return part < 1 ? part : 1;
}

static void row_fill(struct top_row *r, const struct span *s)
{
	const struct rank_view *now = s->now, *before = s->before;
	r->now = *now;
	r->figure[TOP_RANK] = r->rank;
	r->figure[TOP_HANDLED] = since(s, now->served, before->served);
	r->figure[TOP_SENT] = since(s, now->sent, before->sent);
	r->figure[TOP_BYTES] = since(s, now->bytes, before->bytes);
	r->figure[TOP_QUEUE] = (double)now->queue;
	r->figure[TOP_ASLEEP] = asleep_part(s);
	r->figure[TOP_STALLS] = since(s, stalls_of(now), stalls_of(before));
}

/* A worker's row has what it handles and what it does. */
static void workers_fill(struct top *t, const struct rank_view *now)
{
	t->workers = 0;
	for (uint32_t m = t->watch.job.size; m < watch_most(&t->watch); m++) {
		struct span s = { &now[m], t->looked ? &t->before[m] : &now[m], t->seconds };
		if (now[m].state != RANK_OPEN)
			continue;
		struct top_row *row = &t->worker[t->workers++];
		*row = (struct top_row){ .rank = now[m].rank, .worker = 1 };
		for (const struct top_row *w = t->worker; w < row; w++)
			row->worker += w->rank == row->rank;
		row_fill(row, &s);
	}
}

const struct top_row *top_worker(const struct top *t, const struct top_row *r,
				 const struct top_row *w)
{
	for (w = w ? w + 1 : t->worker; w < t->worker + t->workers; w++)
		if (w->rank == r->rank)
			return w;
	return NULL;
}

static void packets_add(struct top_packets *p, const struct span *s)
{
	const uint64_t *n = s->now->count, *b = s->before->count;
	uint64_t dropped = view_dropped(s->now);
	p->any |= n[PULSE_PACKETS_SENT] || dropped;
	p->sent += since(s, n[PULSE_PACKETS_SENT], b[PULSE_PACKETS_SENT]);
	p->received += since(s, n[PULSE_PACKETS_RECEIVED], b[PULSE_PACKETS_RECEIVED]);
	p->again += since(s, n[PULSE_PACKETS_AGAIN], b[PULSE_PACKETS_AGAIN]);
	p->dropped += since(s, dropped, view_dropped(s->before));
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
	struct rank_view *now = calloc(watch_most(&t->watch), sizeof *now);
	if (!now)
		return; /* the figures stay as they were */
	watch_look(&t->watch, now);
	uint64_t at = clock_ns();
	t->seconds = t->looked ? (double)(at - t->looked) / 1e9 : 1;
	t->counting = 0;
	t->packets = (struct top_packets){ 0 };
	for (uint32_t r = 0; r < size; r++) {
		struct span span = { &now[r], t->looked ? &t->before[r] : &now[r], t->seconds };
		t->row[r].rank = r;
		row_fill(&t->row[r], &span);
		packets_add(&t->packets, &span);
		t->counting += now[r].counting;
	}
	workers_fill(t, now);
	free(t->before);
	t->before = now;
	t->looked = at;
	handlers_look(t);
	top_order(t);
}

/* -- The command --------------------------------------------------------------------------- */

static void nap(double seconds)
{
	nanosleep(
		&(struct timespec){ .tv_sec = (time_t)seconds,
				    .tv_nsec = (long)((seconds - (double)(time_t)seconds) * 1e9) },
		NULL);
}

static void top_lines(struct top *t, const struct watch_options *o)
{
	top_look(t);
	do {
		nap(o->interval);
		top_look(t);
		(o->json ? top_json : top_print)(t);
	} while (!o->once && !top_over(t));
}

static bool read_interval(void *to, char *text)
{
	struct watch_options *o = to;
	char *end;
	double seconds = strtod(text, &end);
	if (end == text || *end || !(seconds >= 0.05 && seconds <= 3600))
		return option_refuse("--interval %s: it is a number of seconds, 0.05 to 3600",
				     text);
	o->interval = seconds;
	return true;
}

int top_main(int argc, char **argv)
{
	struct watch_options o = { .interval = 1 };
	int status;
	const struct choice choices[] = {
		{ .name = "--once", .flag = &o.once },
		{ .name = "--interval", .read = read_interval, .to = &o },
		{ .name = "--json", .flag = &o.json },
		{ .name = "--help" },
		{ 0 },
	};
	const struct options options = { .command = "top", .help = help_top, .choice = choices };
	if (!watch_options_read(&o, &options, argc, argv, &status))
		return status;
	struct top *t = calloc(1, sizeof *t);
	bool found = t && watch_open(&t->watch, o.job, "tern top") && top_begin(t);
	if (found) {
		if (o.once || o.json || !top_screen(t, o.interval))
			top_lines(t, &o);
		top_close(t);
	}
	free(t);
	return found ? 0 : 1;
}
