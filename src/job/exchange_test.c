/* SPDX-License-Identifier: BSD-3-Clause */
/* Two memories of one job, as on two machines, and what is carried between them. */
#include "job/exchange.h"

#include <errno.h>
#include <pthread.h>
#include <tern/tern.h>

#include "lib/check.h"

enum { RANKS = 4, FAR = 2, CARD = 40 };

static struct job job[2]; /* ranks 0 and 1 are on the first, 2 and 3 on the second */

static void machines_open(void)
{
	static const uint32_t machine[RANKS] = { 0, 0, 1, 1 };
	for (uint32_t m = 0; m < 2; m++) {
		REQUIRE(job_create(&job[m], RANKS, 0) == 0);
		job_spread(&job[m], machine, m, 2);
		for (uint32_t r = 2 * m; r < 2 * m + 2; r++)
			CHECK(job_rank_opens(&job[m], r));
	}
}

static void machines_close(void)
{
	for (int m = 0; m < 2; m++) {
		job_unmap(&job[m]);
		job_forget(&job[m]);
	}
}

/* What the machine of `rank` has to say of it comes to the other. */
static void carried(uint32_t rank)
{
	struct rank_status b;
	rank_status_read(&job[rank / 2], rank, &b);
	CHECK(rank_status_take(&job[!(rank / 2)], &b) != RANK_STATUS_NONSENSE);
}

static void published(uint32_t rank, char first)
{
	char card[CARD] = { first };
	card_publish(&job[rank / 2], rank, card, sizeof card);
}

static int card_seen(uint32_t rank)
{
	char card[CARD];
	return card_read(&job[!(rank / 2)], rank, card, sizeof card) ? card[0] : 0;
}

static void closed(uint32_t rank)
{
	job_rank_leaves(&job[rank / 2], rank, RANK_CLOSED);
}

static uint32_t left_on(uint32_t machine)
{
	return job_left(&job[machine]);
}

TEST(a_card_comes_to_the_other_machine)
{
	machines_open();
	CHECK_IS(card_seen(FAR), 0);
	published(FAR, 'a');
	CHECK_IS(card_seen(FAR), 0);
	carried(FAR);
	CHECK_IS(card_seen(FAR), 'a');
	machines_close();
}

TEST(a_rank_that_leaves_on_one_machine_has_left_on_the_other)
{
	machines_open();
	carried(FAR);
	CHECK_IS(job_rank_check(&job[0], FAR), 0);
	closed(FAR);
	carried(FAR);
	carried(FAR); /* twice is not more */
	CHECK_IS(job_rank_check(&job[0], FAR), -ESHUTDOWN);
	CHECK_IS(left_on(0), 1);
	job_rank_ended(&job[1], FAR + 1, 9); /* by a signal */
	carried(FAR + 1);
	CHECK_IS(job_rank_check(&job[0], FAR + 1), -EOWNERDEAD);
	CHECK(strstr(tern_strerror(-EOWNERDEAD), "signal 9"));
	CHECK_IS(left_on(0), 2);
	machines_close();
}

TEST(a_rank_that_ends_with_status_0_without_having_closed_is_dead_on_the_other_machine_too)
{
	machines_open();
	carried(FAR);
	job_rank_ended(&job[1], FAR, 0);
	carried(FAR);
	CHECK_IS(job_rank_check(&job[0], FAR), -EOWNERDEAD);
	CHECK(strstr(tern_strerror(-EOWNERDEAD), "without tern_close()"));
	closed(FAR + 1);
	job_rank_ended(&job[1], FAR + 1, 0);
	carried(FAR + 1);
	CHECK_IS(job_rank_check(&job[0], FAR + 1), -ESHUTDOWN);
	machines_close();
}

