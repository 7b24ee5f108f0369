/* SPDX-License-Identifier: BSD-3-Clause */
/* Merging, with records made by hand. */
#include "tools/trace/merge.h"

#include <errno.h>
#include <tern/tern.h>

#include "lib/check.h"
#include "lib/tools_free.h"

enum { RANKS = 3, MOST = 32 };

static struct trace_record record[RANKS][MOST];
static struct track track[RANKS];
static struct merged m;

/* Every rank has an empty trace. */
static void tracks_clear(void)
{
	for (uint32_t r = 0; r < RANKS; r++)
		track[r] = (struct track){ .path = "t",
					   .head = { .rank = r, .size = RANKS },
					   .record = record[r] };
}

static void add(uint32_t rank, uint64_t time, enum record_kind kind, uint16_t peer,
		uint32_t sequence)
{
	record[rank][track[rank].records++] = (struct trace_record){ .time = time,
								     .kind = (uint8_t)kind,
								     .peer = peer,
								     .sequence = sequence,
								     .handler = 7 };
}

/* A request that is handled for 10 ns. */
static void request(uint32_t from, uint64_t sent, uint32_t to, uint64_t handled, uint32_t sequence)
{
	add(from, sent, RECORD_REQUEST, (uint16_t)to, sequence);
	add(to, handled, RECORD_HANDLE, (uint16_t)from, sequence);
	add(to, handled + 10, RECORD_RETURN, (uint16_t)from, sequence);
}

static void merge_all(void)
{
	int rc = merge(&m, track, RANKS);
	if (rc)
		printf("    %s\n", tern_strerror(rc));
	REQUIRE(rc == 0);
}

TEST(the_nth_send_goes_with_the_nth_handler_of_its_pair_and_kind)
{
	tracks_clear();
	add(0, 100, RECORD_REQUEST, 1, 0);
	add(0, 110, RECORD_REQUEST, 2, 0);
	add(0, 120, RECORD_REQUEST, 1, 1);
	add(1, 200, RECORD_HANDLE, 0, 0);
	add(1, 201, RECORD_REPLY, 0, 0);
	add(1, 202, RECORD_RETURN, 0, 0);
	add(1, 203, RECORD_HANDLE, 0, 1);
	add(1, 204, RECORD_RETURN, 0, 1);
	add(2, 300, RECORD_HANDLE, 0, 0);
	add(2, 310, RECORD_RETURN, 0, 0);
	add(0, 400, RECORD_HANDLE_RE, 1, 0);
	add(0, 405, RECORD_RETURN, 1, 0);
	merge_all();
	CHECK_IS(m.messages, 4);
	CHECK_IS(m.undelivered + m.unsent, 0);
	for (size_t i = 0; i < m.messages; i++) {
		const struct message *x = &m.message[i];
		const struct span *s = &m.span[x->span];
		CHECK_IS(m.track[s->track].head.rank, x->target);
		CHECK_IS(s->peer, x->source);
		CHECK_IS(s->sequence, x->sequence);
		CHECK_IS(s->kind, x->reply ? SPAN_REPLY : SPAN_REQUEST);
		CHECK_IS(s->message, i);
	}
	CHECK_IS(m.length, 305);
	merge_free(&m);
}

TEST(a_clock_that_is_ahead_is_found_and_corrected_by_the_quickest_messages)
{
	enum { AHEAD = 1000000 };
	tracks_clear();
	request(0, 1000, 1, 1000 + 700 + AHEAD, 0);
	request(0, 2000, 1, 2000 + 200 + AHEAD, 1); /* the quickest there */
	request(1, 3000 + AHEAD, 0, 3000 + 200, 0); /* and back */
	request(1, 4000 + AHEAD, 0, 4000 + 900, 1);
	add(2, 1, RECORD_CLOSE, 0, 0);
	merge_all();
	CHECK_IS(m.offset[1].estimate, -AHEAD);
	CHECK_IS(m.offset[1].correction, -AHEAD);
	CHECK_IS(m.offset[2].correction, 0); /* with whom nobody speaks */
	for (size_t i = 0; i < m.messages; i++)
		CHECK(m.span[m.message[i].span].begin >= m.message[i].sent);
	merge_free(&m);
}

