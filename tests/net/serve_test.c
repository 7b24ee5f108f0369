/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: TIMEOUT 180 */
/*
 * Operations on memory over UDP at a rank that computes: a thread serves them, whatever
 * else lies before them, and runs none of the program's handlers.
 */
#include <tern/buf.h>
#include <tern/post.h>
#include <tern/send.h>

#include "lib/chance.h"
#include "lib/far.h"
#include "lib/handed.h"
#include "lib/ranks.h"

enum { TELL = 1, TELLS = 3, WORDS = 1024, PAGE = 4096, WORD = 8 };
#define SECOND UINT64_C(1000000000)

struct board {
	_Atomic int stage;
	_Atomic int handled; /* messages of the program, at rank 0 */
	_Atomic uint64_t took, slowest;
	_Atomic uint64_t rounds;
	tern_addr at;
};

static struct board *board;
static bool holds;  /* rank 0 computes under a hold, */
static bool visits; /* or behind a wait in another endpoint */

static void on_tell(tern *t, const tern_msg *m)
{
	(void)t, (void)m;
	atomic_fetch_add(&board->handled, 1);
}

static void stage_wait(int stage)
{
	while (atomic_load(&board->stage) < stage)
		ranks_nap(100000);
}

/*
 * Makes no call until the other rank is done and its last store is counted, or so much time has
 * passed that it never will be.
 */
static void compute(const tern *t, uint64_t ns)
{
	const _Atomic uint64_t *stored = &t->own->group->job.rank[0].stored;
	uint64_t all = WORD * atomic_load(&board->rounds);
	for (uint64_t end = clock_ns() + ns;
	     (atomic_load(&board->stage) < 2 || atomic_load(stored) < all) && clock_ns() < end;)
		;
	CHECK_IS(atomic_load(stored), all);
}

static void timed(uint64_t since)
{
	uint64_t ns = clock_ns() - since;
	if (ns > atomic_load(&board->slowest))
		atomic_store(&board->slowest, ns);
}

/* Every kind of operation that is served, at words of rank 0 from `a` on. */
static void operate(tern *t, tern_addr a, uint64_t i)
{
	static char block[3 * PAGE], back[3 * PAGE];
	uint64_t value = i + 7, got = 0, old = 0;
	size_t rows[] = { 3 };
	ptrdiff_t apart[] = { 64 };
	tern_part there = { .addr = a + 512, .run = 16, .dims = 1, .count = rows, .stride = apart };
	tern_part here = { .base = block, .run = 48 };
	tern_op later = TERN_OP;
	uint64_t when = 0;
	memset(block, (int)i + 1, sizeof block);
	uint64_t since = clock_ns();
	CHECK_IS(tern_get_when_start(t, &when, a + 16, WORD,
				     &(tern_when){ .flag = a, .least = i + 1 }, &later),
		 0);
	CHECK_IS(tern_store(t, a + 16, &value, WORD), 0);
	CHECK(!tern_op_ready(&later));
	CHECK_IS(tern_put(t, a + 8, &value, 8), 0);
	CHECK_IS(tern_get(t, &got, a + 8, 8), 0);
	CHECK_IS(got, value);
	CHECK_IS(tern_amo(t, a, TERN_AMO_ADD, 1, &old), 0);
	CHECK_IS(old, i);
	CHECK_IS(tern_op_wait(t, &later), 0); /* that was the flag */
	CHECK_IS(when, value);
	CHECK_IS(tern_get_when(t, &got, a + 16, WORD, &(tern_when){ .flag = a, .least = i }), 0);
	CHECK_IS(got, value);
	CHECK_IS(tern_cas(t, a + 8, value, 1, &old), 0);
	CHECK_IS(old, value);
	CHECK_IS(tern_put(t, a + PAGE, block, sizeof block), 0);
	CHECK_IS(tern_get(t, back, a + PAGE, sizeof back), 0);
	CHECK(memcmp(block, back, sizeof back) == 0);
	CHECK_IS(tern_put_parts(t, &there, 1, &here, 1), 0);
	here.base = back;
	memset(back, 0, 48);
	CHECK_IS(tern_get_parts(t, &here, 1, &there, 1), 0);
	CHECK(memcmp(block, back, 48) == 0);
	CHECK_IS(tern_put(t, a - (UINT64_C(1) << 36), &value, 8), -EFAULT);
	timed(since);
}