/* From a session on, and a serial before which nothing was told. */
static void sessions_end(uint64_t first, uint64_t serial)
{
	machines_open();
	for (int m = 0; m < 2; m++) {
		job_session_begin(&job[m], first);
		for (uint32_t r = 0; r < RANKS; r++)
			atomic_store(&job[m].rank[r].serial, serial);
	}
	published(FAR, 'a');
	carried(FAR);
	closed(FAR);
	closed(FAR + 1); /* the last there: the next session begins on that machine */
	CHECK_IS(atomic_load(&job[1].head->session), first + 1);
	CHECK_IS(atomic_load(&job[0].head->session), first);
	CHECK(job_rank_opens(&job[1], FAR));
	published(FAR, 'b');
	carried(FAR);
	carried(FAR + 1);
	CHECK_IS(job_rank_check(&job[0], FAR), -ESHUTDOWN); /* of this session */
	CHECK_IS(job_rank_check(&job[0], FAR + 1), -ESHUTDOWN);
	CHECK_IS(card_seen(FAR), 0);
	closed(0);
	CHECK_IS(left_on(0), 3);
	closed(1);
	CHECK_IS(left_on(0), 0);
	CHECK_IS(job_rank_check(&job[0], FAR), 0);
	CHECK_IS(card_seen(FAR), 'b');
	machines_close();
}

TEST(sessions_end_on_each_machine_by_itself)
{
	sessions_end(1, 0);
}

TEST(sessions_and_serials_go_on_past_32_bits)
{
	sessions_end(UINT32_MAX, UINT32_MAX - 1);
	sessions_end(UINT32_MAX - 1, UINT32_MAX);
}

TEST(the_dead_stay_dead_in_later_sessions)
{
	struct rank_status b;
	machines_open();
	rank_status_lost(&b, FAR);
	CHECK_IS(rank_status_take(&job[0], &b), RANK_STATUS_NEWS);
	CHECK_IS(rank_status_take(&job[0], &b), RANK_STATUS_KNOWN);
	carried(FAR); /* late, and of no use */
	CHECK_IS(job_rank_check(&job[0], FAR), -EOWNERDEAD);
	CHECK(strstr(tern_strerror(-EOWNERDEAD), "not heard of"));
	closed(0);
	closed(1);
	CHECK_IS(job_rank_check(&job[0], FAR), -EOWNERDEAD);
	CHECK_IS(left_on(0), 1);
	machines_close();
}

TEST(what_makes_no_sense_is_refused)
{
	struct rank_status b;
	machines_open();
	rank_status_lost(&b, RANKS);
	CHECK_IS(rank_status_take(&job[0], &b), RANK_STATUS_NONSENSE); /* no rank */
	rank_status_lost(&b, 1);
	CHECK_IS(rank_status_take(&job[0], &b),
		 RANK_STATUS_NONSENSE); /* a rank of this machine: who could know better? */
	rank_status_lost(&b, FAR);
	b.state = RANK_DEAD + 1;
	CHECK_IS(rank_status_take(&job[0], &b), RANK_STATUS_NONSENSE);
	CHECK_IS(job_rank_check(&job[0], FAR), 0);
	machines_close();
}

TEST(how_many_barriers_a_rank_had_passed_is_known_when_it_is_in_the_next_session)
{
	machines_open();
	atomic_store(&job[1].rank[FAR].passed, 7);
	closed(FAR);
	carried(FAR);
	CHECK_IS(job_rank_passed(&job[0], FAR), 7);
	atomic_store(&job[1].rank[FAR + 1].passed, 8);
	closed(FAR + 1);
	carried(FAR + 1);
	CHECK_IS(job_rank_passed(&job[0], FAR + 1), 8); /* its machine is in the next session */
	carried(FAR);
	CHECK_IS(job_rank_passed(&job[0], FAR), 7);
	machines_close();
}

static atomic_bool sessions_over;

/* What is read of a rank never goes back: in each session it is expected, open, closed. */
static void *sessions_read(void *back)
{
	struct rank_status b;
	uint64_t before = 0;
	while (!atomic_load(&sessions_over)) {
		rank_status_read(&job[0], 0, &b);
		uint64_t now = b.session << 8 | b.state;
		*(unsigned *)back += now < before;
		before = now;
	}
	return NULL;
}

