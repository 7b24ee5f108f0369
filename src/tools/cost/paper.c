/* SPDX-License-Identifier: BSD-3-Clause */
/* The figures of the paper, as it prints them. */
#include "tools/cost/paper.h"

const int paper_packet[COST_SIDES][COST_STEPS] = {
	[COST_SOURCE] = { [COST_CALL] = 3,
			  [COST_SETUP] = 5,
			  [COST_WRITE] = 2,
			  [COST_STATUS] = 7,
			  [COST_CONTROL] = 3 },
	[COST_DESTINATION] = { [COST_CALL] = 10,
			       [COST_READ] = 3,
			       [COST_STATUS] = 12,
			       [COST_CONTROL] = 2 },
};

#define KINDS(reg, mem, dev)                       \
	{                                          \
		[COST_CONTROL] = { reg, mem, dev } \
	}

static const struct cost_tally
	finite_16 = { .n = {
			      [COST_SOURCE] = { [COST_BASE] = KINDS(62, 9, 20),
						[COST_BUFFER] = KINDS(36, 1, 10),
						[COST_ORDER] = KINDS(8, 0, 0),
						[COST_FAULT] = KINDS(22, 0, 5) },
			      [COST_DESTINATION] = { [COST_BASE] = KINDS(62, 11, 17),
						     [COST_BUFFER] = KINDS(79, 12, 10),
						     [COST_ORDER] = KINDS(13, 0, 0),
						     [COST_FAULT] = KINDS(14, 1, 5) },
		      } };

static const struct cost_tally
	stream_16 = { .n = {
			      [COST_SOURCE] = { [COST_BASE] = KINDS(56, 4, 20),
						[COST_ORDER] = KINDS(8, 12, 0),
						[COST_FAULT] = KINDS(88, 8, 20) },
			      [COST_DESTINATION] = { [COST_BASE] = KINDS(52, 0, 17),
						     [COST_ORDER] = KINDS(70, 46, 0),
						     [COST_FAULT] = KINDS(56, 4, 20) },
		      } };

static const struct cost_tally
	finite_1024 = { .n = {
				[COST_SOURCE] = { [COST_BASE] = KINDS(3842, 513, 1280),
						  [COST_BUFFER] = KINDS(36, 1, 10),
						  [COST_ORDER] = KINDS(512, 0, 0),
						  [COST_FAULT] = KINDS(22, 0, 5) },
				[COST_DESTINATION] = { [COST_BASE] = KINDS(3086, 515, 1025),
						       [COST_BUFFER] = KINDS(79, 12, 10),
						       [COST_ORDER] = KINDS(769, 0, 0),
						       [COST_FAULT] = KINDS(14, 1, 5) },
			} };

static const struct cost_tally
	stream_1024 = { .n = {
				[COST_SOURCE] = { [COST_BASE] = KINDS(3584, 256, 1280),
						  [COST_ORDER] = KINDS(512, 768, 0),
						  [COST_FAULT] = KINDS(5632, 512, 1280) },
				[COST_DESTINATION] = { [COST_BASE] = KINDS(2572, 0, 1025),
						       [COST_ORDER] = KINDS(4480, 2944, 0),
						       [COST_FAULT] = KINDS(3584, 256, 1280) },
			} };

static const struct {
	enum cost_form form;
	unsigned words;
	const struct cost_tally *tally;
} sequences[] = {
	{ COST_FINITE, 16, &finite_16 },
	{ COST_STREAM, 16, &stream_16 },
	{ COST_FINITE, 1024, &finite_1024 },
	{ COST_STREAM, 1024, &stream_1024 },
};

const struct cost_tally *paper_sequence(enum cost_form form, unsigned words)
{
	for (size_t i = 0; i < sizeof sequences / sizeof *sequences; i++)
		if (sequences[i].form == form && sequences[i].words == words)
			return sequences[i].tally;
	return NULL;
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
