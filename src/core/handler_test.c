/* SPDX-License-Identifier: BSD-3-Clause */
/* Registering handlers, their names, and messages for one that is not registered. */
#include <errno.h>

#include "lib/local.h"

enum { ASK = 3, TELL = 4 };

static const unsigned char bytes[100];

TEST(registering_a_handler_has_rules_too)
{
	local_open(2);
	CHECK_IS(tern_on(local[0], TERN_HANDLER_MAX, note_request), -ERANGE);
	CHECK(sentence_has(-ERANGE, "768"));
	CHECK_IS(tern_on(local[0], TERN_HANDLER_MAX - 1, note_request), 0);
	CHECK_IS(tern_on(local[1], TERN_HANDLER_MAX - 1, note_request), 0);
	CHECK_IS(tern_on(local[0], ASK, NULL), -EINVAL);
	CHECK_IS(tern_on(local[0], TERN_HANDLER_MAX - 1, note_reply),
		 0); /* again: the last one counts */
	CHECK_IS(tern_request(local[0], 1, TERN_HANDLER_MAX - 1, 1), 0);
	local_settle();
	CHECK_IS(requests.count, 1);
	local_close();
}

TEST(a_handler_can_be_registered_after_the_first_message)
{
	local_open(2);
	local_on(TELL, note_reply);
	CHECK_IS(tern_request(local[0], 1, TELL), 0);
	local_settle();
	CHECK_IS(tern_request(local[0], 1, ASK), -ENXIO); /* not yet */
	CHECK(sentence_has(-ENXIO, "handler 3"));
	CHECK_IS(tern_on(local[0], ASK, note_request), 0);
	CHECK_IS(tern_on(local[1], ASK, note_request), 0);
	CHECK_IS(tern_request(local[0], 1, ASK), 0);
	local_settle();
	CHECK_IS(requests.count, 1);
	CHECK_IS(tern_on(local[1], ASK, note_reply), 0); /* and replaced */
	CHECK_IS(tern_request(local[0], 1, ASK), 0);
	local_settle();
	CHECK_IS(requests.count, 1);
	CHECK_IS(replies.count, 2);
	local_close();
}

static int owned[2];
static void *found;

static void find_own(tern *t, const tern_msg *m)
{
	found = tern_msg_handler_arg(t, m);
}

TEST(a_handler_finds_what_it_was_registered_with)
{
	local_open(2);
	for (int r = 0; r < 2; r++) {
		CHECK_IS(tern_on_with(local[r], ASK, find_own, &owned[0], NULL), 0);
		CHECK_IS(tern_on_with(local[r], TELL, find_own, &owned[1], NULL), 0);
		CHECK_IS(tern_on(local[r], 9, find_own), 0);
		CHECK_IS(tern_on_with(local[r], TERN_HANDLER_MAX, find_own, NULL, NULL), -ERANGE);
		CHECK_IS(tern_on_with(local[r], 5, NULL, NULL, NULL), -EINVAL);
	}
	CHECK_IS(tern_request(local[0], 1, ASK, 1), 0);
	local_settle();
	CHECK(found == &owned[0]);
	CHECK_IS(tern_request_data(local[0], 1, TELL, bytes, 100), 0);
	local_settle();
	CHECK(found == &owned[1]);
	CHECK_IS(tern_request(local[0], 1, 9, 1), 0);
	local_settle();
	CHECK(found == NULL);
	CHECK_IS(tern_on(local[1], ASK, find_own), 0); /* without one, it is forgotten */
	found = &owned[0];
	CHECK_IS(tern_request(local[0], 1, ASK), 0);
	local_settle();
	CHECK(found == NULL);
	local_close();
}

static int class_of[TELL + 1], class_kept;

static void note_class(tern *t, const tern_msg *m)
{
	class_of[tern_msg_handler(m)] = tern_msg_is_reply(t, m);
	if (tern_msg_handler(m) == ASK)
		CHECK_IS(tern_reply(t, m, TELL), 0);
	CHECK_IS(tern_msg_is_reply(t, m), tern_msg_handler(m) == TELL); /* answered or not */
	const tern_msg *kept;
	CHECK_IS(tern_msg_keep(t, m, &kept), 0);
	class_kept = tern_msg_is_reply(t, kept);
	CHECK_IS(tern_msg_drop(t, kept), 0);
}

TEST(a_handler_knows_whether_its_message_is_a_request_or_a_reply)
{
	local_open(2);
	local_on(ASK, note_class);
	local_on(TELL, note_class);
	for (uint32_t dst = 0; dst < 2; dst++) {
		class_of[ASK] = class_of[TELL] = -1;
		CHECK_IS(tern_request(local[0], dst, ASK), 0);
		local_settle();
		CHECK_IS(class_of[ASK], 0);
		CHECK_IS(class_of[TELL], 1);
		CHECK(class_kept < 0);
		class_of[TELL] = -1;
		CHECK_IS(tern_reply_to(local[0], dst, TELL), 0);
		local_settle();
		CHECK_IS(class_of[TELL], 1);
	}
	local_close();
}

