/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: TIMEOUT 300 */
/*
 * A rank has been killed, and the others call what waits for whoever comes: each call ends with an
 * error that names the dead rank, and can be repeated when that rank is forgiven. Over each
 * network.
 */
#include <tern/buf.h>
#include <tern/chan.h>
#include <tern/mem.h>
#include <tern/send.h>

#include "lib/handed.h"
#include "lib/net_traffic.h"
#include "lib/ranks.h"

enum { ID = 0x77, TYPE = 3, RANKS = 3, VICTIM = 2, SLOW = 200000000 };

struct board {
	_Atomic uint64_t dead, done;
};

static struct board *board;

/* A call's result, before another changes the sentence. */
static void told(int rc)
{
	if (!CHECK_IS(rc, -EOWNERDEAD) || !CHECK(strstr(tern_strerror(rc), "rank 2") != NULL))
		printf("    %s\n", tern_strerror(rc));
}

/* -- What waits for anybody ---------------------------------------------------------------- */

static _Atomic uint64_t flag;

static void wait_flag(tern *t)
{
	told(tern_wait(t, &flag, 1));
}

static void receive(tern *t)
{
	uint64_t word;
	told(tern_recv(t, TERN_RANK_ANY, ID, &word, sizeof word, NULL));
}

static void probe(tern *t)
{
	told(tern_probe(t,
			&(tern_match){ .flags = TERN_PROBE_WAIT, .rank = TERN_RANK_ANY, .id = ID },
			NULL));
}

/* Starts a receive from any rank, waits with `wait`, and takes it back. */
static void receive_started(tern *t, int (*wait)(tern *t, tern_op *op))
{
	tern_op op = TERN_OP;
	uint64_t word;
	CHECK_IS(tern_recv_start(t, &(tern_match){ .rank = TERN_RANK_ANY, .id = ID }, &word,
				 sizeof word, NULL, &op),
		 0);
	told(wait(t, &op));
	CHECK_IS(op.pending, 1);
	CHECK_IS(tern_op_cancel(t, &op), 0);
	CHECK_IS(tern_op_wait(t, &op), -ECANCELED);
}

static void receive_handle(tern *t)
{
	receive_started(t, tern_op_wait);
}

static int wait_any(tern *t, tern_op *op)
{
	size_t which;
	return tern_op_wait_any(t, &op, 1, &which);
}

static void receive_handle_any(tern *t)
{
	receive_started(t, wait_any);
}

static void receive_typed(tern *t)
{
	CHECK(handed_buf(t, TYPE, 0, NULL, NULL) == NULL);
	told(-errno);
}

static void stored(tern *t)
{
	told(tern_store_sync(t, 8));
}

static uint64_t *awaited;

static void wait_word(tern *t)
{
	told(tern_wait_word(t, awaited, TERN_WORD_NE, 0));
}

struct value {
	_Atomic uint64_t ready;
	uint64_t value;
};

static struct value *shared;

/* A value that the other living rank holds: the dead one might have been to make it ready. */
static tern_addr value_there(tern *t)
{
	return tern_addr_at(t, !tern_rank(t), shared);
}

static void get_when(tern *t)
{
	uint64_t value;
	told(tern_get_when_start(t, &value, value_there(t) + 8, 8,
				 &(tern_when){ .flag = value_there(t), .least = 1 }, NULL));
}

static void get_when_handle(tern *t)
{
	static uint64_t value;
	static tern_op op = TERN_OP;
	CHECK_IS(tern_get_when_start(t, &value, value_there(t) + 8, 8,
				     &(tern_when){ .flag = value_there(t), .least = 1 }, &op),
		 0);
	told(tern_op_wait(t, &op));
}

static void barrier(tern *t)
{
	told(tern_barrier(t));
}

static const struct {
	const char *name;
	void (*call)(tern *t);
} calls[] = {
	{ "tern_wait", wait_flag },
	{ "tern_recv", receive },
	{ "tern_probe", probe },
	{ "tern_op_wait", receive_handle },
	{ "tern_op_wait_any", receive_handle_any },
	{ "tern_buf_recv", receive_typed },
	{ "tern_store_sync", stored },
	{ "tern_wait_word", wait_word },
	{ "tern_get_when_start", get_when },
	{ "tern_get_when_start and tern_op_wait", get_when_handle },
	{ "tern_barrier", barrier },
};

