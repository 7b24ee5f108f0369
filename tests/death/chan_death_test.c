/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: TIMEOUT 180 RUN_SERIAL */
/*
 * Ranks that are killed in the middle of a channel: what they put can still be got, then the
 * other side gets an error that names them, and goes on.
 */
#include <tern/chan.h>

#include "chan/chan.h"
#include "core/layer.h"
#include "lib/chance.h"
#include "lib/net_traffic.h"
#include "lib/ranks.h"

enum { NAME = 5, RUNS = 8, MOST = 41 };

struct board {
	_Atomic uint64_t put;       /* values that were put for certain */
	_Atomic uint64_t under_way; /* ranks that are in the middle of it */
	_Atomic uint64_t dead;
	_Atomic uint64_t done;
};

static struct board *board;
static uint32_t victim;

static tern *begin(void)
{
	atomic_store(&check_failures, 0);
	tern *t = ranks_open();
	for (uint32_t r = 0; r < tern_size(t); r++)
		CHECK_IS(tern_forgive(t, r), 0);
	return t;
}

static bool names_it(int rc, uint32_t rank)
{
	char text[32];
	snprintf(text, sizeof text, "rank %u has died", rank);
	if (strstr(tern_strerror(rc), text) && strstr(tern_strerror(rc), "channel 5"))
		return true;
	printf("    %s\n", tern_strerror(rc));
	return false;
}

static void finish(tern *t)
{
	atomic_fetch_add(&board->done, 1);
	while (atomic_load(&board->done) + 1 < tern_size(t))
		tern_poll(t);
	CHECK_IS(tern_close(t), 0);
}

/* Runs n ranks, kills the victim when so many are under way, and expects the others to end well. */
static void run_and_kill(uint32_t n, uint32_t who, uint64_t enough, void (*rank_main)(void),
			 struct chance *c)
{
	victim = who;
	board = ranks_shared(sizeof *board);
	ranks_start(n, 0, rank_main);
	while (atomic_load(&board->under_way) < enough)
		ranks_nap(100000);
	ranks_nap(chance_below(c, 3000000));
	kill(ranks_pid[who], SIGKILL);
	CHECK_IS(ranks_reap(1, 0), 1);
	atomic_store(&board->dead, 1);
	CHECK_IS(ranks_reap(n - 1, 0), 0);
	ranks_end();
	munmap(board, sizeof *board);
}

/* -- The sender dies ----------------------------------------------------------------------- */

__attribute__((noreturn)) static void send_for_ever(tern *t, const uint32_t *list, unsigned n)
{
	tern_chan *channel;
	REQUIRE(tern_chan_to_list(t, list, n, NAME, &channel) == 0);
	tern_out out = tern_chan_out(channel);
	for (uint64_t i = 0;; i++) {
		CHECK_IS(tern_chan_put(&out, &(uint64_t){ i }, sizeof(uint64_t)), 0);
		atomic_store(&board->put, i + 1);
	}
}

/* Gets until it fails; the code. */
static int get_all(tern_in *in, uint64_t *n)
{
	uint64_t value = 0;
	int rc;
	for (*n = 0; (rc = tern_chan_get(in, &value, sizeof value)) == 0; ++*n) {
		REQUIRE(CHECK_IS(value, *n));
		if (*n == 10000)
			atomic_fetch_add(&board->under_way, 1);
	}
	return rc;
}

/* Nothing that was put is missing, unless it had to be sent. */
static bool kept_everything(tern *t, uint64_t n)
{
	return n >= atomic_load(&board->put) || !layer_maps(t->own, 0);
}

static void receive_until_it_dies(void)
{
	const uint32_t receiver = 1;
	tern *t = begin();
	tern_chan *channel;
	uint64_t n = 0, value;
	if (tern_rank(t) == 0)
		send_for_ever(t, &receiver, 1);
	REQUIRE(tern_chan_from(t, 0, NAME, &channel) == 0);
	tern_in in = tern_chan_in(channel);
	int rc = get_all(&in, &n);
	CHECK_IS(rc, -EOWNERDEAD);
	CHECK(names_it(rc, 0));
	CHECK(kept_everything(t, n));
	CHECK_IS(tern_chan_ready(&in, sizeof value), -EOWNERDEAD);
	CHECK_IS(tern_chan_peek(&in), TERN_CHAN_CLOSED);
	CHECK_IS(tern_chan_close(channel), 0);
	CHECK_IS(tern_chan_from(t, 0, NAME, &channel), -EOWNERDEAD);
	CHECK_IS(tern_chan_to(t, 0, NAME, &channel), -EOWNERDEAD);
	finish(t);
}

TEST(what_a_sender_put_before_it_was_killed_is_got_and_then_it_is_named)
{
	struct chance c = { check_seed() };
	for (int i = 0; i < RUNS; i++)
		run_and_kill(2, 0, 1, receive_until_it_dies, &c);
}

/* -- The receiver dies --------------------------------------------------------------------- */

