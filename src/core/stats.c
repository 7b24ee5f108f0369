/* SPDX-License-Identifier: BSD-3-Clause */
/* What a rank has counted: asked for by a program, and printed at its end (TERN_STATS). */
#include <errno.h>
#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tern/stats.h>

#include "base/error.h"
#include "base/setting.h"
#include "base/wrap.h"
#include "core/layer.h"
#include "endpoint/count.h"
#include "endpoint/handler.h"

_Static_assert(TERN_STATS_LAYER == TERN_HANDLER_SLOTS, "every handler has its counts");

/* Of what tern_stats_net() writes: its first version, and what no version will have. */
enum {
	NET_SIZE_LEAST = offsetof(tern_stats_net_data, forged) + sizeof(uint64_t),
	NET_SIZE_MOST = 4096,
};

/* -- Opening and closing ------------------------------------------------------------------ */

int stats_read(uint64_t *print)
{
	int rc = setting_number(SETTING_STATS, print);
	if (rc || *print <= 2)
		return rc;
	*print = 0;
	return error_set(-EINVAL, "TERN_STATS is '%s'; it can be 0, 1, or 2 for JSON",
			 setting_text(SETTING_STATS));
}

void pulse_open(struct endpoint *e)
{
	e->pulse = job_pulse(&e->group->job, e->site.member);
	memset(e->pulse, 0, sizeof *e->pulse);
	/* Before the rank is open: what others see of it has no order yet. */
	atomic_store_explicit(&e->pulse->guard, wrap_first(32, 0) << 32, memory_order_relaxed);
	atomic_store_explicit(&e->pulse->version, (uint32_t)wrap_first(32, 0) & ~1u,
			      memory_order_relaxed);
	e->owner.guard = e->t->guard = &e->pulse->guard;
	if (e->world->ticks) { /* a simulated rank is in a handler while it waits to run */
		stats_set(&e->pulse->current_at, (uintptr_t)&e->t->current);
		stats_set(&e->pulse->inlet_at, (uintptr_t)&e->inlet);
	}
}

int stats_open(struct endpoint *e)
{
	struct job *j = &e->group->job;
	int rc = stats_read(&e->stats_print);
	if (rc || !e->stats_print)
		return rc;
	if (job_stats_begin(j, e->t->rank)) /* counting is no reason to fail */
		error_warn("rank %u does not count: %s", e->t->rank, tern_strerror(-ENOMEM));
	else
		e->stats = job_stats(j, e->t->rank);
	return 0;
}

/* -- Asking ------------------------------------------------------------------------------- */

/* What is counted: its name, its place in what a program is given, and in the pulse. */
struct figure {
	const char *name;
	size_t at;
	int pulse; /* an enum pulse_count, or NOT_COUNTED */
};
enum { NOT_COUNTED = -1 };
#define FIGURE(type, name, pulse)                  \
	{                                          \
#name, offsetof(type, name), pulse \
	}

static const struct figure figures[] = {
#define RANK(name, pulse) FIGURE(tern_stats_data, name, pulse)
	RANK(sent, NOT_COUNTED),
	RANK(handled, NOT_COUNTED),
	RANK(bytes, NOT_COUNTED),
	RANK(timed, NOT_COUNTED),
	RANK(handler_ns, NOT_COUNTED),
	RANK(queue_most, NOT_COUNTED),
	RANK(waits, PULSE_WAITS),
	RANK(yields, PULSE_YIELDS),
	RANK(naps, PULSE_NAPS),
	RANK(sleeps, PULSE_SLEEPS),
	RANK(slept_ns, PULSE_SLEPT),
	RANK(bells, PULSE_BELLS),
	RANK(knocks, PULSE_KNOCKS),
	RANK(gates, PULSE_GATES),
	RANK(room_stalls, PULSE_ROOM_STALLS),
	RANK(room_ns, PULSE_ROOM_TICKS),
	RANK(block_stalls, PULSE_BLOCK_STALLS),
	RANK(block_ns, PULSE_BLOCK_TICKS),
	RANK(deferred_most, PULSE_DEFERRED),
	RANK(interrupts, PULSE_INTERRUPTS),
	RANK(claims, PULSE_CLAIMS),
};

