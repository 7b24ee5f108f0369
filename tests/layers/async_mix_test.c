/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: TIMEOUT 240 MODES */
/*
 * Everything that can be handed over, mixed by chance, between ranks that are processes: sends of
 * all lengths, reads and writes of heap and private memory, functions with many turns. Every byte
 * is checked, and everything arrives once and in order.
 */
#include "lib/async_pair.h"
#include "lib/chance.h"
#include "lib/handed.h"
#include "lib/ranks.h"

enum { MESSAGE }; /* receive procedures */
enum { ASK };     /* handlers */
enum { RANKS_MOST = 16, LETTER_MOST = 100000, ROUNDS = 1500, READ_MOST = 20000 };

static uint64_t seed;
static tern *me;

/* What others have sent here, for all to see. */
struct ledger {
	_Atomic uint64_t messages, raises, asks;
	uint64_t written; /* its own count */
};
static struct ledger *ledger; /* one a rank */

static struct {
	_Atomic uint64_t messages, asks;
} got;

/* -- Letters: a number, a length, bytes that follow from both ------------------------------ */

struct mix_message {
	uint64_t number;
	size_t len, done;
	bool headed;
	unsigned char *data;
	struct mix_message *next;
};

static struct mix_message *messages;
static uint64_t numbers[RANKS_MOST];  /* of messages sent to each rank */
static uint64_t expected[RANKS_MOST]; /* of messages from each rank */
static unsigned char *landed[RANKS_MOST];

static int message_put(tern *t, tern_out *out, void *arg)
{
	struct mix_message *l = arg;
	(void)t;
	if (!l->headed) {
		int rc = tern_chan_put(out, ((uint64_t[]){ l->number, l->len }), 16);
		if (rc)
			return rc;
		l->headed = true;
	}
	return tern_chan_put_some(out, l->data, l->len, &l->done);
}

static int message_get(tern *t, tern_incoming *m, void *arg)
{
	(void)arg;
	if (!m->own[0]) {
		uint64_t head[2];
		int rc = tern_chan_get(m->in, head, 16);
		if (rc)
			return rc;
		CHECK_IS(head[0], expected[m->src]++);
		REQUIRE(head[1] <= LETTER_MOST);
		m->own[0] = 1;
		m->own[1] = head[0];
		m->own[2] = head[1];
	}
	size_t done = m->own[3];
	int rc = tern_chan_get_some(m->in, landed[m->src], m->own[2], &done);
	m->own[3] = done;
	if (rc == 0) {
		CHECK(chance_filled(landed[m->src], m->own[2], m->own[1]));
		tern_signal(t, &got.messages, 1);
	}
	return rc;
}

static void send_message(struct chance *c, uint32_t to, tern_op *op)
{
	struct mix_message *l = calloc(1, sizeof *l);
	l->number = numbers[to]++;
	l->len = chance_below(c, chance_one_in(c, 10) ? LETTER_MOST : 200);
	l->data = malloc(l->len + 1);
	chance_fill(l->data, l->len, l->number);
	l->next = messages;
	messages = l;
	atomic_fetch_add(&ledger[to].messages, 1);
	CHECK_IS(tern_async_send_start(me, to, MESSAGE, message_put, l, op), 0);
}

/* -- Memory: each rank has a region that others read, and a slot for each that writes ------ */

static unsigned char shown[READ_MOST]; /* private, registered; rank r shows what follows from r */
static uint64_t slots[RANKS_MOST][ROUNDS]; /* a word for each write: they have no order */
static tern_addr *shown_at, *slots_at;     /* of every rank, shared */
static tern_addr *flag_at;
static _Atomic uint64_t *flag;

struct reading {
	unsigned char data[READ_MOST];
	uint32_t from;
	size_t at, len;
	struct reading *next;
};
static struct reading *readings;
static uint64_t writes[RANKS_MOST];

static void read_some(struct chance *c, uint32_t from, tern_op *op)
{
	struct reading *r = calloc(1, sizeof *r);
	r->from = from;
	r->at = chance_below(c, READ_MOST);
	r->len = chance_below(c, (uint32_t)(READ_MOST - r->at));
	r->next = readings;
	readings = r;
	CHECK_IS(tern_async_get_start(me, r->data, shown_at[from] + r->at, r->len, op), 0);
}

static void write_slot(uint32_t to, tern_op *op)
{
	uint64_t value = ++writes[to];
	tern_addr at = slots_at[to] + sizeof slots[0] * tern_rank(me) + 8 * (value - 1);
	atomic_fetch_add(&ledger[to].raises, 1);
	CHECK_IS(tern_async_put_start(me, at, &value, 8, flag_at[to], op), 0);
}

static void check_memory(void)
{
	unsigned char whole[READ_MOST];
	for (struct reading *r = readings, *next; r; r = next) {
		next = r->next;
		chance_fill(whole, READ_MOST, r->from);
		CHECK(memcmp(r->data, whole + r->at, r->len) == 0);
		free(r);
	}
}

/* -- Functions and handlers that send ------------------------------------------------------ */

