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

int stats_open(struct endpoint *e)
{
	struct job *j = &e->group->job;
	int rc = stats_read(&e->stats_print);
	e->pulse = job_pulse(j, e->site.member);
	memset(e->pulse, 0, sizeof *e->pulse);
	/* Before the rank is open: what others see of it has no order yet. */
	atomic_store_explicit(&e->pulse->guard, wrap_first(32, 0) << 32, memory_order_relaxed);
	atomic_store_explicit(&e->pulse->version, (uint32_t)wrap_first(32, 0) & ~1u,
			      memory_order_relaxed);
	e->owner.guard = e->t->guard = &e->pulse->guard;
	if (e->world->ticks) { /* a simulated rank is in a handler while it waits for its turn */
		stats_set(&e->pulse->current_at, (uintptr_t)&e->t->current);
		stats_set(&e->pulse->inlet_at, (uintptr_t)&e->inlet);
	}
	if (e->main) /* its rank counts what its rings bring */
		e->stats_print = 0;
	if (rc || !e->stats_print)
		return rc;
	if (job_stats_begin(j, e->t->rank)) /* counting is no reason to fail */
		error_warn("rank %u does not count: %s", e->t->rank, tern_strerror(-ENOMEM));
	else
		e->stats = job_stats(j, e->t->rank);
	return 0;
}

/* -- Asking ------------------------------------------------------------------------------- */

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

static void data_of_pulse(const struct endpoint *e, tern_stats_data *out)
{
	const _Atomic uint64_t *count = e->pulse->count;
	out->waits = stats_get(&count[PULSE_WAITS]);
	out->yields = stats_get(&count[PULSE_YIELDS]);
	out->naps = stats_get(&count[PULSE_NAPS]);
	out->sleeps = stats_get(&count[PULSE_SLEEPS]);
	out->slept_ns = stats_get(&count[PULSE_SLEPT]);
	out->bells = stats_get(&count[PULSE_BELLS]);
	out->knocks = stats_get(&count[PULSE_KNOCKS]);
	out->room_stalls = stats_get(&count[PULSE_ROOM_STALLS]);
	out->room_ns = in_ns(e, &count[PULSE_ROOM_TICKS]);
	out->block_stalls = stats_get(&count[PULSE_BLOCK_STALLS]);
	out->block_ns = in_ns(e, &count[PULSE_BLOCK_TICKS]);
	out->gates = stats_get(&count[PULSE_GATES]);
	out->interrupts = stats_get(&count[PULSE_INTERRUPTS]);
	out->claims = stats_get(&count[PULSE_CLAIMS]);
	out->deferred_most = stats_get(&count[PULSE_DEFERRED]);
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
	int forked = rules_forked(t->own);
	if (forked)
		return forked;
	struct endpoint *e = t->own;
	*out = (tern_stats_data){ .handled = endpoint_served(e), .counting = e->stats != NULL };
	for (uint32_t r = 0; r < t->size; r++)
		out->sent += peer_sent(e, r);
	data_of_pulse(e, out);
	if (e->stats)
		data_of_stats(e, out);
	return 0;
}

static tern_stats_net_data data_of_packets(const struct endpoint *e)
{
	const _Atomic uint64_t *count = e->pulse->count;
	return (tern_stats_net_data){ .sent = stats_get(&count[PULSE_PACKETS_SENT]),
				      .received = stats_get(&count[PULSE_PACKETS_RECEIVED]),
				      .again = stats_get(&count[PULSE_PACKETS_AGAIN]),
				      .doubled = stats_get(&count[PULSE_PACKETS_DOUBLED]),
				      .early = stats_get(&count[PULSE_PACKETS_EARLY]),
				      .refused = stats_get(&count[PULSE_PACKETS_REFUSED]),
				      .malformed = stats_get(&count[PULSE_PACKETS_MALFORMED]),
				      .foreign = stats_get(&count[PULSE_PACKETS_FOREIGN]),
				      .old = stats_get(&count[PULSE_PACKETS_OLD]),
				      .forged = stats_get(&count[PULSE_PACKETS_FORGED]) };
}

