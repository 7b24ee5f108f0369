/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: MODES RUN_SERIAL */
/*
 * Puts with a request, split-phase, and messages of the reply class from the program: on mapped
 * memory, on memory that another process registered, by messages alone, over UDP.
 */
#include <errno.h>

#include "lib/far.h"
#include "lib/handed.h"
#include "lib/ranks.h"
#include "mem/mem.h"

enum { AREA = 1 << 20, SHORT = TERN_PAYLOAD_MAX, RANKS = 4, MANY = 300 };
enum { TAKE, TAKEN, HELLO, ASK, SOLE };

/* Rank 0 has the memory, in its heap and registered; rank 1 puts. */
static struct board {
	tern_addr at[2];
	_Atomic bool holds; /* rank 0 serves nothing, */
	_Atomic bool polls; /* until it may serve what has come */
	_Atomic uint32_t quiet;
} * board;
static unsigned char *area[2], private[AREA], source[AREA];
static _Atomic uint64_t taken, freed, there;

static void fill(unsigned char salt, size_t len)
{
	for (size_t i = 0; i < len; i++)
		source[i] = (unsigned char)(i % 251 + salt);
}

static bool landed(const unsigned char *p, size_t len, unsigned char salt)
{
	for (size_t i = 0; i < len; i++)
		if (p[i] != (unsigned char)(i % 251 + salt))
			return false;
	return true;
}

/* Words: which memory, offset, length and salt; then as many as there are. */
static void on_take(tern *t, const tern_msg *m)
{
	size_t len = tern_msg_count(m) > 3 ? tern_msg_word(m, 2) : 0;
	CHECK_IS(tern_msg_handler(m), TAKE);
	CHECK(tern_msg_data(m, NULL) == NULL);
	if (len)
		CHECK(landed(area[tern_msg_word(m, 0)] + tern_msg_word(m, 1), len,
			     (unsigned char)tern_msg_word(m, 3)));
	for (unsigned i = 4; i < tern_msg_count(m); i++)
		CHECK_IS(tern_msg_word(m, i), i * 11);
	CHECK_IS(tern_reply(t, m, TAKEN, len), 0);
	CHECK_IS(tern_reply(t, m, TAKEN, len), -EALREADY);
	tern_signal(t, &there, 1);
}

static void on_taken(tern *t, const tern_msg *m)
{
	(void)m;
	tern_signal(t, &taken, 1);
}

static tern *begin(void)
{
	tern *t = ranks_open();
	if (tern_rank(t) == 0) {
		area[0] = handed_alloc(t, AREA);
		area[1] = private;
		REQUIRE(area[0]);
		board->at[0] = handed_addr(t, area[0]);
		REQUIRE(tern_register(t, private, AREA, &board->at[1]) == 0);
	}
	CHECK_IS(tern_on(t, TAKE, on_take), 0);
	CHECK_IS(tern_on(t, TAKEN, on_taken), 0);
	CHECK_IS(tern_barrier(t), 0);
	return t;
}

static void end(tern *t)
{
	CHECK_IS(tern_barrier(t), 0);
	CHECK_IS(tern_close(t), 0);
}

static void job(uint32_t ranks, void (*rank_main)(void))
{
	board = ranks_shared(sizeof *board);
	ranks_run(ranks, rank_main);
	munmap(board, sizeof *board);
}

/* -- Puts with a request ----------------------------------------------------------------------- */

static void put(tern *t, int k, size_t offset, size_t len, unsigned n, tern_op *local, tern_op *op)
{
	static unsigned char salt;
	uint64_t words[] = { (uint64_t)k, offset, len, ++salt, 44, 55, 66, 77 };
	const tern_long what = {
		board->at[k] + offset, TAKE, n, source, len, local, op, words, NULL
	};
	uint64_t was[2] = { atomic_load(&freed), atomic_load(&there) };
	fill(salt, len);
	CHECK_IS(tern_put_request_start_array(t, &what), 0);
	if (local) {
		CHECK_IS(tern_op_wait(t, local), 0);
		CHECK_IS(atomic_load(&freed), was[0] + 1);
	}
	if (local || !op)
		memset(source, 0, len); /* it may be changed */
	if (op) {
		CHECK_IS(tern_op_wait(t, op), 0);
		CHECK_IS(atomic_load(&there), was[1] + 1);
	}
	CHECK_IS(tern_wait(t, &taken, 1), 0);
}

