/* SPDX-License-Identifier: BSD-3-Clause */
/* The rows of `tern perf --paper`, with the thesis's figures beside what is measured here. */
#include "tools/perf/compare/paper.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "tools/bench/cycles.h"
#include "tools/bench/ranks.h"
#include "tools/common/json.h"
#include "tools/logp/phase.h"

enum { N_WORDS = 128, CELL = 48 };

/*
 * Zero where the thesis has no figure. Of the nCUBE/2 it gives microseconds, and in the text
 * the instructions of two paths; of the CM-5 microseconds and cycles, whose words have 32
 * bits and whose messages carry 16 bytes.
 */
static const struct row {
	const char *name, *tables;
	perf_phase *play; /* NULL: nothing here corresponds to it */
	uint32_t size;
	unsigned share; /* a round plays the count over this */
	uint32_t bytes; /* that one of them moves here */
	double ncube_us;
	unsigned ncube_instructions;
	double cm5_us, cm5_cycles, cm5_rate; /* MB/s */
} rows[] = {
	{ "send request, 4 words", "4-1, 4-7", words_sending, 4, 1, 32, 13.1, 24, 1.5, 50.7, 10.6 },
	{ "send reply, 4 words", "4-7", paper_reply, 0, 1, 32, 0, 0, 1.3, 42.8, 12.3 },
	{ "handle request", "4-1, 4-7", words_handling, 4, 1, 32, 15.0, 37, 1.6, 52.2, 10.0 },
	{ "handle reply", "4-7", paper_handle_reply, 0, 1, 32, 0, 0, 1.6, 52.2, 10.0 },
	{ "open and close a segment", "4-7", paper_segment, 0, 2, 0, 0, 0, 6.7, 221.7, 0 },
	{ "xfer 4 words, request", "4-7", paper_xfer4, 0, 2, 32, 0, 0, 2.3, 75.4, 7.0 },
	{ "xfer 4 words, reply", "4-7", paper_xfer4_reply, 0, 2, 32, 0, 0, 1.6, 54.1, 9.8 },
	{ "xfer N words, request", "4-7", paper_xfer, N_WORDS, 20, 8 * N_WORDS, 0, 0, 1.7, 56.7, 9.3 },
	{ "xfer N words, reply", "4-7", paper_xfer_reply, N_WORDS, 20, 8 * N_WORDS, 0, 0, 1.6, 52.9, 10.0 },
	{ "handle xfer, 1 segment", "4-7", paper_handle_one, 0, 2, 32, 0, 0, 1.6, 52.6, 10.0 },
	{ "handle xfer, 2 segments", "4-7", paper_handle_two, 0, 2, 32, 0, 0, 2.2, 71.1, 7.4 },
	{ "poll, nothing there", "4-7", paper_poll, 0, 1, 0, 0, 0, 0.7, 22.0, 0 },
	{ "poll requests", "", paper_poll_requests, 0, 1, 0, 0, 0, 0, 0, 0 },
	{ "poll replies", "4-7", paper_poll_replies, 0, 1, 0, 0, 0, 0.3, 11.0, 0 },
	{ "round trip, neighbour", "4-1, 4-7", words_trip, 4, 20, 0, 76.2, 0, 11.2, 368.1, 0 },
	{ "latency of a hop", "4-1, 4-7", NULL, 0, 1, 0, 2.2, 0, 0.8, 8.0, 0 },
	{ "injection, for each byte", "4-1", paper_injection, 0, 100, 1, 0.45, 0, 0, 0, 0 },
	{ "fetch&add, requester", "4-8", paper_fetch_ask, 0, 1, 0, 0, 0, 4.3, 143, 0 },
	{ "fetch&add, server", "4-8", paper_fetch_serve, 0, 1, 0, 0, 0, 3.5, 115, 0 },
	{ "fetch&add, round trip", "4-8", paper_fetch_trip, 0, 20, 0, 0, 0, 12.2, 404, 0 },
	{ "send 0 words", "", words_sending, 0, 1, 0, 0, 0, 0, 0, 0 },
	{ "send 1 word", "", words_sending, 1, 1, 8, 0, 0, 0, 0, 0 },
	{ "send 2 words", "", words_sending, 2, 1, 16, 0, 0, 0, 0, 0 },
	{ "send 3 words", "", words_sending, 3, 1, 24, 0, 0, 0, 0, 0 },
	{ "send 4 words", "", words_sending, 4, 1, 32, 0, 0, 0, 0, 0 },
	{ "send 5 words", "", words_sending, 5, 1, 40, 0, 0, 0, 0, 0 },
	{ "send 6 words", "", words_sending, 6, 1, 48, 0, 0, 0, 0, 0 },
	{ "handle 0 words", "", words_handling, 0, 1, 0, 0, 0, 0, 0, 0 },
	{ "handle 1 word", "", words_handling, 1, 1, 8, 0, 0, 0, 0, 0 },
	{ "handle 2 words", "", words_handling, 2, 1, 16, 0, 0, 0, 0, 0 },
	{ "handle 3 words", "", words_handling, 3, 1, 24, 0, 0, 0, 0, 0 },
	{ "handle 4 words", "", words_handling, 4, 1, 32, 0, 0, 0, 0, 0 },
	{ "handle 5 words", "", words_handling, 5, 1, 40, 0, 0, 0, 0, 0 },
	{ "handle 6 words", "", words_handling, 6, 1, 48, 0, 0, 0, 0, 0 },
};

