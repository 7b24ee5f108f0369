/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: TIMEOUT 120 RUN_SERIAL */
/*
 * Random transfers between processes, more of them than there are cores: every form,
 * heap and registered memory, by the kernel's copy and by messages, many at once.
 *
 * Every rank has an area of each kind, and in it a zone for each initiator. Initiators keep
 * the image of each zone in memory that all processes share, so that the owner
 * compares every byte of its areas when all is done, and what lies between too.
 */
#include "lib/far.h"
#include "lib/handed.h"
#include "lib/mem_model.h"
#include "lib/ranks.h"

enum {
	RANKS = 5,
	KINDS = 2, /* heap, registered */
	ZONE = 768 << 10,
	AREA = RANKS * ZONE,
	MOST = 256 << 10,
	SOURCE = 1 << 20,
	PIECES = 40,
	LISTS = 64,
	CUTS = 1000,
};

struct board {
	tern_addr at[RANKS][KINDS]; /* the areas */
	unsigned char image[RANKS][KINDS][AREA];
	_Atomic uint64_t told[RANKS]; /* messages that were sent to each */
};

static struct board *board;
static uint64_t seed;
static unsigned rounds;
static bool wakes; /* the target sleeps meanwhile instead of polling */

static unsigned char source[SOURCE], sink[SOURCE], sink_image[SOURCE];
static struct chance chance;
/* Lists belong to an operation until it completes. */
static struct list {
	tern_part there[PIECES], mine[PIECES];
} lists[LISTS];
static unsigned lists_used;
static struct cut {
	struct model_shape shape;
	struct model_side dst, src;
	tern_part to, from;
} cuts[CUTS];
static unsigned cuts_used;

static struct cut *cut_new(size_t most)
{
	struct cut *b = &cuts[cuts_used++];
	REQUIRE(cuts_used <= CUTS);
	model_shape(&chance, most, &b->shape, &b->dst, &b->src);
	b->to = model_part(&b->shape, &b->dst);
	b->from = model_part(&b->shape, &b->src);
	return b;
}

static unsigned char *area_make(tern *t, int kind, tern_addr *at)
{
	unsigned char *p = kind ? malloc(AREA) : handed_alloc(t, AREA);
	REQUIRE(p);
	if (kind)
		REQUIRE(tern_register(t, p, AREA, at) == 0);
	else
		*at = handed_addr(t, p);
	return p;
}

/* -- Puts, at places that lie apart, so that they may overlap in time ------------------------ */

struct zone {
	tern_addr at;
	unsigned char *image;
	size_t used;
};

static size_t anywhere(size_t covers)
{
	return chance_below(&chance, (uint32_t)(SOURCE - covers));
}

static size_t zone_place(struct zone *z, size_t covers)
{
	size_t place = z->used + chance_below(&chance, 30);
	z->used = place + covers;
	return place;
}

static tern_op freed; /* local completions */

/* Puts that a message follows: `told` is what has come, and the board has what was sent. */
enum { PUSHED, PULL, PULLED, TELL };
static tern_flag told, pulled;
static unsigned pulls;

static void on_told(tern *t, const tern_msg *m)
{
	(void)m;
	tern_signal(t, &told, 1);
}

static void on_pull(tern *t, const tern_msg *m)
{
	CHECK_IS(tern_put_reply(t, m, tern_msg_word(m, 0), PULLED, source + tern_msg_word(m, 1),
				tern_msg_word(m, 2), NULL, 1, 2, 3, 4, 5, 6),
		 0);
}

static void on_pulled(tern *t, const tern_msg *m)
{
	CHECK(tern_msg_count(m) == 6 && tern_msg_word(m, 5) == 6);
	tern_signal(t, &pulled, 1);
}

static void handlers_set(tern *t)
{
	CHECK_IS(tern_on(t, PUSHED, on_told), 0);
	CHECK_IS(tern_on(t, PULL, on_pull), 0);
	CHECK_IS(tern_on(t, PULLED, on_pulled), 0);
	CHECK_IS(tern_on(t, TELL, on_told), 0);
}