/* The same from and to several parts; lists, counts and strides are gone when the call returns. */
static void put_parts(tern *t, int k, size_t offset, size_t len, unsigned n, tern_op *local,
		      tern_op *op)
{
	static unsigned char salt;
	uint64_t words[] = { (uint64_t)k, offset, len, ++salt, 44, 55, 66, 77 };
	size_t cut = len / 3, count[] = { cut / 8 }, rest = len - cut - cut / 8 * 8;
	ptrdiff_t stride[] = { 8 };
	tern_addr to = board->at[k] + offset;
	tern_part dst[] = {
		{ .addr = to, .run = cut },
		{ .addr = to + cut, .run = 8, .dims = 1, .count = count, .stride = stride },
		{ .addr = to + len - rest, .run = rest }
	};
	tern_part src[] = { { .base = source, .run = len / 2 },
			    { .base = source + len / 2, .run = len - len / 2 } };
	tern_parts parts = { dst, src, 3, 2 };
	tern_long what = { .id = TAKE, .n = n, .local = local, .op = op, .words = words };
	uint64_t was[2] = { atomic_load(&freed), atomic_load(&there) };
	what.parts = &parts;
	fill(salt, len);
	CHECK_IS(tern_put_request_start_array(t, &what), 0);
	memset(dst, 0xff, sizeof dst);
	memset(src, 0xff, sizeof src);
	memset(count, 0xff, sizeof count);
	memset(stride, 0xff, sizeof stride);
	memset(words, 0xff, sizeof words);
	if (local) {
		CHECK_IS(tern_op_wait(t, local), 0);
		CHECK_IS(atomic_load(&freed), was[0] + 1);
	}
	if (local || !op)
		memset(source, 0, len);
	if (op) {
		CHECK_IS(tern_op_wait(t, op), 0);
		CHECK_IS(atomic_load(&there), was[1] + 1);
	}
	CHECK_IS(tern_wait(t, &taken, 1), 0);
}

static void parts_without_a_request(tern *t)
{
	tern_op op = { .flag = &there };
	uint64_t now = 7, then = 0;
	const tern_part dst = { .addr = board->at[1] + 8, .run = 8 },
			src = { .base = &now, .run = 8 };
	const tern_parts parts = { &dst, &src, 1, 1 };
	tern_long what = { .id = TERN_HANDLER_NONE, .n = 9, .local = &op, .op = &op };
	what.parts = &parts;
	CHECK_IS(tern_put_request_start_array(t, &what), 0);
	CHECK_IS(tern_op_wait(t, &op), 0);
	CHECK_IS(tern_get(t, &then, board->at[1] + 8, 8), 0);
	CHECK_IS(then, 7);
	what.id = TAKE;
	CHECK_IS(tern_put_request_start_array(t, &what), -E2BIG);
	what.parts = &(const tern_parts){ &dst, &src, 0, 0 };
	CHECK_IS(tern_put_request_start_array(t, &what), -EINVAL);
}

static const size_t lengths[] = {
	0, 1, 2, 8, 63, SHORT - 8, SHORT, SHORT + 1, 65536 + 9, AREA - 8
};
enum { LENGTHS = sizeof lengths / sizeof *lengths };

static void any_length(void)
{
	tern *t = begin();
	tern_op local = { .flag = &freed }, op = { .flag = &there };
	for (int k = 0; k < 2 && tern_rank(t) == 1; k++)
		for (unsigned i = 0; i < LENGTHS; i++)
			for (unsigned n = 0; n <= TERN_WORDS_MAX; n++)
				put(t, k, n % 3, lengths[i], n, n % 2 ? &local : NULL,
				    (n + i) % 3 ? &op : NULL);
	end(t);
}

static void any_parts(void)
{
	tern *t = begin();
	tern_op local = { .flag = &freed }, op = { .flag = &there };
	for (int k = 0; k < 2 && tern_rank(t) == 1; k++)
		for (unsigned i = 0; i < LENGTHS; i++)
			for (unsigned n = 0; n <= TERN_WORDS_MAX; n += i == LENGTHS - 1 ? 4 : 1)
				put_parts(t, k, n % 3, lengths[i], n, n % 2 ? &local : NULL,
					  (n + i) % 3 ? &op : NULL);
	if (tern_rank(t) == 1)
		parts_without_a_request(t);
	end(t);
}

