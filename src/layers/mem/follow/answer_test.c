/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: MODES RUN_SERIAL */
/*
 * Puts with a reply, of any length: into a heap, into memory that another process registered, by
 * messages alone, over UDP; floods of them, and ranks that die.
 */
#include <errno.h>

#include "lib/chance.h"
#include "lib/far.h"
#include "lib/handed.h"
#include "lib/ranks.h"
#include "mem/mem.h"

enum { AREA = 1 << 20, SOURCE = AREA + (64 << 10), SHORT = TERN_PAYLOAD_MAX };
enum { ASK, GOT, PLAIN, PLAINLY, BAD, TOLD, MIXED, ARRIVED };

static unsigned char source[SOURCE], private[AREA], *heap;
static tern_addr at[2];
static _Atomic uint64_t got, freed, last;
static tern_op local = { .flag = &freed };

/* What the next answer must bring. */
static struct expected {
	unsigned char *to;
	size_t len, from;
	unsigned n;
} expected;

static tern *begin(void)
{
	struct chance c = { .state = 7 };
	tern *t = ranks_open();
	for (size_t i = 0; i < SOURCE; i++)
		source[i] = (unsigned char)chance_below(&c, 256);
	heap = handed_alloc(t, AREA);
	REQUIRE(heap);
	at[0] = handed_addr(t, heap);
	REQUIRE(tern_register(t, private, AREA, &at[1]) == 0);
	return t;
}

static void end(tern *t)
{
	CHECK_IS(tern_barrier(t), 0);
	CHECK_IS(tern_close(t), 0);
}

static uint64_t word_of(size_t len, unsigned i)
{
	return len * 1000 + i;
}

/* In the handler of a request: answers with data from `from`, and `n` words. */
static int answer(tern *t, const tern_msg *m, tern_addr a, size_t len, size_t from, unsigned n)
{
	uint64_t words[TERN_WORDS_MAX + 1];
	for (unsigned i = 0; i <= TERN_WORDS_MAX; i++)
		words[i] = word_of(len, i);
	const tern_long what = { a, GOT, n, source + from, len, &local, NULL, words, NULL };
	return tern_put_reply_array(t, m, &what);
}

static atomic_bool answering; /* a long reply has been started */

static void on_ask(tern *t, const tern_msg *m)
{
	int rc = answer(t, m, tern_msg_word(m, 0), tern_msg_word(m, 1), tern_msg_word(m, 2),
			(unsigned)tern_msg_word(m, 3));
	atomic_store(&answering, true);
	CHECK_IS(rc, 0);
	CHECK_IS(tern_reply(t, m, GOT), -EALREADY);
	CHECK_IS(answer(t, m, tern_msg_word(m, 0), 1, 0, 0), -EALREADY);
}

static void on_got(tern *t, const tern_msg *m)
{
	CHECK_IS(tern_msg_handler(m), GOT);
	CHECK_IS(tern_msg_count(m), expected.n);
	CHECK(tern_msg_data(m, NULL) == NULL);
	for (unsigned i = 0; i < expected.n; i++)
		CHECK_IS(tern_msg_word(m, i), word_of(expected.len, i));
	CHECK(memcmp(expected.to, source + expected.from, expected.len) == 0);
	CHECK_IS(tern_request(t, tern_msg_src(m), PLAIN), -EPERM);
	tern_signal(t, &got, 1);
}

static void ask(tern *t, int k, size_t offset, size_t len, unsigned n)
{
	expected = (struct expected){ (k ? private : heap) + offset, len, 1 + len % 999, n };
	memset(expected.to, 0, len);
	CHECK_IS(tern_request(t, 1 - tern_rank(t), ASK, at[k] + offset, len, expected.from, n), 0);
	CHECK_IS(tern_wait(t, &got, 1), 0);
	CHECK(memcmp(expected.to, source + expected.from, len) == 0);
}

static const size_t lengths[] = {
	0, 1, 2, 8, 63, SHORT - 8, SHORT, SHORT + 1, 65536 + 9, AREA - 8
};
enum { LENGTHS = sizeof lengths / sizeof *lengths };

