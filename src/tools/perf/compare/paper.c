/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * `tern perf --paper`: what the thesis measured of CMAM, measured of Tern, with its figures
 * beside. What a handler adds to a batch (a reply, a transfer) is the difference to a batch of as
 * many requests whose handler only counts; both are played in the same phase.
 */
#include "tools/perf/perf.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <tern/mem.h>

#include "base/clock.h"
#include "tools/bench/pair.h"
#include "tools/bench/ranks.h"
#include "tools/bench/words.h"
#include "tools/common/json.h"
#include "tools/common/table.h"
#include "tools/logp/phase.h"

enum {
	PAPER_ASK = WORDS_FREE,
	PAPER_ASK_XFER4,
	PAPER_ASK_XFER,
	PAPER_FETCH,
	PAPER_FETCHED,
};

enum { XFER_BATCH = 32, SEGMENTS = 2, ROOM = 1 << 20, WORDS = 4 };

/* One segment of the requester, which replies fill, and two of the server. */
static tern_segment asked, served[SEGMENTS];
static char room[ROOM], payload[TERN_PAYLOAD_MAX];
static uint64_t xfer_words; /* of a transfer of N words */
static uint64_t counter, fetched;
static _Atomic uint64_t fetches;

/* -- Handlers ---------------------------------------------------------------------- */

static void ask(tern *t, const tern_msg *m)
{
	tern_reply(t, m, WORDS_LAND, m->word[0], m->word[1], m->word[2], m->word[3]);
}

static void ask_xfer4(tern *t, const tern_msg *m)
{
	tern_segment_reply4(t, m, asked, m->word);
}

static void ask_xfer(tern *t, const tern_msg *m)
{
	tern_segment_reply(t, m, asked, payload, 8 * xfer_words);
}

static void fetch(tern *t, const tern_msg *m)
{
	uint64_t *at = &counter + tern_msg_arg(m, 0), was = *at;
	*at = was + tern_msg_arg(m, 1);
	tern_reply(t, m, PAPER_FETCHED, was);
}

static void fetch_answer(tern *t, const tern_msg *m)
{
	fetched = tern_msg_arg(m, 0);
	tern_signal(t, &fetches, 1);
}

static int handlers_register(tern *t)
{
	static tern_handler *const handlers[] = { ask, ask_xfer4, ask_xfer, fetch, fetch_answer };
	return handlers_on(t, PAPER_ASK, handlers, sizeof handlers / sizeof *handlers);
}

/* A segment that is full begins again: it stays open for all batches. */
static size_t segment_again(tern *t, void *base, void *info)
{
	(void)t, (void)base, (void)info;
	return ROOM;
}

static int paper_open(struct bench_rank *p)
{
	memset(room, 1, sizeof room);
	memset(payload, 1, sizeof payload);
	int rc = words_register(p->t);
	if (!rc)
		rc = pair_open(p);
	if (!rc)
		rc = handlers_register(p->t);
	for (int i = 0; i < 2 && !rc; i++)
		rc = handlers_register(pair[i]);
	if (!rc)
		rc = tern_segment_open(pair[0], room, ROOM, segment_again, NULL, &asked);
	for (int i = 0; i < SEGMENTS && !rc; i++)
		rc = tern_segment_open(pair[1], room, ROOM, segment_again, NULL, &served[i]);
	return rc;
}

/* -- Batches ----------------------------------------------------------------------- */

static int send_signals(uint32_t size, unsigned n)
{
	(void)size;
	return words_send_to(pair[0], 1, WORDS_LAND, WORDS, n);
}

static int send_asks(uint32_t size, unsigned n)
{
	(void)size;
	return words_send_to(pair[0], 1, PAPER_ASK, WORDS, n);
}

static int send_asks_xfer4(uint32_t size, unsigned n)
{
	(void)size;
	return words_send_to(pair[0], 1, PAPER_ASK_XFER4, WORDS, n);
}

static int send_asks_xfer(uint32_t words, unsigned n)
{
	xfer_words = words;
	return words_send_to(pair[0], 1, PAPER_ASK_XFER, WORDS, n);
}

static int send_fetches(uint32_t size, unsigned n)
{
	int rc = 0;
	(void)size;
	for (unsigned i = 0; i < n && !rc; i++)
		rc = tern_request(pair[0], 1, PAPER_FETCH, 0, 1);
	return rc;
}