static void put_message(tern *t, struct zone *z, tern_op *op)
{
	size_t len = model_length(&chance, ZONE - 100 - z->used < MOST ? 100 : MOST);
	size_t to = zone_place(z, len), from = anywhere(len);
	uint32_t r = tern_addr_rank(z->at);
	if (r == tern_rank(t)) { /* somebody answers with it */
		r = chance_below(&chance, RANKS);
		CHECK_IS(tern_request(t, r, PULL, z->at + to, from, len), 0);
		pulls++;
	} else {
		atomic_fetch_add(&board->told[r], 1);
		CHECK_IS(tern_put_request_start(t, z->at + to, PUSHED, source + from, len, &freed,
						op, len),
			 0);
	}
	if (chance_one_in(&chance, 2)) {
		atomic_fetch_add(&board->told[r], 1);
		CHECK_IS(tern_reply_to(t, r, TELL), 0);
	}
	memcpy(z->image + to, source + from, len);
}

static void put_run(tern *t, struct zone *z, tern_op *op)
{
	size_t len = model_length(&chance, ZONE - 100 - z->used < MOST ? 100 : MOST);
	size_t to = zone_place(z, len), from = anywhere(len);
	if (chance_one_in(&chance, 4))
		CHECK_IS(tern_put(t, z->at + to, source + from, len), 0);
	else if (chance_one_in(&chance, 3))
		CHECK_IS(tern_put_local_start(t, z->at + to, source + from, len, &freed, op), 0);
	else
		CHECK_IS(tern_put_start(t, z->at + to, source + from, len, op), 0);
	memcpy(z->image + to, source + from, len);
}

static void put_value(tern *t, struct zone *z, tern_op *op)
{
	size_t len = (size_t)1 << chance_below(&chance, 4), to = zone_place(z, len);
	uint64_t value = chance_next(&chance);
	if (chance_one_in(&chance, 4))
		CHECK_IS(tern_put(t, z->at + to, &value, len), 0);
	else
		CHECK_IS(tern_put_local_start(t, z->at + to, &value, len, &freed, op), 0);
	memcpy(z->image + to, &value, len);
}

static void put_shape(tern *t, struct zone *z, tern_op *op)
{
	struct cut *b = cut_new(ZONE - 100 - z->used < MOST ? 4096 : MOST);
	size_t to = zone_place(z, b->dst.covers) + b->dst.before,
	       from = anywhere(b->src.covers) + b->src.before;
	b->to.addr = z->at + to;
	b->from.base = source + from;
	CHECK_IS(tern_put_parts_start(t, &b->to, 1, &b->from, 1,
				      chance_one_in(&chance, 4) ? NULL : op),
		 0);
	model_apply(z->image + to, &b->dst, source + from, &b->src, &b->shape);
}

/* A list with parts at several ranks and of both kinds; those here are cut at other places. */
static void put_list(tern *t, struct zone zones[RANKS][KINDS], tern_op *op)
{
	if (lists_used == LISTS)
		return;
	struct list *list = &lists[lists_used++];
	size_t mine = 0, total = 0, base = anywhere(PIECES * 9500);
	size_t n = chance_below(&chance, PIECES + 1);
	for (size_t i = 0; i < n; i++) {
		struct zone *z = &zones[chance_below(&chance, RANKS)][chance_below(&chance, KINDS)];
		size_t len = ZONE - 20000 < z->used ? 0 : chance_below(&chance, 500);
		len += len && chance_one_in(&chance, 30) ? 9000 : 0;
		size_t to = len ? zone_place(z, len) : 0;
		list->there[i] = (tern_part){ .addr = z->at + to, .run = len };
		memcpy(z->image + to, source + base + total, len);
		total += len;
	}
	for (size_t at = 0, len; at < total; at += len) {
		len = mine == PIECES - 1 ? total - at : chance_below(&chance, 700);
		len = len < total - at ? len : total - at;
		list->mine[mine++] = (tern_part){ .base = source + base + at, .run = len };
	}
	CHECK_IS(tern_put_parts_start(t, list->there, n, list->mine, mine, op), 0);
}

static void zones_fill(tern *t, tern_op *op)
{
	static struct zone zones[RANKS][KINDS];
	uint32_t me = tern_rank(t);
	for (uint32_t r = 0; r < RANKS; r++)
		for (int k = 0; k < KINDS; k++)
			zones[r][k] = (struct zone){ board->at[r][k] + me * ZONE,
						     board->image[r][k] + me * ZONE, 0 };
	lists_used = cuts_used = 0;
	for (int i = 0; i < 500; i++) {
		struct zone *z = &zones[chance_below(&chance, RANKS)][chance_below(&chance, KINDS)];
		if (z->used + 5000 > ZONE)
			continue;
		if (chance_one_in(&chance, 10))
			put_list(t, zones, op);
		else if (chance_one_in(&chance, 5))
			put_value(t, z, op);
		else if (chance_one_in(&chance, 5))
			put_message(t, z, op);
		else if (chance_one_in(&chance, 3))
			put_shape(t, z, op);
		else
			put_run(t, z, op);
		if (chance_one_in(&chance, 50))
			CHECK_IS(tern_op_wait(t, op), 0);
	}
	CHECK_IS(tern_wait(t, &pulled, pulls), 0);
	pulls = 0;
}

