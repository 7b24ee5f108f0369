/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: TIMEOUT 200 LABELS slow */
/* Jobs whose ranks talk over libfabric: barriers, ranks that die, memory that a provider moves. */
#include <errno.h>
#include <glob.h>

#include <tern/mem.h>

#include "lib/handed.h"
#include "lib/net_traffic.h"
#include "net/packet/packet.h"

enum { TELL = 0, KNOW, BULK, MANY = 8, EACH = 50 };

static const char *const providers[] = { "ofi/tcp", "ofi/shm" };
enum { PROVIDERS = sizeof providers / sizeof *providers };

/* The shm provider's files of processes that were killed; it names them PID:UID:NUMBER. */
static void sweep(void)
{
	glob_t g;
	if (glob("/dev/shm/[0-9]*:[0-9]*:[0-9]*", 0, NULL, &g) != 0)
		return;
	for (size_t i = 0; i < g.gl_pathc; i++)
		if (kill(atoi(strrchr(g.gl_pathv[i], '/') + 1), 0) != 0 && errno == ESRCH)
			unlink(g.gl_pathv[i]);
	globfree(&g);
}

static void on_providers(void (*check)(void))
{
	unsigned used = 0;
	for (unsigned i = 0; i < PROVIDERS; i++) {
		if (!traffic_usable(providers[i]))
			continue;
		unsigned before = atomic_load(&check_failures);
		setenv("TERN_NET", providers[i], 1);
		check();
		if (atomic_load(&check_failures) != before)
			printf("    over %s\n", providers[i]);
		sweep();
		used++;
	}
	if (!used)
		check_skip("this build, or this machine, has no libfabric");
}

static struct packet_net *net_of(tern *t)
{
	return packet_of(t->own->net[1]);
}

static uint64_t packets_sent(tern *t)
{
	return stats_get(&net_of(t)->pulse->count[PULSE_PACKETS_SENT]);
}

static _Atomic uint64_t told, known;

static void tell(tern *t, const tern_msg *m)
{
	(void)m;
	tern_signal(t, &told, 1);
}

static void know(tern *t, const tern_msg *m)
{
	(void)m;
	tern_signal(t, &known, 1);
}

static tern *open_rank(void)
{
	tern *t = ranks_open();
	CHECK_IS(tern_on(t, TELL, tell), 0);
	CHECK_IS(tern_on(t, KNOW, know), 0);
	return t;
}

static void tell_all(tern *t)
{
	for (uint32_t r = 0; r < tern_size(t); r++)
		CHECK_IS(tern_request(t, r, TELL), 0);
	CHECK_IS(tern_wait(t, &told, tern_size(t)), 0);
}

/* -- Barriers -------------------------------------------------------------------------------- */

static void tell_everybody(void)
{
	static char bytes[TERN_PAYLOAD_MAX];
	tern *t = open_rank();
	for (unsigned round = 1; round <= 5; round++) {
		for (unsigned i = 0; i < EACH; i++)
			for (uint32_t r = 0; r < tern_size(t); r++)
				CHECK_IS(i % 8 ? tern_request(t, r, TELL)
					       : tern_request_data(t, r, TELL, bytes, sizeof bytes),
					 0);
		CHECK_IS(tern_barrier(t), 0);
		CHECK_IS(told,
			 (uint64_t)round * EACH * tern_size(t)); /* no wait: all of it is here */
		CHECK_IS(tern_barrier(t), 0);
	}
	CHECK_IS(tern_close(t), 0);
}

static void barriers_of_many(void)
{
	ranks_run(MANY, tell_everybody);
}

TEST(what_was_sent_before_a_barrier_has_come_when_it_is_passed)
{
	on_providers(barriers_of_many);
}

/* -- A sender that stops halfway through a message --------------------------------------------- */

enum { STOPS, GOES_ON, TAKES, STOP_RANKS, BULKS = 300, FILL_NS = 500000000, WAIT_S = 60 };

static uint64_t bulks[STOP_RANKS];
static _Atomic uint64_t bulk_came;

static void on_bulk(tern *t, const tern_msg *m)
{
	size_t len;
	const void *data = tern_msg_data(m, &len);
	uint32_t from = tern_msg_src(m);
	CHECK(len == TERN_REQUEST_MAX && chance_filled(data, len, from << 16 | bulks[from]++));
	tern_signal(t, &bulk_came, 1);
}

static void bulk_send(tern *t)
{
	static unsigned char bytes[TERN_REQUEST_MAX];
	for (uint64_t i = 0; i < BULKS; i++) {
		chance_fill(bytes, sizeof bytes, tern_rank(t) << 16 | i);
		CHECK_IS(tern_request_data(t, TAKES, BULK, bytes, sizeof bytes), 0);
	}
}