TEST(session_and_state_belong_together_while_the_memory_is_made_new)
{
	pthread_t reader;
	unsigned back = 0;
	machines_open();
	atomic_store(&sessions_over, false);
	REQUIRE(pthread_create(&reader, NULL, sessions_read, &back) == 0);
	for (int i = 0; i < 100000; i++) {
		closed(0);
		closed(1);
		CHECK(job_rank_opens(&job[0], 0));
		CHECK(job_rank_opens(&job[0], 1));
	}
	atomic_store(&sessions_over, true);
	pthread_join(reader, NULL);
	CHECK_IS(back, 0);
	machines_close();
}

/* What a machine knows: rank << 8 | status; -1: the job goes on. */
static int end_on(uint32_t machine)
{
	struct job_end end;
	return job_end_read(&job[machine], &end) ? (int)(end.rank << 8 | (uint32_t)end.status) : -1;
}

TEST(the_end_of_a_job_comes_to_the_other_machine_and_the_first_one_counts)
{
	struct job_end end;
	machines_open();
	carried(FAR);
	CHECK_IS(end_on(0), -1);
	uint64_t serial = atomic_load(&job[1].rank[FAR].serial);
	job_end_write(&job[1], FAR, 5, &end);
	CHECK(end.rank == FAR && end.status == 5);
	CHECK(atomic_load(&job[1].rank[FAR].serial) > serial); /* so somebody carries it */
	job_end_write(&job[1], FAR + 1, 6, &end);
	CHECK(end.rank == FAR && end.status == 5);
	CHECK_IS(end_on(0), -1);
	carried(FAR + 1); /* the record of any rank of that machine says it */
	CHECK_IS(end_on(0), FAR << 8 | 5);
	job_end_write(&job[0], 0, 7, &end);
	CHECK(end.rank == FAR && end.status == 5);
	machines_close();
}

TEST(an_end_by_a_rank_that_there_is_not_is_none)
{
	struct rank_status b;
	machines_open();
	rank_status_read(&job[1], FAR, &b);
	b.end = (RANKS + 1) << 8;
	CHECK(rank_status_take(&job[0], &b) != RANK_STATUS_NONSENSE);
	b.end = 255; /* no rank */
	CHECK(rank_status_take(&job[0], &b) != RANK_STATUS_NONSENSE);
	CHECK_IS(end_on(0), -1);
	b.end = RANKS << 8; /* the last one, with status 0 */
	CHECK(rank_status_take(&job[0], &b) != RANK_STATUS_NONSENSE);
	CHECK_IS(end_on(0), (RANKS - 1) << 8);
	machines_close();
}

/* How many records there are to be told; all of them are of ranks that are here. */
static unsigned records_told(struct job *j, uint64_t *told)
{
	struct rank_status b;
	unsigned n = 0;
	for (; rank_status_news(j, told, &b); n++)
		CHECK(b.rank < FAR);
	CHECK(!rank_status_news(j, told, NULL));
	return n;
}

TEST(each_rank_here_is_told_of_once_and_again_when_something_has_changed)
{
	static const uint32_t machine[RANKS] = { 0, 0, 1, 1 };
	uint64_t told[RANKS] = { 0 };
	struct rank_status lost;
	struct job *j = &job[0];
	REQUIRE(job_create(j, RANKS, 0) == 0);
	job_spread(j, machine, 0, 2);
	CHECK_IS(records_told(j, told), 2);
	CHECK_IS(records_told(j, told), 0);
	card_publish(j, 1, "a card", 6);
	CHECK(rank_status_news(j, told, NULL));
	CHECK_IS(records_told(j, told), 1);
	rank_status_lost(&lost, FAR);
	CHECK_IS(rank_status_take(j, &lost), RANK_STATUS_NEWS);
	CHECK_IS(records_told(j, told), 0);
	job_unmap(j);
	job_forget(j);
}
