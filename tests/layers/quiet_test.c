/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: TIMEOUT 240 */
/*
 * tern_team_quiet() returns when nothing is under way that could run code of the program. Work
 * splits at random and dies out; each piece travels in another way: a request whose handler replies
 * or defers, a gathered item whose handler replies, defers or posts, a thread, a queued function, a
 * message of the async layer, a transfer or a receive with a function at its end. Each piece is
 * counted when it is handed over and when it runs. Right after the call the two sums over all
 * members agree, and a pause later nothing has changed.
 */
#include <stdlib.h>
#include <string.h>
#include <tern/async.h>
#include <tern/coll.h>
#include <tern/post.h>
#include <tern/send.h>
#include <tern/thread.h>

#include "lib/net_traffic.h"

enum { ON_REQUEST, ON_ASK, ON_ANSWER, ON_ITEM, ON_ITEMS };
enum { THREAD, DRAINER = 0, LETTER = 7 };
enum { RANKS = 4, LIFE = 9, PIECES = 12, BYTES = 100000, LETTER_MOST = 20000 };

static _Atomic uint64_t handed, ran, dice; /* of this rank */
static uint64_t seed;
static tern_team *team; /* to whose members work goes */
static bool threads;    /* threads, too */
/* What is handed over: everything, or one of these alone, few at a time. */
static enum { EVERYTHING, REQUESTS, ITEMS } what;
static uint64_t life_most = LIFE;
static unsigned char local[BYTES];
static void *heap;

static uint64_t throw_dice(uint64_t below)
{
	return chance_of(seed, atomic_fetch_add(&dice, 1)) % below;
}

static uint32_t someone(void)
{
	return tern_team_member(team, (uint32_t)throw_dice(tern_team_size(team)));
}

/* What one piece is: how long its descendants may go on. It is freed where it runs. */
struct piece {
	tern_op op;
	uint64_t life;
	unsigned turns;
	unsigned char text[LETTER_MOST]; /* which begins with the life */
};

/* Under a hold: a handler in an interrupt must not find malloc() under way. */
static void piece_free(tern *t, struct piece *p)
{
	tern_hold(t);
	free(p);
	tern_release(t);
}

static struct piece *piece_new(tern *t, uint64_t life)
{
	tern_hold(t);
	struct piece *p = calloc(1, sizeof *p);
	tern_release(t);
	REQUIRE(p != NULL);
	p->life = life;
	memcpy(p->text, &life, sizeof life);
	p->turns = (unsigned)throw_dice(4);
	return p;
}

static void hand_over(tern *t, uint64_t life);

/* A piece runs: up to two others come of it. Not in a handler. */
static void run(tern *t, uint64_t life)
{
	for (uint64_t n = throw_dice(3); life && n; n--)
		hand_over(t, life - 1);
	atomic_fetch_add(&ran, 1);
}

static void piece_run(tern *t, void *arg)
{
	struct piece *p = arg;
	run(t, p->life);
	piece_free(t, p);
}

static void piece_done(tern *t, tern_op *op)
{
	CHECK_IS(op->error, 0);
	piece_run(t, op->arg);
}

/* In a handler: later, or here if there is no room for it. */
static void run_later(tern *t, uint64_t life)
{
	struct piece *p = piece_new(t, life);
	if (tern_defer(t, piece_run, p) == 0)
		return;
	piece_free(t, p);
	atomic_fetch_add(&ran, 1);
}

/* -- Ways that a piece travels ----------------------------------------------------------------- */

static void on_request(tern *t, const tern_msg *m)
{
	run_later(t, tern_msg_word(m, 0));
}

static void on_ask(tern *t, const tern_msg *m)
{
	CHECK_IS(tern_reply(t, m, ON_ANSWER, tern_msg_word(m, 0)), 0);
}

static void on_answer(tern *t, const tern_msg *m)
{
	run_later(t, tern_msg_word(m, 0));
}