/* Many at once: more than there are records, and each arrives. */
static void many(void)
{
	tern *t = begin();
	tern_op local = { .flag = &freed }, op = { .flag = &there };
	size_t len = 3 * SHORT;
	if (tern_rank(t) == 1) {
		fill(9, len);
		for (int i = 0; i < MANY; i++)
			CHECK_IS(tern_put_request_start(t, board->at[1] + (size_t)i * 8, TAKE,
							source, len, &local, i % 2 ? &op : NULL, 1),
				 0);
		CHECK_IS(tern_flush(t), 0);
		CHECK(local.pending == 0 && op.pending == 0);
		CHECK(atomic_load(&freed) == MANY && atomic_load(&there) == MANY / 2);
		CHECK_IS(tern_wait(t, &taken, MANY), 0);
	}
	end(t);
}

/* Rank 0, until rank 1 lets it; that begins when it does. */
static void serve_nothing(tern *t)
{
	tern_hold(t);
	atomic_store(&board->holds, true);
	while (!atomic_load(&board->polls))
		ranks_nap(100000);
	tern_release(t);
}

static void until_it_holds(tern *t)
{
	while (!atomic_load(&board->holds))
		CHECK(tern_poll(t) >= 0);
}

/* A rank that does not poll: what is short is staged, and local completion needs no answer. */
static void without_an_answer(void)
{
	tern *t = begin();
	tern_op local = { .flag = &freed }, op = { .flag = &there };
	if (tern_rank(t) == 1) {
		until_it_holds(t);
		fill(3, SHORT);
		CHECK_IS(tern_put_request_start(t, board->at[1], TAKE, source, SHORT, &local, NULL,
						1, 0, SHORT, 3),
			 0);
		CHECK(local.pending == 0 && atomic_load(&freed) == 1);
		CHECK_IS(tern_put_request_start(t, board->at[1], TAKE, source, SHORT, &local, &op,
						1, 0, SHORT, 3),
			 0);
		CHECK(local.pending == 0 && atomic_load(&freed) == 2);
		CHECK(op.pending == 1 && atomic_load(&there) == 0);
		fill(3, AREA);
		CHECK_IS(tern_put_request_start(t, board->at[1], TAKE, source, AREA, &local, NULL,
						1, 0, AREA, 3),
			 0);
		int done = 1;
		for (int i = 0; done && i < 1000000; i++)
			done = tern_poll(t);
		CHECK_IS(done, 0); /* what waits for its target is nothing to do */
		atomic_store(&board->polls, true);
		CHECK_IS(tern_op_wait(t, &op), 0);
		CHECK_IS(tern_wait(t, &taken, 3), 0);
	} else {
		serve_nothing(t);
	}
	end(t);
}

/* The handles are told of the data when that is there, though the request has no room yet. */
static void before_the_request(void)
{
	tern *t = begin();
	tern_op local = { .flag = &freed }, op = { .flag = &there };
	uint64_t sent = 0;
	if (tern_rank(t) == 1) {
		until_it_holds(t);
		tern_hold(t);
		while (tern_request(t, 0, TAKE) == 0)
			sent++;
		tern_release(t);
		fill(3, AREA);
		CHECK_IS(tern_put_request_start(t, board->at[0], TAKE, source, AREA, &local, &op, 0,
						0, AREA, 3),
			 0);
		CHECK_IS(tern_op_wait(t, &op), 0);
		CHECK_IS(local.pending, 0);
		CHECK(atomic_load(&freed) == 1 && atomic_load(&there) == 1);
		atomic_store(&board->polls, true);
		CHECK_IS(tern_wait(t, &taken, sent + 1), 0);
	} else {
		serve_nothing(t);
	}
	end(t);
}

