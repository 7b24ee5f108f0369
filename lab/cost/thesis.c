/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tables 4-4 and 4-5 of von Eicken's thesis: a send, and its reception by interrupt, by category.
 * Features and steps of Tern's instructions are put together to the categories of the nCUBE/2.
 */
#include <stdio.h>

#include "lab/cost/study.h"
#include "tools/common/table.h"

#define BIT(n) (1u << (n))
#define STEPS_ALL (BIT(COST_STEPS) - 1)
#define REST (BIT(COST_ORDER) | BIT(COST_FAULT) | BIT(COST_STATISTICS))

/* The thesis' figures of 4-5 are those of the kernel and of the user's stub together. */
struct category {
	const char *name;
	int ncube, ncube_memory; /* instructions, and accesses to memory */
	unsigned base_steps;     /* of base, those that belong to it, */
	unsigned features;       /* and all of these */
};

static const struct category send_rows[] = {
	{ "kernel trap; here, calls", 2, 6, BIT(COST_CALL), 0 },
	{ "output port, set-up of DMA", 3, 4, BIT(COST_SETUP) | BIT(COST_WRITE) | BIT(COST_READ),
	  0 },
	{ "port ready", 3, 0, BIT(COST_STATUS) | BIT(COST_CONTROL), BIT(COST_FLOW) },
	{ "check destination, length", 4, 2, 0, BIT(COST_PROTECTION) },
	{ "buffer management", 4, 6, 0, BIT(COST_BUFFER) },
	{ "order, faults, statistics", 0, 0, 0, REST },
	{ "total", 16, 18, STEPS_ALL, ~BIT(COST_BASE) },
};

static const struct category receive_rows[] = {
	{ "interrupt, saves, return", 20, 26, BIT(COST_CALL), 0 },
	{ "restart DMA; here, arm", 2, 1, BIT(COST_SETUP) | BIT(COST_WRITE), 0 },
	{ "kind of message, dispatch", 4, 4, BIT(COST_READ) | BIT(COST_STATUS) | BIT(COST_CONTROL),
	  0 },
	{ "atomicity handshake", 5, 6, 0, BIT(COST_PROTECTION) },
	{ "buffer management", 4, 6, 0, BIT(COST_BUFFER) },
	{ "order, faults, statistics", 0, 0, 0, REST },
	{ "flow control", 0, 0, 0, BIT(COST_FLOW) },
	{ "total", 35, 43, STEPS_ALL, ~BIT(COST_BASE) },
};

/* Of one kind, or (-1) of all. */
static int64_t category_sum(const struct cost_tally *t, int side, const struct category *c,
			    int kind)
{
	int64_t sum = 0;
	for (int step = 0; step < COST_STEPS; step++)
		if (c->base_steps & BIT(step))
			sum += cost_sum(t, (struct cost_cut){ side, COST_BASE, step, kind });
	for (int feature = 0; feature < COST_FEATURES; feature++)
		if (c->features & BIT(feature))
			sum += cost_sum(t, (struct cost_cut){ side, feature, -1, kind });
	return sum;
}

static int64_t category_memory(const struct cost_tally *t, int side, const struct category *c)
{
	return category_sum(t, side, c, COST_MEMORY) + category_sum(t, side, c, COST_DEVICE);
}

static void counts_cells(struct rows *w, int ncube, int64_t interrupt, int64_t polls)
{
	rows_whole(w, NULL, "nCUBE/2", 8, (uint64_t)ncube, NULL);
	rows_whole(w, NULL, "interrupt", 11, (uint64_t)interrupt, NULL);
	rows_whole(w, NULL, "polls", 7, (uint64_t)polls, NULL);
}

static void rows_print(const char *title, const struct category *row, unsigned n, int side,
		       const struct cost_study *s)
{
	const struct cost_tally *by = &study_find(s, "interrupt-4")->steady,
				*polled = &study_find(s, "request-4")->steady;
	struct rows w;
	puts(title);
	rows_begin(&w, ROWS_TABLE, stdout);
	printf("%60s%32s\n", "instructions", "on memory");
	for (unsigned i = 0; i < n; i++) {
		rows_text(&w, NULL, "", -28, row[i].name);
		counts_cells(&w, row[i].ncube, category_sum(by, side, &row[i], -1),
			     category_sum(polled, side, &row[i], -1));
		counts_cells(&w, row[i].ncube_memory, category_memory(by, side, &row[i]),
			     category_memory(polled, side, &row[i]));
		rows_end_row(&w);
	}
}

void table_interrupt(const struct cost_study *s)
{
	table_heading("\n7. By interrupt: tables 4-4 and 4-5 of von Eicken's thesis");
	rows_print("send", send_rows, sizeof send_rows / sizeof *send_rows, COST_SOURCE, s);
	rows_print("reception", receive_rows, sizeof receive_rows / sizeof *receive_rows,
		   COST_DESTINATION, s);
	puts("\nA request of 4 words to a rank that computes. The sender's part includes the "
	     "system call that\n"
	     "sends the signal; what the kernel does counts nowhere. The nCUBE/2's kernel is in "
	     "its figures:\n"
	     "of the reception 17, beside a stub of 18 at user level. Arming, here, includes "
	     "saving the\n"
	     "program's errno and last error. On memory: accesses of the nCUBE/2, instructions "
	     "of Tern that\n"
	     "have one.");
}
