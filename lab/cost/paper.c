/* SPDX-License-Identifier: BSD-3-Clause */
/* The figures of the paper, as it prints them. */
#include "lab/cost/study.h"

#include <string.h>

const struct cost_tally
	paper_packet = { .n = {
				 [COST_SOURCE][COST_BASE] = { [COST_CALL] = { 3 },
							      [COST_SETUP] = { 5 },
							      [COST_WRITE] = { 2 },
							      [COST_STATUS] = { 7 },
							      [COST_CONTROL] = { 3 } },
				 [COST_DESTINATION][COST_BASE] = { [COST_CALL] = { 10 },
								   [COST_READ] = { 3 },
								   [COST_STATUS] = { 12 },
								   [COST_CONTROL] = { 2 } },
			 } };

/* Instructions by side, on registers, on memory and on the device. */
static const struct paper_row {
	enum cost_form form;
	unsigned words;
	enum cost_feature feature;
	int64_t n[COST_SIDES][COST_KINDS];
} rows[] = {
	{ COST_FINITE, 16, COST_BASE, { { 62, 9, 20 }, { 62, 11, 17 } } },
	{ COST_FINITE, 16, COST_BUFFER, { { 36, 1, 10 }, { 79, 12, 10 } } },
	{ COST_FINITE, 16, COST_ORDER, { { 8, 0, 0 }, { 13, 0, 0 } } },
	{ COST_FINITE, 16, COST_FAULT, { { 22, 0, 5 }, { 14, 1, 5 } } },
	{ COST_STREAM, 16, COST_BASE, { { 56, 4, 20 }, { 52, 0, 17 } } },
	{ COST_STREAM, 16, COST_ORDER, { { 8, 12, 0 }, { 70, 46, 0 } } },
	{ COST_STREAM, 16, COST_FAULT, { { 88, 8, 20 }, { 56, 4, 20 } } },
	{ COST_FINITE, 1024, COST_BASE, { { 3842, 513, 1280 }, { 3086, 515, 1025 } } },
	{ COST_FINITE, 1024, COST_BUFFER, { { 36, 1, 10 }, { 79, 12, 10 } } },
	{ COST_FINITE, 1024, COST_ORDER, { { 512, 0, 0 }, { 769, 0, 0 } } },
	{ COST_FINITE, 1024, COST_FAULT, { { 22, 0, 5 }, { 14, 1, 5 } } },
	{ COST_STREAM, 1024, COST_BASE, { { 3584, 256, 1280 }, { 2572, 0, 1025 } } },
	{ COST_STREAM, 1024, COST_ORDER, { { 512, 768, 0 }, { 4480, 2944, 0 } } },
	{ COST_STREAM, 1024, COST_FAULT, { { 5632, 512, 1280 }, { 3584, 256, 1280 } } },
};

const struct cost_tally *paper_sequence(enum cost_form form, unsigned words)
{
	static struct cost_tally tally[2][2]; /* those of another call stay */
	struct cost_tally *t = &tally[form == COST_STREAM][words == 1024];
	const struct cost_tally *found = NULL;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		const struct paper_row *r = &rows[i];
		if (r->form != form || r->words != words)
			continue;
		for (int side = 0; side < COST_SIDES; side++)
			memcpy(t->n[side][r->feature][COST_CONTROL], r->n[side], sizeof r->n[side]);
		found = t;
	}
	return found;
}

double paper_total(enum cost_form form, double words, double n)
{
	double p = words / n;
	return form == COST_FINITE ? 217 + (37 + 2 * n) * p : 13 + (111 + 1.5 * n) * p;
}

double paper_base(enum cost_form form, double words, double n)
{
	double p = words / n;
	return form == COST_FINITE ? 21 + (32 + 2 * n) * p : 13 + (30 + n) * p;
}