enum { ROWS = sizeof rows / sizeof *rows };

static const char *const notes[] = {
	"overheads are the processor's part alone: two endpoints of one thread, so that no line travels",
	"N is 128 words of 64 bits here, in one message; on the CM-5 a block goes in messages of 16 bytes, and "
	"the figure is for one of those",
	"a request that transfers is acknowledged here: handling it includes the reply, and its sender later "
	"takes that in",
	"handling on the CM-5 is one figure for requests and replies",
	"a hop: there are none here; the thesis gives 0.8 us and 8 cycles for the CM-5, which do not agree",
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

static const char *cell_number(char *cell, double value, const char *unit)
{
	int decimals = value >= 100 ? 0 : value >= 10 ? 1 : value >= 1 ? 2 : 3;
	if (isnan(value))
		return "-";
	snprintf(cell, CELL, "%.*f%s", decimals, value, unit);
	return cell;
}

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
		snprintf(range, sizeof range, "%s %s", cell_number(low, l->ns.low, ""),
			 cell_number(high, l->ns.high, ""));
	printf("%-25s  %-8s  %8s  %13s  %7s  %6s  %16s  %17s\n", row->name, row->tables,
	       cell_number(ns, l->ns.median, ""), range, cell_number(cycles, l->cycles, ""),
	       cell_number(rate, l->rate / 1000, ""), cell_ncube(ncube, row), cell_cm5(cm5, row));
}

static void table_print(const struct line *lines, bool bold)
{
	printf("%s%-25s  %-8s  %8s  %13s  %7s  %6s  %16s  %17s%s\n", bold ? "\033[1m" : "", "operation",
	       "table", "ns", "95 %", "cycles", "GB/s", "nCUBE/2", "CM-5", bold ? "\033[0m" : "");
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

/* -- The run --------------------------------------------------------------------------- */

int paper_main(bool json, bool plain, unsigned rounds, uint64_t count)
{
	static const struct test test = { { .name = "paper" },
					  .amount = { .ranks = 2, .cores = 2, .warm = 2 },
					  .play.open = paper_open };
	static struct ranks_result result; /* large */
	struct part parts[ROWS];
	struct line lines[ROWS];
	for (unsigned i = 0; i < ROWS; i++)
		parts[i] = (struct part){ .play = rows[i].play,
					  .size = rows[i].size,
					  .count = count > rows[i].share ? count / rows[i].share : 1 };
	int rc = ranks_play(&test, 0, parts, ROWS, rounds, &result);
	if (rc) {
		fprintf(stderr, "tern perf: %s\n", tern_strerror(rc));
		return 1;
	}
	double cycles = cycles_rate();
	for (unsigned i = 0; i < ROWS; i++)
		lines[i] = line_make(&rows[i], &result.part[i], cycles);
	if (json)
		json_print(lines);
	else
		table_print(lines, !plain && isatty(STDOUT_FILENO));
	return 0;
}