/* All of its data are there when its handle says so. Its request waits for the owner's poll. */
static void put_with_request(tern *t)
{
	static char block[3 * PAGE], back[3 * PAGE];
	tern_addr there = board->at + 8 * PAGE;
	tern_op op = TERN_OP;
	memset(block, 1, sizeof block);
	CHECK_IS(tern_put_request_start(t, there, TELL, block, sizeof block, NULL, &op), 0);
	CHECK_IS(tern_op_wait(t, &op), 0);
	CHECK_IS(tern_get(t, back, there, sizeof back), 0);
	CHECK(memcmp(block, back, sizeof back) == 0);
}

static void ask(tern *t)
{
	stage_wait(1);
	ranks_nap(20000000); /* the other rank is in its computation */
	CHECK_IS(tern_request(t, 0, TELL, 1, 2, 3), 0);
	CHECK_IS(tern_request(t, 0, TELL), 0); /* a piece of a line */
	put_with_request(t);
	uint64_t since = clock_ns(), n = atomic_load(&board->rounds);
	for (uint64_t i = 0; i < n; i++)
		operate(t, board->at, i);
	atomic_store(&board->took, clock_ns() - since);
	CHECK_IS(atomic_load(&board->handled), 0);
	atomic_store(&board->stage, 2);
}

/* A wait there serves this thread's other endpoint, too. */
static void wait_elsewhere(void)
{
	static tern_flag never;
	tern *other;
	REQUIRE(tern_open_local(1, &other) == 0);
	CHECK_IS(tern_wait_for(other, &never, 1, 3000000), -ETIMEDOUT);
	CHECK_IS(tern_close(other), 0);
}

static void far_ranks(void)
{
	tern *t = ranks_open();
	void *p = handed_alloc(t, 16 * PAGE);
	CHECK_IS(tern_on(t, TELL, on_tell), 0);
	if (tern_rank(t) == 0)
		board->at = handed_addr(t, p);
	CHECK_IS(tern_barrier(t), 0);
	CHECK(t->own->owner.serves);
	CHECK_IS(t->reach, t->own->owner.guarded ? 0 : 2); /* sends are inline as ever */
	if (tern_rank(t) == 0) {
		if (visits)
			wait_elsewhere();
		if (holds)
			tern_hold(t);
		atomic_store(&board->stage, 1);
		compute(t, 20 * SECOND);
		CHECK_IS(atomic_load(&board->stage), 2);
		CHECK_IS(atomic_load(&board->handled), 0);
		if (holds)
			tern_release(t);
		while (atomic_load(&board->handled) < TELLS)
			CHECK(tern_poll(t) >= 0);
		CHECK_IS(*(uint64_t *)p, atomic_load(&board->rounds));
		CHECK_IS(tern_store_sync(t, WORD * atomic_load(&board->rounds)), 0);
	} else if (tern_rank(t) == 1) {
		ask(t);
	}
	CHECK_IS(tern_barrier(t), 0);
	CHECK_IS(atomic_load(&board->handled), TELLS);
	CHECK_IS(tern_close(t), 0);
}

/* Over UDP, or over `net`. */
static void job_run(const char *net, const char *fault, uint64_t rounds, void (*rank_main)(void))
{
	far_use(fault);
	if (net)
		setenv("TERN_NET", net, 1);
	board = ranks_shared(sizeof *board);
	atomic_store(&board->rounds, rounds);
	ranks_run(2, rank_main);
	if (rounds)
		printf("    %llu rounds of 12 operations took %.1f ms, the slowest %.2f ms\n",
		       (unsigned long long)rounds, (double)atomic_load(&board->took) / 1e6,
		       (double)atomic_load(&board->slowest) / 1e6);
	munmap(board, sizeof *board);
	unsetenv("TERN_FAULT");
}

/* -- Everything at once ------------------------------------------------------------------- */

