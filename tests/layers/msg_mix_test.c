/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: TIMEOUT 120 RUN_SERIAL */
/*
 * Random programs of sends and receives against a simple model. Every rank starts sends of
 * random modes and sizes under a few ids, posts receives, exact and with wildcards, takes some of
 * either back, and writes down what it sent and got. In the end, for each pair of ranks and each
 * id, what the one got, in the order in which it posted its receives, is what the other sent and
 * did not take back, in the order in which it did: nothing is lost, doubled, changed or overtaken.
 */
#include <tern/send.h>

#include "lib/chance.h"
#include "lib/mem_model.h"
#include "lib/ranks.h"
#include "lib/rows.h"

enum { RANKS = 4, IDS = 3, AT_ONCE = 24, DRAINS = 4, MOST = 40000, SENDS = 6000, SHORT = 4 };

enum fate { UNDER_WAY, RECEIVED, NOT_RECEIVED };

/* What a sender says of a message. */
struct sent {
	uint8_t id;
	_Atomic uint8_t fate;
	uint32_t len;
	uint64_t sum;
};

struct board {
	struct sent sent[RANKS][RANKS][SENDS]; /* from, to */
	uint32_t count[RANKS][RANKS];
	_Atomic uint64_t accepted[RANKS]; /* messages for each rank that will be received there */
	_Atomic uint32_t over;            /* ranks whose sends have all ended */
};

struct outgoing {
	bool used;
	tern_op op;
	uint32_t dst;
	struct sent *sent;
	tern_part part[2];
	struct rows rows;
	unsigned char bytes[MOST];
};

struct incoming {
	bool used;
	tern_op op;
	size_t cap;
	uint64_t posted;
	tern_envelope env;
	tern_part part[2];
	struct rows rows;
	unsigned char bytes[MOST];
};

/* What a receiver says of a message. */
struct got {
	uint32_t src;
	tern_id id;
	size_t len;
	uint64_t sum, posted;
	bool cut;
};

struct player {
	tern *t;
	uint32_t me;
	struct chance c;
	struct outgoing out[AT_ONCE];
	struct incoming
		in[AT_ONCE + DRAINS]; /* the last, of anything, when only the rest is to come */
	struct got got[SENDS * RANKS];
	size_t gots;
	uint64_t posted;
	unsigned steps;
	bool told;
};

static struct board *board;
static uint64_t seed;
static unsigned steps;

static uint64_t sum_of(const unsigned char *bytes, size_t len)
{
	uint64_t sum = len;
	for (size_t i = 0; i < len; i++)
		sum = (sum ^ bytes[i]) * UINT64_C(0x100000001b3);
	return sum;
}

/* -- Sending ------------------------------------------------------------------------------- */

static void sent_ended(struct outgoing *o, int rc)
{
	bool received =
		rc == 0 || rc == -EMSGSIZE; /* too long for its receive, which is over with it */
	if (!received && !CHECK(rc == -ECANCELED || rc == -ENOMSG || rc == -ENOBUFS))
		printf("    %d: %s\n", rc, tern_strerror(rc));
	atomic_store(&o->sent->fate, received ? RECEIVED : NOT_RECEIVED);
	if (received)
		atomic_fetch_add(&board->accepted[o->dst], 1);
	o->used = false;
}

static unsigned random_mode(struct player *p)
{
	static const unsigned modes[] = { TERN_SEND_AUTO,
					  TERN_SEND_AUTO,
					  TERN_SEND_AUTO,
					  TERN_SEND_RENDEZVOUS,
					  TERN_SEND_SYNC,
					  TERN_SEND_SYNC,
					  TERN_SEND_SYNC | TERN_SEND_RENDEZVOUS };
	return chance_one_in(&p->c, 12) ? TERN_SEND_READY | TERN_SEND_SYNC
					: modes[chance_below(&p->c, sizeof modes / sizeof *modes)];
}

static void send_something(struct player *p, struct outgoing *o)
{
	uint32_t dst = chance_below(&p->c, RANKS), n = board->count[p->me][dst];
	if (n == SENDS)
		return;
	size_t len = model_length(&p->c, MOST), cut = chance_below(&p->c, (uint32_t)len + 1);
	struct sent *s = &board->sent[p->me][dst][n];
	tern_id id = chance_below(&p->c, IDS);
	chance_fill(o->bytes, len,
		    chance_of(seed, (uint64_t)p->me << 40 | (uint64_t)dst << 32 | n));
	*s = (struct sent){ .id = (uint8_t)id, .len = (uint32_t)len, .sum = sum_of(o->bytes, len) };
	o->used = true;
	o->dst = dst;
	o->sent = s;
	o->op = (tern_op)TERN_OP;
	o->part[0] = (tern_part){ .base = o->bytes, .run = cut };
	o->part[1] = rows_part(&o->rows, o->bytes + cut, 1, len - cut, 1);
	board->count[p->me][dst]++;
	unsigned flags = random_mode(p);
	CHECK_IS(chance_one_in(&p->c, 3)
			 ? tern_send_parts_start(p->t, dst, id, o->part, 2, flags, &o->op)
			 : tern_send_start(p->t, dst, id, o->bytes, len, flags, &o->op),
		 0);
}