/* -- The ranks ----------------------------------------------------------------------------- */

static void meet(tern *t)
{
	atomic_fetch_add(&board->done, 1);
	while (atomic_load(&board->done) < RANKS - 1)
		tern_poll(t);
}

static void check_calls(tern *t)
{
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++) {
		unsigned before = atomic_load(&check_failures);
		calls[i].call(t);
		if (atomic_load(&check_failures) != before)
			printf("    in %s\n", calls[i].name);
	}
}

/* The other rank sends late: whoever has forgiven the dead one is as patient as ever. */
static void go_on(tern *t)
{
	uint32_t other = !tern_rank(t);
	uint64_t word = 0, start = clock_ns();
	tern_op op = TERN_OP;
	CHECK_IS(tern_forgive(t, VICTIM), 0);
	CHECK_IS(tern_recv_start(t, &(tern_match){ .rank = TERN_RANK_ANY, .id = ID }, &word,
				 sizeof word, NULL, &op),
		 0);
	while (clock_ns() - start < SLOW)
		tern_poll(t);
	CHECK_IS(tern_send(t, other, ID, &(uint64_t){ 7 + other }, sizeof(uint64_t)), 0);
	CHECK_IS(tern_op_wait(t, &op), 0);
	CHECK_IS(word, 7 + tern_rank(t));
}

static void handle(tern *t, const tern_msg *m)
{
	(void)t;
	(void)m;
}

static tern *rank_begin(void)
{
	atomic_store(&check_failures, 0);
	tern *t = ranks_open();
	shared = handed_alloc_all(t, sizeof *shared);
	awaited = handed_alloc(t, sizeof *awaited);
	REQUIRE(shared != NULL && awaited != NULL);
	CHECK_IS(tern_buf_alloc(t, TYPE, 64, 2, 0), 0);
	CHECK_IS(tern_on(t, 0, handle), 0);
	CHECK_IS(tern_barrier(t), 0);
	if (tern_rank(t) == VICTIM)
		raise(SIGKILL);
	return t;
}

static void rank_main(void)
{
	tern *t = rank_begin();
	check_calls(t);
	go_on(t);
	meet(t);
	CHECK_IS(tern_close(t), 0);
}

static void run_over(const char *net, void (*rank_main_)(void))
{
	if (!traffic_usable(net))
		check_skip("this build, or this machine, has no such network");
	setenv("TERN_NET", net, 1);
	setenv("TERN_GRACE", "60", 1);
	board = ranks_shared(sizeof *board);
	ranks_start(RANKS, 0, rank_main_);
	CHECK_IS(ranks_reap(RANKS, 0), 1); /* the victim alone */
	ranks_end();
}

TEST(over_shared_memory_whatever_waits_for_anybody_ends_when_a_rank_has_died)
{
	run_over("shm", rank_main);
}

TEST(over_udp_whatever_waits_for_anybody_ends_when_a_rank_has_died)
{
	run_over("udp", rank_main);
}

TEST(over_libfabric_whatever_waits_for_anybody_ends_when_a_rank_has_died)
{
	run_over("ofi/tcp", rank_main);
}

/* -- Handles of what needs a certain rank -------------------------------------------------- */

/*
 * Rank 0 waits for rank 1, which takes many times the grace time, though rank 2 is dead and not
 * forgiven.
 */
static void rank_is_slow(void)
{
	tern *t = rank_begin();
	uint64_t word = 0, start = clock_ns();
	tern_op op = TERN_OP;
	if (tern_rank(t) == 0) {
		CHECK_IS(tern_recv_start(t, &(tern_match){ .rank = 1, .id = ID }, &word,
					 sizeof word, NULL, &op),
			 0);
		CHECK_IS(tern_op_wait(t, &op), 0);
		CHECK_IS(word, 5);
	} else {
		while (clock_ns() - start < 2 * SLOW)
			tern_poll(t);
		CHECK_IS(tern_send(t, 0, ID, &(uint64_t){ 5 }, sizeof(uint64_t)), 0);
	}
	meet(t);
	CHECK_IS(tern_close(t), 0);
}