enum { MANY = 3, TOLD = 2, HEARD = 3, ITEM = 4, PAYLOAD = 300, TYPE = 1, ID = 9, SENDS = 500 };

static uint64_t seed;
static uint64_t told, heard, posted, items;

static void on_told(tern *t, const tern_msg *m)
{
	size_t len;
	const char *data = tern_msg_data(m, &len);
	CHECK(!data || (len == PAYLOAD && data[0] == data[PAYLOAD - 1]));
	told++;
	CHECK_IS(tern_reply(t, m, HEARD, tern_msg_word(m, 0)), 0);
}

static void on_heard(tern *t, const tern_msg *m)
{
	(void)t, (void)m;
	heard++;
}

static void spin(uint64_t ns)
{
	for (uint64_t end = clock_ns() + ns; clock_ns() < end;)
		;
}

struct sums {
	_Atomic uint64_t said, added;
	_Atomic uint64_t sent, sends, got; /* typed messages, those of tern_send(), and both here */
	_Atomic bool finished;
};

/* The quick ways of calls that open no scope where nobody else has the endpoint. */
static void step_quick(tern *t, struct chance *c, uint32_t to, struct sums *sums, const char *bytes)
{
	uint64_t value = 1;
	switch (chance_below(c, 3)) {
	case 0:
		for (int i = 0; i < 300; i++)
			CHECK_IS(tern_post(t, tern_rank(t), ITEM, value, value), 0);
		posted += 300;
		break;
	case 1:
		if (tern_buf_send_start(t, to, TYPE, bytes, PAYLOAD, TERN_BUF_NOWAIT, NULL) == 0)
			atomic_fetch_add(&sums->sent, 1);
		break;
	default:
		if (atomic_load(&sums->sends) == SENDS)
			break;
		CHECK_IS(tern_send(t, to, ID, &value, sizeof value), 0);
		atomic_fetch_add(&sums->sends, 1);
	}
}

static void on_item(tern *t, const tern_msg *m)
{
	(void)t, (void)m;
	items++;
}

/* What of those has arrived. */
static void step_take(tern *t, struct sums *sums)
{
	const tern_match any = { .rank = TERN_RANK_ANY, .id = ID };
	tern_envelope env;
	uint64_t value;
	tern_buf b;
	while (tern_buf_recv(t, TYPE, TERN_BUF_NOWAIT, &b) == 0) {
		CHECK_IS(b.len, PAYLOAD);
		CHECK_IS(tern_buf_free(t, b.data), 0);
		atomic_fetch_add(&sums->got, 1);
	}
	while (tern_probe(t, &any, &env) == 1) {
		CHECK_IS(tern_recv(t, env.src, ID, &value, sizeof value, NULL), 0);
		CHECK_IS(value, 1);
		atomic_fetch_add(&sums->got, 1);
	}
}

/* Until all ranks have sent and all of it is here or there. */
static bool all_taken(const struct sums *sums)
{
	uint64_t sent = 0, got = 0;
	bool finished = true;
	for (int r = 0; r < MANY; r++)
		finished = finished && atomic_load(&sums[r].finished);
	for (int r = 0; r < MANY; r++) {
		sent += atomic_load(&sums[r].sent) + atomic_load(&sums[r].sends);
		got += atomic_load(&sums[r].got);
	}
	return finished && sent == got;
}

/* One step of a rank at random, with rank `to`. */
static void step(tern *t, struct chance *c, uint32_t to, struct sums *sums)
{
	char bytes[PAYLOAD];
	tern_addr a = handed_at(board->at, to);
	uint64_t mine = chance_below(c, 1u << 30), got = 0;
	tern_addr own = a + PAGE * (1 + tern_rank(t));
	switch (chance_below(c, 8)) {
	case 0:
		spin(chance_below(c, chance_one_in(c, 10) ? 12000000 : 200000));
		break;
	case 1:
		for (int i = 0; i < 20; i++)
			CHECK_IS(tern_request(t, to, TOLD, mine, 1), 0);
		atomic_fetch_add(&sums->said, 20);
		break;
	case 2:
		memset(bytes, (int)mine, sizeof bytes);
		CHECK_IS(tern_request_data(t, to, TOLD, bytes, sizeof bytes, mine), 0);
		atomic_fetch_add(&sums->said, 1);
		break;
	case 3:
		CHECK_IS(tern_amo(t, a, TERN_AMO_ADD, 1, &got), 0);
		atomic_fetch_add(&sums->added, 1);
		break;
	case 4:
		CHECK_IS(tern_put(t, own, &mine, 8), 0);
		CHECK_IS(tern_get(t, &got, own, 8), 0);
		CHECK_IS(got, mine);
		break;
	case 5:
		memset(bytes, (int)mine, sizeof bytes);
		step_quick(t, c, to, sums, bytes);
		break;
	case 6:
		step_take(t, sums);
		break;
	default:
		CHECK(tern_poll(t) >= 0);
	}
}

