/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: MODES */
/* A job's memory is bounded, small, and reserved before it is touched. */
#include <errno.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include "endpoint/endpoint.h"
#include "lib/handed.h"
#include "lib/local.h"
#include "net/talk.h"

enum { ASK, TELL, MIB = 1 << 20 };

static unsigned char bytes[TERN_PAYLOAD_MAX];

static void answer(tern *t, const tern_msg *m)
{
	size_t len;
	const void *data = tern_msg_data(m, &len);
	requests.count++;
	if (data)
		CHECK_IS(tern_reply_data(t, m, TELL, data, len), 0);
	else
		CHECK_IS(tern_reply(t, m, TELL), 0);
}

static void ranks_open(uint32_t n)
{
	local_open(n);
	local_on(ASK, answer);
	local_on(TELL, note_reply);
}

/* What the job says it has, which is what its file has. */
static uint64_t committed(void)
{
	const struct job *j = &local[0]->own->group->job;
	struct stat st;
	REQUIRE(fstat(j->fd, &st) == 0);
	CHECK_IS((uint64_t)st.st_blocks * 512, j->head->committed);
	return j->head->committed;
}

static void talk(uint32_t from, uint32_t to)
{
	for (int i = 0; i < 20; i++) {
		CHECK_IS(tern_request(local[from], to, ASK, 1), 0);
		CHECK_IS(tern_request_data(local[from], to, ASK, bytes, sizeof bytes), 0);
		tern_poll(local[to]);
		tern_poll(local[from]);
	}
}

static void neighbours(uint32_t n, uint64_t most)
{
	ranks_open(n);
	printf("    %u ranks: %.1f MiB before they talk, ", n, (double)committed() / MIB);
	CHECK(committed() <= most);
	for (uint32_t r = 0; r < n; r++) {
		talk(r, (r + 1) % n);
		talk((r + 1) % n, r);
	}
	printf("%.1f MiB with neighbours talking both ways\n", (double)committed() / MIB);
	CHECK(committed() <= most);
	local_close();
}

TEST(sixty_four_ranks_that_talk_with_their_neighbours_take_16_MiB_at_most)
{
	neighbours(64, 16 * MIB);
}

TEST(two_hundred_and_fifty_six_ranks_take_256_MiB_at_most)
{
	neighbours(256, 256 * MIB);
}

TEST(the_worst_case_is_what_was_announced)
{
	struct job_needs needs;
	ranks_open(12);
	job_needs(12, &needs);
	for (uint32_t from = 0; from < 12; from++)
		for (uint32_t to = 0; to < 12; to++)
			talk(from, to);
	CHECK_IS(committed(), needs.all_pairs);
	local_close();
}

/* -- Too little ---------------------------------------------------------------------- */

static void budget_for(uint32_t ranks, uint64_t talks, uint64_t pools)
{
	struct job j;
	char text[32];
	REQUIRE(job_create(&j, ranks, 0) == 0);
	uint64_t spares = (SPARES * sizeof(struct block) + 4095) / 4096 * 4096;
	uint64_t budget = j.head->committed + ranks * spares + talks * 4096 + pools * j.pool.bytes;
	job_unmap(&j);
	job_forget(&j);
	snprintf(text, sizeof text, "%llu", (unsigned long long)budget);
	setenv("TERN_MEMORY", text, 1);
}

TEST(a_pair_that_the_budget_does_not_allow_to_talk_is_told_and_the_rest_goes_on)
{
	budget_for(3, 2, 0);
	ranks_open(3);
	CHECK_IS(tern_request(local[0], 1, ASK, 1), 0);
	CHECK_IS(tern_request(local[1], 2, ASK, 1), 0);
	int rc = tern_request(local[0], 2, ASK, 1);
	CHECK_IS(rc, -ENOMEM);
	CHECK(sentence_has(rc, "rank 0 to rank 2") && sentence_has(rc, "TERN_MEMORY"));
	CHECK_IS(tern_request(local[0], 2, ASK, 1, 2), -ENOMEM);
	CHECK_IS(tern_request_data(local[0], 2, ASK, bytes, 1), -ENOMEM);
	CHECK(!handed_claim(local[0], 2, 1));
	CHECK_IS(errno, ENOMEM);
	local_settle();
	CHECK_IS(requests.count, 2);
	for (int i = 0; i < 2000; i++) {
		CHECK_IS(tern_request(local[0], 1, ASK, i), 0);
		CHECK_IS(tern_request(local[1], 2, ASK, i, i), 0);
	}
	local_settle();
	CHECK_IS(requests.count, 4002);
	CHECK_IS(replies.count, 4002);
	local_close();
}

TEST(a_payload_that_the_budget_does_not_allow_is_told_and_replies_still_carry_theirs)
{
	budget_for(2, 2, 1);
	ranks_open(2);
	CHECK_IS(tern_request_data(local[0], 1, ASK, bytes, 100),
		 0); /* the only pool there is memory for */
	local_settle();
	CHECK_IS(tern_request(local[1], 0, ASK, 1), 0);
	int rc = tern_request_data(local[1], 0, ASK, bytes, 100);
	CHECK_IS(rc, -ENOMEM);
	CHECK(sentence_has(rc, "rank 1") && sentence_has(rc, "TERN_MEMORY"));
	for (int i = 0; i < 100;
	     i++) { /* rank 1 replies from the block that is reserved for that */
		CHECK_IS(tern_request_data(local[0], 1, ASK, bytes, 1000), 0);
		local_settle();
		CHECK_IS(replies.len, 1000);
	}
	local_close();
}

TEST(a_budget_too_small_to_open_is_an_error_at_open)
{
	tern *t[64] = { NULL };
	setenv("TERN_MEMORY", "4K", 1);
	int rc = tern_open_local(64, t);
	CHECK_IS(rc, -ENOMEM);
	CHECK(sentence_has(rc, "64 ranks") && sentence_has(rc, "TERN_MEMORY"));
	CHECK(t[0] == NULL);
}

/* In a /dev/shm of its own: other programs use the machine's. */
TEST(nothing_is_in_dev_shm)
{
	struct stat before, after;
	if (unshare(CLONE_NEWNS) != 0 || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) != 0 ||
	    mount("none", "/dev/shm", "tmpfs", 0, "") != 0)
		check_skip("/dev/shm cannot be made private here");
	CHECK_IS(stat("/dev/shm", &before), 0);
	ranks_open(4);
	talk(0, 1);
	CHECK_IS(stat("/dev/shm", &after), 0);
	CHECK_IS(after.st_mtim.tv_sec, before.st_mtim.tv_sec);
	CHECK_IS(after.st_mtim.tv_nsec, before.st_mtim.tv_nsec);
	local_close();
}