/* The size is how many segments take turns. */
static int send_xfer4s(uint32_t segments, unsigned n)
{
	static const uint64_t words[WORDS] = { 1, 2, 3, 4 };
	static tern_op op = TERN_OP;
	int rc = 0;
	for (unsigned i = 0; i < n && !rc; i++)
		rc = tern_segment_put4_start(pair[0], served[i % segments], words, &op);
	return rc;
}

static int send_xfers(uint32_t words, unsigned n)
{
	static tern_op op = TERN_OP;
	int rc = 0;
	for (unsigned i = 0; i < n && !rc; i++)
		rc = tern_segment_put_start(pair[0], served[0], payload, 8 * (size_t)words, &op);
	return rc;
}

enum batch { SIGNALS, ASKS, ASKS_XFER4, ASKS_XFER, FETCHES, XFER4S, XFERS }; /* ways */

static const struct pair_batch batches[] = {
	[SIGNALS] = { send_signals, PAIR_REPLIES, false },
	[ASKS] = { send_asks, PAIR_REPLIES, true },
	[ASKS_XFER4] = { send_asks_xfer4, PAIR_REPLIES, true },
	[ASKS_XFER] = { send_asks_xfer, PAIR_PAYLOADS, true },
	[FETCHES] = { send_fetches, PAIR_REPLIES, true },
	[XFER4S] = { send_xfer4s, XFER_BATCH, true },
	[XFERS] = { send_xfers, PAIR_PAYLOADS, true },
};

static struct pair_each batch_play(struct bench_rank *p, const struct pair_batch *b, uint32_t size)
{
	struct pair_each each = pair_each(p, b, size);
	atomic_store(&fetches, 0);
	return each;
}

/* -- Messages and transfers ---------------------------------------------------------- */

static double batch_send(struct bench_rank *p)
{
	return batch_play(p, &batches[p->way], p->size).send;
}

static double batch_handle(struct bench_rank *p)
{
	return batch_play(p, &batches[p->way], p->size).handle;
}

static double batch_answer(struct bench_rank *p)
{
	return batch_play(p, &batches[p->way], p->size).answer;
}

static double batch_ask(struct bench_rank *p)
{
	struct pair_each c = batch_play(p, &batches[p->way], p->size);
	return c.send + c.answer;
}

static double batch_reply(struct bench_rank *p)
{
	const struct pair_batch *with = &batches[p->way];
	const struct pair_batch without = { send_signals, with->n, false };
	return batch_play(p, with, p->size).handle - batch_play(p, &without, WORDS).handle;
}

static double paper_segment(struct bench_rank *p)
{
	tern_segment s;
	uint64_t began = clock_ns();
	for (uint64_t i = 0; i < p->count && !p->rank && !p->rc; i++) {
		p->rc = tern_segment_open(pair[1], room, ROOM, NULL, NULL, &s);
		if (!p->rc)
			p->rc = tern_segment_close(pair[1], s);
	}
	return (double)pair_since(began) / (double)p->count;
}

/* -- Polls --------------------------------------------------------------------------- */

enum { POLL, POLL_REQUESTS, POLL_REPLIES }; /* ways */

/* That find nothing, after one that found something: there is an active peer to look at. */
static double paper_poll(struct bench_rank *p)
{
	static int (*const polls[])(tern * t) = { tern_poll, tern_poll_requests,
						  tern_poll_replies };
	int (*const poll)(tern * t) = polls[p->way];
	if (p->rank)
		return 0;
	p->rc = words_send(pair[0], 1, WORDS, 1);
	if (!p->rc)
		p->rc = tern_poll(pair[1]);
	uint64_t began = clock_ns();
	for (uint64_t i = 0; i < p->count && p->rc >= 0; i++)
		p->rc = poll(pair[1]);
	p->rc = p->rc < 0 ? p->rc : 0;
	return (double)pair_since(began) / (double)p->count;
}

/* -- Fetch and add, as messages --------------------------------------------------------- */

static int fetch_trips(struct bench_rank *p)
{
	int rc = 0;
	for (uint64_t i = 0; i < p->count && !rc; i++) {
		rc = tern_request(p->t, 1, PAPER_FETCH, 0, 1);
		if (!rc)
			rc = tern_wait(p->t, &fetches, 1);
	}
	raw_sink += fetched;
	return rc;
}

