/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/stats.h"

#include <errno.h>
#include <stddef.h>
#include <string.h>

#include <tern/stats.h>

#include "base/error.h"
#include "base/setting.h"
#include "base/wrap.h"
#include "core/layer.h"
#include "core/stats_print.h"

_Static_assert(TERN_STATS_HANDLERS == TERN_HANDLER_SLOTS, "every handler has its counts");
_Static_assert((int)TERN_STATS_LAYERS == (int)LAYERS + 1, "every layer, and the program");
_Static_assert((int)TERN_STATS_TIMES == (int)TIME_BUCKETS, "every bucket can be asked for");

/* Of what tern_stats_net() writes: its first version, and what no version will have. */
enum {
	NET_SIZE_LEAST = offsetof(tern_stats_net_data, forged) + sizeof(uint64_t),
	NET_SIZE_MOST = 4096,
};

/* -- Counting --------------------------------------------------------------------------- */

void count_timed(struct endpoint *e, const tern_msg *m, unsigned id)
{
	struct stats_handler *h = &e->stats->handler[id];
	uint64_t began = tick_now();
	e->t->handler[id](e->t, m);
	uint64_t ticks = tick_now() - began;
	stats_add(&h->timed, 1);
	stats_add(&h->ticks, ticks);
	stats_most(&h->longest, ticks);
	stats_add(&e->stats->time[time_bucket(ticks)], 1);
}

void count_batch(struct endpoint *e, const struct tern_inlet *in, unsigned handled, uint64_t bytes)
{
	struct stats_peer *p = &e->stats->peer[in->peer];
	stats_add(in->kind == TERN_REQUEST ? &p->requests : &p->replies, handled);
	stats_add(&p->bytes, bytes);
	stats_most(&p->most, handled);
	if (in->kind == TERN_REQUEST)
		stats_set(&p->requests_at, in->leaf << 32 | (uint64_t)(in->cursor - in->base));
}

void stall_begin(struct endpoint *e, struct stall *s)
{
	if (s->begun)
		return;
	s->begun = true;
	s->tick = e->stats ? tick_now() : 0;
}

void stall_end(struct endpoint *e, const struct stall *s, enum pulse_count what)
{
	if (!s->begun)
		return;
	pulse_add(e, what, 1);
	if (e->stats)
		pulse_add(e, what + 1, tick_now() - s->tick);
}

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
	e->pulse = &j->pulse[e->t->rank];
	memset(e->pulse, 0, sizeof *e->pulse);
	atomic_store(&e->pulse->guard, wrap_first(32, 0) << 32);
	atomic_store(&e->pulse->turn, (uint32_t)wrap_first(32, 0) & ~1u);
	e->guard = e->t->guard = &e->pulse->guard;
	if (rc || !e->stats_print)
		return rc;
	if (job_stats_begin(j, e->t->rank)) /* counting is no reason to fail */
		error_warn("rank %u does not count: %s", e->t->rank, tern_strerror(-ENOMEM));
	else
		e->stats = job_stats(j, e->t->rank);
	return 0;
}

void stats_close(struct endpoint *e)
{
	if (e->stats)
		stats_print(e->t, e->stats_print > 1);
	e->stats = NULL;
	atomic_store_explicit(&e->pulse->counting, 0, memory_order_relaxed);
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
	for (unsigned i = 0; i < TERN_STATS_LAYERS; i++) {
		tern_stats_layer(e->t, i, &sum);
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
	INSIDE struct scope scope = scope_open(t);
	int forked = rules_forked(t->own);
	if (forked)
		return forked;
	struct endpoint *e = t->own;
	*out = (tern_stats_data){ .handled = e->served, .counting = e->stats != NULL };
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
	INSIDE struct scope scope = scope_open(t);
	int forked = rules_forked(t->own);
	if (forked)
		return forked;
	tern_stats_net_data d = data_of_packets(t->own);
	d.size = out->size;
	if (d.size < NET_SIZE_LEAST || d.size > NET_SIZE_MOST)
		return error_set(
			-EINVAL,
			"the counts of packets were asked for with a size of %zu; set it to sizeof(tern_stats_net_data)",
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
	INSIDE struct scope scope = scope_open(t);
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

int tern_stats_handler(tern *t, unsigned id, tern_stats_handler_data *out)
{
	INSIDE struct scope scope = scope_open(t);
	int forked = rules_forked(t->own);
	if (forked)
		return forked;
	struct endpoint *e = t->own;
	if (id >= TERN_STATS_HANDLERS)
		return error_set(
			-ERANGE,
			"the counts of handler %u were asked for; handlers are numbered 0 to %d",
			id, TERN_STATS_HANDLERS - 1);
	*out = (tern_stats_handler_data){ 0 };
	if (!e->stats)
		return 0;
	const struct stats_handler *h = &e->stats->handler[id];
	out->count = stats_messages(h);
	out->bytes = stats_message_bytes(h);
	out->timed = stats_get(&h->timed);
	out->ns = in_ns(e, &h->ticks);
	out->longest_ns = in_ns(e, &h->longest);
	return 0;
}

const char *tern_stats_layer_name(unsigned layer)
{
	static const char *const names[TERN_STATS_LAYERS] = {
		"user", "mem", "msg", "typed", "chan", "async", "spawn", "sequence"
	};
	return layer < TERN_STATS_LAYERS ? names[layer] : NULL;
}

static void handler_add(tern_stats_handler_data *sum, const tern_stats_handler_data *one)
{
	sum->count += one->count;
	sum->bytes += one->bytes;
	sum->timed += one->timed;
	sum->ns += one->ns;
	sum->longest_ns = one->longest_ns > sum->longest_ns ? one->longest_ns : sum->longest_ns;
}

int tern_stats_layer(tern *t, unsigned layer, tern_stats_handler_data *out)
{
	INSIDE struct scope scope = scope_open(t);
	int forked = rules_forked(t->own);
	if (forked)
		return forked;
	if (layer >= TERN_STATS_LAYERS)
		return error_set(
			-ERANGE,
			"the counts of layer %u were asked for; layers are numbered 0 to %d", layer,
			TERN_STATS_LAYERS - 1);
	unsigned first = layer ? TERN_HANDLER_MAX + (layer - 1) * LAYER_HANDLERS : 0;
	unsigned end = layer ? first + LAYER_HANDLERS : TERN_HANDLER_MAX;
	*out = (tern_stats_handler_data){ 0 };
	for (unsigned id = first; id < end; id++) {
		tern_stats_handler_data one;
		if (t->own->stats && stats_messages(&t->own->stats->handler[id])) {
			tern_stats_handler(t, id, &one);
			handler_add(out, &one);
		}
	}
	return 0;
}

int tern_stats_time(tern *t, unsigned bucket, tern_stats_time_data *out)
{
	INSIDE struct scope scope = scope_open(t);
	int forked = rules_forked(t->own);
	if (forked)
		return forked;
	struct endpoint *e = t->own;
	if (bucket >= TERN_STATS_TIMES)
		return error_set(-ERANGE, "bucket %u of the times was asked for; there are %d",
				 bucket, TERN_STATS_TIMES);
	double ns = tick_ns(e);
	*out = (tern_stats_time_data){ .from_ns = (double)time_bucket_begin(bucket) * ns,
				       .to_ns = (double)time_bucket_begin(bucket + 1) * ns,
				       .count = e->stats ? stats_get(&e->stats->time[bucket]) : 0 };
	return 0;
}

/* cost: statistics control */