/* An item that is a piece: up to two others come of it, as items of this handler. */
static void item_run(tern *t, uint64_t life)
{
	for (uint64_t n = throw_dice(3); life && n; n--) {
		CHECK_IS(tern_post(t, someone(), throw_dice(2) ? ON_ITEM : ON_ITEMS, life - 1), 0);
		atomic_fetch_add(&handed, 1);
	}
	atomic_fetch_add(&ran, 1);
}

static void on_item(tern *t, const tern_msg *m)
{
	item_run(t, tern_msg_word(m, 0));
}

static void on_items(tern *t, const tern_msg *m, const uint64_t *life, size_t count)
{
	(void)m;
	for (size_t i = 0; i < count; i++)
		item_run(t, life[i]);
}

/* An item whose handler posts, replies, or defers what may wait. */
static int post_some(tern *t, uint64_t life)
{
	static const unsigned handler[] = { ON_ITEM, ON_ITEMS, ON_ASK, ON_REQUEST };
	return tern_post(t, someone(), handler[throw_dice(4)], life);
}

static uint64_t thread_main(tern *t, const uint64_t word[TERN_WORDS_MAX], void *arg)
{
	(void)arg;
	for (uint64_t n = throw_dice(4); n; n--)
		CHECK_IS(tern_thread_yield(t), 0);
	run(t, word[0]);
	return word[0];
}

/* The end of a thread is a piece, too. */
static void thread_ended(tern *t, uint32_t rank, int rc, uint64_t result, void *arg)
{
	(void)rank;
	(void)arg;
	CHECK_IS(rc, 0);
	run_later(t, result / 2);
}

static int turn(tern *t, void *arg)
{
	struct piece *p = arg;
	(void)t;
	return p->turns-- ? 1 : 0;
}

static int fill(tern *t, tern_out *out, void *arg)
{
	(void)t;
	return tern_chan_put(out, &(uint64_t){ ((struct piece *)arg)->life }, sizeof(uint64_t));
}

static int drain(tern *t, tern_incoming *m, void *arg)
{
	uint64_t life;
	(void)arg;
	int rc = tern_chan_get(m->in, &life, sizeof life);
	if (!rc)
		run_later(t, life);
	return rc;
}

/* The receive that is always posted. */
static struct letter {
	tern_op op;
	tern_envelope env;
	unsigned char text[LETTER_MOST];
} letter;

static void letter_expect(tern *t);

static void letter_came(tern *t, tern_op *op)
{
	uint64_t life;
	if (op->error == -ECANCELED) /* the end of the test */
		return;
	CHECK_IS(op->error, 0);
	memcpy(&life, letter.text, sizeof life);
	letter_expect(t);
	run(t, life);
}

static void letter_expect(tern *t)
{
	tern_match any = { .rank = TERN_RANK_ANY, .flags = TERN_RECV_UPTO, .id = LETTER };
	letter.op = (tern_op)TERN_OP;
	letter.op.done = letter_came;
	CHECK_IS(tern_recv_start(t, &any, letter.text, sizeof letter.text, &letter.env, &letter.op),
		 0);
}

/* With an operation whose end is a piece here; `count` is how many pieces there are. */
static int start(tern *t, struct piece *p, uint64_t *count)
{
	size_t len = throw_dice(2) ? 8 : BYTES;
	tern_addr there = tern_addr_at(t, someone(), heap);
	p->op.done = piece_done;
	p->op.arg = p;
	switch (throw_dice(5)) {
	case 0:
		return tern_async_start(t, turn, p, &p->op);
	case 1:
		return tern_put_start(t, there, local, len, &p->op);
	case 2:
		return tern_get_start(t, local, there, len, &p->op);
	case 3: /* one where it is drained, too */
		*count = 2;
		return tern_async_send_start(t, someone(), DRAINER, fill, p, &p->op);
	default: /* and where it is received */
		*count = 2;
		len = throw_dice(2) ? sizeof p->life : sizeof p->text;
		return tern_send_start(t, someone(), LETTER, p->text, len, 0, &p->op);
	}
}