static void bulk_wait(tern *t, uint32_t from)
{
	while (bulks[from] < BULKS && !atomic_load(&check_failures))
		CHECK_IS(tern_wait_for(t, &bulk_came, 1, WAIT_S * UINT64_C(1000000000)), 0);
}

/*
 * One rank fills its connection with a receiver that does not poll, and is stopped: the last
 * message in the connection has no end. What another rank sends meanwhile goes several times round
 * the receiver's buffers.
 */
static void stop_halfway(void)
{
	tern *t = open_rank();
	CHECK_IS(tern_on(t, BULK, on_bulk), 0);
	CHECK_IS(tern_barrier(t), 0);
	if (tern_rank(t) == GOES_ON)
		CHECK_IS(tern_wait(t, &told, 1), 0);
	if (tern_rank(t) != TAKES) {
		bulk_send(t);
	} else {
		ranks_nap(FILL_NS);
		CHECK_IS(kill(ranks_pid[STOPS], SIGSTOP), 0);
		CHECK_IS(tern_request(t, GOES_ON, TELL), 0);
		bulk_wait(t, GOES_ON);
		CHECK_IS(kill(ranks_pid[STOPS], SIGCONT), 0);
		bulk_wait(t, STOPS);
	}
	CHECK_IS(tern_barrier(t), 0);
	CHECK_IS(tern_close(t), 0);
}

static void halfway_of_three(void)
{
	ranks_run(STOP_RANKS, stop_halfway);
}

TEST(a_message_that_stops_halfway_is_not_written_over)
{
	on_providers(halfway_of_three);
}

static void say_and_leave(void)
{
	tern *t = open_rank();
	if (tern_rank(t) == 0)
		for (unsigned i = 0; i < EACH; i++)
			CHECK_IS(tern_request(t, 1, TELL), 0);
	else
		CHECK_IS(tern_wait(t, &told, EACH), 0);
	CHECK_IS(tern_close(t), 0);
}

static void last_words(void)
{
	for (int i = 0; i < 5; i++)
		ranks_run(2, say_and_leave);
}

TEST(what_a_rank_sends_before_it_closes_arrives)
{
	setenv("TERN_GRACE", "10000", 1); /* the other may not have opened yet */
	on_providers(last_words);
}

/* -- Ranks that die ---------------------------------------------------------------------------- */

enum { VICTIM = 1, RANKS = 3 };

static void go_on_without(tern *t)
{
	CHECK_IS(tern_forgive(t, VICTIM), 0);
	CHECK_IS(tern_request(t, 2 - tern_rank(t), KNOW), 0);
	CHECK_IS(tern_wait(t, &known, 1), 0);
	CHECK_IS(tern_close(t), 0);
}

static void wait_for_the_dead(void)
{
	tern *t = open_rank();
	tell_all(t);
	CHECK_IS(tern_barrier(t), 0);
	if (tern_rank(t) == VICTIM)
		raise(SIGKILL);
	int rc = 0;
	while (!rc) /* also while nobody has noticed it yet */
		rc = tern_request(t, VICTIM, TELL);
	CHECK_IS(rc, -EOWNERDEAD);
	CHECK(strstr(tern_strerror(rc), "rank 1") != NULL);
	CHECK_IS(tern_wait(t, &told, 1), -EOWNERDEAD);
	go_on_without(t);
}

static void death(void)
{
	ranks_start(RANKS, 0, wait_for_the_dead);
	CHECK_IS(ranks_reap(RANKS, 0), 1);
	ranks_end();
}

TEST(a_rank_that_dies_is_named_and_the_others_go_on)
{
	on_providers(death);
}

/* -- Memory -------------------------------------------------------------------------------- */

enum { BLOCK = 256 << 10, PUTS = 40 };

/* Puts to the other rank, and gets it back; how many packets the later half took. */
static uint64_t move_blocks(tern *t, const char *block)
{
	tern_addr there = tern_addr_at(t, 1 - tern_rank(t), block);
	unsigned char *bytes = malloc(BLOCK);
	uint64_t before = 0;
	for (unsigned i = 0; i < PUTS; i++) {
		if (i == PUTS / 2) /* the first go as messages, until the window is known */
			before = packets_sent(t);
		chance_fill(bytes, BLOCK, i);
		CHECK_IS(tern_put(t, there, bytes, BLOCK), 0);
		memset(bytes, 0, BLOCK);
		CHECK_IS(tern_get(t, bytes, there, BLOCK), 0);
		CHECK(chance_filled(bytes, BLOCK, i));
	}
	uint64_t packets = packets_sent(t) - before;
	CHECK_IS(tern_put(t, there + (UINT64_C(1) << 28), bytes, BLOCK),
		 -EFAULT); /* not allocated */
	free(bytes);
	return packets;
}