static double paper_fetch_trip(struct bench_rank *p)
{
	return each_ns(p, words_acted_after(p, fetch_trips, fetch_trips));
}

/* -- Injection --------------------------------------------------------------------------- */

/* For each byte of large messages, which nobody reads. */
static int trip_of_nothing(struct bench_rank *p)
{
	return words_trips(p->t, 0, p->count);
}

static int inject(struct bench_rank *p)
{
	for (uint64_t i = 0; i < p->count && !p->rc; i++)
		p->rc = tern_request_data(p->t, 1, WORDS_LAND, payload, sizeof payload);
	return p->rc;
}

static double paper_injection(struct bench_rank *p)
{
	return each_ns(p, words_handled_after(p, trip_of_nothing, inject)) / sizeof payload;
}

enum { N_WORDS = 128 };

/*
 * Zero where the thesis has no figure. Of the nCUBE/2 it gives microseconds, and in the text
 * the instructions of two paths; of the CM-5 microseconds and cycles, whose words have 32
 * bits and whose messages carry 16 bytes.
 */
static const struct row {
	const char *name, *tables;
	perf_phase *play; /* NULL: nothing here corresponds to it */
	int way;
	uint32_t size;
	unsigned share; /* a round plays the count over this */
	uint32_t bytes; /* that one of them moves here */
	double ncube_us;
	unsigned ncube_instructions;
	double cm5_us, cm5_cycles, cm5_rate; /* MB/s */
} rows[] = {
	{ "send request, 4 words", "4-1, 4-7", words_sending, 0, 4, 1, 32, 13.1, 24, 1.5, 50.7,
	  10.6 },
	{ "send reply, 4 words", "4-7", batch_reply, ASKS, 0, 1, 32, 0, 0, 1.3, 42.8, 12.3 },
	{ "handle request", "4-1, 4-7", words_handling, 0, 4, 1, 32, 15.0, 37, 1.6, 52.2, 10.0 },
	{ "handle reply", "4-7", batch_answer, ASKS, WORDS, 1, 32, 0, 0, 1.6, 52.2, 10.0 },
	{ "open and close a segment", "4-7", paper_segment, 0, 0, 2, 0, 0, 0, 6.7, 221.7, 0 },
	{ "xfer 4 words, request", "4-7", batch_send, XFER4S, 1, 2, 32, 0, 0, 2.3, 75.4, 7.0 },
	{ "xfer 4 words, reply", "4-7", batch_reply, ASKS_XFER4, 0, 2, 32, 0, 0, 1.6, 54.1, 9.8 },
	{ "xfer N words, request", "4-7", batch_send, XFERS, N_WORDS, 20, 8 * N_WORDS, 0, 0, 1.7,
	  56.7, 9.3 },
	{ "xfer N words, reply", "4-7", batch_reply, ASKS_XFER, N_WORDS, 20, 8 * N_WORDS, 0, 0, 1.6,
	  52.9, 10.0 },
	{ "handle xfer, 1 segment", "4-7", batch_handle, XFER4S, 1, 2, 32, 0, 0, 1.6, 52.6, 10.0 },
	{ "handle xfer, 2 segments", "4-7", batch_handle, XFER4S, SEGMENTS, 2, 32, 0, 0, 2.2, 71.1,
	  7.4 },
	{ "poll, nothing there", "4-7", paper_poll, POLL, 0, 1, 0, 0, 0, 0.7, 22.0, 0 },
	{ "poll requests", "", paper_poll, POLL_REQUESTS, 0, 1, 0, 0, 0, 0, 0, 0 },
	{ "poll replies", "4-7", paper_poll, POLL_REPLIES, 0, 1, 0, 0, 0, 0.3, 11.0, 0 },
	{ "round trip, neighbour", "4-1, 4-7", logp_trip, 0, 4, 20, 0, 76.2, 0, 11.2, 368.1, 0 },
	{ "latency of a hop", "4-1, 4-7", NULL, 0, 0, 1, 0, 2.2, 0, 0.8, 8.0, 0 },
	{ "injection, for each byte", "4-1", paper_injection, 0, 0, 100, 1, 0.45, 0, 0, 0, 0 },
	{ "fetch&add, requester", "4-8", batch_ask, FETCHES, 0, 1, 0, 0, 0, 4.3, 143, 0 },
	{ "fetch&add, server", "4-8", batch_handle, FETCHES, 0, 1, 0, 0, 0, 3.5, 115, 0 },
	{ "fetch&add, round trip", "4-8", paper_fetch_trip, 0, 0, 20, 0, 0, 0, 12.2, 404, 0 },
	{ "send 0 words", "", words_sending, 0, 0, 1, 0, 0, 0, 0, 0, 0 },
	{ "send 1 word", "", words_sending, 0, 1, 1, 8, 0, 0, 0, 0, 0 },
	{ "send 2 words", "", words_sending, 0, 2, 1, 16, 0, 0, 0, 0, 0 },
	{ "send 3 words", "", words_sending, 0, 3, 1, 24, 0, 0, 0, 0, 0 },
	{ "send 4 words", "", words_sending, 0, 4, 1, 32, 0, 0, 0, 0, 0 },
	{ "send 5 words", "", words_sending, 0, 5, 1, 40, 0, 0, 0, 0, 0 },
	{ "send 6 words", "", words_sending, 0, 6, 1, 48, 0, 0, 0, 0, 0 },
	{ "handle 0 words", "", words_handling, 0, 0, 1, 0, 0, 0, 0, 0, 0 },
	{ "handle 1 word", "", words_handling, 0, 1, 1, 8, 0, 0, 0, 0, 0 },
	{ "handle 2 words", "", words_handling, 0, 2, 1, 16, 0, 0, 0, 0, 0 },
	{ "handle 3 words", "", words_handling, 0, 3, 1, 24, 0, 0, 0, 0, 0 },
	{ "handle 4 words", "", words_handling, 0, 4, 1, 32, 0, 0, 0, 0, 0 },
	{ "handle 5 words", "", words_handling, 0, 5, 1, 40, 0, 0, 0, 0, 0 },
	{ "handle 6 words", "", words_handling, 0, 6, 1, 48, 0, 0, 0, 0, 0 },
};

