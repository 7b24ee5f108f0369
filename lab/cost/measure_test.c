/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: LABELS perf */
/* What is true of every operation, whatever it takes. */
#include "lab/cost/measure.h"

#include <errno.h>

#include "lab/cost/study.h"
#include "lib/check.h"

static struct cost_map *map;

static void need_map(void)
{
	char why[300];
	map = map_open(why, sizeof why);
	if (!map)
		check_skip(why);
}

static void need(const struct operation *o, struct cost_result *r)
{
	char why[300];
	int rc = measure(map, o, r, why, sizeof why);
	if (rc == -EPERM)
		check_skip(why);
	if (!CHECK_IS(rc, 0))
		printf("    %s: %s\n", o->name, why);
}

/* Parts add up to the whole, cut whichever way. */
static void parts_are_the_whole(const struct cost_tally *t)
{
	int64_t features = 0, steps = 0, all = cost_sum(t, COST_ALL);
	for (int f = 0; f < COST_FEATURES_ALL; f++)
		features += f == COST_PROGRAM ? 0 : cost_sum(t, (struct cost_cut){ -1, f, -1, -1 });
	for (int step = 0; step < COST_STEPS; step++)
		for (int kind = 0; kind < COST_KINDS; kind++)
			steps += cost_sum(t, (struct cost_cut){ -1, -1, step, kind });
	CHECK_IS(features, all);
	CHECK_IS(steps, all);
}

TEST(every_operation_is_attributed_whole_and_the_same_each_time)
{
	need_map();
	for (size_t i = 0; i < operation_count; i++) {
		struct cost_result r;
		need(&operation_table[i], &r);
		unsigned before = atomic_load(&check_failures);
		CHECK(cost_sum(&r.steady, COST_ALL) > 0);
		CHECK(r.same);
		CHECK_IS(cost_unknown(&r.alone), 0);
		CHECK_IS(cost_unknown(&r.steady), 0);
		parts_are_the_whole(&r.steady);
		if (atomic_load(&check_failures) > before)
			printf("    %s\n", operation_table[i].name);
		result_free(&r);
	}
}

TEST(counted_again_it_is_the_same)
{
	need_map();
	struct cost_result a, b;
	need(operation_named("finite-16-put-then"), &a);
	need(operation_named("finite-16-put-then"), &b);
	CHECK(memcmp(&a.steady, &b.steady, sizeof a.steady) == 0);
	CHECK(memcmp(&a.alone, &b.alone, sizeof a.alone) == 0);
}

TEST(a_packet_in_a_stream_takes_no_more_than_a_packet)
{
	need_map();
	struct cost_result one, stream;
	need(operation_named("request-4"), &one);
	need(operation_named("stream-16-by-8"), &stream);
	CHECK(cost_sum(&stream.steady, COST_ALL) <= 2 * cost_sum(&one.steady, COST_ALL));
}

/* The study counts a handshake as buffers and an acknowledgement as fault tolerance, with all that
 * a message takes; it knows no other features. */
TEST(a_message_of_a_protocol_belongs_to_the_feature_that_it_is_for)
{
	static const char *const names[] = { "block-16-by-4", "ordered-16-by-4",
					     "grouped-16-by-4" };
	need_map();
	for (unsigned i = 0; i < sizeof names / sizeof *names; i++) {
		struct cost_result r;
		need(operation_named(names[i]), &r);
		for (int f = COST_FLOW; f < COST_FEATURES_ALL; f++)
			if (f != COST_PROGRAM)
				CHECK_IS(cost_sum(&r.alone, (struct cost_cut){ -1, f, -1, -1 }), 0);
		/* A message that is taken, at least, at the source that is told, */
		CHECK(cost_sum(&r.alone, (struct cost_cut){ COST_SOURCE, COST_FAULT, -1, -1 }) >
		      20);
		/* and a message at the destination that tells. */
		CHECK(cost_sum(&r.alone,
			       (struct cost_cut){ COST_DESTINATION, COST_FAULT, -1, -1 }) > 15);
		bool finite = i == 0;
		CHECK((cost_sum(&r.alone, (struct cost_cut){ -1, COST_BUFFER, -1, -1 }) > 0) ==
		      finite);
		result_free(&r);
	}
}

/* Half of the packets come out of order, and the destination puts them into order. */
TEST(packets_of_an_indefinite_sequence_come_out_of_order)
{
	need_map();
	struct cost_result ordered, plain;
	need(operation_named("ordered-16-by-4"), &ordered);
	need(operation_named("stream-16-by-8"), &plain);
	struct cost_cut c = { COST_DESTINATION, COST_ORDER, -1, -1 };
	CHECK(cost_sum(&ordered.alone, c) > cost_sum(&plain.alone, c) + 100);
	result_free(&ordered);
	result_free(&plain);
}

TEST(names_are_different_and_fit_the_command_line)
{
	CHECK(operation_count <= 64);
	for (size_t i = 0; i < operation_count; i++)
		CHECK(operation_named(operation_table[i].name) == &operation_table[i]);
	CHECK(!operation_named("nothing"));
}

/* -- The paper's figures, against its own sums --------------------------------------------- */

static void paper_is(enum cost_form form, unsigned words, int64_t total, int64_t base)
{
	const struct cost_tally *t = paper_sequence(form, words);
	CHECK_IS(cost_sum(t, COST_ALL), total);
	CHECK_IS(cost_sum(t, (struct cost_cut){ -1, COST_BASE, -1, -1 }), base);
	if (words == 1024) {
		CHECK_IS(paper_total(form, words, 4), total);
		CHECK_IS(paper_base(form, words, 4), base);
	}
}

TEST(the_figures_of_the_paper_add_up_as_they_do_there)
{
	CHECK_IS(cost_sum(&paper_packet, COST_ALL), 47);
	paper_is(COST_FINITE, 16, 397, 181);
	paper_is(COST_STREAM, 16, 481, 149);
	paper_is(COST_FINITE, 1024, 11737, 10261);
	paper_is(COST_STREAM, 1024, 29965, 8717);
	CHECK(!paper_sequence(COST_PACKET, 16));
}