TEST(libraries_get_ranges_of_handlers_that_do_not_overlap)
{
	unsigned a[2], b[2], c = 1;
	local_open(2);
	for (int r = 0; r < 2; r++) {
		CHECK_IS(tern_on_range(local[r], 10, &a[r]), 0);
		CHECK_IS(tern_on_range(local[r], 1, &b[r]), 0);
	}
	CHECK(a[0] == a[1] && b[0] == b[1]);
	CHECK_IS(a[0], TERN_HANDLER_MAX - 10);
	CHECK_IS(b[0], TERN_HANDLER_MAX - 11);
	local_on(b[0], note_request);
	CHECK_IS(tern_request(local[0], 1, b[0], 5), 0);
	local_settle();
	CHECK_IS(requests.count, 1);
	CHECK_IS(tern_on_range(local[0], 0, &c), -EINVAL);
	CHECK_IS(tern_on_range(local[0], TERN_HANDLER_MAX, &c), -ENOSPC);
	CHECK(sentence_has(-ENOSPC, "757 left"));
	CHECK_IS(tern_on(local[0], 700, note_request), 0);
	CHECK_IS(tern_on_range(local[0], 100, &c), -EEXIST);
	CHECK(sentence_has(-EEXIST, "handler 700"));
	CHECK_IS(c, 1);
	CHECK_IS(tern_on_range(local[0], 56, &c), 0);
	CHECK_IS(c, 701);
	local_close();
}

static const char *name_of(tern *t, unsigned id)
{
	tern_stats_handler_data h;
	return CHECK_IS(tern_stats_handler(t, id, &h), 0) ? h.name : NULL;
}

TEST(a_handler_is_named_as_the_call_names_it_and_any_expression_can_be_registered)
{
	static tern_handler *const table[] = { note_request, note_reply };
	local_open(2);
	CHECK_IS(tern_on(local[0], 1, note_request), 0);
	CHECK_IS(tern_on(local[0], 2, &note_request), 0);
	CHECK_IS(tern_on(local[0], 3, table[1]), 0);
	tern_handler *variable = note_request;
	CHECK_IS(tern_on(local[0], 9, variable), 0);
	CHECK_IS(tern_on(local[0], 10, local[1] ? note_request : note_reply), 0);
	CHECK_IS(tern_on(local[0], 4, (tern_handler *[]){ note_request, note_reply }[1]), 0);
	CHECK_IS((tern_on)(local[0], 5, note_request), 0);
	CHECK_IS(tern_on_with(local[0], 6, note_request, NULL, "another"), 0);
	CHECK_IS(tern_on_with(local[0], 7, note_request, NULL, "no name \x1b[2J"), 0);
	int (*on)(tern * t, unsigned id, tern_handler *fn) = tern_on;
	CHECK_IS(on(local[0], 8, note_request), 0);
	CHECK(strcmp(name_of(local[0], 1), "note_request") == 0);
	CHECK(strcmp(name_of(local[0], 2), "note_request") == 0);
	for (unsigned id = 3; id <= 10; id++)
		if (id != 6)
			CHECK(name_of(local[0], id) == NULL);
	CHECK(strcmp(name_of(local[0], 6), "another") == 0);
	CHECK(strcmp(name_of(local[0], TERN_HANDLER_MAX), "on_served") == 0);
	local_close();
}

TEST(a_handler_that_only_the_sender_knows_is_found_out_on_arrival)
{
	local_open(2);
	CHECK_IS(tern_on(local[0], ASK, note_request), 0);
	CHECK_IS(tern_on(local[0], TELL, note_request), 0);
	CHECK_IS(tern_on(local[1], TELL, note_request), 0);
	tern_hold(local[1]); /* so that all are found at a stretch */
	for (unsigned n = 0; n < 3; n++) {
		static const uint64_t words[3];
		CHECK_IS(tern_request_array(local[0], 1, ASK, n, words), 0);
	}
	CHECK_IS(tern_request_data(local[0], 1, ASK, bytes, 100), 0);
	CHECK_IS(tern_request(local[0], 1, TELL, 8), 0);
	tern_release(local[1]);
	CHECK_IS(tern_poll(local[1]), -ENXIO);
	CHECK(sentence_has(-ENXIO, "rank 1") && sentence_has(-ENXIO, "rank 0") &&
	      sentence_has(-ENXIO, "handler 3 (note_request)"));
	CHECK_IS(tern_poll(local[1]), 0); /* told once */
	CHECK_IS(requests.count, 1);
	CHECK_IS(requests.word[0], 8);
	for (int i = 0; i < 2 * TERN_POOL_BLOCKS; i++) { /* no block was lost */
		CHECK_IS(tern_request_data(local[0], 1, TELL, bytes, 100), 0);
		local_settle();
	}
	local_close();
}