static bool send_look(struct player *p, struct outgoing *o)
{
	if (tern_op_state(p->t, &o->op) == TERN_STATE_COMPLETE)
		sent_ended(o, tern_op_wait(p->t, &o->op));
	return !o->used;
}

static void send_take_back(struct player *p, struct outgoing *o)
{
	int rc = tern_op_cancel(p->t, &o->op);
	CHECK(rc == 0 || rc == -EALREADY);
	if (rc == 0) {
		CHECK(send_look(p, o));
		CHECK_IS(atomic_load(&o->sent->fate), NOT_RECEIVED);
	}
}

/* -- Receiving ----------------------------------------------------------------------------- */

static void receive_something(struct player *p, struct incoming *i, bool anything)
{
	tern_id id = chance_below(&p->c, IDS), mask = ~UINT64_C(0);
	uint32_t src = chance_one_in(&p->c, 2) ? TERN_RANK_ANY : chance_below(&p->c, RANKS);
	if (anything || chance_one_in(&p->c, 6))
		mask = anything ? 0 : 1;
	if (anything)
		src = TERN_RANK_ANY;
	i->used = true;
	i->op = (tern_op)TERN_OP;
	i->cap = chance_one_in(&p->c, 20) ? SHORT : MOST;
	i->posted = p->posted++;
	size_t cut = chance_below(&p->c, (uint32_t)i->cap + 1);
	i->part[0] = rows_part(&i->rows, i->bytes, 1, cut, 1);
	i->part[1] = (tern_part){ .base = i->bytes + cut, .run = i->cap - cut };
	memset(i->bytes, 0xee, SHORT + 1);
	CHECK_IS(chance_one_in(&p->c, 3)
			 ? tern_recv_parts_start(p->t,
						 &(tern_match){ .rank = src,
								.flags = TERN_RECV_UPTO,
								.id = id,
								.any = ~mask },
						 i->part, 2, &i->env, &i->op)
			 : tern_recv_start(p->t,
					   &(tern_match){ .rank = src, .id = id, .any = ~mask },
					   i->bytes, i->cap, &i->env, &i->op),
		 0);
}

static bool receive_look(struct player *p, struct incoming *i)
{
	if (i->op.pending)
		return false;
	int rc = tern_op_wait(p->t, &i->op);
	CHECK_IS(i->env.error, rc);
	i->used = false;
	if (rc == -ECANCELED)
		return true;
	if (!CHECK(rc == 0 || (rc == -EMSGSIZE && i->env.len > i->cap && i->bytes[0] == 0xee)))
		printf("    %d: %s; %zu of %zu bytes from rank %u\n", rc, tern_strerror(rc),
		       i->env.len, i->cap, i->env.src);
	p->got[p->gots++] = (struct got){ .src = i->env.src,
					  .id = i->env.id,
					  .len = i->env.len,
					  .sum = rc ? 0 : sum_of(i->bytes, i->env.len),
					  .posted = i->posted,
					  .cut = rc != 0 };
	return true;
}

static void receive_take_back(struct player *p, struct incoming *i)
{
	int rc = tern_op_cancel(p->t, &i->op);
	CHECK(rc == 0 || rc == -EALREADY);
	if (rc == 0) {
		size_t before = p->gots;
		CHECK(receive_look(p, i));
		CHECK_IS(p->gots, before);
	}
}

/* -- Playing ------------------------------------------------------------------------------- */

/* Looks whether the i-th of both kinds is over. */
static void look_at(struct player *p, unsigned i)
{
	if (i < AT_ONCE && p->out[i].used)
		send_look(p, &p->out[i]);
	if (p->in[i].used)
		receive_look(p, &p->in[i]);
}

static void act(struct player *p)
{
	unsigned i = chance_below(&p->c, AT_ONCE);
	struct outgoing *o = &p->out[i];
	struct incoming *r = &p->in[i];
	switch (chance_below(&p->c, 12)) {
	case 0:
		if (o->used && !send_look(p, o))
			send_take_back(p, o);
		break;
	case 1:
		if (r->used && !receive_look(p, r))
			receive_take_back(p, r);
		break;
	case 2:
		CHECK(tern_probe(p->t,
				 &(tern_match){ .rank = TERN_RANK_ANY,
						.id = chance_below(&p->c, IDS) },
				 NULL) <= 1);
		break;
	case 3:
	case 4:
	case 5:
	case 6:
		if (!o->used)
			send_something(p, o);
		break;
	default:
		if (!r->used)
			receive_something(p, r, false);
	}
}

/* The sends that are not over. */
static unsigned under_way(const struct player *p)
{
	unsigned n = 0;
	for (unsigned i = 0; i < AT_ONCE; i++)
		n += p->out[i].used;
	return n;
}