static void refused(void)
{
	tern *t = begin();
	tern_op local = { .flag = &freed }, op = TERN_OP;
	tern_addr a = board->at[1];
	if (tern_rank(t) == 1) {
		CHECK_IS(tern_put_request_start(t, TERN_ADDR_NONE, TAKE, source, 8, &local, &op),
			 -EFAULT);
		CHECK_IS(tern_put_request_start(t, handed_at(a, 2), TAKE, source, 8, &local, &op),
			 -ERANGE);
		CHECK_IS(tern_put_request_start(t, a, 500, source, 8, &local, &op), -ENXIO);
		CHECK_IS(tern_put_request_start(t, a, 5000, source, 8, &local, &op), -ERANGE);
		CHECK(local.pending == 0 && op.pending == 0 && atomic_load(&freed) == 0);
		tern_hold(t);
		CHECK_IS(tern_put_request_start(t, a, TAKE, source, AREA, NULL, NULL), -EDEADLK);
		CHECK_IS(tern_put_request_start(t, a, TAKE, source, AREA, &local, NULL), 0);
		tern_release(t);
		CHECK_IS(tern_op_wait(t, &local), 0);
		CHECK_IS(tern_wait(t, &taken, 1), 0);
	}
	end(t);
}

/* Over a network the owner refuses: `op` has the error, and the handler does not run. */
static void refused_far(void)
{
	tern *t = begin();
	if (tern_rank(t) == 1) {
		for (size_t len = 8; len <= 3 * SHORT; len += SHORT) {
			tern_op local = { .flag = &freed }, op = TERN_OP;
			CHECK_IS(tern_put_request_start(t, board->at[1] + AREA - len / 2, TAKE,
							source, len, &local, &op, 1),
				 0);
			CHECK_IS(tern_op_wait(t, &op), -EFAULT);
			CHECK_IS(tern_op_wait(t, &local), 0);
		}
		atomic_store(&board->polls, true);
	}
	while (tern_rank(t) == 0 && !atomic_load(&board->polls)) {
		int rc = tern_poll(t);
		CHECK(rc >= 0 || rc == -EFAULT);
	}
	while (tern_rank(t) == 0 && tern_poll(t) > 0)
		;
	CHECK_IS(atomic_load(&there) + atomic_load(&taken), 0);
	end(t);
}

/* The target dies under way: the handles are told. */
static void target_dies(void)
{
	tern *t = begin();
	tern_op local = TERN_OP, op = TERN_OP, alone = TERN_OP;
	if (tern_rank(t) == 0)
		raise(SIGKILL);
	for (int i = 0; i < 40; i++) {
		int rc = tern_put_request_start(t, board->at[1], TAKE, source, AREA, &local, &op);
		CHECK(rc == 0 || rc == -EOWNERDEAD);
		rc = tern_put_request_start(t, board->at[1], TAKE, source, AREA, &alone, NULL);
		CHECK(rc == 0 || rc == -EOWNERDEAD);
	}
	int rc = tern_op_wait(t, &local);
	CHECK_IS(rc, 0);
	rc = tern_op_wait(t, &op);
	CHECK(rc == 0 || rc == -EOWNERDEAD);
	rc = tern_op_wait(t, &alone);
	CHECK(rc == 0 || rc == -EOWNERDEAD);
	CHECK_IS(tern_close(t), 0);
}

static void dying(void)
{
	board = ranks_shared(sizeof *board);
	ranks_start(2, 0, target_dies);
	CHECK_IS(ranks_reap(2, 0), 1);
	ranks_end();
	munmap(board, sizeof *board);
}

static void everything(void)
{
	job(2, any_length);
	job(2, any_parts);
	job(2, many);
	job(2, refused);
	dying();
}

TEST(a_put_with_a_request_is_split_phase_at_any_length)
{
	everything();
	job(2, before_the_request);
}

TEST(the_same_where_the_kernel_does_not_copy)
{
	setenv("TERN_SINGLE_COPY", "0", 1);
	everything();
	job(2, without_an_answer);
	job(2, before_the_request);
}

TEST(the_same_over_udp)
{
	far_use(NULL);
	everything();
	job(2, without_an_answer);
	job(2, refused_far);
}

TEST(the_same_over_a_network_that_loses)
{
	far_use("drop=0.02,reorder=0.05,seed=5");
	job(2, any_length);
	job(2, any_parts);
	job(2, many);
}

/* -- Messages of the reply class from the program ---------------------------------------------- */

static uint64_t heard[RANKS];

static void on_hello(tern *t, const tern_msg *m)
{
	CHECK_IS(tern_msg_word(m, 0), heard[tern_msg_src(m)]++);
	CHECK_IS(tern_request(t, 0, ASK), -EPERM);
	CHECK_IS(tern_reply(t, m, HELLO, 0), -EPERM);
	CHECK_IS(tern_reply_to(t, 0, HELLO, 0), -EPERM);
	tern_signal(t, &taken, 1);
}