static void many_ranks(void)
{
	tern *t = ranks_open();
	uint32_t me = tern_rank(t);
	struct chance c = { seed + me };
	struct sums *sums = (struct sums *)(void *)(board + 1);
	uint64_t sent = 0, *p;
	void *all;
	CHECK_IS(tern_on(t, TOLD, on_told), 0);
	CHECK_IS(tern_on(t, HEARD, on_heard), 0);
	CHECK_IS(tern_on(t, ITEM, on_item), 0);
	CHECK_IS(tern_buf_alloc(t, TYPE, PAYLOAD, 64, 0), 0);
	REQUIRE(tern_alloc_all(t, (MANY + 1) * PAGE, &all) == 0);
	if (me == 0)
		board->at = handed_addr(t, all);
	p = all;
	CHECK_IS(tern_barrier(t), 0);
	for (uint64_t i = 0; i < atomic_load(&board->rounds); i++) {
		uint32_t to = (me + 1 + chance_below(&c, MANY - 1)) % MANY;
		uint64_t before = atomic_load(&sums[me].said);
		step(t, &c, to, &sums[me]);
		sent += atomic_load(&sums[me].said) - before;
	}
	atomic_store(&sums[me].finished, true);
	while (heard < sent || !all_taken(sums)) {
		CHECK(tern_poll(t) >= 0);
		step_take(t, &sums[me]);
	}
	CHECK_IS(tern_barrier(t), 0); /* which sends what was posted */
	CHECK_IS(items, posted);
	atomic_fetch_add(&board->took, *p);
	atomic_fetch_add(&board->slowest, told);
	CHECK_IS(tern_barrier(t), 0);
	uint64_t said = 0, added = 0;
	for (int r = 0; r < MANY; r++) {
		said += atomic_load(&sums[r].said);
		added += atomic_load(&sums[r].added);
	}
	CHECK_IS(atomic_load(&board->took), added);
	CHECK_IS(atomic_load(&board->slowest), said);
	CHECK_IS(tern_close(t), 0);
}

static void many_run(const char *fault)
{
	seed = check_seed();
	far_use(fault);
	board = ranks_shared(sizeof *board + MANY * sizeof(struct sums));
	atomic_store(&board->rounds, check_scaled(1500));
	ranks_run(MANY, many_ranks);
	munmap(board, sizeof *board + MANY * sizeof(struct sums));
	unsetenv("TERN_FAULT");
}

/* -- Quick ways, of a rank that makes no other call ------------------------------------------- */

enum { PHASES = 20, HAMMER = 2 };

/* Adds to words of rank 0 until that is done. */
static void hammer(tern *t)
{
	for (uint64_t old; atomic_load(&board->stage) < 2;)
		CHECK_IS(tern_amo(t, board->at, TERN_AMO_ADD, 1, &old), 0);
}

static void phases_begin(tern *t)
{
	void *p = handed_alloc(t, PAGE);
	CHECK_IS(tern_on(t, TELL, on_tell), 0);
	CHECK_IS(tern_on(t, ITEM, on_item), 0);
	if (tern_rank(t) == 0)
		board->at = handed_addr(t, p);
	CHECK_IS(tern_barrier(t), 0);
}

static void phases_end(tern *t)
{
	atomic_store(&board->stage, 2);
	CHECK_IS(tern_barrier(t), 0);
	CHECK_IS(tern_close(t), 0);
}