/* Hands a piece over in some way. May wait. */
static void hand_over(tern *t, uint64_t life)
{
	uint64_t count = 1, way = throw_dice(10);
	int rc;
	if (what == ITEMS || (what == EVERYTHING && way > 7)) {
		rc = post_some(t, life);
	} else if (what == REQUESTS || way < 2) {
		rc = tern_request(t, someone(), way % 2 ? ON_REQUEST : ON_ASK, life);
	} else if (way < 4 && threads) {
		count = 2;
		rc = tern_spawn(t, someone(), THREAD, thread_ended, NULL, life);
	} else {
		struct piece *p = piece_new(t, life);
		rc = start(t, p, &count);
		if (rc)
			piece_free(t, p);
	}
	if (!CHECK(rc == 0 || rc == -EAGAIN))
		printf("    %s\n", tern_strerror(rc));
	if (!rc)
		atomic_fetch_add(&handed, count);
}

/* -- The test ---------------------------------------------------------------------------------- */

/* The sums over the team are those of now: what runs later is not in them. */
static void check_sums(void)
{
	uint64_t now[2] = { atomic_load(&handed), atomic_load(&ran) }, sum[2] = { 0 };
	CHECK_IS(tern_team_allreduce(team, now, sum, 2, TERN_TYPE_UINT64, TERN_REDUCE_SUM), 0);
	if (!CHECK_IS(sum[0], sum[1]))
		printf("    %llu pieces handed over, %llu ran\n", (unsigned long long)sum[0],
		       (unsigned long long)sum[1]);
}

static void try_team(tern *t, tern_team *with, uint64_t rounds)
{
	team = with;
	atomic_store(&handed, 0);
	atomic_store(&ran, 0);
	CHECK_IS(tern_team_barrier(team), 0); /* work may come from now on */
	for (uint64_t n = 0; n < rounds; n++) {
		for (uint64_t i = throw_dice(what == EVERYTHING ? PIECES : 3); i; i--)
			hand_over(t, life_most);
		if (what == EVERYTHING && throw_dice(3) == 0) /* late, or early */
			ranks_nap(throw_dice(300000));
		CHECK_IS(tern_team_quiet(team), 0);
		check_sums();
		if (n % 8)
			continue;
		uint64_t before = atomic_load(&ran);
		ranks_nap(2000000);
		for (int i = 0; i < 20; i++)
			CHECK(tern_poll(t) >= 0);
		CHECK_IS(atomic_load(&ran), before);
		check_sums(); /* nobody goes on before all have looked */
	}
	CHECK(rounds < 16 || atomic_load(&ran) > 0); /* a dice decides how much each has to do */
}

static uint64_t rounds;

static void quiet_rank(void)
{
	void *p;
	tern_team *all, *half;
	atomic_store(&check_failures, 0);
	tern *t = ranks_open();
	seed = check_seed() + tern_rank(t) * 1000003;
	REQUIRE(tern_on(t, ON_REQUEST, on_request) == 0 && tern_on(t, ON_ASK, on_ask) == 0 &&
		tern_on(t, ON_ANSWER, on_answer) == 0 && tern_on(t, ON_ITEM, on_item) == 0 &&
		tern_post_on(t, ON_ITEMS, on_items, NULL) == 0 &&
		tern_async_on(t, DRAINER, drain, NULL) == 0 &&
		(!threads || tern_thread_on(t, THREAD, thread_main, NULL) == 0) &&
		tern_alloc_all(t, BYTES, &p) == 0);
	heap = p;
	letter_expect(t);
	REQUIRE(tern_team_all(t, &all) == 0);
	try_team(t, all, rounds);
	/* Two halves, which come to their ends at different times. */
	REQUIRE(tern_team_split(all, (int)(tern_rank(t) / 2), 0, &half) == 0);
	try_team(t, half, rounds);
	CHECK_IS(tern_team_quiet(all), 0);
	CHECK_IS(tern_team_free(half), 0);
	CHECK_IS(tern_team_free(all), 0);
	CHECK_IS(tern_op_cancel(t, &letter.op), 0);
	CHECK_IS(tern_barrier(t), 0);
	CHECK_IS(tern_close(t), 0);
}