/* One step; false when everything sent to this rank has been received and nobody sends any more. */
static bool play(struct player *p)
{
	tern_poll(p->t); /* says when something was discarded: so does the handle */
	if (p->steps) {
		p->steps--;
		act(p);
		look_at(p, chance_below(&p->c, AT_ONCE));
		return true;
	}
	for (unsigned i = 0; i < AT_ONCE + DRAINS; i++)
		look_at(p, i);
	for (unsigned i = AT_ONCE; i < AT_ONCE + DRAINS; i++)
		if (!p->in[i].used)
			receive_something(p, &p->in[i], true);
	if (!p->told && !under_way(p)) {
		p->told = true;
		atomic_fetch_add(&board->over, 1);
	}
	return atomic_load(&board->over) < RANKS || p->gots < atomic_load(&board->accepted[p->me]);
}

static int by_posted(const void *a, const void *b)
{
	uint64_t x = ((const struct got *)a)->posted, y = ((const struct got *)b)->posted;
	return x < y ? -1 : x > y;
}

/* Compares what came from `src` under `id` with what that rank says it sent. */
static void judge_one(const struct player *p, uint32_t src, tern_id id)
{
	uint32_t n = 0, count = board->count[src][p->me];
	for (size_t i = 0; i < p->gots; i++) {
		const struct got *g = &p->got[i];
		if (g->src != src || g->id != id)
			continue;
		const struct sent *s = &board->sent[src][p->me][n];
		while (n < count && (s->id != id || atomic_load(&s->fate) != RECEIVED))
			s = &board->sent[src][p->me][++n];
		if (!CHECK(n < count) || !CHECK_IS(g->len, s->len) ||
		    !CHECK(g->cut || g->sum == s->sum))
			return;
		n++;
	}
	for (; n < count; n++)
		CHECK(board->sent[src][p->me][n].id != id ||
		      atomic_load(&board->sent[src][p->me][n].fate) == NOT_RECEIVED);
}

static void finish(struct player *p)
{
	for (unsigned i = 0; i < AT_ONCE + DRAINS; i++)
		if (p->in[i].used)
			receive_take_back(p, &p->in[i]);
	CHECK_IS(p->gots, atomic_load(&board->accepted[p->me]));
	qsort(p->got, p->gots, sizeof *p->got, by_posted);
	for (uint32_t src = 0; src < RANKS; src++)
		for (tern_id id = 0; id < IDS; id++)
			judge_one(p, src, id);
	int rc;
	do /* the news of messages that were too long for their receives may come as late as this */
		rc = tern_probe(p->t, &(tern_match){ .rank = TERN_RANK_ANY, .any = TERN_ID_ANY },
				NULL);
	while (rc == -EMSGSIZE);
	CHECK_IS(rc, 0);
}

static struct player *player_new(tern *t)
{
	struct player *p = calloc(1, sizeof *p);
	REQUIRE(p);
	p->t = t;
	p->me = tern_rank(t);
	p->c.state = seed + p->me;
	p->steps = steps;
	return p;
}

static void play_all(tern *t)
{
	struct player *p = player_new(t);
	while (play(p))
		;
	finish(p);
	free(p);
}

static void prepare(unsigned n)
{
	seed = check_seed();
	steps = check_scaled(n);
	board = ranks_shared(sizeof *board);
	CHECK(freopen("/dev/null", "w", stderr) !=
	      NULL); /* every discarded message is told there */
}

/* -- As one thread, as threads, as processes ----------------------------------------------- */

TEST(ranks_that_one_thread_plays_receive_what_was_sent_in_order)
{
	static tern *t[RANKS];
	static struct player *p[RANKS];
	prepare(20000);
	REQUIRE(tern_open_local(RANKS, t) == 0);
	for (uint32_t r = 0; r < RANKS; r++)
		p[r] = player_new(t[r]);
	for (unsigned going = 1; going;) {
		going = 0;
		for (uint32_t r = 0; r < RANKS; r++)
			going += play(p[r]);
	}
	for (uint32_t r = 0; r < RANKS; r++)
		finish(p[r]);
	for (uint32_t r = 0; r < RANKS; r++) {
		CHECK_IS(tern_close(t[r]), 0);
		free(p[r]);
	}
}

static void nothing(tern *t)
{
	(void)t;
}

TEST(ranks_as_threads_receive_what_was_sent_in_order)
{
	prepare(20000);
	ranks_run_threads(RANKS, nothing, play_all);
}

static void rank_main(void)
{
	tern *t = ranks_open();
	play_all(t);
	CHECK_IS(tern_barrier(t), 0);
	CHECK_IS(tern_close(t), 0);
}

TEST(more_processes_than_cores_receive_what_was_sent_in_order)
{
	prepare(15000);
	ranks_run(RANKS, rank_main);
}

TEST(processes_whose_memory_the_kernel_may_not_copy_receive_what_was_sent_in_order)
{
	prepare(10000);
	setenv("TERN_SINGLE_COPY", "0", 1);
	ranks_run(RANKS, rank_main);
}
