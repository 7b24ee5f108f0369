/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: TIMEOUT 120 RUN_SERIAL */
/*
 * Ranks that are killed, before a match or in the middle of the data, as sender or as receiver:
 * whoever needs them gets an error that names them, soon, and goes on; what they had sent before is
 * received first.
 */
#include <tern/mem.h>
#include <tern/send.h>

#include "lib/chance.h"
#include "lib/ranks.h"
#include "lib/rows.h"
#include "msg/msg.h"

enum { LIVING, VICTIM, THIRD, RANKS, ID = 0x77, BULK = 64 << 20, SOME = 20000 };

struct board {
	_Atomic uint64_t ready, under_way, dead, done, go;
};

static struct board *board;
static int (*plan)(tern *t);        /* what the living rank does that needs the victim */
static void (*last_act)(tern *t);   /* of the victim; it returns, or not */
static bool serves;                 /* the victim polls until it is killed */
static unsigned char *bytes, *room; /* BULK each */
static uint32_t victim = VICTIM;

static void rank_prepare(tern *t)
{
	static void *named;
	named = bytes;
	CHECK_IS(tern_block_name(t, 0, &named, BULK), 0);
	CHECK_IS(tern_barrier(t), 0);
}

/* The rest of the job still works, and nothing is left of what failed. */
static void go_on(tern *t)
{
	struct msg *m = msg_of(t);
	uint64_t word = 0;
	CHECK_IS(tern_send(t, THIRD, 1, &(uint64_t){ 5 }, sizeof(uint64_t)), 0);
	CHECK_IS(tern_forgive(t, VICTIM), 0);
	CHECK_IS(tern_recv(t, THIRD, 2, &word, sizeof word, NULL), 0);
	CHECK_IS(word, 6);
	CHECK_IS(m->sends.used, 0);
	CHECK_IS(m->recvs.used, 0);
	CHECK(!m->clear.first && !m->clear.last);
	CHECK_IS(m->peer[VICTIM].sends.first == NULL, 1);
}

static void living(tern *t)
{
	while (!atomic_load(&board->ready)) /* or the victim might serve us in the barrier */
		;
	int rc = plan(t);
	if (!CHECK_IS(rc, -EOWNERDEAD) || !CHECK(strstr(tern_strerror(rc), "rank 1")))
		printf("    %d: %s\n", rc, tern_strerror(rc));
	CHECK(atomic_load(&board->dead));
	go_on(t);
	atomic_store(&board->done, 1);
}

static void rank_main(void)
{
	atomic_store(&check_failures, 0); /* those of jobs before it are not its own */
	tern *t = ranks_open();
	rank_prepare(t);
	if (tern_rank(t) == LIVING)
		living(t);
	if (tern_rank(t) == VICTIM)
		atomic_store(&board->ready, 1);
	if (tern_rank(t) == VICTIM && last_act)
		last_act(t);
	while (tern_rank(t) == VICTIM)
		if (serves)
			tern_poll(t);
		else
			ranks_nap(1000000);
	if (tern_rank(t) == THIRD) {
		uint64_t word = 0;
		CHECK_IS(tern_forgive(t, VICTIM), 0);
		CHECK_IS(tern_recv(t, LIVING, 1, &word, sizeof word, NULL), 0);
		CHECK_IS(tern_send(t, LIVING, 2, &(uint64_t){ word + 1 }, sizeof(uint64_t)), 0);
		while (!atomic_load(&board->done))
			tern_poll(t);
	}
	CHECK_IS(tern_close(t), 0);
}

static void die(int (*what)(tern *t), void (*last)(tern *t), bool polls, const char *single_copy,
		struct chance *c)
{
	plan = what;
	last_act = last;
	serves = polls;
	board = ranks_shared(sizeof *board);
	setenv("TERN_SINGLE_COPY", single_copy, 1);
	setenv("TERN_GRACE", "60", 1);
	ranks_start(RANKS, 0, rank_main);
	while (!atomic_load(&board->under_way))
		ranks_nap(50000);
	ranks_nap(chance_below(c, 2000000));
	atomic_store(&board->dead, 1);
	kill(ranks_pid[victim], SIGKILL);
	if (chance_one_in(c, 2))
		ranks_nap(1000000);        /* nobody has told the job yet */
	CHECK_IS(ranks_reap(RANKS, 0), 1); /* the victim alone */
	ranks_end();
	munmap(board, sizeof *board);
}