static void any_length(void)
{
	tern *t = begin();
	CHECK_IS(tern_on(t, ASK, on_ask), 0);
	CHECK_IS(tern_on(t, GOT, on_got), 0);
	CHECK_IS(tern_barrier(t), 0);
	for (int k = 0; k < 2; k++)
		for (unsigned i = 0; i < LENGTHS; i++)
			for (unsigned n = 0; n <= TERN_WORDS_MAX; n += i == LENGTHS - 1 ? 8 : 1)
				ask(t, k, 8 - n % 3, lengths[i] - (lengths[i] > 65536 ? n : 0), n);
	CHECK_IS(tern_barrier(t), 0);
	CHECK_IS(tern_op_wait(t, &local), 0);
	CHECK_IS(tern_flush(t), 0);
	CHECK_IS(atomic_load(&freed), 2 * ((TERN_WORDS_MAX + 1) * (LENGTHS - 1) + 2));
	end(t);
}

/* Without a handle the source may be changed on return. */
static void on_ask_and_change(tern *t, const tern_msg *m)
{
	static unsigned char copy[AREA];
	size_t len = tern_msg_word(m, 1);
	uint64_t words[TERN_WORDS_MAX];
	for (unsigned i = 0; i < TERN_WORDS_MAX; i++)
		words[i] = word_of(len, i);
	memcpy(copy, source + tern_msg_word(m, 2), len);
	const tern_long what = { .dst = tern_msg_word(m, 0),
				 .id = GOT,
				 .n = (unsigned)tern_msg_word(m, 3),
				 .src = copy,
				 .len = len,
				 .words = words };
	CHECK_IS(tern_put_reply_array(t, m, &what), 0);
	memset(copy, 0x55, len);
}

static void changed_on_return(void)
{
	tern *t = begin();
	CHECK_IS(tern_on(t, ASK, on_ask_and_change), 0);
	CHECK_IS(tern_on(t, GOT, on_got), 0);
	CHECK_IS(tern_barrier(t), 0);
	for (int k = 0; k < 2; k++)
		for (unsigned i = 0; i < 3 * LENGTHS; i++)
			ask(t, k, 8, lengths[i % LENGTHS], i % (TERN_WORDS_MAX + 1));
	end(t);
}

/* -- Order: what comes to a rank in this class comes in order ---------------------------------- */

static void on_plain(tern *t, const tern_msg *m)
{
	CHECK_IS(tern_reply(t, m, PLAINLY), 0);
}

static void on_plainly(tern *t, const tern_msg *m)
{
	(void)m;
	CHECK_IS(atomic_load(&got), 1); /* the long one, which was asked for first */
	tern_signal(t, &freed, 1);
}

static void in_order(void)
{
	tern *t = begin();
	CHECK_IS(tern_on(t, ASK, on_ask), 0);
	CHECK_IS(tern_on(t, GOT, on_got), 0);
	CHECK_IS(tern_on(t, PLAIN, on_plain), 0);
	CHECK_IS(tern_on(t, PLAINLY, on_plainly), 0);
	CHECK_IS(tern_barrier(t), 0);
	if (tern_rank(t) == 1) {
		expected = (struct expected){ private, AREA, 5, 2 };
		CHECK_IS(tern_request(t, 0, ASK, at[1], AREA, 5, 2), 0);
		for (int i = 0; i < 100; i++)
			CHECK_IS(tern_request(t, 0, PLAIN), 0);
		CHECK_IS(tern_wait(t, &freed, 101), 0);
	} else {
		while (!atomic_load(&answering) && !atomic_load(&freed))
			CHECK(tern_poll(t) >= 0);
		CHECK_IS(tern_reply_to(t, 1, PLAINLY), 0);
	}
	end(t);
}

/* -- What is refused --------------------------------------------------------------------------- */

static void on_bad(tern *t, const tern_msg *m)
{
	tern_addr a = tern_msg_word(m, 0);
	const tern_long unknown = { a, 500, 0, source, 8, NULL, NULL, NULL, NULL };
	CHECK_IS(answer(t, m, handed_at(a, t->rank), 8, 0, 0), -EINVAL);
	CHECK(strstr(tern_strerror(-EINVAL), "whoever sent the request"));
	CHECK_IS(answer(t, m, TERN_ADDR_NONE, 8, 0, 0), tern_msg_src(m) ? -EINVAL : -EFAULT);
	CHECK_IS(answer(t, m, a, 8, 0, TERN_WORDS_MAX + 1), -E2BIG);
	CHECK_IS(tern_put_reply_array(t, m, &unknown), -ENXIO);
	CHECK(local.pending == 0 && atomic_load(&freed) == 0);
	CHECK_IS(tern_put_reply(t, m, a, TOLD, source, 3, NULL, 2.5), 0);
}