enum { ROWS = sizeof rows / sizeof *rows };

static const char *const notes[] = {
	"overheads are the processor's part alone: two endpoints of one thread, so that no line "
	"travels",
	"N is 128 words of 64 bits here, in one message; on the CM-5 a block goes in messages of "
	"16 bytes, and "
	"the figure is for one of those",
	"a request that transfers is acknowledged here: handling it includes the reply, and its "
	"sender later "
	"takes that in",
	"handling on the CM-5 is one figure for requests and replies",
	"a hop: there are none here; the thesis gives 0.8 us and 8 cycles for the CM-5, which do "
	"not agree",
};

struct line {
	const struct row *row;
	struct series_estimate ns;
	double cycles, rate; /* NaN, and MB/s */
};

static struct line line_make(const struct row *row, struct series *s, double cycles)
{
	struct line l = { row, series_estimate(s), NAN, NAN };
	l.cycles = l.ns.median * cycles;
	if (row->bytes > 1)
		l.rate = 1000 * row->bytes / l.ns.median;
	return l;
}

/* -- The table ---------------------------------------------------------------------- */

static const char *cell_ncube(char *cell, const struct row *row)
{
	if (row->ncube_us == 0)
		return "-";
	if (row->ncube_instructions)
		snprintf(cell, CELL, "%g us, %u instr", row->ncube_us, row->ncube_instructions);
	else
		snprintf(cell, CELL, "%g us", row->ncube_us);
	return cell;
}

static const char *cell_cm5(char *cell, const struct row *row)
{
	if (row->cm5_us == 0)
		return "-";
	snprintf(cell, CELL, "%.1f us, %.1f cyc", row->cm5_us, row->cm5_cycles);
	return cell;
}

static void table_row(const struct line *l)
{
	char ns[CELL], low[CELL], high[CELL], range[2 * CELL + 4] = "-", cycles[CELL], rate[CELL],
							       ncube[CELL], cm5[CELL];
	const struct row *row = l->row;
	if (!isnan(l->ns.median))
		snprintf(range, sizeof range, "%s %s", cell_figure(low, l->ns.low, 3, ""),
			 cell_figure(high, l->ns.high, 3, ""));
	printf("%-25s  %-8s  %8s  %13s  %7s  %6s  %16s  %17s\n", row->name, row->tables,
	       cell_figure(ns, l->ns.median, 3, ""), range, cell_figure(cycles, l->cycles, 3, ""),
	       cell_figure(rate, l->rate / 1000, 3, ""), cell_ncube(ncube, row),
	       cell_cm5(cm5, row));
}