static const struct figure packets[] = {
#define PACKETS(name, pulse) FIGURE(tern_stats_net_data, name, PULSE_PACKETS_##pulse)
	PACKETS(sent, SENT),           PACKETS(received, RECEIVED), PACKETS(again, AGAIN),
	PACKETS(doubled, DOUBLED),     PACKETS(early, EARLY),       PACKETS(refused, REFUSED),
	PACKETS(malformed, MALFORMED), PACKETS(foreign, FOREIGN),   PACKETS(old, OLD),
	PACKETS(forged, FORGED),
};

#define COUNT(list) (sizeof(list) / sizeof *(list))

static uint64_t *figure_in(const void *data, const struct figure *f)
{
	return (uint64_t *)((uintptr_t)data + f->at);
}

static double tick_ns(const struct endpoint *e)
{
	return e->stats ? tick_length((struct moment){ stats_get(&e->stats->begun_tick),
						       stats_get(&e->stats->begun_ns) })
			: 1;
}

static uint64_t in_ns(const struct endpoint *e, const _Atomic uint64_t *ticks)
{
	return (uint64_t)((double)stats_get(ticks) * tick_ns(e));
}

static uint64_t peer_sent(const struct endpoint *e, uint32_t rank)
{
	return lane_sent(&e->t->lane[rank]) + lane_sent(&e->site.peer[rank].answer);
}

static void pulse_figures(const struct endpoint *e, const struct figure *f, size_t n, void *out)
{
	for (; n--; f++) {
		bool ticks = f->pulse == PULSE_ROOM_TICKS || f->pulse == PULSE_BLOCK_TICKS;
		if (f->pulse == NOT_COUNTED)
			continue;
		const _Atomic uint64_t *count = &e->pulse->count[f->pulse];
		*figure_in(out, f) = ticks ? in_ns(e, count) : stats_get(count);
	}
}

static void data_of_stats(const struct endpoint *e, tern_stats_data *out)
{
	tern_stats_handler_data sum;
	for (unsigned i = 0; layer_name(i); i++) {
		tern_stats_handler(e->t, TERN_STATS_LAYER + i, &sum);
		out->bytes += sum.bytes;
		out->timed += sum.timed;
		out->handler_ns += sum.ns;
	}
	for (uint32_t r = 0; r < e->t->size; r++) {
		uint64_t most = stats_get(&e->stats->peer[r].most);
		out->queue_most = most > out->queue_most ? most : out->queue_most;
	}
}

int tern_stats(tern *t, tern_stats_data *out)
{
	INSIDE struct scope scope = scope_given(t);
	if (t->own->forked)
		return rules_forked(t->own);
	struct endpoint *e = t->own;
	*out = (tern_stats_data){ .handled = endpoint_served(e), .counting = e->stats != NULL };
	for (uint32_t r = 0; r < t->size; r++)
		out->sent += peer_sent(e, r);
	pulse_figures(e, figures, COUNT(figures), out);
	if (e->stats)
		data_of_stats(e, out);
	return 0;
}

int tern_stats_net(tern *t, tern_stats_net_data *out)
{
	INSIDE struct scope scope = scope_given(t);
	if (t->own->forked)
		return rules_forked(t->own);
	tern_stats_net_data d = { .size = out->size };
	pulse_figures(t->own, packets, COUNT(packets), &d);
	if (d.size < NET_SIZE_LEAST || d.size > NET_SIZE_MOST)
		return error_set(
			-EINVAL,
			"the counts of packets were asked for with a size of %zu; set it to "
			"sizeof(tern_stats_net_data)",
			d.size);
	memset(out, 0, d.size); /* what only a later version counts */
	memcpy(out, &d, d.size < sizeof d ? d.size : sizeof d);
	return 0;
}

/* What `rank` says that it has handled of ours. */
static uint64_t peer_took(const struct endpoint *e, uint32_t rank)
{
	const struct job *j = &e->group->job;
	if (!atomic_load_explicit(&j->pulse[rank].counting, memory_order_acquire))
		return 0;
	return stats_get(&job_stats(j, rank)->peer[e->t->rank].bytes);
}