static void on_told(tern *t, const tern_msg *m)
{
	CHECK(tern_msg_count(m) == 1 && tern_msg_double(m, 0) == 2.5);
	CHECK_IS(tern_put_reply(t, m, at[0], TOLD, source, 3, NULL), -EPERM);
	const tern_msg *kept = handed_keep(t, m);
	CHECK(kept && tern_msg_double(kept, 0) == 2.5 && tern_msg_handler(kept) == TOLD);
	CHECK_IS(tern_msg_drop(t, kept), 0);
	tern_signal(t, &got, 1);
}

static void refused(void)
{
	tern *t = begin();
	CHECK_IS(tern_on(t, GOT, on_got), 0);
	CHECK_IS(tern_on(t, BAD, on_bad), 0);
	CHECK_IS(tern_on(t, TOLD, on_told), 0);
	CHECK_IS(tern_barrier(t), 0);
	CHECK_IS(tern_put_reply(t, NULL, at[0], TOLD, source, 3, NULL), -EPERM);
	for (int k = 0; k < 2; k++) {
		CHECK_IS(tern_request(t, 1 - tern_rank(t), BAD, at[k]), 0);
		CHECK_IS(tern_wait(t, &got, 1), 0);
		CHECK(memcmp(k ? private : heap, source, 3) == 0);
	}
	end(t);
}

/* Over a network the owner refuses what it does not have: the handler does not run. */
static void refused_far(void)
{
	tern *t = begin();
	CHECK_IS(tern_on(t, ASK, on_ask), 0);
	CHECK_IS(tern_on(t, GOT, on_got), 0);
	CHECK_IS(tern_barrier(t), 0);
	for (size_t len = 8; tern_rank(t) == 1 && len <= 3 * SHORT; len += SHORT) {
		int rc = 0;
		CHECK_IS(tern_request(t, 0, ASK, at[1] + AREA - len / 2, len, 0, 6), 0);
		while (rc >= 0)
			rc = tern_poll(t);
		CHECK_IS(rc, -EFAULT);
		CHECK(strstr(tern_strerror(rc), "refused data"));
		CHECK_IS(atomic_load(&got), 0);
	}
	end(t);
}

/* -- Floods: everybody asks everybody, with requests in between -------------------------------- */

enum { RANKS = 4, TURNS = 150, SLOTS_EACH = 8, SLOT = AREA / SLOTS_EACH };

static struct turn {
	size_t len, from;
	bool busy;
} turn[2][SLOTS_EACH];
static tern_op mixed;

static void on_mixed(tern *t, const tern_msg *m)
{
	CHECK_IS(tern_put_reply(t, m, tern_msg_word(m, 0), ARRIVED, source + tern_msg_word(m, 2),
				tern_msg_word(m, 1), &mixed, tern_msg_word(m, 3), 2, 3, 4, 5, 6),
		 0);
}

static void on_arrived(tern *t, const tern_msg *m)
{
	unsigned k = (unsigned)tern_msg_word(m, 0) / SLOTS_EACH,
		 s = (unsigned)tern_msg_word(m, 0) % SLOTS_EACH;
	CHECK(tern_msg_count(m) == 6 && tern_msg_word(m, 5) == 6);
	CHECK(turn[k][s].busy);
	CHECK(memcmp((k ? private : heap) + s * SLOT, source + turn[k][s].from, turn[k][s].len) ==
	      0);
	turn[k][s].busy = false;
	tern_signal(t, &got, 1);
}

static int slot_idle(tern *t, void *arg)
{
	(void)t;
	return !((struct turn *)arg)->busy;
}