struct round_robin {
	uint32_t next;
	unsigned left;
	struct round_robin *before; /* to be freed at the end: a turn may be an interrupt */
};
static struct round_robin *rounds;

static int asking_turn(tern *t, void *arg)
{
	struct round_robin *w = arg;
	int rc = tern_request(t, w->next, ASK, 1);
	if (rc)
		return rc;
	atomic_fetch_add(&ledger[w->next].asks, 1);
	w->next = (w->next + 1) % tern_size(t);
	return --w->left ? 1 : 0;
}

static void hear(tern *t, const tern_msg *m)
{
	(void)m;
	tern_signal(t, &got.asks, 1);
}

static void ask_around(struct chance *c, tern_op *op)
{
	struct round_robin *w = malloc(sizeof *w);
	*w = (struct round_robin){ chance_below(c, tern_size(me)), 1 + chance_below(c, 50),
				   rounds };
	rounds = w;
	int rc = tern_async_start(me, asking_turn, w, op);
	CHECK(rc == 0 || rc == -EAGAIN);
}

/* -- A rank -------------------------------------------------------------------------------- */

static void rank_open(void)
{
	me = ranks_open();
	uint32_t self = tern_rank(me);
	CHECK_IS(tern_on(me, ASK, hear), 0);
	CHECK_IS(tern_async_on(me, MESSAGE, message_get, NULL), 0);
	for (uint32_t r = 0; r < tern_size(me); r++)
		landed[r] = malloc(LETTER_MOST);
	chance_fill(shown, READ_MOST, self);
	flag = handed_alloc(me, sizeof *flag);
	flag_at[self] = handed_addr(me, (void *)flag);
	CHECK_IS(tern_register(me, shown, sizeof shown, &shown_at[self]), 0);
	CHECK_IS(tern_register(me, slots, sizeof slots, &slots_at[self]), 0);
	CHECK_IS(tern_barrier(me), 0);
}

static void rank_act(struct chance *c, tern_op *op)
{
	uint32_t peer = chance_below(c, tern_size(me));
	switch (chance_below(c, 6)) {
	case 0:
	case 1:
		send_message(c, peer, op);
		break;
	case 2:
		read_some(c, peer, op);
		break;
	case 3:
		write_slot(peer, op);
		break;
	case 4:
		ask_around(c, op);
		break;
	default:
		CHECK(tern_poll(me) >= 0);
	}
}

static void rank_check(void)
{
	struct ledger *l = &ledger[tern_rank(me)];
	uint64_t raises = l->raises;
	CHECK_IS(tern_wait(me, &got.messages, l->messages), 0);
	CHECK_IS(tern_wait(me, flag, l->raises), 0);
	CHECK_IS(tern_wait(me, &got.asks, l->asks), 0);
	CHECK_IS(tern_barrier(me), 0);
	CHECK_IS(atomic_load(&got.messages) + atomic_load(flag) + atomic_load(&got.asks),
		 0); /* and no more */
	check_memory();
	for (uint32_t from = 0; from < tern_size(me); from++)
		for (uint64_t i = 0; i < ROUNDS; i++) {
			CHECK(slots[from][i] == i + 1 || slots[from][i] == 0);
			l->written += slots[from][i] != 0;
		}
	CHECK_IS(l->written, raises);
	CHECK_IS(tern_barrier(me), 0);
}

static void rank_free(void)
{
	for (struct mix_message *l = messages, *next; l; l = next) {
		next = l->next;
		free(l->data);
		free(l);
	}
	for (struct round_robin *w = rounds, *before; w; w = before) {
		before = w->before;
		free(w);
	}
	for (uint32_t r = 0; r < RANKS_MOST; r++)
		free(landed[r]);
}

static void rank_main(void)
{
	tern_op op = TERN_OP;
	rank_open();
	struct chance c = { chance_of(seed, tern_rank(me)) };
	for (unsigned i = 0; i < check_scaled(ROUNDS); i++)
		rank_act(&c, &op);
	CHECK_IS(tern_op_wait(me, &op), 0);
	CHECK_IS(tern_barrier(me), 0); /* now the ledger is complete */
	rank_check();
	CHECK_IS(tern_close(me), 0);
	rank_free();
}

static void mix(uint32_t ranks)
{
	seed = check_seed();
	ledger = ranks_shared(ranks * sizeof *ledger);
	shown_at = ranks_shared(ranks * sizeof *shown_at);
	slots_at = ranks_shared(ranks * sizeof *slots_at);
	flag_at = ranks_shared(ranks * sizeof *flag_at);
	ranks_run(ranks, rank_main);
}

TEST(whatever_is_handed_over_arrives_once_and_whole)
{
	mix(3);
}

TEST(also_with_many_more_ranks_than_cores)
{
	mix(RANKS_MOST);
}

TEST(also_where_private_memory_is_reached_by_messages)
{
	setenv("TERN_SINGLE_COPY", "0", 1);
	mix(4);
}

TEST(also_in_a_job_of_one)
{
	mix(1);
}