int tern_stats_peer(tern *t, uint32_t rank, tern_stats_peer_data *out)
{
	INSIDE struct scope scope = scope_given(t);
	struct endpoint *e = t->own;
	int rc = rules_destination(e, rank);
	if (rc)
		return rc;
	const struct peer *p = &e->site.peer[rank];
	*out = (tern_stats_peer_data){ .sent = peer_sent(e, rank),
				       .sent_bytes = peer_took(e, rank),
				       .handled = inlet_handled(&p->requests) +
						  inlet_handled(&p->replies) };
	if (!e->stats)
		return 0;
	const struct stats_peer *s = &e->stats->peer[rank];
	out->requests = stats_get(&s->requests);
	out->replies = stats_get(&s->replies);
	out->bytes = stats_get(&s->bytes);
	out->queue_most = stats_get(&s->most);
	return 0;
}

static void handler_read(const struct endpoint *e, unsigned id, tern_stats_handler_data *out)
{
	const struct stats_handler *h = &e->stats->handler[id];
	out->count = stats_messages(h);
	out->bytes = stats_message_bytes(h);
	out->timed = stats_get(&h->timed);
	out->ns = in_ns(e, &h->ticks);
	out->longest_ns = in_ns(e, &h->longest);
}

static void layer_read(const struct endpoint *e, unsigned layer, tern_stats_handler_data *sum)
{
	const struct layer_place *place = layer ? &layer_places[layer - 1] : NULL;
	unsigned first = place ? TERN_HANDLER_MAX + place->first_handler : 0;
	unsigned end = place ? first + place->handlers : TERN_HANDLER_MAX;
	for (unsigned id = first; id < end; id++) {
		tern_stats_handler_data one;
		if (!stats_messages(&e->stats->handler[id]))
			continue;
		handler_read(e, id, &one);
		sum->count += one.count;
		sum->bytes += one.bytes;
		sum->timed += one.timed;
		sum->ns += one.ns;
		sum->longest_ns =
			one.longest_ns > sum->longest_ns ? one.longest_ns : sum->longest_ns;
	}
}

int tern_stats_handler(tern *t, unsigned id, tern_stats_handler_data *out)
{
	INSIDE struct scope scope = scope_given(t);
	struct endpoint *e = t->own;
	bool of_layer = id >= TERN_STATS_LAYER;
	unsigned layer = id - TERN_STATS_LAYER;
	int rc = rules_forked(e);
	if (rc)
		return rc;
	if (of_layer && !layer_name(layer))
		return error_set(-ERANGE,
				 "the counts of handler %u were asked for; handlers are numbered 0 "
				 "to %u, and layers behind them",
				 id, TERN_STATS_LAYER - 1);
	*out = (tern_stats_handler_data){ .name = of_layer ? layer_name(layer)
							   : e->handlers.name[id] };
	if (e->stats && of_layer)
		layer_read(e, layer, out);
	else if (e->stats)
		handler_read(e, id, out);
	return 0;
}

/* -- Printing --------------------------------------------------------------------------------- */

/* What a rank has counted of handlers and peers, a row for each that was active. */
static const struct figure handler_figures[] = {
#define HANDLER(name) FIGURE(tern_stats_handler_data, name, NOT_COUNTED)
	HANDLER(count), HANDLER(bytes), HANDLER(timed), HANDLER(ns), HANDLER(longest_ns),
};
static const struct figure peer_figures[] = {
#define PEER(name) FIGURE(tern_stats_peer_data, name, NOT_COUNTED)
	PEER(sent),    PEER(sent_bytes), PEER(handled),    PEER(requests),
	PEER(replies), PEER(bytes),      PEER(queue_most),
};

union row {
	tern_stats_handler_data handler;
	tern_stats_peer_data peer;
};

/* "user 3 (on_greeting)", "msg 1 (on_status)": a layer's handlers count from 0. */
static bool handler_row(tern *t, unsigned id, union row *r, char label[LABEL_ROOM])
{
	if (tern_stats_handler(t, id, &r->handler) || !r->handler.count)
		return false;
	handler_number(id, "user", r->handler.name, label);
	return true;
}

static bool peer_row(tern *t, unsigned rank, union row *r, char label[LABEL_ROOM])
{
	snprintf(label, LABEL_ROOM, "rank %u", rank);
	return tern_stats_peer(t, rank, &r->peer) == 0 && (r->peer.sent || r->peer.handled);
}

