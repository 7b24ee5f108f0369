/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening and closing inside one process. Launched ranks: tests/launch/session_test.c. */
#include <dirent.h>
#include <errno.h>

#include "endpoint/endpoint.h"
#include "lib/handed.h"
#include "lib/local.h"

enum { ASK, TELL };

static void answer(tern *t, const tern_msg *m)
{
	arrival_note(&requests, t, m);
	CHECK_IS(tern_reply(t, m, TELL), 0);
}

static unsigned descriptors(void)
{
	unsigned n = 0;
	DIR *d = opendir("/proc/self/fd");
	while (d && readdir(d))
		n++;
	closedir(d);
	return n;
}

static void round_trip(tern **t, uint32_t from, uint32_t to)
{
	unsigned before = replies.count;
	CHECK_IS(tern_request(t[from], to, ASK, 1), 0);
	for (int i = 0; i < 3; i++) {
		tern_poll(t[to]);
		tern_poll(t[from]);
	}
	CHECK_IS(replies.count, before + 1);
}

TEST(a_program_without_a_launcher_is_a_job_of_one)
{
	tern *t;
	CHECK_IS(tern_open(&t, NULL), 0);
	CHECK_IS(tern_rank(t), 0);
	CHECK_IS(tern_size(t), 1);
	CHECK_IS(tern_on(t, ASK, answer), 0);
	CHECK_IS(tern_on(t, TELL, note_reply), 0);
	CHECK_IS(tern_request(t, 0, ASK, 1), 0);
	CHECK_IS(tern_request_data(t, 0, ASK, "x", 1, 2, 3), 0);
	while (replies.count < 2)
		CHECK(tern_poll(t) >= 0);
	CHECK_IS(tern_request(t, 1, ASK), -ERANGE);
	CHECK_IS(tern_barrier(t), 0);
	CHECK_IS(tern_close(t), 0);
}

TEST(another_launchers_job_is_refused_by_name_and_not_split)
{
	tern *t = NULL;
	setenv("OMPI_COMM_WORLD_SIZE", "4", 1);
	CHECK_IS(tern_open(&t, NULL), -ENOTSUP);
	CHECK(sentence_has(-ENOTSUP, "mpirun") && sentence_has(-ENOTSUP, "TERN_ALONE"));
	CHECK(t == NULL);
	setenv("TERN_ALONE", "1", 1);
	CHECK_IS(tern_open(&t, NULL), 0);
	CHECK_IS(tern_close(t), 0);
}

TEST(endpoints_open_and_close_a_hundred_times_and_leave_nothing)
{
	unsigned before = descriptors();
	for (int i = 0; i < 100; i++) {
		local_open(1 + i % 5);
		local_on(ASK, answer);
		local_on(TELL, note_reply);
		for (uint32_t r = 0; r < local_size; r++)
			round_trip(local, r, (r + 1) % local_size);
		local_close();
		tern *t;
		CHECK_IS(tern_open(&t, NULL), 0);
		CHECK_IS(tern_close(t), 0);
	}
	CHECK_IS(descriptors(), before);
}

TEST(two_jobs_in_one_process_do_not_hear_each_other)
{
	tern *other[3];
	local_open(2);
	REQUIRE(tern_open_local(3, other) == 0);
	local_on(ASK, answer);
	local_on(TELL, note_reply);
	for (int r = 0; r < 3; r++) {
		CHECK_IS(tern_on(other[r], ASK, answer), 0);
		CHECK_IS(tern_on(other[r], TELL, note_reply), 0);
	}
	for (int i = 0; i < 1000; i++) {
		round_trip(local, 0, 1);
		round_trip(other, 2, 1);
		CHECK_IS(requests.src, 2);
	}
	CHECK_IS(tern_request(local[0], 2, ASK), -ERANGE);
	local_close();
	round_trip(other, 0, 2); /* and goes on without it */
	for (int r = 0; r < 3; r++)
		CHECK_IS(tern_close(other[r]), 0);
}

TEST(a_job_has_256_ranks_and_more)
{
	local_polled(); /* a thread with hundreds of timers would do nothing else */
	local_open(256);
	local_on(ASK, answer);
	local_on(TELL, note_reply);
	for (uint32_t r = 0; r < 256; r++) {
		CHECK_IS(tern_rank(local[r]), r);
		CHECK_IS(tern_size(local[r]), 256);
		round_trip(local, r, (r + 1) % 256);
		round_trip(local, r, (r + 128) % 256);
	}
	local_close();
}