TEST(a_handle_of_what_needs_a_certain_rank_is_waited_for_though_another_has_died)
{
	run_over("shm", rank_is_slow);
}

/* -- A lost rank stays lost ----------------------------------------------------------------- */

static int use_recv(tern *t)
{
	uint64_t word;
	return tern_recv(t, VICTIM, ID, &word, sizeof word, NULL);
}

static int use_send(tern *t)
{
	return tern_send(t, VICTIM, ID, &(uint64_t){ 1 }, sizeof(uint64_t));
}

static int use_put(tern *t)
{
	return tern_put(t, tern_addr_at(t, VICTIM, shared), &(uint64_t){ 1 }, sizeof(uint64_t));
}

static int use_get(tern *t)
{
	uint64_t word;
	return tern_get(t, &word, tern_addr_at(t, VICTIM, shared), sizeof word);
}

static int use_amo(tern *t)
{
	uint64_t old;
	return tern_amo(t, tern_addr_at(t, VICTIM, shared), TERN_AMO_ADD, 1, &old);
}

static int use_request(tern *t)
{
	return tern_request(t, VICTIM, 0, 1);
}

static int (*const uses[])(tern *t) = {
	use_recv, use_send, use_put, use_get, use_amo, use_request
};
enum { USES = sizeof uses / sizeof *uses };
static int (*first_use)(tern *t);

/* Which call is the first to say that the rank is lost makes no difference to the next ones. */
static void rank_stays_lost(void)
{
	tern *t = rank_begin();
	int rc;
	while (!(rc = first_use(t)))
		(void)!tern_poll(t);
	told(rc);
	for (unsigned i = 0; i < 2 * USES; i++)
		told(uses[i % USES](t));
	CHECK_IS(tern_forgive(t, VICTIM), 0);
	for (unsigned i = 0; i < USES; i++)
		told(uses[i](t));
	meet(t);
	CHECK_IS(tern_close(t), 0);
}

static void whatever_tells_first(const char *net)
{
	for (unsigned i = 0; i < USES; i++) {
		first_use = uses[i];
		run_over(net, rank_stays_lost);
	}
}

TEST(whoever_was_told_of_a_death_is_told_by_every_later_call_on_shared_memory)
{
	whatever_tells_first("shm");
}

TEST(whoever_was_told_of_a_death_is_told_by_every_later_call_over_udp)
{
	whatever_tells_first("udp");
}

/* -- Alone --------------------------------------------------------------------------------- */

/* All others are dead and forgiven: nobody can ever send anything. */
static void rank_is_alone(void)
{
	atomic_store(&check_failures, 0);
	tern *t = ranks_open();
	tern_op op = TERN_OP;
	uint64_t word;
	CHECK_IS(tern_barrier(t), 0);
	if (tern_rank(t))
		raise(SIGKILL);
	CHECK_IS(tern_forgive(t, 1), 0);
	CHECK_IS(tern_forgive(t, 2), 0);
	CHECK_IS(tern_wait(t, &flag, 1), -EOWNERDEAD);
	CHECK_IS(tern_recv_start(t, &(tern_match){ .rank = TERN_RANK_ANY, .id = ID }, &word,
				 sizeof word, NULL, &op),
		 0);
	CHECK_IS(tern_op_wait(t, &op), -EOWNERDEAD);
	CHECK_IS(op.pending, 0);
	CHECK_IS(tern_close(t), 0);
}

TEST(a_wait_ends_when_all_others_are_dead_though_they_are_forgiven)
{
	setenv("TERN_NET", "shm", 1);
	setenv("TERN_GRACE", "60", 1);
	ranks_start(RANKS, 0, rank_is_alone);
	CHECK_IS(ranks_reap(RANKS, 0), RANKS - 1);
	ranks_end();
}
