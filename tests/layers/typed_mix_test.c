/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: TIMEOUT 240 RUN_SERIAL */
/*
 * Many senders into types of every policy and order, messages of random length, against a simple
 * model: each message says who sent it and which it is, so the receiver knows what it may be, and
 * at the end what is missing.
 */
#include <tern/buf.h>

#include "lib/chance.h"
#include "lib/handed.h"
#include "lib/ranks.h"

enum { SENDERS_MOST = 5, TYPES = 6, HEAD = 16, BYTES = 200000 };

struct kind {
	size_t bytes;
	unsigned count, flags;
};

static const struct kind kind[TYPES] = {
	{ 3000, 5, TERN_BUF_WAIT },
	{ BYTES, 3, TERN_BUF_WAIT | TERN_BUF_ORDER },
	{ BYTES, 2, TERN_BUF_WAIT | TERN_BUF_ORDER },
	{ 9000, 2, TERN_BUF_SPILL | TERN_BUF_ORDER },
	{ 400, 1, TERN_BUF_SPILL },
	{ 100000, 2, TERN_BUF_REFUSE | TERN_BUF_ORDER },
};

/* The first words of every message. */
struct head {
	uint32_t src;
	uint16_t type;
	uint16_t unused;
	uint32_t number; /* of the messages of this sender and type */
	uint32_t zero;
};

_Static_assert(sizeof(struct head) == HEAD, "the head has no gaps");

static uint64_t seed;
static unsigned rounds;

static uint64_t content(const struct head *h)
{
	return chance_of(seed, (uint64_t)h->src << 48 | (uint64_t)h->type << 32 | h->number);
}

/* -- A sender ------------------------------------------------------------------------------ */

struct sender {
	tern *t;
	struct chance c;
	struct head next[TYPES];
	struct {
		tern_op op;
		unsigned char *data;
	} under_way[8];
};

static size_t any_length(struct chance *c, const struct kind *k)
{
	size_t most = chance_one_in(c, 8) ? k->bytes : k->bytes < 700 ? k->bytes : 700;
	return HEAD + chance_below(c, (uint32_t)(most - HEAD + 1));
}

static unsigned char *compose(struct sender *s, unsigned type, size_t len)
{
	unsigned char *data = malloc(len);
	struct head *h = &s->next[type];
	REQUIRE(data);
	h->src = tern_rank(s->t);
	h->type = (uint16_t)type;
	chance_fill(data, len, content(h));
	memcpy(data, h, HEAD);
	return data;
}

/* Which of those under way is over, or was never used. */
static unsigned a_place(struct sender *s)
{
	for (unsigned i = chance_below(&s->c, 8);; i = (i + 1) % 8) {
		if (!s->under_way[i].data)
			return i;
		int rc = tern_op_test(s->t, &s->under_way[i].op);
		CHECK(rc >= 0);
		if (rc == 0)
			continue;
		free(s->under_way[i].data);
		s->under_way[i].data = NULL;
		return i;
	}
}

/* A rank of another machine may tell the handle that it refuses. */
static int send_try(tern *t, unsigned type, const void *data, size_t len, unsigned flags,
		    tern_op *op, bool refuses)
{
	int rc = tern_buf_send_start(t, 0, type, data, len, flags, op);
	return !rc && op && refuses ? tern_op_wait(t, op) : rc;
}

static void send_one(struct sender *s, unsigned type)
{
	const struct kind *k = &kind[type];
	size_t len = any_length(&s->c, k);
	unsigned char *data = compose(s, type, len);
	unsigned flags = chance_one_in(&s->c, 2) ? TERN_BUF_NOWAIT : 0, i = a_place(s);
	bool started = chance_one_in(&s->c, 2);
	bool refuses = k->flags & TERN_BUF_REFUSE;
	tern_op *op = started ? &s->under_way[i].op : NULL;
	int rc;
	while ((rc = send_try(s->t, type, data, len, flags, op, refuses)) == -EAGAIN ||
	       (rc == -ENOBUFS && refuses))
		tern_poll(s->t);
	if (!CHECK_IS(rc, 0))
		printf("    %s\n", tern_strerror(rc));
	if (started && !refuses)
		s->under_way[i].data = data;
	else
		free(data);
	s->next[type].number++;
}

static void send_all(tern *t)
{
	struct sender s = { .t = t, .c = { seed + tern_rank(t) } };
	for (unsigned n = 0; n < rounds; n++)
		for (unsigned type = 0; type < TYPES; type++)
			send_one(&s, type);
	for (unsigned i = 0; i < 8; i++) {
		int rc = 1;
		while (s.under_way[i].data && (rc = tern_op_test(t, &s.under_way[i].op)) == 0)
			;
		CHECK_IS(rc, 1);
		free(s.under_way[i].data);
	}
}

