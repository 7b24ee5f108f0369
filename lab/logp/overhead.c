/* SPDX-License-Identifier: BSD-3-Clause */
/* The phases of three ranks for payloads and for sends, and a run of all of them. */
#include "lab/logp/overhead.h"

#include <string.h>
#include <tern/send.h>

#include "base/clock.h"
#include "base/setting.h"
#include "lab/bench/ranks.h"
#include "lab/bench/words.h"
#include "lab/logp/phase.h"

enum { ID = 1 }; /* of all sends */

static char got[TERN_PAYLOAD_MAX];

/* -- Payloads -------------------------------------------------------------------------------- */

/* What two ranks do, each half as often as it counts; and an even number of times. */
#define HALF(call) (i % 2 ? (call) : 0)
#define EVEN(call) (i < p->count / 2 * 2 ? (call) : 0)

static REPEATS(bytes_around, tern_request_data(p->t, 1 + i % 2, WORDS_READ, logp_payload, p->size));
static REPEATS(bytes_to_first, HALF(tern_request_data(p->t, 0, WORDS_READ, logp_payload, p->size)));

double bytes_two_receivers(struct bench_rank *p)
{
	return fan_out_ns(p, bytes_around, NULL);
}

double bytes_two_senders(struct bench_rank *p)
{
	return fan_in_ns(p, bytes_to_first, NULL);
}

/* -- Send and receive ------------------------------------------------------------------------ */

static int send_one(struct bench_rank *p, uint32_t to)
{
	return tern_send(p->t, to, ID, logp_payload, p->size);
}

static int receive_one(struct bench_rank *p, uint32_t from)
{
	int rc = tern_recv(p->t, from, ID, got, p->size, NULL);
	raw_sink += raw_sum(got, p->size);
	return rc;
}

static REPEATS(sends_around, EVEN(send_one(p, 1 + i % 2)));
static REPEATS(sends_to_first, HALF(send_one(p, 0)));
static REPEATS(receives_from_first, HALF(receive_one(p, 0)));
static REPEATS(receives_around, EVEN(receive_one(p, 1 + i % 2)));

double sends_two_receivers(struct bench_rank *p)
{
	return fan_out_ns(p, sends_around, receives_from_first);
}

double sends_two_senders(struct bench_rank *p)
{
	return fan_in_ns(p, sends_to_first, receives_around);
}

static int trip_once(struct bench_rank *p)
{
	int rc = p->rank ? receive_one(p, 0) : send_one(p, 1);
	if (rc)
		return rc;
	return p->rank ? send_one(p, 0) : receive_one(p, 1);
}

double sends_trip(struct bench_rank *p)
{
	return p->rank > 1 ? 0 : acts_ns(p, trip_once);
}

double sends_stream(struct bench_rank *p)
{
	if (p->rank > 1)
		return 0;
	p->rc = trip_once(p);
	uint64_t began = clock_ns();
	for (uint64_t i = 0; i < p->count && !p->rc; i++)
		p->rc = p->rank ? receive_one(p, 0) : send_one(p, 1);
	if (!p->rc)
		p->rc = p->rank ? send_one(p, 0) : receive_one(p, 1); /* all have come */
	return each_ns(p, clock_ns() - began);
}

/* -- The run --------------------------------------------------------------------------------- */

const struct overhead_phase overhead_phases[OVERHEAD_PHASES] = {
	{ "o_s", "words", words_two_receivers },
	{ "o_r", "words", words_two_senders },
	{ "o_s", "bytes", bytes_two_receivers },
	{ "o_r", "bytes", bytes_two_senders },
	{ "o_s", "send&receive", sends_two_receivers },
	{ "o_r", "send&receive", sends_two_senders },
	[OVERHEAD_TRIP] = { "trip", "send&receive", sends_trip },
	[OVERHEAD_GAP] = { "g", "send&receive", sends_stream },
};

int overhead_run(uint32_t words, uint32_t bytes, uint64_t count, unsigned rounds,
		 struct overhead *o)
{
	enum { LONG = 20 }; /* fewer of what is longer */
	static const struct test test = { .name = "overhead",
					  .unit = "ns",
					  .ranks = OVERHEAD_RANKS,
					  .cores = OVERHEAD_RANKS,
					  .warm = 2,
					  .open = logp_payload_fill };
	static struct ranks_result result; /* large */
	uint64_t few = count > 4 * LONG ? count / LONG / 2 * 2 : 2;
	struct part parts[OVERHEAD_PHASES];
	for (unsigned i = 0; i < OVERHEAD_PHASES; i++) {
		bool of_words = i / 2 == OVERHEAD_WORDS;
		uint64_t n = of_words ? count : i == OVERHEAD_TRIP ? few / 2 : few;
		parts[i] = (struct part){
			{ .figure = overhead_phases[i].play }, of_words ? words : bytes, n, 0
		};
	}
	*o = (struct overhead){ 0 };
	if (strcmp(setting_text(SETTING_NET), "sim") == 0)
		return 0;
	memset(&result, 0, sizeof result);
	int rc = ranks_play(&test, 0, parts, OVERHEAD_PHASES, rounds, &result);
	for (unsigned i = 0; i < OVERHEAD_PHASES && !rc; i++)
		o->is[i] = series_estimate(&result.part[i]);
	o->played = !rc;
	return rc;
}