static void table_print(const struct line *lines, bool bold)
{
	table_heading(bold, "%-25s  %-8s  %8s  %13s  %7s  %6s  %16s  %17s", "operation", "table",
		      "ns", "95 %", "cycles", "GB/s", "nCUBE/2", "CM-5");
	for (unsigned i = 0; i < ROWS; i++)
		table_row(&lines[i]);
	putchar('\n');
	for (size_t i = 0; i < sizeof notes / sizeof *notes; i++)
		puts(notes[i]);
	if (isnan(lines[0].cycles))
		puts("cycles: this processor has no counter of constant rate");
	else
		puts("cycles: ticks of the processor's counter, at its nominal rate");
}

/* -- JSON ----------------------------------------------------------------------------- */

/* null where there is no figure. */
static void json_some(struct json *j, const char *key, double value)
{
	json_real(j, key, value == 0 ? NAN : value);
}

static void json_line(struct json *j, const struct line *l)
{
	const struct row *row = l->row;
	json_begin(j, NULL, '{');
	json_text(j, "operation", row->name);
	json_text(j, "tables", *row->tables ? row->tables : NULL);
	json_real(j, "value", l->ns.median);
	json_real(j, "low", l->ns.low);
	json_real(j, "high", l->ns.high);
	json_text(j, "unit", row->bytes == 1 ? "ns/B" : "ns");
	json_real(j, "cycles", l->cycles);
	json_real(j, "mb_per_s", l->rate);
	json_some(j, "ncube2_us", row->ncube_us);
	json_some(j, "ncube2_instructions", row->ncube_instructions);
	json_some(j, "cm5_us", row->cm5_us);
	json_some(j, "cm5_cycles", row->cm5_cycles);
	json_some(j, "cm5_mb_per_s", row->cm5_rate);
	json_end(j, '}');
}

static void json_print(const struct line *lines)
{
	struct json j = { .to = stdout };
	json_begin(&j, NULL, '[');
	for (unsigned i = 0; i < ROWS; i++)
		json_line(&j, &lines[i]);
	json_end(&j, ']');
}

/*
 * Ticks of the processor's counter in a nanosecond, where it has one of constant rate that
 * is known to go on in every state; otherwise NaN. The rate is the processor's nominal
 * one, at which it need not run. Takes some milliseconds.
 */
#if defined(__x86_64__)

#include <cpuid.h>
#include <x86intrin.h>

enum { CALIBRATION_NS = 20000000, POWER_LEAF = 0x80000007, CONSTANT = 1 << 8 };

static bool cycles_constant(void)
{
	unsigned a, b, c, d;
	return __get_cpuid(POWER_LEAF, &a, &b, &c, &d) && d & CONSTANT;
}

static double cycles_rate(void)
{
	if (!cycles_constant())
		return NAN;
	uint64_t began = clock_ns(), first = __rdtsc(), now;
	do
		now = clock_ns();
	while (now - began < CALIBRATION_NS);
	return (double)(__rdtsc() - first) / (double)(now - began);
}

#else

static double cycles_rate(void)
{
	return NAN;
}

#endif

/* -- The run --------------------------------------------------------------------------- */

int paper_main(const struct perf_options *o)
{
	enum { COUNT = 10000, ROUNDS = 101, QUICK_ROUNDS = 21 };
	uint64_t count = o->count ? o->count : COUNT;
	static const struct test test = { { .name = "paper" },
					  .amount = { .ranks = 2, .cores = 2, .warm = 2 },
					  .play.open = paper_open };
	static struct ranks_result result; /* large */
	struct part parts[ROWS];
	struct line lines[ROWS];
	for (unsigned i = 0; i < ROWS; i++)
		parts[i] =
			(struct part){ .phase = { .figure = rows[i].play, .way = rows[i].way },
				       .size = rows[i].size,
				       .count = count > rows[i].share ? count / rows[i].share : 1 };
	int rc = ranks_play(&test, 0, parts, ROWS, perf_rounds(o, ROUNDS, QUICK_ROUNDS), &result);
	if (rc)
		return rc;
	double cycles = cycles_rate();
	for (unsigned i = 0; i < ROWS; i++)
		lines[i] = line_make(&rows[i], &result.part[i], cycles);
	if (o->json)
		json_print(lines);
	else
		table_print(lines, !o->plain && isatty(STDOUT_FILENO));
	return 0;
}