static bool moves; /* the provider is to do it */

static void mover(void)
{
	tern *t = open_rank();
	char *block = handed_alloc_all(t, BLOCK);
	REQUIRE(block);
	CHECK_IS(net_of(t)->net.rma != NULL, moves);
	if (tern_rank(t) == 0) {
		uint64_t packets = move_blocks(t, block);
		CHECK(moves ? packets < PUTS : packets > PUTS);
		CHECK_IS(tern_request(t, 1, TELL), 0);
	} else {
		CHECK_IS(tern_wait(t, &told, 1), 0);
		CHECK(chance_filled((unsigned char *)block, BLOCK, PUTS - 1));
	}
	CHECK_IS(tern_barrier(t), 0);
	CHECK_IS(tern_close(t), 0);
}

static void move(void)
{
	ranks_run(2, mover);
}

TEST(the_provider_moves_what_is_put_and_got)
{
	moves = true;
	on_providers(move);
}

TEST(what_is_protected_does_not_go_past_the_guard)
{
	moves = false;
	setenv("TERN_PROTECT", "auth", 1);
	on_providers(move);
}

static void put_to_the_dead(void)
{
	tern *t = open_rank();
	char *block = handed_alloc_all(t, BLOCK);
	REQUIRE(block);
	tern_addr there = tern_addr_at(t, VICTIM, block);
	CHECK_IS(tern_barrier(t), 0);
	for (int i = 0; tern_rank(t) == VICTIM && i < 200; i++)
		CHECK(tern_poll(t) >= 0);
	if (tern_rank(t) == VICTIM)
		raise(SIGKILL);
	int rc = 0;
	while (!rc)
		rc = tern_put(t, there, block, BLOCK);
	CHECK(rc == -EOWNERDEAD || rc == -EIO);
	CHECK(strstr(tern_strerror(rc), "rank 1") != NULL);
	go_on_without(t);
}

static void put_death(void)
{
	ranks_start(RANKS, 0, put_to_the_dead);
	CHECK_IS(ranks_reap(RANKS, 0), 1);
	ranks_end();
}

TEST(a_put_to_a_rank_that_dies_ends_with_its_name)
{
	on_providers(put_death);
}

/* -- Sleeping ------------------------------------------------------------------------------ */

/* Whether it can be slept on, once nothing is left to be looked at. */
static bool may_sleep(struct wire *w)
{
	enum { TURNS = 10000 };
	struct datagram d;
	bool may = false;
	for (int i = 0; i < TURNS && !may; i++) {
		w->ops->receive(w, &d, 1);
		may = w->ops->descriptor(w) != -1;
	}
	return may;
}

static void sleep_often(void)
{
	tern *t;
	REQUIRE(tern_open_local(1, &t) == 0);
	for (int i = 0; i < 3; i++)
		CHECK(may_sleep(net_of(t)->wire));
	CHECK_IS(tern_close(t), 0);
}

TEST(who_has_slept_and_looked_can_sleep_again)
{
	on_providers(sleep_often);
}

/* -- Settings ------------------------------------------------------------------------------ */

TEST(a_provider_that_is_not_there_is_refused_and_the_others_are_named)
{
	tern *t;
	if (!traffic_usable("ofi/tcp"))
		check_skip("this build, or this machine, has no libfabric");
	setenv("TERN_NET", "ofi/pigeon", 1);
	int rc = tern_open_local(1, &t);
	CHECK_IS(rc, -EINVAL);
	CHECK(strstr(tern_strerror(rc), "pigeon") && strstr(tern_strerror(rc), "tcp"));
}

TEST(a_provider_that_stops_with_three_ranks_is_refused_to_them)
{
	tern *t[3];
	if (!traffic_usable("ofi/udp"))
		check_skip("libfabric has no udp here");
	setenv("TERN_NET", "ofi/udp", 1);
	int rc = tern_open_local(3, t);
	CHECK_IS(rc, -ENOTSUP);
	CHECK(strstr(tern_strerror(rc), "ofi_rxd") && strstr(tern_strerror(rc), "TERN_NET=udp"));
}

TEST(a_domain_that_a_provider_has_not_is_refused_and_the_others_are_named)
{
	tern *t;
	if (!traffic_usable("ofi/tcp/lo"))
		check_skip("libfabric has no tcp over lo here");
	setenv("TERN_NET", "ofi/tcp/nope0", 1);
	int rc = tern_open_local(1, &t);
	CHECK_IS(rc, -EINVAL);
	CHECK(strstr(tern_strerror(rc), "nope0") && strstr(tern_strerror(rc), "tcp"));
	CHECK(strstr(tern_strerror(rc), "no domain") && strstr(tern_strerror(rc), "lo"));
}