static void on_ask(tern *t, const tern_msg *m)
{
	CHECK_IS(tern_reply_to(t, tern_msg_src(m), HELLO, 0), -EPERM);
	CHECK(strstr(tern_strerror(-EPERM), "tern_defer"));
	CHECK_IS(tern_reply(t, m, TAKEN), 0);
}

/* Everybody floods everybody, with requests between; nobody had talked before. */
static void flood(void)
{
	tern *t = begin();
	CHECK_IS(tern_on(t, HELLO, on_hello), 0);
	CHECK_IS(tern_on(t, ASK, on_ask), 0);
	CHECK_IS(tern_barrier(t), 0);
	for (uint64_t i = 0; i < 3 * MANY; i++)
		for (uint32_t r = 0; r < RANKS; r++) {
			CHECK_IS(tern_reply_to(t, r, HELLO, i, 2, 3), 0);
			if (i % 3 == 0)
				CHECK_IS(tern_request(t, r, ASK), 0);
		}
	CHECK_IS(tern_wait(t, &taken, RANKS * 4 * MANY), 0);
	end(t);
}

static void on_sole(tern *t, const tern_msg *m)
{
	CHECK_IS(tern_msg_count(m), 0);
	tern_signal(t, &taken, 1);
}

/* Rank 0 tells the others in turn; what is wrong is refused. */
static void told(void)
{
	tern *t = begin();
	uint64_t nine[TERN_WORDS_MAX + 1] = { 0 };
	CHECK_IS(tern_on(t, SOLE, on_sole), 0);
	CHECK_IS(tern_barrier(t), 0);
	if (tern_rank(t) == 0) {
		for (uint32_t r = 0; r < RANKS; r++)
			CHECK_IS(tern_reply_to(t, r, SOLE), 0);
		CHECK_IS(tern_reply_to(t, RANKS, SOLE), -ERANGE);
		CHECK_IS(tern_reply_to(t, 1, 500), -ENXIO);
		CHECK_IS(tern_reply_to_array(t, 1, SOLE, TERN_WORDS_MAX + 1, nine), -E2BIG);
		tern_hold(t);
		int rc = 0;
		for (int i = 0; i < 100000 && !rc; i++)
			rc = tern_reply_to(t, 0, SOLE);
		CHECK_IS(rc, -EAGAIN);
		tern_release(t);
	}
	CHECK_IS(tern_wait(t, &taken, 1), 0);
	end(t);
}

/* To a rank that dies: the call ends with an error. */
static void told_dying(void)
{
	tern *t = begin();
	CHECK_IS(tern_on(t, SOLE, on_sole), 0);
	CHECK_IS(tern_barrier(t), 0);
	if (tern_rank(t) == 0)
		raise(SIGKILL);
	int rc = 0;
	while (!rc)
		rc = tern_reply_to(t, 0, SOLE);
	CHECK_IS(rc, -EOWNERDEAD);
	CHECK_IS(tern_close(t), 0);
}

static void reply_class(void)
{
	job(RANKS, flood);
	job(RANKS, told);
	board = ranks_shared(sizeof *board);
	ranks_start(2, 0, told_dying);
	CHECK_IS(ranks_reap(2, 0), 1);
	ranks_end();
	munmap(board, sizeof *board);
}

TEST(the_program_sends_messages_of_the_reply_class_to_any_rank)
{
	reply_class();
}

TEST(the_program_sends_them_over_udp_too)
{
	far_use(NULL);
	reply_class();
}

TEST(ranks_of_one_thread_send_them_to_each_other)
{
	tern *t[2];
	REQUIRE(tern_open_local(2, t) == 0);
	for (int r = 0; r < 2; r++)
		CHECK_IS(tern_on(t[r], SOLE, on_sole), 0);
	for (int i = 0; i < MANY; i++)
		CHECK_IS(tern_reply_to(t[0], 1, SOLE), 0);
	while (atomic_load(&taken) < MANY)
		CHECK(tern_poll(t[1]) >= 0);
	CHECK_IS(tern_close(t[0]), 0);
	CHECK_IS(tern_close(t[1]), 0);
}