/* -- Gets, from anybody's zones, while nobody writes --------------------------------------- */

static void sink_fill(tern *t, tern_op *op)
{
	size_t used = 0;
	cuts_used = 0;
	while (cuts_used < CUTS && used + 2 * MOST + 200 < SOURCE) {
		uint32_t r = chance_below(&chance, RANKS);
		int k = (int)chance_below(&chance, KINDS);
		struct cut *b = cut_new(chance_one_in(&chance, 10) ? MOST : 8192);
		size_t to = used + chance_below(&chance, 30) + b->dst.before;
		size_t from =
			chance_below(&chance, (uint32_t)(AREA - b->src.covers)) + b->src.before;
		b->to.base = sink + to;
		b->from.addr = board->at[r][k] + from;
		CHECK_IS(tern_get_parts_start(t, &b->to, 1, &b->from, 1, op), 0);
		model_apply(sink_image + to, &b->dst, board->image[r][k] + from, &b->src,
			    &b->shape);
		used = to - b->dst.before + b->dst.covers;
	}
	size_t len = chance_below(&chance, MOST + 1),
	       from = chance_below(&chance, (uint32_t)(AREA - len));
	uint32_t r = chance_below(&chance, RANKS);
	CHECK_IS(tern_get_start(t, sink + used + 50, board->at[r][1] + from, len, op), 0);
	memcpy(sink_image + used + 50, board->image[r][1] + from, len);
}

static void mix(void)
{
	tern *t = ranks_open();
	uint32_t me = tern_rank(t);
	unsigned char *area[KINDS];
	tern_op op = TERN_OP;
	struct chance same = { seed };
	chance.state = seed + me + 1;
	model_scatter(source, SOURCE, &same);
	for (int k = 0; k < KINDS; k++) {
		area[k] = area_make(t, k, &board->at[me][k]);
		memset(area[k], 0, AREA);
	}
	handlers_set(t);
	CHECK_IS(tern_barrier(t), 0);
	for (unsigned i = 0; i < rounds; i++) {
		if (!wakes || me % 2)
			zones_fill(t, &op);
		CHECK_IS(tern_op_wait(t, &op), 0);
		CHECK_IS(tern_flush(t), 0); /* messages may follow their data later */
		CHECK_IS(freed.pending, 0);
		CHECK_IS(tern_barrier(t), 0);
		CHECK_IS(atomic_load(&told), atomic_load(&board->told[me]));
		for (int k = 0; k < KINDS; k++)
			CHECK(model_same(area[k], board->image[me][k], AREA));
		if (!wakes || !(me % 2))
			sink_fill(t, &op);
		CHECK_IS(tern_op_wait(t, &op), 0);
		CHECK(model_same(sink, sink_image, SOURCE));
		CHECK_IS(tern_barrier(t), 0);
	}
	CHECK_IS(tern_unregister(t, board->at[me][1]), 0);
	CHECK_IS(tern_close(t), 0);
}

static void mix_run(const char *single_copy, unsigned n, bool sleepers)
{
	seed = check_seed();
	rounds = check_scaled(n);
	wakes = sleepers;
	board = ranks_shared(sizeof *board);
	setenv("TERN_SINGLE_COPY", single_copy, 1);
	ranks_run(RANKS, mix);
}

TEST(whatever_is_put_and_got_by_the_kernels_copy_every_byte_is_where_it_belongs)
{
	mix_run("1", 6, false);
}

TEST(whatever_is_put_and_got_by_messages_every_byte_is_where_it_belongs)
{
	mix_run("0", 6, false);
}

TEST(ranks_that_sleep_are_woken_for_transfers_by_message)
{
	mix_run("0", 3, true);
}

TEST(whatever_is_put_and_got_over_udp_every_byte_is_where_it_belongs)
{
	far_use(NULL);
	mix_run("1", 2, false);
}