/* Long enough for the thread to serve, again and again: it comes when nobody asks the network. */
static void posting_ranks(void)
{
	tern *t = ranks_open();
	phases_begin(t);
	if (tern_rank(t) == 0)
		for (int i = 0; i < PHASES; i++)
			for (uint64_t end = clock_ns() + 15000000; clock_ns() < end; posted++)
				CHECK_IS(tern_post(t, 0, ITEM, 1, 2), 0);
	else
		hammer(t);
	phases_end(t);
	CHECK_IS(items, posted);
}

/* Rank 1 takes nothing until rank 0 waits for room, having computed since there was none. */
static void crowding_ranks(void)
{
	tern *t = ranks_open();
	uint64_t sent = 0;
	uint32_t me = tern_rank(t);
	phases_begin(t);
	for (int i = 1; i <= PHASES && me == 0; i++) {
		tern_hold(t);
		while (tern_request(t, 1, TELL, 1, 2, 3) == 0)
			sent++;
		tern_release(t);
		spin(10000000);
		atomic_store(&board->rounds, (uint64_t)i);
		CHECK_IS(tern_request(t, 1, TELL, 1, 2, 3), 0);
		sent++;
	}
	for (uint64_t i = 1; i <= PHASES && me == 1; i++) {
		while (atomic_load(&board->rounds) < i)
			;
		spin(2000000);
		while (tern_poll(t) > 0)
			;
	}
	if (me == HAMMER)
		hammer(t);
	if (me == 0)
		atomic_store(&board->took, sent);
	phases_end(t);
	if (me == 1)
		CHECK_IS(atomic_load(&board->handled), atomic_load(&board->took));
}

static void phases_run(uint32_t ranks, void (*rank_main)(void))
{
	far_use(NULL);
	board = ranks_shared(sizeof *board);
	ranks_run(ranks, rank_main);
	munmap(board, sizeof *board);
}

TEST(a_rank_posts_to_itself_while_a_thread_serves)
{
	phases_run(MANY, posting_ranks);
}

TEST(a_rank_waits_for_room_while_a_thread_serves)
{
	phases_run(MANY, crowding_ranks);
}

TEST(sends_polls_and_memory_go_on_while_a_thread_serves)
{
	many_run(NULL);
}

TEST(and_over_a_bad_network)
{
	many_run("drop=0.02,reorder=0.1,duplicate=0.05,seed=11");
}

TEST(memory_of_a_rank_that_computes_is_put_to_and_got_from_behind_its_messages)
{
	job_run(NULL, NULL, 20, far_ranks);
}

TEST(so_it_is_under_a_hold)
{
	holds = true;
	job_run(NULL, NULL, 20, far_ranks);
	holds = false;
}

TEST(so_it_is_behind_a_wait_in_another_endpoint)
{
	visits = true;
	job_run(NULL, NULL, 2, far_ranks);
	visits = false;
}

TEST(so_it_is_over_a_bad_network)
{
	job_run(NULL, "drop=0.02,reorder=0.1,duplicate=0.05,seed=7", 20, far_ranks);
}

static bool usable(const char *name)
{
	char why[200] = "";
	for (int i = 0; net_table[i]; i++)
		if (!strcmp(net_table[i]->name, name))
			return net_table[i]->usable(why, sizeof why);
	return false;
}

TEST(so_it_is_over_libfabric)
{
	if (!usable("ofi"))
		check_skip("libfabric is not usable here");
	job_run("ofi/tcp", NULL, 20, far_ranks);
}

static void alone(void)
{
	tern *t = ranks_open();
	CHECK(!t->own->owner.serves && !t->own->owner.progress);
	CHECK_IS(tern_barrier(t), 0);
	CHECK_IS(tern_close(t), 0);
}

TEST(there_is_no_such_thread_where_it_is_switched_off_or_has_nothing_to_do)
{
	setenv("TERN_SERVE", "0", 1);
	job_run(NULL, NULL, 0, alone);
	unsetenv("TERN_SERVE");
	job_run("shm", NULL, 0, alone);
}