int tern_stats_net(tern *t, tern_stats_net_data *out)
{
	INSIDE struct scope scope = scope_given(t);
	int forked = rules_forked(t->own);
	if (forked)
		return forked;
	tern_stats_net_data d = data_of_packets(t->own);
	d.size = out->size;
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

/* How long handlers took: `count` of those timed took from `from_ns` to below `to_ns`. */
struct stats_time {
	double from_ns, to_ns;
	uint64_t count;
};

static struct stats_time stats_time(const struct endpoint *e, unsigned bucket)
{
	double ns = tick_ns(e);
	return (struct stats_time){ .from_ns = (double)time_bucket_begin(bucket) * ns,
				    .to_ns = (double)time_bucket_begin(bucket + 1) * ns,
				    .count = stats_get(&e->stats->time[bucket]) };
}

/* -- Printing --------------------------------------------------------------------------------- */

/* Every figure of a rank, with the name it has in both forms. */
struct figure {
	const char *name;
	size_t at;
};
static const struct figure figures[] = {
#define FIGURE(name)                                   \
	{                                              \
#name, offsetof(tern_stats_data, name) \
	}
	FIGURE(sent),       FIGURE(handled),       FIGURE(bytes),      FIGURE(timed),
	FIGURE(handler_ns), FIGURE(waits),         FIGURE(yields),     FIGURE(naps),
	FIGURE(sleeps),     FIGURE(slept_ns),      FIGURE(bells),      FIGURE(knocks),
	FIGURE(gates),      FIGURE(room_stalls),   FIGURE(room_ns),    FIGURE(block_stalls),
	FIGURE(block_ns),   FIGURE(deferred_most), FIGURE(queue_most), FIGURE(interrupts),
	FIGURE(claims),
#undef FIGURE
};

/* And those of its packets, whose names begin with "packets_" where they stand among the others. */
static const struct figure packets[] = {
#define FIGURE(name)                                       \
	{                                                  \
#name, offsetof(tern_stats_net_data, name) \
	}
	FIGURE(sent),    FIGURE(received),  FIGURE(again),   FIGURE(doubled), FIGURE(early),
	FIGURE(refused), FIGURE(malformed), FIGURE(foreign), FIGURE(old),     FIGURE(forged),
#undef FIGURE
};

enum {
	FIGURES = sizeof figures / sizeof *figures,
	PACKETS = sizeof packets / sizeof *packets,
	COLUMNS = 4
};

static uint64_t figure_of(const void *data, const struct figure *f)
{
	return *(const uint64_t *)(const void *)((const char *)data + f->at);
}

static tern_stats_net_data packets_of(tern *t)
{
	tern_stats_net_data d = { .size = sizeof d };
	tern_stats_net(t, &d);
	return d;
}

static double mean_ns(const tern_stats_handler_data *h)
{
	return h->timed ? (double)h->ns / (double)h->timed : 0;
}

static bool peer_active(tern *t, uint32_t rank, tern_stats_peer_data *out)
{
	return tern_stats_peer(t, rank, out) == 0 && (out->sent || out->handled);
}

static bool handler_active(tern *t, unsigned id, tern_stats_handler_data *out)
{
	return tern_stats_handler(t, id, out) == 0 && out->count;
}

/* "user 3 (on_greeting)", "msg 1 (on_status)": a layer's handlers count from 0. */
static void handler_name(tern *t, unsigned id, char text[LABEL_ROOM])
{
	const char *name = t->own->handlers.name[id];
	char number[24];
	handler_number(id, number, sizeof number);
	snprintf(text, LABEL_ROOM, name ? "%s (%.40s)" : "%s", number, name);
}

/* -- Text ----------------------------------------------------------------------------------- */

static void text_handlers(FILE *to, tern *t)
{
	tern_stats_handler_data h;
	char name[LABEL_ROOM];
	fprintf(to, "tern:   %-28s %14s %16s %12s %12s\n", "handler", "messages", "bytes",
		"mean ns", "longest ns");
	for (unsigned id = 0; id < TERN_STATS_LAYER; id++)
		if (handler_active(t, id, &h)) {
			handler_name(t, id, name);
			fprintf(to,
				"tern:   %-28s %14" PRIu64 " %16" PRIu64 " %12.0f %12" PRIu64 "\n",
				name, h.count, h.bytes, mean_ns(&h), h.longest_ns);
		}
}

static void text_peers(FILE *to, tern *t)
{
	tern_stats_peer_data p;
	fprintf(to, "tern:   %-10s %14s %14s %16s %12s\n", "peer", "sent", "handled", "bytes",
		"queue most");
	for (uint32_t r = 0; r < tern_size(t); r++)
		if (peer_active(t, r, &p))
			fprintf(to,
				"tern:   rank %-5u %14" PRIu64 " %14" PRIu64 " %16" PRIu64
				" %12" PRIu64 "\n",
				r, p.sent, p.handled, p.bytes, p.queue_most);
}

static void text_times(FILE *to, tern *t, uint64_t timed)
{
	uint64_t below = 0;
	fprintf(to, "tern:   of %" PRIu64 " handlers timed:", timed);
	for (unsigned i = 0; i < TIME_BUCKETS; i++) {
		struct stats_time b = stats_time(t->own, i);
		below += b.count;
		if (b.count * 50 >= timed && b.count) /* those that matter: 2 % or more */
			fprintf(to, " %.0f %% below %.0f ns;", 100 * (double)below / (double)timed,
				b.to_ns);
	}
	fputc('\n', to);
}

/* Nothing in a job without packets. */
static void text_packets(FILE *to, tern *t)
{
	tern_stats_net_data d = packets_of(t);
	const char *before = "tern:   packets:";
	for (int i = 0; i < PACKETS; i++)
		if (figure_of(&d, &packets[i])) {
			fprintf(to, "%s %" PRIu64 " %s", before, figure_of(&d, &packets[i]),
				packets[i].name);
			before = ",";
		}
	if (*before == ',')
		fputc('\n', to);
}

static void text_rank(FILE *to, tern *t, const tern_stats_data *d)
{
	fprintf(to, "tern: rank %u of %u\n", tern_rank(t), tern_size(t));
	for (int i = 0; i < FIGURES; i++)
		fprintf(to, "%s%-14s %12" PRIu64 "%s",
			i % COLUMNS ? "  " : "tern:   ", figures[i].name, figure_of(d, &figures[i]),
			i % COLUMNS == COLUMNS - 1 || i == FIGURES - 1 ? "\n" : "");
	text_packets(to, t);
	text_handlers(to, t);
	text_peers(to, t);
	if (d->timed)
		text_times(to, t, d->timed);
}

/* -- JSON ------------------------------------------------------------------------------------ */

static void json_handlers(FILE *to, tern *t)
{
	tern_stats_handler_data h;
	const char *comma = "";
	char name[LABEL_ROOM];
	for (unsigned id = 0; id < TERN_STATS_LAYER; id++)
		if (handler_active(t, id, &h)) {
			handler_name(t, id, name);
			fprintf(to,
				"%s{\"id\": %u, \"name\": \"%s\", \"messages\": %" PRIu64
				", \"bytes\": %" PRIu64 ", \"timed\": %" PRIu64 ", \"ns\": %" PRIu64
				", \"longest_ns\": %" PRIu64 "}",
				comma, id, name, h.count, h.bytes, h.timed, h.ns, h.longest_ns);
			comma = ", ";
		}
}

static void json_peers(FILE *to, tern *t)
{
	tern_stats_peer_data p;
	const char *comma = "";
	for (uint32_t r = 0; r < tern_size(t); r++)
		if (peer_active(t, r, &p)) {
			fprintf(to,
				"%s{\"rank\": %u, \"sent\": %" PRIu64 ", \"sent_bytes\": %" PRIu64
				", \"requests\": %" PRIu64 ", \"replies\": %" PRIu64
				", \"bytes\": %" PRIu64 ", \"queue_most\": %" PRIu64 "}",
				comma, r, p.sent, p.sent_bytes, p.requests, p.replies, p.bytes,
				p.queue_most);
			comma = ", ";
		}
}

static void json_times(FILE *to, tern *t)
{
	const char *comma = "";
	for (unsigned i = 0; i < TIME_BUCKETS; i++) {
		struct stats_time b = stats_time(t->own, i);
		if (b.count) {
			fprintf(to,
				"%s{\"from_ns\": %.1f, \"to_ns\": %.1f, \"count\": %" PRIu64 "}",
				comma, b.from_ns, b.to_ns, b.count);
			comma = ", ";
		}
	}
}

static void json_packets(FILE *to, tern *t)
{
	tern_stats_net_data d = packets_of(t);
	for (int i = 0; i < PACKETS; i++)
		fprintf(to, ", \"packets_%s\": %" PRIu64, packets[i].name,
			figure_of(&d, &packets[i]));
}

static void json_rank(FILE *to, tern *t, const tern_stats_data *d)
{
	fprintf(to, "{\"rank\": %u, \"size\": %u", tern_rank(t), tern_size(t));
	for (int i = 0; i < FIGURES; i++)
		fprintf(to, ", \"%s\": %" PRIu64, figures[i].name, figure_of(d, &figures[i]));
	json_packets(to, t);
	fputs(", \"handlers\": [", to);
	json_handlers(to, t);
	fputs("], \"peers\": [", to);
	json_peers(to, t);
	fputs("], \"times\": [", to);
	json_times(to, t);
	fputs("]}\n", to);
}

/*
 * What the rank has counted, on standard error, in one write: a table, or one JSON object in a
 * line.
 */
static void stats_print(tern *t, bool as_json)
{
	tern_stats_data d;
	char *page = NULL;
	size_t len = 0;
	FILE *to = open_memstream(&page, &len);
	if (!to)
		return;
	tern_stats(t, &d);
	(as_json ? json_rank : text_rank)(to, t, &d);
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