TEST(a_correction_is_handed_on_along_the_messages)
{
	tracks_clear();
	request(0, 1000, 1, 100, 0); /* rank 1 is 1000 behind, */
	request(1, 1000, 0, 2100, 0);
	request(1, 2000, 2, 2100, 0); /* and rank 2 agrees with it */
	request(2, 3000, 1, 3100, 0);
	merge_all();
	CHECK_IS(m.offset[1].correction, 1000);
	CHECK_IS(m.offset[2].correction, 1000);
	merge_free(&m);
}

TEST(clocks_that_can_agree_are_left_alone_however_uneven_the_delays)
{
	tracks_clear();
	request(0, 1000, 1, 1010, 0);
	request(1, 2000, 0, 90000, 0);
	merge_all();
	CHECK_IS(m.offset[1].estimate, (88000 - 10) / 2);
	CHECK_IS(m.offset[1].correction, 0);
	merge_free(&m);
}

TEST(dropped_events_leave_messages_with_one_side_and_the_others_matched)
{
	tracks_clear();
	add(0, 100, RECORD_REQUEST, 1, 0);
	add(0, 110, RECORD_DROPPED, 0, 5);
	add(0, 120, RECORD_REQUEST, 1, 6);
	add(1, 200, RECORD_HANDLE, 0, 0);
	add(1, 205, RECORD_RETURN, 0, 0);
	add(1, 210, RECORD_HANDLE, 0, 1);
	add(1, 220, RECORD_DROPPED, 0, 2);
	add(1, 225, RECORD_RETURN, 0, 5);
	add(1, 230, RECORD_HANDLE, 0, 6);
	add(1, 235, RECORD_RETURN, 0, 6);
	merge_all();
	CHECK_IS(m.dropped, 7);
	CHECK_IS(m.messages, 3);
	CHECK_IS(m.unsent, 1);
	CHECK_IS(m.undelivered, 0);
	CHECK_IS(m.spans, 3);
	CHECK(m.span[1].unended && m.span[1].message == NO_MESSAGE);
	CHECK_IS(m.span[1].end - m.span[1].begin, 10);
	CHECK_IS(m.message[m.span[2].message].sequence, 6);
	merge_free(&m);
}

TEST(what_a_killed_rank_had_begun_ends_with_its_trace)
{
	tracks_clear();
	add(0, 100, RECORD_BARRIER, 0, 1);
	add(0, 150, RECORD_WAIT, 0, 0);
	add(0, 200, RECORD_HANDLE, 1, 0);
	merge_all();
	CHECK_IS(m.spans, 3);
	for (unsigned i = 0; i < 3; i++) {
		CHECK(m.span[i].unended);
		CHECK_IS(m.span[i].end, 100);
		CHECK_IS(m.span[i].depth, i);
	}
	merge_free(&m);
}

TEST(files_of_one_rank_or_of_two_jobs_are_refused)
{
	tracks_clear();
	track[2].head.rank = 1;
	CHECK_IS(merge(&m, track, RANKS), -EINVAL);
	CHECK(strstr(tern_strerror(-EINVAL), "both of rank 1") != NULL);
	tracks_clear();
	track[1].head.job = 8;
	CHECK_IS(merge(&m, track, RANKS), -EINVAL);
	CHECK(strstr(tern_strerror(-EINVAL), "another job") != NULL);
	tracks_clear();
	struct track last = track[0];
	track[0] = track[2];
	track[2] = last; /* in any order */
	CHECK_IS(merge(&m, track, RANKS), 0);
	CHECK_IS(m.track[2].head.rank, 2);
	merge_free(&m);
}