static void bulk(void)
{
	bytes = ranks_shared(BULK);
	room = mmap(NULL, BULK, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	REQUIRE(room != MAP_FAILED);
}

/* -- Before a match ------------------------------------------------------------------------ */

static int under_way(int rc)
{
	atomic_store(&board->under_way, 1);
	return rc;
}

static int recv_blocking(tern *t)
{
	under_way(0);
	return tern_recv(t, VICTIM, ID, room, SOME, NULL);
}

static int recv_any_blocking(tern *t)
{
	under_way(0);
	return tern_recv(t, TERN_RANK_ANY, ID, room, SOME, NULL);
}

static int recv_by_handle(tern *t)
{
	tern_op op = TERN_OP;
	CHECK_IS(tern_recv_start(t, &(tern_match){ .rank = VICTIM, .id = ID, .any = ~0xff }, room,
				 SOME, NULL, &op),
		 0);
	under_way(0);
	return tern_op_wait(t, &op);
}

static int recv_by_tests(tern *t)
{
	tern_op op = TERN_OP;
	int rc;
	CHECK_IS(tern_recv_start(t, &(tern_match){ .rank = VICTIM, .id = ID }, room, SOME, NULL,
				 &op),
		 0);
	under_way(0);
	while ((rc = tern_op_test(t, &op)) == 0)
		;
	return rc;
}

static int recv_polled(tern *t)
{
	tern_op op = TERN_OP;
	CHECK_IS(tern_recv_start(t, &(tern_match){ .rank = VICTIM, .id = ID }, room, SOME, NULL,
				 &op),
		 0);
	under_way(0);
	CHECK_IS(tern_op_state(t, &op), TERN_STATE_IN_USE);
	while (tern_op_state(t, &op) != TERN_STATE_COMPLETE)
		tern_poll(t);
	int rc = tern_op_wait(t, &op);
	CHECK_IS(tern_recv(t, VICTIM, ID, room, SOME, NULL), -EOWNERDEAD); /* and it stays so */
	return rc;
}

static int probe_blocking(tern *t)
{
	under_way(0);
	return tern_probe(t, &(tern_match){ .flags = TERN_PROBE_WAIT, .rank = VICTIM, .id = ID },
			  NULL);
}

static int probe_any_blocking(tern *t)
{
	under_way(0);
	return tern_probe(t,
			  &(tern_match){ .flags = TERN_PROBE_WAIT,
					 .rank = TERN_RANK_ANY,
					 .any = TERN_ID_ANY },
			  NULL);
}

static int send_blocking(tern *t)
{
	under_way(0);
	return tern_send(t, VICTIM, ID, bytes, SOME);
}

static int send_sync(tern *t)
{
	tern_op op = TERN_OP;
	CHECK_IS(tern_send_start(t, VICTIM, ID, bytes, 8, TERN_SEND_SYNC, &op), 0);
	CHECK_IS(tern_send_start(t, VICTIM, ID, bytes, 800, TERN_SEND_SYNC, &op), 0);
	CHECK_IS(tern_send_start(t, VICTIM, ID, bytes, SOME, TERN_SEND_READY, &op), 0);
	under_way(0);
	int rc = tern_op_wait(t, &op);
	return rc == -ENOMSG ? -EOWNERDEAD : rc; /* the ready one may have been heard of before */
}

static int send_handle(tern *t)
{
	tern_op op = TERN_OP;
	CHECK_IS(tern_send_start(t, VICTIM, ID, bytes, SOME, 0, &op), 0);
	under_way(0);
	int rc = tern_op_wait(t, &op);
	CHECK_IS(tern_op_state(t, &op), TERN_STATE_COMPLETE);
	return rc;
}

/* More than its ring takes, while it serves nothing: the last of them waits for room. */
static int send_many(tern *t)
{
	tern_op op = TERN_OP;
	int rc = 0;
	for (int i = 0; i < 3000 && !rc; i++) {
		if (i == 400)
			under_way(0);
		rc = tern_send_start(t, VICTIM, ID, bytes, SOME, 0, &op);
	}
	CHECK(rc == 0 || rc == -EOWNERDEAD);
	rc = tern_op_wait(t, &op);
	CHECK_IS(op.pending, 0);
	return rc;
}

static int send_many_small(tern *t)
{
	tern_op op = TERN_OP;
	int rc = 0;
	for (int i = 0; i < 15000 && !rc; i++) {
		if (i == 400)
			under_way(0);
		rc = tern_send_start(t, VICTIM, ID, bytes, 8, i % 2 ? TERN_SEND_SYNC : 0, &op);
	}
	CHECK(rc == 0 || rc == -EOWNERDEAD);
	rc = tern_op_wait(t, &op);
	CHECK_IS(op.pending, 0);
	return rc;
}

static int cancel_blocking(tern *t)
{
	tern_op op = TERN_OP;
	CHECK_IS(tern_send_start(t, VICTIM, ID, bytes, SOME, 0, &op), 0);
	under_way(0);
	CHECK(tern_op_cancel(t, &op) != 0);
	return tern_op_wait(t, &op);
}

static int ask_blocking(tern *t)
{
	under_way(0);
	return tern_block_ask(t, VICTIM,
			      &(tern_block){ .name = 0, .stride = 8, .run = 8, .count = 100 }, ID);
}

TEST(whoever_waits_for_a_message_of_a_rank_that_is_killed_gets_an_error_that_names_it)
{
	struct chance c = { check_seed() };
	bulk();
	die(recv_blocking, NULL, true, "1", &c);
	die(recv_by_handle, NULL, true, "1", &c);
	die(recv_by_tests, NULL, false, "1", &c);
	die(recv_polled, NULL, true, "1", &c);
	die(probe_blocking, NULL, true, "1", &c);
}

TEST(whoever_waits_for_a_message_of_any_rank_hears_of_the_one_that_was_killed)
{
	struct chance c = { check_seed() };
	bulk();
	die(recv_any_blocking, NULL, true, "1", &c);
	die(probe_any_blocking, NULL, false, "1", &c);
}

TEST(whoever_sends_to_a_rank_that_is_killed_gets_an_error_that_names_it)
{
	struct chance c = { check_seed() };
	bulk();
	for (int polls = 0; polls < 2; polls++) {
		die(send_blocking, NULL, polls, "1", &c);
		die(send_sync, NULL, polls, "1", &c);
		die(send_handle, NULL, polls, "1", &c);
	}
	die(cancel_blocking, NULL, false, "1", &c);
	die(ask_blocking, NULL, false, "1", &c);
}

TEST(a_send_that_waits_for_room_in_the_ring_of_a_rank_that_is_killed_ends_once)
{
	struct chance c = { check_seed() };
	bulk();
	for (int i = 0; i < 3; i++) {
		die(send_many, NULL, false, "1", &c);
		die(send_many_small, NULL, false, "1", &c);
	}
}

/* -- In the middle of the data ------------------------------------------------------------- */

static const tern_part *halves(unsigned char *base)
{
	static tern_part part[2];
	static struct rows rows;
	part[0] = rows_part(&rows, base, 4, BULK / 8, 4);
	part[1] = (tern_part){ .base = base + BULK / 2, .run = BULK / 2 };
	return part;
}

static void take_bulk(tern *t)
{
	tern_recv(t, LIVING, ID, room, BULK, NULL);
}

static void take_bulk_in_parts(tern *t)
{
	tern_op op = TERN_OP;
	tern_recv_parts_start(t, &(tern_match){ .rank = LIVING, .id = ID }, halves(room), 2, NULL,
			      &op);
	tern_op_wait(t, &op);
}

static void give_bulk(tern *t)
{
	for (;;)
		tern_send(t, LIVING, ID, bytes, BULK);
}

/* Repeats until it is killed, so that it is in the middle of one. */
static int send_bulk(tern *t)
{
	int rc = 0;
	under_way(0);
	while (!rc)
		rc = tern_send(t, VICTIM, ID, bytes, BULK);
	return rc;
}

static int recv_bulk(tern *t)
{
	int rc = 0;
	under_way(0);
	while (!rc)
		rc = tern_recv(t, VICTIM, ID, room, BULK, NULL);
	return rc;
}

static int recv_bulk_in_parts(tern *t)
{
	int rc = 0;
	under_way(0);
	while (!rc) {
		tern_op op = TERN_OP;
		CHECK_IS(tern_recv_parts_start(t, &(tern_match){ .rank = VICTIM, .id = ID },
					       halves(room), 2, NULL, &op),
			 0);
		rc = tern_op_wait(t, &op);
	}
	return rc;
}

static int recv_bulk_any(tern *t)
{
	int rc = 0;
	under_way(0);
	while (!rc)
		rc = tern_recv(t, TERN_RANK_ANY, ID, room, BULK, NULL);
	return rc;
}

TEST(a_receiver_that_is_killed_in_the_middle_of_the_data_is_an_error_at_the_sender)
{
	struct chance c = { check_seed() };
	bulk();
	for (int way = 0; way < 4; way++) {
		die(send_bulk, take_bulk, true, way % 2 ? "1" : "0", &c);
		die(send_bulk, take_bulk_in_parts, true, way % 2 ? "1" : "0", &c);
	}
}

TEST(a_sender_that_is_killed_in_the_middle_of_the_data_is_an_error_at_the_receiver)
{
	struct chance c = { check_seed() };
	bulk();
	for (int way = 0; way < 4; way++) {
		const char *single_copy = way % 2 ? "1" : "0";
		die(recv_bulk, give_bulk, true, single_copy, &c);
		die(recv_bulk_in_parts, give_bulk, true, single_copy, &c);
		die(recv_bulk_any, give_bulk, true, single_copy, &c);
	}
}

/* -- What it had sent ---------------------------------------------------------------------- */

enum { BEFORE = 100 };

static void send_and_die(tern *t)
{
	static tern_op asks = TERN_OP;
	for (uint64_t i = 0; i < BEFORE; i++)
		CHECK_IS(tern_send(t, LIVING, ID, &(uint64_t){ i }, sizeof(uint64_t)), 0);
	CHECK_IS(tern_send_start(t, LIVING, ID, bytes, SOME, 0, &asks), 0); /* and a question */
	tern_poll(t); /* a network may have put off some of it */
	atomic_store(&board->under_way, 1);
}

/* The question may be answered by reading the data, until the victim is gone. */
static int recv_question(tern *t)
{
	int rc = tern_recv(t, VICTIM, ID, room, SOME, NULL);
	return rc ? rc : tern_recv(t, VICTIM, ID, room, SOME, NULL);
}

static int recv_all_then_error(tern *t)
{
	uint64_t word;
	while (!atomic_load(&board->dead))
		ranks_nap(1000000);
	ranks_nap(5000000);
	for (uint64_t i = 0; i < BEFORE; i++) {
		CHECK_IS(tern_recv(t, i % 2 ? VICTIM : TERN_RANK_ANY, ID, &word, sizeof word, NULL),
			 0);
		CHECK_IS(word, i);
	}
	return recv_question(t);
}

static int recv_posted_before(tern *t)
{
	static uint64_t word[BEFORE];
	tern_op op = TERN_OP, more = TERN_OP;
	for (int i = 0; i < BEFORE; i++)
		CHECK_IS(tern_recv_start(t, &(tern_match){ .rank = VICTIM, .id = ID }, &word[i], 8,
					 NULL, &op),
			 0);
	CHECK_IS(tern_recv_start(t, &(tern_match){ .rank = VICTIM, .id = ID }, room, SOME, NULL,
				 &more),
		 0);
	while (!atomic_load(&board->dead))
		ranks_nap(1000000);
	ranks_nap(5000000);
	CHECK_IS(tern_op_wait(t, &op), 0);
	for (uint64_t i = 0; i < BEFORE; i++)
		CHECK_IS(word[i], i);
	int rc = tern_op_wait(t, &more);
	return rc ? rc : recv_question(t);
}

static int probe_all_then_error(tern *t)
{
	uint64_t word;
	while (!atomic_load(&board->dead))
		ranks_nap(1000000);
	for (uint64_t i = 0; i < BEFORE; i++) {
		CHECK_IS(tern_probe(t,
				    &(tern_match){
					    .flags = TERN_PROBE_WAIT, .rank = VICTIM, .id = ID },
				    NULL),
			 1);
		CHECK_IS(tern_recv(t, VICTIM, ID, &word, sizeof word, NULL), 0);
	}
	CHECK_IS(recv_question(t), -EOWNERDEAD);
	return tern_probe(
		t, &(tern_match){ .flags = TERN_PROBE_WAIT, .rank = VICTIM, .id = ID + 1 }, NULL);
}

TEST(what_a_rank_sent_before_it_was_killed_is_received_first)
{
	struct chance c = { check_seed() };
	bulk();
	for (int i = 0; i < 2; i++) {
		die(recv_all_then_error, send_and_die, false, "1", &c);
		die(recv_posted_before, send_and_die, false, "1", &c);
		die(probe_all_then_error, send_and_die, false, "1", &c);
	}
}

/* -- A third rank dies --------------------------------------------------------------------- */

/*
 * The sender is clear to send and dawdles for longer than the grace time, while another rank is
 * dead.
 */
static void slow_sender(void)
{
	atomic_store(&check_failures, 0);
	tern *t = ranks_open();
	rank_prepare(t);
	uint32_t me = tern_rank(t);
	if (me == LIVING) {
		tern_op op = TERN_OP;
		CHECK_IS(tern_recv_parts_start(t, &(tern_match){ .rank = VICTIM, .id = ID },
					       halves(room), 2, NULL, &op),
			 0);
		uint64_t word = 0;
		while (!atomic_load(&board->go))
			tern_poll(t);
		CHECK_IS(tern_recv(t, VICTIM, ID + 1, room + BULK - SOME, SOME, NULL), 0);
		CHECK(chance_filled(room + BULK - SOME, SOME, 3));
		CHECK_IS(tern_op_cancel(t, &op), 0);
		CHECK_IS(tern_send(t, VICTIM, 1, &word, sizeof word), 0);
	} else if (me == VICTIM) { /* this time it lives */
		tern_op op = TERN_OP;
		uint64_t word;
		chance_fill(bytes, SOME, 3);
		CHECK_IS(tern_send_start(t, LIVING, ID + 1, bytes, SOME, 0, &op), 0);
		atomic_store(&board->under_way, 1);
		while (!atomic_load(&board->dead))
			ranks_nap(1000000);
		atomic_store(&board->go, 1);
		ranks_nap(300000000);
		CHECK_IS(tern_op_wait(t, &op), 0);
		CHECK_IS(tern_forgive(t, THIRD), 0);
		CHECK_IS(tern_recv(t, LIVING, 1, &word, sizeof word, NULL), 0);
	} else {
		for (;;)
			tern_poll(t);
	}
	CHECK_IS(tern_close(t), 0);
}

TEST(a_receive_whose_data_flow_is_not_given_up_because_another_rank_died)
{
	bulk();
	board = ranks_shared(sizeof *board);
	setenv("TERN_GRACE", "60", 1);
	ranks_start(RANKS, 0, slow_sender);
	while (!atomic_load(&board->under_way))
		ranks_nap(50000);
	kill(ranks_pid[THIRD], SIGKILL);
	CHECK_IS(ranks_reap(1, 0), 1);
	atomic_store(&board->dead, 1);
	CHECK_IS(ranks_reap(RANKS - 1, 0), 0);
	ranks_end();
}

/* -- Leaving well -------------------------------------------------------------------------- */

static void leave_well(void)
{
	atomic_store(&check_failures, 0);
	tern *t = ranks_open();
	rank_prepare(t);
	if (tern_rank(t) == VICTIM) {
		CHECK_IS(tern_send(t, LIVING, ID, &(uint64_t){ 9 }, sizeof(uint64_t)), 0);
		ranks_nap(20000000);
		CHECK_IS(tern_close(t), 0);
		return;
	}
	if (tern_rank(t) == LIVING) {
		tern_op so = TERN_OP;
		uint64_t word = 0;
		CHECK_IS(tern_send_start(t, VICTIM, ID, bytes, SOME, 0, &so), 0);
		CHECK_IS(tern_recv(t, VICTIM, ID, &word, sizeof word, NULL), 0);
		CHECK_IS(word, 9);
		int rc = tern_recv(t, VICTIM, ID, room, SOME, NULL); /* blocks until it has left */
		CHECK_IS(rc, -ESHUTDOWN);
		CHECK(strstr(tern_strerror(rc), "rank 1"));
		CHECK_IS(tern_op_wait(t, &so), -ESHUTDOWN);
		CHECK_IS(tern_probe(t,
				    &(tern_match){
					    .flags = TERN_PROBE_WAIT, .rank = VICTIM, .id = ID },
				    NULL),
			 -ESHUTDOWN);
		CHECK_IS(tern_block_ask(
				 t, VICTIM,
				 &(tern_block){ .name = 0, .stride = 1, .run = 1, .count = 1 }, ID),
			 -ESHUTDOWN);
		atomic_store(&board->done, 1);
	}
	while (!atomic_load(&board->done))
		tern_poll(t);
	CHECK_IS(tern_close(t), 0);
}

TEST(a_rank_that_closes_well_ends_what_needs_it_with_a_milder_error)
{
	bulk();
	board = ranks_shared(sizeof *board);
	ranks_run(RANKS, leave_well);
}