/* -- The receiver -------------------------------------------------------------------------- */

struct receiver {
	tern *t;
	struct chance c;
	uint32_t came[SENDERS_MOST + 1][TYPES];
	unsigned char *seen[SENDERS_MOST + 1]; /* by type and number, where order is not promised */
	void *held[6];
};

static void check_order(struct receiver *r, const struct head *h)
{
	unsigned flags = kind[h->type].flags;
	unsigned char *seen = &r->seen[h->src][h->type * rounds + h->number];
	CHECK(h->number < rounds && !*seen);
	*seen = 1;
	if (flags & TERN_BUF_ORDER)
		CHECK_IS(h->number, r->came[h->src][h->type]);
	r->came[h->src][h->type]++;
}

static bool receive_one(struct receiver *r, unsigned type)
{
	uint32_t src;
	size_t len;
	struct head h;
	unsigned char *p = handed_buf(r->t, type, TERN_BUF_NOWAIT, &src, &len);
	if (!p)
		return CHECK_IS(errno, EAGAIN) && false;
	REQUIRE(len >= HEAD && len <= kind[type].bytes);
	memcpy(&h, p, HEAD);
	REQUIRE(h.src == src && h.type == type && src <= SENDERS_MOST);
	check_order(r, &h);
	unsigned char image[HEAD];
	chance_fill(image, HEAD, content(&h));
	memcpy(p, image, HEAD); /* the buffer is ours to write */
	CHECK(chance_filled(p, len, content(&h)));
	void **hold = &r->held[type];
	void *back = p;
	if (chance_one_in(&r->c, 4) && kind[type].count > 1) { /* keeps one for a while */
		back = *hold;
		*hold = p;
	}
	CHECK_IS(back ? tern_buf_free(r->t, back) : 0, 0);
	return true;
}

static void receive_all(tern *t)
{
	uint32_t senders = tern_size(t) - 1;
	unsigned total = senders * rounds * TYPES;
	struct receiver r = { .t = t, .c = { seed } };
	for (uint32_t s = 1; s <= senders; s++)
		REQUIRE((r.seen[s] = calloc(TYPES, rounds)) != NULL);
	for (unsigned got = 0; got < total;) {
		got += receive_one(&r, chance_below(&r.c, TYPES));
		if (chance_one_in(&r.c, 300))
			ranks_nap(chance_below(&r.c, 300000)); /* buffers run out meanwhile */
	}
	for (unsigned type = 0; type < TYPES; type++) {
		CHECK_IS(r.held[type] ? tern_buf_free(t, r.held[type]) : 0, 0);
		CHECK(!receive_one(&r, type));
		CHECK_IS(tern_buf_close(t, type), 0); /* no buffer has got lost */
	}
	for (uint32_t s = 1; s <= senders; s++)
		free(r.seen[s]);
}

static void nothing(tern *t)
{
	(void)t;
}

static void rank_run(tern *t)
{
	for (unsigned type = 0; tern_rank(t) == 0 && type < TYPES; type++)
		REQUIRE(tern_buf_alloc(t, type, kind[type].bytes, kind[type].count,
				       kind[type].flags) == 0);
	CHECK_IS(tern_barrier(t), 0);
	if (tern_rank(t) == 0)
		receive_all(t);
	else
		send_all(t);
	CHECK_IS(tern_barrier(t), 0);
	CHECK(tern_poll(t) >= 0);
}

static void rank_main(void)
{
	atomic_store(&check_failures, 0);
	tern *t = ranks_open();
	rank_run(t);
	CHECK_IS(tern_close(t), 0);
}

static void mix(uint32_t senders, bool threads, const char *checks)
{
	seed = check_seed();
	rounds = check_scaled(getenv("TERN_FAULT") ? 150 : 600) /
		 senders; /* what is lost takes its time */
	rounds = rounds ? rounds : 1;
	setenv("TERN_SPILL", "32K", 1);
	setenv("TERN_CHECK", checks, 1);
	if (threads)
		ranks_run_threads(senders + 1, nothing, rank_run);
	else
		ranks_run(senders + 1, rank_main);
}

TEST(one_process_sends_and_every_message_is_received_once_and_in_order)
{
	mix(1, false, "0");
}

TEST(two_processes_send_and_every_message_is_received_once_and_in_order)
{
	mix(2, false, "0");
}

TEST(more_processes_than_cores_send_and_every_message_is_received_once_and_in_order)
{
	mix(SENDERS_MOST, false, "0");
}

TEST(the_same_with_every_check_that_there_is)
{
	mix(2, false, "1");
}