static void flood(void)
{
	tern *t = begin();
	struct chance c = { .state = 11 + tern_rank(t) };
	CHECK_IS(tern_on(t, MIXED, on_mixed), 0);
	CHECK_IS(tern_on(t, ARRIVED, on_arrived), 0);
	CHECK_IS(tern_barrier(t), 0);
	for (int i = 0; i < TURNS; i++) {
		unsigned k = chance_below(&c, 2), s = chance_below(&c, SLOTS_EACH);
		uint32_t to = chance_below(&c, RANKS);
		CHECK_IS(tern_wait_until(t, slot_idle, &turn[k][s]), 0);
		size_t len =
			chance_one_in(&c, 3) ? chance_below(&c, SLOT) : chance_below(&c, 3 * SHORT);
		turn[k][s] = (struct turn){ len, chance_below(&c, 9999), true };
		CHECK_IS(tern_request(t, to, MIXED, at[k] + s * SLOT, len, turn[k][s].from,
				      k * SLOTS_EACH + s),
			 0);
	}
	CHECK_IS(tern_wait(t, &got, TURNS), 0);
	CHECK_IS(tern_barrier(t), 0);
	CHECK_IS(tern_op_wait(t, &mixed), 0);
	end(t);
}

/* -- Deaths ------------------------------------------------------------------------------------ */

static void on_ask_dying(tern *t, const tern_msg *m)
{
	int rc = answer(t, m, tern_msg_word(m, 0), tern_msg_word(m, 1), tern_msg_word(m, 2),
			(unsigned)tern_msg_word(m, 3));
	CHECK(rc == 0 || (tern_msg_src(m) == 1 && rc == -EOWNERDEAD));
}

static void on_last(tern *t, const tern_msg *m)
{
	(void)m;
	tern_signal(t, &last, 1);
}

/* Rank 1 asks for much and dies, while rank 2 is served as before. */
static void requester_dies(void)
{
	tern *t = begin();
	CHECK_IS(tern_on(t, ASK, on_ask_dying), 0);
	CHECK_IS(tern_on(t, GOT, on_got), 0);
	CHECK_IS(tern_on(t, TOLD, on_last), 0);
	CHECK_IS(tern_barrier(t), 0);
	if (tern_rank(t) == 1) {
		for (int i = 0; i < 20; i++)
			CHECK_IS(tern_request(t, 0, ASK, at[1], AREA, 0, 0), 0);
		raise(SIGKILL);
	}
	CHECK_IS(tern_forgive(t, 1), 0);
	if (tern_rank(t) == 2) {
		expected = (struct expected){ private, AREA, 5, 2 };
		for (int i = 0; i < 5; i++) {
			CHECK_IS(tern_request(t, 0, ASK, at[1], AREA, 5, 2), 0);
			CHECK_IS(tern_wait(t, &got, 1), 0);
		}
		CHECK_IS(tern_request(t, 0, TOLD), 0);
	} else {
		CHECK_IS(tern_wait(t, &last, 1), 0);
		CHECK_IS(tern_op_wait(t, &local), 0);
	}
	CHECK_IS(tern_close(t), 0);
}

/* What was promised leaves before its sender does. */
static void replier_closes(void)
{
	tern *t = begin();
	CHECK_IS(tern_on(t, ASK, on_ask), 0);
	CHECK_IS(tern_on(t, GOT, on_got), 0);
	CHECK_IS(tern_barrier(t), 0);
	if (tern_rank(t) == 1) {
		expected = (struct expected){ private, AREA, 5, 2 };
		CHECK_IS(tern_request(t, 0, ASK, at[1], AREA, 5, 2), 0);
		CHECK_IS(tern_wait(t, &got, 1), 0);
	} else {
		while (!atomic_load(&answering) && !atomic_load(&freed))
			CHECK(tern_poll(t) >= 0);
	}
	CHECK_IS(tern_close(t), 0);
}

/* -- On every way there is --------------------------------------------------------------------- */

static void dying(void)
{
	ranks_start(3, 0, requester_dies);
	CHECK_IS(ranks_reap(3, 0), 1);
	ranks_end();
}

static void everything(void)
{
	ranks_run(2, any_length);
	ranks_run(2, changed_on_return);
	ranks_run(2, in_order);
	ranks_run(2, refused);
	ranks_run(RANKS, flood);
	ranks_run(2, replier_closes);
	dying();
}

TEST(a_put_with_a_reply_brings_data_of_any_length_and_then_the_reply)
{
	everything();
}

TEST(the_same_where_the_kernel_does_not_copy)
{
	setenv("TERN_SINGLE_COPY", "0", 1);
	everything();
}

TEST(the_same_over_udp)
{
	far_use(NULL);
	everything();
	ranks_run(2, refused_far);
}

TEST(the_same_over_a_network_that_loses)
{
	far_use("drop=0.02,reorder=0.05,seed=3");
	ranks_run(2, any_length);
	ranks_run(RANKS, flood);
}