static void try_job(const char *net, const char *fault, const char *delivery, uint64_t n)
{
	setenv("TERN_DELIVERY", delivery, 1);
	setenv("TERN_SIGNAL", "38", 1);
	if (net)
		setenv("TERN_NET", net, 1);
	if (fault)
		setenv("TERN_FAULT", fault, 1);
	rounds = check_scaled((unsigned)n);
	ranks_run(RANKS, quiet_rank);
	unsetenv("TERN_FAULT");
	unsetenv("TERN_NET");
	unsetenv("TERN_DELIVERY");
}

TEST(nothing_runs_after_the_call_when_it_polls)
{
	threads = true;
	try_job(NULL, NULL, "poll", 60);
	threads = false;
	try_job(NULL, NULL, "poll", 60);
}

TEST(nothing_runs_after_the_call_over_a_network_when_it_polls)
{
	threads = true;
	try_job("udp", NULL, "poll", 16);
	try_job("udp", "drop=0.05,duplicate=0.05,reorder=0.1,delay=0.1,seed=3", "poll", 16);
}

TEST(nothing_runs_after_the_call_over_libfabric)
{
	if (!traffic_usable("ofi/tcp"))
		check_skip("libfabric is not usable here");
	threads = true;
	try_job("ofi/tcp", NULL, "poll", 16);
	try_job("ofi/tcp", "drop=0.05,duplicate=0.05,reorder=0.1,delay=0.1,seed=3", "thread", 16);
}

TEST(nothing_runs_after_the_call_by_thread)
{
	threads = true;
	try_job(NULL, NULL, "thread", 60);
	threads = false;
	try_job(NULL, NULL, "thread", 60);
}

TEST(nothing_runs_after_the_call_over_a_network_by_thread)
{
	threads = true;
	try_job("udp", NULL, "thread", 16);
	try_job("udp", "drop=0.05,duplicate=0.05,reorder=0.1,delay=0.1,seed=3", "thread", 16);
}

/*
 * The handlers of this test call malloc(), under a hold that keeps interrupts out of it. The thread
 * sanitizer does not know that.
 */
TEST(nothing_runs_after_the_call_by_interrupt)
{
	if (check_threads_watched())
		check_skip("the thread sanitizer allows no malloc() in a signal");
	threads = true;
	try_job(NULL, NULL, "interrupt", 60);
	threads = false;
	try_job(NULL, NULL, "interrupt", 60);
}

TEST(nothing_runs_after_the_call_over_a_network_by_interrupt)
{
	if (check_threads_watched())
		check_skip("the thread sanitizer allows no malloc() in a signal");
	threads = true;
	try_job("udp", NULL, "interrupt", 16);
	try_job("udp", "drop=0.05,duplicate=0.05,reorder=0.1,delay=0.1,seed=3", "interrupt", 16);
}

#define LATE "delay=0.3,late=4000,seed=5"

/* Requests or items alone, whose chains have at most `life` steps. */
static void try_few(unsigned kind, uint64_t life, const char *net, const char *fault, uint64_t n)
{
	what = kind;
	life_most = life;
	try_job(net, fault, "poll", n);
	what = EVERYTHING;
	life_most = LIFE;
}

TEST(a_last_request_that_is_late_is_waited_for)
{
	try_few(REQUESTS, 0, "udp", LATE, 150);
	try_few(REQUESTS, 0, NULL, NULL, 2000);
}

TEST(a_chain_of_requests_that_are_late_is_waited_for)
{
	try_few(REQUESTS, 4, "udp", LATE, 100);
}

TEST(a_last_item_that_is_gathered_or_late_is_waited_for)
{
	try_few(ITEMS, 0, "udp", LATE, 150);
	try_few(ITEMS, 0, NULL, NULL, 1000);
}

TEST(a_chain_of_items_that_handlers_post_is_waited_for)
{
	try_few(ITEMS, 6, "udp", LATE, 100);
	try_few(ITEMS, 6, NULL, NULL, 1000);
}