struct table {
	const char *name;
	bool (*row)(tern *t, unsigned i, union row *r, char label[LABEL_ROOM]);
	unsigned rows;
	const struct figure *figure;
	size_t figures;
};

/* JSON with a name in front of which is `before`; a column of text if that is NULL. */
static void print_figures(FILE *to, const char *before, const void *data, const struct figure *f,
			  size_t n)
{
	for (; n--; f++)
		if (before)
			fprintf(to, ", \"%s%s\": %" PRIu64, before, f->name, *figure_in(data, f));
		else
			fprintf(to, " %14" PRIu64, *figure_in(data, f));
}

static void print_table(FILE *to, tern *t, const struct table *k, bool json)
{
	union row r;
	char label[LABEL_ROOM];
	const char *comma = "";
	fprintf(to, json ? ", \"%ss\": [" : "tern:   %-28s", k->name);
	for (size_t i = 0; !json && i < k->figures; i++)
		fprintf(to, " %14s", k->figure[i].name);
	for (unsigned n = 0; n < k->rows; n++)
		if (k->row(t, n, &r, label)) {
			if (json)
				fprintf(to, "%s{\"id\": %u, \"name\": \"%s\"", comma, n, label);
			else
				fprintf(to, "\ntern:   %-28s", label);
			print_figures(to, json ? "" : NULL, &r, k->figure, k->figures);
			fputs(json ? "}" : "", to);
			comma = ", ";
		}
	fputs(json ? "]" : "\n", to);
}

static void text_rank(FILE *to, tern *t, const tern_stats_data *d, const tern_stats_net_data *net)
{
	enum { COLUMNS = 3 };
	const char *before = "tern:   packets:"; /* nothing in a job without them */
	fprintf(to, "tern: rank %u of %u\n", tern_rank(t), tern_size(t));
	for (size_t i = 0; i < COUNT(figures); i++)
		fprintf(to, "%s%-14s %12" PRIu64 "%s",
			i % COLUMNS ? "  " : "tern:   ", figures[i].name,
			*figure_in(d, &figures[i]), i % COLUMNS == COLUMNS - 1 ? "\n" : "");
	for (size_t i = 0; i < COUNT(packets); i++)
		if (*figure_in(net, &packets[i])) {
			fprintf(to, "%s %" PRIu64 " %s", before, *figure_in(net, &packets[i]),
				packets[i].name);
			before = ",";
		}
	if (*before == ',')
		fputc('\n', to);
}

static void json_rank(FILE *to, tern *t, const tern_stats_data *d, const tern_stats_net_data *net)
{
	fprintf(to, "{\"rank\": %u, \"size\": %u", tern_rank(t), tern_size(t));
	print_figures(to, "", d, figures, COUNT(figures));
	print_figures(to, "packets_", net, packets, COUNT(packets));
}

/*
 * What the rank has counted, on standard error, in one write: a table, or one JSON object in a
 * line.
 */
static void stats_print(tern *t, bool json)
{
	const struct table tables[] = {
		{ "handler", handler_row, TERN_STATS_LAYER, handler_figures,
		  COUNT(handler_figures) },
		{ "peer", peer_row, tern_size(t), peer_figures, COUNT(peer_figures) },
	};
	tern_stats_data d;
	tern_stats_net_data net = { .size = sizeof net };
	char *page = NULL;
	size_t len = 0;
	FILE *to = open_memstream(&page, &len);
	if (!to)
		return;
	tern_stats(t, &d);
	tern_stats_net(t, &net);
	(json ? json_rank : text_rank)(to, t, &d, &net);
	for (size_t i = 0; i < COUNT(tables); i++)
		print_table(to, t, &tables[i], json);
	if (json)
		fputs("}\n", to);
	if (fclose(to) == 0)
		/* One call, so that the tables of several ranks do not mix. */
		fwrite(page, 1, len, stderr);
	free(page);
}

void stats_close(struct endpoint *e)
{
	if (e->stats)
		stats_print(e->t, e->stats_print > 1);
	e->stats = NULL;
	stats_set(&e->pulse->inlet_at, 0);
	atomic_store_explicit(&e->pulse->counting, 0, memory_order_relaxed);
}