static void send_until_it_dies(void)
{
	tern *t = begin();
	tern_chan *channel;
	uint64_t n = 0;
	int rc = 0;
	if (tern_rank(t) == 1) {
		REQUIRE(tern_chan_from(t, 0, NAME, &channel) == 0);
		tern_in in = tern_chan_in(channel);
		get_all(&in, &n);
		CHECK(false);
	}
	REQUIRE(tern_chan_to(t, 1, NAME, &channel) == 0);
	tern_out out = tern_chan_out(channel);
	while (!rc)
		rc = tern_chan_put(&out, &(uint64_t){ n++ }, sizeof(uint64_t));
	CHECK_IS(rc, -EOWNERDEAD);
	CHECK(names_it(rc, 1));
	CHECK_IS(tern_chan_put(&out, &(uint64_t){ n }, sizeof(uint64_t)), -EOWNERDEAD);
	CHECK_IS(tern_chan_put(&out, &n, sizeof n), -EOWNERDEAD);
	CHECK_IS(tern_chan_end(&out), -EOWNERDEAD);
	CHECK_IS(tern_chan_room(&out, 8), -EOWNERDEAD);
	CHECK_IS(tern_chan_close(channel), 0);
	finish(t);
}

TEST(a_put_ends_when_the_receiver_is_killed)
{
	struct chance c = { check_seed() };
	for (int i = 0; i < RUNS; i++)
		run_and_kill(2, 1, 1, send_until_it_dies, &c);
}

/* -- Death while one opens ----------------------------------------------------------------- */

static void wait_for_the_end_of_it(void)
{
	tern *t = begin();
	tern_chan *channel;
	if (tern_rank(t) == victim) {
		atomic_store(&board->under_way, 1);
		for (;;)
			ranks_nap(1000000); /* neither polls nor offers */
	}
	int rc = victim == 0 ? tern_chan_from(t, 0, NAME, &channel)
			     : tern_chan_to(t, 1, NAME, &channel);
	CHECK_IS(rc, -EOWNERDEAD);
	CHECK(names_it(rc, victim));
	finish(t);
}

TEST(opening_either_end_fails_when_the_other_rank_is_killed)
{
	struct chance c = { check_seed() };
	for (int i = 0; i < RUNS; i++)
		run_and_kill(2, (uint32_t)i % 2, 1, wait_for_the_end_of_it, &c);
}

/* -- Lists --------------------------------------------------------------------------------- */

static void list_of_all(tern *t, uint32_t *list)
{
	for (uint32_t r = 1; r < tern_size(t); r++)
		list[r - 1] = r;
}

#ifdef CHECK_SANITIZED
enum { PUTS = 5000 };
#else
enum { PUTS = 50000 };
#endif

/* Puts until the victim is dead; how much. */
static uint64_t send_on(tern_out *out)
{
	uint64_t n = 0;
	while (!atomic_load(&board->dead) || n < PUTS) {
		if (!CHECK_IS(tern_chan_put(out, &(uint64_t){ n }, sizeof(uint64_t)), 0))
			break;
		if (++n % 1000 == 0)
			tern_poll(out->chan->chans->e->t); /* puts alone do not look for the dead */
	}
	return n;
}

static void send_to_those_who_live(void)
{
	tern *t = begin();
	uint32_t me = tern_rank(t), list[MOST];
	uint64_t n = 0;
	tern_chan *channel;
	list_of_all(t, list);
	if (me == 0) {
		REQUIRE(tern_chan_to_list(t, list, tern_size(t) - 1, NAME, &channel) == 0);
		tern_out out = tern_chan_out(channel);
		n = send_on(&out);
		atomic_store(&board->put, n);
	} else {
		REQUIRE(tern_chan_from(t, 0, NAME, &channel) == 0);
		tern_in in = tern_chan_in(channel);
		CHECK_IS(get_all(&in, &n), -EPIPE);
		CHECK_IS(n, atomic_load(&board->put));
	}
	CHECK_IS(tern_chan_close(channel), 0);
	finish(t);
}

static void reader_dies(const char *net, const uint32_t *sizes, unsigned n)
{
	struct chance c = { check_seed() };
	if (!traffic_usable(net))
		check_skip("this build, or this machine, has no such network");
	setenv("TERN_NET", net, 1);
	for (unsigned i = 0; i < n; i++) {
		uint32_t last = sizes[i] - 1;
		run_and_kill(sizes[i], i % 2 ? 1 : last, last, send_to_those_who_live, &c);
	}
}

TEST(a_reader_that_is_killed_does_not_stop_the_others_of_its_list)
{
	const uint32_t sizes[] = { 4, 21, 41 };
	reader_dies("shm", sizes, 3);
}

TEST(a_reader_that_is_killed_does_not_stop_the_others_over_udp_either)
{
	reader_dies("udp", (const uint32_t[]){ 21 }, 1);
}

TEST(a_reader_that_is_killed_does_not_stop_the_others_over_libfabric_either)
{
	reader_dies("ofi/tcp", (const uint32_t[]){ 21 }, 1);
}

static void receive_all_until_it_dies(void)
{
	tern *t = begin();
	uint32_t list[MOST];
	uint64_t n = 0;
	tern_chan *channel;
	list_of_all(t, list);
	if (tern_rank(t) == 0)
		send_for_ever(t, list, tern_size(t) - 1);
	REQUIRE(tern_chan_from(t, 0, NAME, &channel) == 0);
	tern_in in = tern_chan_in(channel);
	int rc = get_all(&in, &n);
	CHECK_IS(rc, -EOWNERDEAD);
	CHECK(names_it(rc, 0));
	CHECK(kept_everything(t, n));
	CHECK_IS(tern_chan_close(channel), 0);
	finish(t);
}

TEST(what_a_sender_put_before_it_was_killed_comes_to_all_of_a_list_and_so_does_its_name)
{
	struct chance c = { check_seed() };
	run_and_kill(41, 0, 40, receive_all_until_it_dies, &c);
	run_and_kill(4, 0, 3, receive_all_until_it_dies, &c);
}