TEST(one_thread_sends_and_every_message_is_received_once_and_in_order)
{
	mix(1, true, "0");
}

TEST(many_threads_send_and_every_message_is_received_once_and_in_order)
{
	mix(SENDERS_MOST, true, "1");
}

/* -- A flood that nobody receives ---------------------------------------------------------- */

enum {
	FLOODED = 1,
	FLOOD_BYTES = 500,
	FLOOD_BUFFERS = 3,
	FLOOD_CELLS = 32 + 2 /* of 32K: half small, half large */
};

struct flood {
	_Atomic uint64_t accepted, refused, stopped;
};
static struct flood *flood;

static void flood_send(tern *t)
{
	unsigned char data[FLOOD_BYTES];
	chance_fill(data, sizeof data, tern_rank(t));
	while (!atomic_load(&flood->stopped)) {
		int rc = tern_buf_send_start(t, 0, FLOODED, data, sizeof data, TERN_BUF_NOWAIT,
					     NULL);
		CHECK(rc == 0 || rc == -EAGAIN);
		atomic_fetch_add(rc ? &flood->refused : &flood->accepted, 1);
	}
}

static void flood_receive(tern *t)
{
	uint32_t src;
	size_t len;
	uint64_t got = 0;
	while (atomic_load(&flood->accepted) < FLOOD_BUFFERS + FLOOD_CELLS ||
	       atomic_load(&flood->refused) < 1000)
		CHECK(tern_poll(t) >= 0);
	atomic_store(&flood->stopped, 1);
	CHECK_IS(tern_barrier(t), 0);
	for (unsigned char *p; (p = handed_buf(t, FLOODED, TERN_BUF_NOWAIT, &src, &len)); got++) {
		CHECK(len == FLOOD_BYTES && chance_filled(p, len, src));
		CHECK_IS(tern_buf_free(t, p), 0);
	}
	CHECK_IS(got, FLOOD_BUFFERS + FLOOD_CELLS);
	CHECK_IS(atomic_load(&flood->accepted), got); /* what was accepted, and nothing else */
}

static void flood_main(void)
{
	tern *t = ranks_open();
	if (tern_rank(t) == 0)
		REQUIRE(tern_buf_alloc(t, FLOODED, FLOOD_BYTES, FLOOD_BUFFERS, TERN_BUF_SPILL) ==
			0);
	CHECK_IS(tern_barrier(t), 0);
	if (tern_rank(t) == 0) {
		flood_receive(t);
	} else {
		flood_send(t);
		CHECK_IS(tern_barrier(t), 0);
	}
	CHECK_IS(tern_close(t), 0);
}

TEST(under_a_flood_the_spill_takes_what_it_has_room_for_and_no_more)
{
	setenv("TERN_SPILL", "32K", 1);
	flood = ranks_shared(sizeof *flood);
	ranks_run(4, flood_main);
}

/* -- Waiting, in both directions ----------------------------------------------------------- */

/*
 * Everybody sends to everybody, waits for each, and has one buffer a type: the tightest there is.
 */
static void to_and_fro(tern *t)
{
	uint32_t me = tern_rank(t), size = tern_size(t);
	struct chance c = { seed + me };
	for (uint32_t r = 0; r < size; r++)
		REQUIRE(tern_buf_alloc(t, r, sizeof(uint64_t), 1, 0) == 0);
	CHECK_IS(tern_barrier(t), 0);
	for (uint64_t n = 0; n < check_scaled(300); n++) {
		if (chance_one_in(&c, 20))
			ranks_nap(
				chance_below(&c, 3000000)); /* the others sleep in their receives */
		for (uint32_t r = 0; r < size; r++)
			CHECK_IS(tern_buf_send(t, (me + r) % size, me, &n, sizeof n), 0);
		for (uint32_t r = 0; r < size; r++) {
			uint32_t src = size;
			uint64_t *p = handed_buf(t, r, 0, &src, NULL);
			REQUIRE(p);
			CHECK(*p == n && src == r);
			CHECK_IS(tern_buf_free(t, p), 0);
		}
	}
	CHECK_IS(tern_barrier(t), 0);
}

static void to_and_fro_main(void)
{
	for (int session = 0; session < 3; session++) { /* each finds the heap as new */
		tern *t = ranks_open();
		to_and_fro(t);
		CHECK_IS(tern_close(t), 0);
	}
}

TEST(ranks_that_wait_for_each_other_are_woken_and_sessions_begin_anew)
{
	seed = check_seed();
	ranks_run(4, to_and_fro_main);
}

TEST(threads_that_wait_for_each_other_are_woken)
{
	seed = check_seed();
	ranks_run_threads(4, nothing, to_and_fro);
}