TEST(the_number_of_ranks_has_limits)
{
	tern *t[1] = { NULL };
	CHECK_IS(tern_open_local(0, t), -ERANGE);
	CHECK_IS(tern_open_local(TERN_RANKS_MAX + 1, t), -ERANGE);
	CHECK(sentence_has(-ERANGE, "1025") && sentence_has(-ERANGE, "1024"));
	CHECK(t[0] == NULL);
}

TEST(a_program_of_another_layout_is_refused)
{
	tern *t = NULL;
	CHECK_IS(tern_open_layout_(&t, NULL, TERN_LAYOUT + 1), -EPROTO);
	CHECK_IS(tern_open_local_layout_(1, &t, TERN_LAYOUT + 1), -EPROTO);
	CHECK(sentence_has(-EPROTO, "compile"));
	CHECK(t == NULL);
}

TEST(a_setting_that_is_no_number_is_refused_at_open_and_leaves_nothing)
{
	static const char *const names[] = { "TERN_SPIN", "TERN_GRACE", "TERN_MEMORY" };
	unsigned before = descriptors();
	for (int i = 0; i < 3; i++) {
		tern *t[2] = { NULL };
		setenv(names[i], "many", 1);
		CHECK_IS(tern_open_local(2, t), -EINVAL);
		CHECK(sentence_has(-EINVAL, names[i]) && sentence_has(-EINVAL, "many"));
		CHECK(t[0] == NULL);
		unsetenv(names[i]);
	}
	CHECK_IS(descriptors(), before);
	local_open(2);
	local_close();
}

TEST(memory_for_the_front_alone_is_too_little_and_leaves_nothing)
{
	struct job_needs needs;
	char bytes[32];
	unsigned before = descriptors();
	job_needs(2, &needs);
	snprintf(bytes, sizeof bytes, "%llu", (unsigned long long)needs.start + 1);
	setenv("TERN_MEMORY", bytes, 1);
	CHECK_IS(tern_open_local(2, local), -ENOMEM);
	CHECK(sentence_has(-ENOMEM, "replies of rank 0"));
	CHECK_IS(descriptors(), before);
}

TEST(a_worker_that_is_not_there_has_no_network)
{
	local_open(2);
	CHECK(local[0]->own->site.peer[1].net && !local[0]->own->site.peer[2].net);
	local_close();
}

TEST(options_override_settings)
{
	tern_options o = { .spin = 7, .grace = 9 };
	tern *t;
	setenv("TERN_SPIN", "3", 1);
	CHECK_IS(tern_open(&t, &o), 0);
	CHECK_IS(t->own->waiting.spin, 7);
	CHECK_IS(t->own->waiting.grace_ns, 9000000);
	CHECK_IS(tern_close(t), 0);
	CHECK_IS(tern_open(&t, NULL), 0);
	CHECK_IS(t->own->waiting.spin, 3);
	CHECK_IS(tern_close(t), 0);
}

TEST(what_was_sent_before_a_close_is_still_delivered)
{
	local_open(2);
	local_on(ASK, note_request);
	local_on(TELL, note_reply);
	tern_poll(local[1]);
	for (int i = 0; i < 5; i++) {
		CHECK_IS(tern_request(local[0], 1, ASK, i), 0);
		CHECK_IS(tern_request_data(local[0], 1, ASK, "text", 5, i), 0);
	}
	local_close_one(0);
	local_settle();
	CHECK_IS(requests.count, 10);
	CHECK(strcmp((const char *)requests.data, "text") == 0);
	local_close();
}

/* Once this rank knows that the other has closed, it is told. */
static void answer_closed(tern *t, const tern_msg *m)
{
	arrival_note(&requests, t, m);
	int rc = tern_reply(t, m, TELL);
	CHECK(rc == 0 || (rc == -ESHUTDOWN && tern_msg_src(m) == 0));
}

TEST(a_reply_to_a_rank_that_has_closed_harms_nobody)
{
	static const unsigned char bytes[100];
	local_open(3);
	local_on(ASK, answer_closed);
	local_on(TELL, note_reply);
	tern_hold(local[1]);
	for (int i = 0; i < 200; i++)
		CHECK_IS(tern_request(local[0], 1, ASK, i), 0);
	CHECK_IS(tern_request_data(local[0], 1, ASK, bytes, 100), 0);
	local_close_one(0);
	tern_release(local[1]);
	while (tern_poll(local[1]) > 0)
		;
	CHECK(requests.count == 0 || requests.count == 201); /* dropped or handled, but not half */
	round_trip(local, 1, 2);
	local_close();
}

TEST(closing_is_refused_in_handlers_only)
{
	local_open(1);
	void *claimed = handed_claim(local[0], 0, 10);
	CHECK(claimed != NULL);
	tern_hold(local[0]);
	CHECK_IS(tern_close(local[0]), 0); /* open claims and holds end with it */
}
