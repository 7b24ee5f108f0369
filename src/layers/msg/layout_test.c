/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parts and strides, on either side its own, by every way that data go: words, a payload, put
 * into one piece of memory, and messages from layout to layout. All of the receiver's
 * memory is compared with an image, gaps and margins too.
 */
#include <errno.h>
#include <tern/mem.h>
#include <tern/send.h>

#include "lib/chance.h"
#include "lib/handed.h"
#include "lib/local.h"
#include "lib/mem_model.h"
#include "lib/rows.h"
#include "msg/msg.h"

enum { ID = 3, ARENA = 1 << 20, PARTS = 12 };

static unsigned char source[ARENA], private_arena[ARENA], image[ARENA];
static unsigned char *target;
static struct chance chance;

/* -- Random layouts --------------------------------------------------------------------------- */

static size_t element_size(void)
{
	static const size_t sizes[] = { 1, 2, 4, 8, 3, 5, 7, 13, 64, 100, 4096 };
	return sizes[chance_below(&chance, sizeof sizes / sizeof *sizes)];
}

/*
 * A part of exactly `bytes`, or fewer if they do not make whole elements; at *used, which it moves
 * on.
 */
static tern_part part_of(struct rows *r, unsigned char *base, size_t *used, size_t bytes)
{
	size_t run = element_size();
	run = run < bytes ? run : bytes;
	size_t count = run ? bytes / run : chance_below(&chance, 3);
	size_t gap = chance_one_in(&chance, 3) ? 0 : chance_below(&chance, 9);
	size_t apart = run + gap;
	bool backwards = count > 1 && chance_one_in(&chance, 3);
	*used += chance_below(&chance, 20);
	unsigned char *at = base + *used + (backwards ? apart * (count - 1) : 0);
	*used += count ? apart * (count - 1) + run : 0;
	return rows_part(r, at, run, count, backwards ? -(ptrdiff_t)apart : (ptrdiff_t)apart);
}

/* Parts of `total` bytes altogether; how many. */
static size_t parts_of(tern_part *parts, struct rows *rows, unsigned char *base, size_t total)
{
	size_t n = 0, used = 0, left = total;
	while (left && n < PARTS - 2) {
		size_t most = n < PARTS - 4 ? left : left + left / 2;
		size_t bytes = chance_one_in(&chance, 3)
				       ? most
				       : 1 + chance_below(&chance, (uint32_t)left);
		if (chance_one_in(&chance, 6))
			bytes = 0;
		parts[n] = part_of(&rows[n], base, &used, bytes < left ? bytes : left);
		left -= parts[n].run * rows[n].count;
		n++;
	}
	if (left)
		parts[n++] = (tern_part){ .base = base + used, .run = left };
	REQUIRE(used + left <= ARENA);
	return n;
}

/* The bytes of the layout, one after another. */
static size_t parts_walk(const tern_part *parts, size_t n, unsigned char **at)
{
	size_t len = 0;
	for (size_t i = 0; i < n; i++)
		for (size_t e = 0; e < (parts[i].dims ? parts[i].count[0] : 1); e++)
			for (size_t b = 0; b < parts[i].run; b++)
				at[len++] = (unsigned char *)parts[i].base + b +
					    (e ? (ptrdiff_t)e * parts[i].stride[0] : 0);
	return len;
}

static void image_apply(const tern_part *from, size_t n, const tern_part *to, size_t k)
{
	static unsigned char *src[ARENA], *dst[ARENA];
	size_t len = parts_walk(from, n, src);
	CHECK_IS(parts_walk(to, k, dst), len);
	for (size_t i = 0; i < len; i++)
		image[dst[i] - target] = *src[i];
}

/*
 * Sends and receives of lists that are overwritten as soon as the call returns, with their counts
 * and strides.
 */
static tern_part scratch[TERN_PARTS_MAX];
static struct rows scratch_rows[TERN_PARTS_MAX];

static const tern_part *in_brief(const tern_part *parts, size_t n)
{
	for (size_t i = 0; i < n; i++)
		scratch[i] = parts[i].dims
				     ? rows_part(&scratch_rows[i], parts[i].base, parts[i].run,
						 parts[i].count[0], parts[i].stride[0])
				     : parts[i];
	return scratch;
}

static void overwrite(void)
{
	memset(scratch, 0xff, sizeof scratch);
	memset(scratch_rows, 0xff, sizeof scratch_rows);
}

static void send_in_brief(const tern_part *parts, size_t n, unsigned flags, tern_op *op)
{
	CHECK_IS(tern_send_parts_start(local[0], 1, ID, in_brief(parts, n), n, flags, op), 0);
	overwrite();
}

static void recv_in_brief(const tern_part *parts, size_t n, tern_envelope *env, tern_op *op)
{
	const tern_match match = { .rank = 0, .id = ID };
	CHECK_IS(tern_recv_parts_start(local[1], &match, in_brief(parts, n), n, env, op), 0);
	overwrite();
}

/* One message of `total` bytes between two layouts. */
static void carry(size_t total, unsigned flags, bool recv_first, bool whole_from, bool whole_to)
{
	tern_part from[PARTS], to[PARTS];
	struct rows from_rows[PARTS], to_rows[PARTS];
	tern_op so = TERN_OP, ro = TERN_OP;
	tern_envelope env;
	size_t n = 1, k = 1;
	if (whole_from)
		from[0] = (tern_part){ .base = source + chance_below(&chance, 100), .run = total };
	else
		n = parts_of(from, from_rows, source, total);
	if (whole_to)
		to[0] = (tern_part){ .base = target + chance_below(&chance, 100), .run = total };
	else
		k = parts_of(to, to_rows, target, total);
	if (recv_first)
		recv_in_brief(to, k, &env, &ro);
	send_in_brief(from, n, flags, &so);
	if (!recv_first) {
		tern_poll(local[1]);
		recv_in_brief(to, k, &env, &ro);
	}
	CHECK_IS(tern_op_wait(local[1], &ro), 0);
	CHECK_IS(tern_op_wait(local[0], &so), 0);
	CHECK_IS(env.len, total);
	image_apply(from, n, to, k);
	CHECK(model_same(target, image, ARENA));
}

static void carry_all(size_t least, size_t most, unsigned rounds)
{
	chance.state = check_seed();
	local_open(2);
	model_scatter(source, ARENA, &chance);
	unsigned char *heap = handed_alloc(local[1], ARENA);
	REQUIRE(heap);
	for (unsigned i = check_scaled(rounds); i; i--) {
		static const unsigned modes[] = { TERN_SEND_AUTO, TERN_SEND_AUTO,
						  TERN_SEND_RENDEZVOUS, TERN_SEND_SYNC };
		target = i % 2 ? heap : private_arena;
		memset(target, (int)i, ARENA);
		memset(image, (int)i, ARENA);
		bool first = chance_one_in(&chance, 2);
		unsigned flags = modes[chance_below(&chance, 4)];
		if (first && chance_one_in(&chance, 4))
			flags = TERN_SEND_READY;
		carry(least + chance_below(&chance, (uint32_t)(most - least)), flags, first,
		      chance_one_in(&chance, 3), chance_one_in(&chance, 3));
	}
	local_close();
}

TEST(what_goes_in_words_lands_where_the_receivers_layout_says_and_gaps_are_left_alone)
{
	carry_all(0, 33, 300);
}

TEST(what_goes_in_a_payload_lands_where_the_receivers_layout_says_and_gaps_are_left_alone)
{
	carry_all(33, TERN_PAYLOAD_MAX + 1, 300);
}

TEST(what_goes_by_rendezvous_lands_where_the_receivers_layout_says_and_gaps_are_left_alone)
{
	carry_all(TERN_PAYLOAD_MAX, 70000, 150);
}

TEST(lists_of_parts_may_be_overwritten_when_the_call_returns_over_udp_too)
{
	far_use(NULL);
	carry_all(0, TERN_PAYLOAD_MAX, 30);
	carry_all(TERN_PAYLOAD_MAX, 70000, 30);
}

/* Taken back, and never ended: what the layer keeps of their lists is given back. */
TEST(lists_of_operations_that_do_not_end_are_freed_at_the_end)
{
	tern_op so = TERN_OP, ro = TERN_OP, back = TERN_OP;
	static tern_part many[TERN_PARTS_MAX];
	local_open(2);
	for (size_t i = 0; i < TERN_PARTS_MAX; i++)
		many[i] = (tern_part){ .base = source + i * 100, .run = 50 };
	send_in_brief(many, TERN_PARTS_MAX, 0, &so);
	recv_in_brief(many, 3, NULL, &back);
	CHECK_IS(tern_op_cancel(local[1], &back), 0);
	CHECK_IS(msg_of(local[1])->copies.used, 0);
	CHECK_IS(tern_recv_parts_start(local[1], &(tern_match){ .rank = 0, .id = ID + 1 }, many,
				       TERN_PARTS_MAX, NULL, &ro),
		 0);
	CHECK_IS(msg_of(local[0])->copies.used, 1);
	CHECK_IS(msg_of(local[1])->copies.used, 1);
	local_close();
}

/* -- Particular ones --------------------------------------------------------------------------- */

static void elements(size_t size, size_t count, unsigned flags, bool scattered)
{
	tern_op so = TERN_OP, ro = TERN_OP;
	size_t apart = size + 3;
	const tern_part from = ROWS(source + (count - 1) * apart, size, count, -(ptrdiff_t)apart);
	const tern_part to = ROWS(target, size, count, scattered ? size + 1 : size);
	memset(target, 0x77, ARENA);
	memset(image, 0x77, ARENA);
	CHECK_IS(tern_recv_parts_start(local[1], &(tern_match){ .rank = 0, .id = ID }, &to, 1, NULL,
				       &ro),
		 0);
	CHECK_IS(tern_send_parts_start(local[0], 1, ID, &from, 1, flags, &so), 0);
	CHECK_IS(tern_op_wait(local[1], &ro), 0);
	CHECK_IS(tern_op_wait(local[0], &so), 0);
	image_apply(&from, 1, &to, 1);
	CHECK(model_same(target, image, ARENA));
}

TEST(elements_of_every_size_travel_from_negative_strides)
{
	static const size_t sizes[] = { 1, 2, 4, 8, 3, 7, 9, 129, 5000 };
	chance.state = 1;
	local_open(2);
	model_scatter(source, ARENA, &chance);
	target = private_arena;
	for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++)
		for (int scattered = 0; scattered < 2; scattered++) {
			elements(sizes[i], 1, 0, scattered);
			elements(sizes[i], 2, 0, scattered);
			elements(sizes[i], 60, 0, scattered);
			elements(sizes[i], 100, TERN_SEND_RENDEZVOUS, scattered);
		}
	elements(1, 50000, 0, false); /* a byte at a time into one piece */
	elements(1, 50000, 0, true);
	local_close();
}

TEST(no_parts_and_parts_of_nothing_make_a_message_of_no_bytes)
{
	const tern_part nothing[] = { ROWS(NULL, 0, 5, 3), ROWS(source, 4, 0, 9), { .run = 0 } };
	static const unsigned modes[] = { TERN_SEND_AUTO, TERN_SEND_RENDEZVOUS, TERN_SEND_SYNC };
	local_open(2);
	for (unsigned i = 0; i < 3; i++)
		for (size_t n = 0; n < 4; n++)
			for (size_t k = 0; k < 4; k++) {
				tern_op so = TERN_OP, ro = TERN_OP;
				tern_envelope env = { .len = 9 };
				CHECK_IS(tern_send_parts_start(local[0], 1, ID, n ? nothing : NULL,
							       n, modes[i], &so),
					 0);
				local_settle_transfers();
				CHECK_IS(tern_recv_parts_start(local[1],
							       &(tern_match){ .rank = 0, .id = ID },
							       k ? nothing : NULL, k, &env, &ro),
					 0);
				CHECK_IS(tern_op_wait(local[1], &ro), 0);
				CHECK_IS(tern_op_wait(local[0], &so), 0);
				CHECK_IS(env.len, 0);
			}
	local_close();
}

static void full_lists(void)
{
	static tern_part from[TERN_PARTS_MAX], to[TERN_PARTS_MAX];
	local_open(2);
	chance.state = 2;
	model_scatter(source, ARENA, &chance);
	target = private_arena;
	for (size_t size = 1; size < 300; size = size * 6 + 1) {
		tern_op so = TERN_OP, ro = TERN_OP;
		for (size_t i = 0; i < TERN_PARTS_MAX; i++) {
			from[i] = (tern_part){ .base = source + i * (size + 2), .run = size };
			to[TERN_PARTS_MAX - 1 - i] =
				(tern_part){ .base = target + i * (size + 1), .run = size };
		}
		for (int whole = 0; whole < 2; whole++) { /* into one piece: so many puts */
			const tern_part one = { .base = target, .run = size * TERN_PARTS_MAX };
			memset(target, 0x55, ARENA);
			memset(image, 0x55, ARENA);
			send_in_brief(from, TERN_PARTS_MAX, 0, &so);
			recv_in_brief(whole ? &one : to, whole ? 1 : TERN_PARTS_MAX, NULL, &ro);
			CHECK_IS(tern_op_wait(local[1], &ro), 0);
			CHECK_IS(tern_op_wait(local[0], &so), 0);
			image_apply(from, TERN_PARTS_MAX, whole ? &one : to,
				    whole ? 1 : TERN_PARTS_MAX);
			CHECK(model_same(target, image, ARENA));
		}
	}
	local_close();
}

TEST(as_many_parts_as_there_may_be_arrive)
{
	full_lists();
}

TEST(as_many_parts_as_there_may_be_arrive_over_udp)
{
	far_use(NULL);
	full_lists();
}

TEST(one_message_is_put_together_from_memory_of_several_kinds)
{
	tern_op so = TERN_OP, ro = TERN_OP;
	static unsigned char registered[30000];
	tern_addr a;
	local_open(2);
	unsigned char *heap = handed_alloc(local[0], 30000), *there = handed_alloc(local[1], 90000);
	REQUIRE(heap && there);
	REQUIRE(tern_register(local[1], private_arena, ARENA, &a) == 0);
	chance_fill(source, 30000, 1);
	chance_fill(heap, 30000, 2);
	chance_fill(registered, 30000, 3);
	const tern_part from[] = { { .base = heap, .run = 30000 },
				   { .base = source, .run = 30000 },
				   { .base = registered, .run = 30000 } };
	unsigned char *to[] = { there, private_arena + 100 };
	for (int i = 0; i < 2; i++) {
		CHECK_IS(tern_send_parts_start(local[0], 1, ID, from, 3, 0, &so), 0);
		CHECK_IS(tern_recv_start(local[1], &(tern_match){ .rank = 0, .id = ID }, to[i],
					 90000, NULL, &ro),
			 0);
		CHECK_IS(tern_op_wait(local[1], &ro), 0);
		CHECK_IS(tern_op_wait(local[0], &so), 0);
		CHECK(chance_filled(to[i], 30000, 2) && chance_filled(to[i] + 30000, 30000, 1) &&
		      chance_filled(to[i] + 60000, 30000, 3));
	}
	CHECK_IS(tern_unregister(local[1], a),
		 0); /* what the program registered is still its own */
	local_close();
}

/* -- Parts with an id each --------------------------------------------------------------------- */

/*
 * n parts of `size`, odd ones strided, sent with ids of their own and received in the other order.
 */
static void each(size_t n, size_t size, unsigned flags, bool recv_first)
{
	static tern_part parts[TERN_PARTS_MAX];
	static tern_id ids[TERN_PARTS_MAX];
	static struct rows rows[TERN_PARTS_MAX];
	tern_op so = TERN_OP, ro = TERN_OP;
	size_t room = size + 5;
	memset(target, 0x66, ARENA);
	for (size_t i = 0; i < n; i++) {
		ids[i] = 1000 + i;
		parts[i] = i % 2 ? rows_part(&rows[i], source + i * 2 * room, 1, size, 2)
				 : (tern_part){ .base = source + i * 2 * room, .run = size };
	}
	for (int step = 0; step < 2; step++) {
		if ((step == 0) != recv_first) {
			CHECK_IS(tern_send_each_start(local[0], 1, ids, parts, n, flags, &so), 0);
			if (!recv_first)
				tern_poll(local[1]);
			continue;
		}
		for (size_t i = n; i--;)
			CHECK_IS(tern_recv_start(local[1], &(tern_match){ .rank = 0, .id = ids[i] },
						 target + i * room, room, NULL, &ro),
				 0);
	}
	CHECK_IS(tern_op_wait(local[1], &ro), 0);
	CHECK_IS(tern_op_wait(local[0], &so), 0);
	for (size_t i = 0; i < n; i++) {
		for (size_t b = 0; b < room; b++)
			if (!CHECK(target[i * room + b] ==
				   (b < size ? source[i * 2 * room + b * (1 + i % 2)] : 0x66)))
				return;
	}
	CHECK_IS(msg_of(local[0])->sends.used, 0);
}

TEST(parts_with_an_id_each_match_a_receive_each)
{
	local_open(2);
	chance.state = 3;
	model_scatter(source, ARENA, &chance);
	target = private_arena;
	for (unsigned i = 0; i < 4; i++) {
		bool first = i & 1;
		unsigned flags = i & 2 ? TERN_SEND_SYNC : 0;
		each(1, 10, flags, first);
		each(3, 0, flags, first);
		each(10, 30, flags, first);
		each(400, 4, flags, first);
		each(50, 150, flags, first);
		each(9, 1000, flags, first); /* more than one message carries */
		each(5, 20000, flags, first);
		each(10, 100, TERN_SEND_RENDEZVOUS, first);
	}
	each(20, 100, TERN_SEND_READY, true);
	each(20, 100, TERN_SEND_READY | TERN_SEND_SYNC, true);
	each(20, 10000, TERN_SEND_READY, true);
	local_close();
}

TEST(the_lists_of_parts_with_an_id_each_are_free_on_return)
{
	static const size_t sizes[] = { 100, 20000 };
	static const unsigned modes[] = { TERN_SEND_AUTO, TERN_SEND_RENDEZVOUS, TERN_SEND_SYNC };
	local_open(2);
	target = private_arena;
	chance_fill(source, 60000, 5);
	for (unsigned i = 0; i < 6; i++) {
		size_t size = sizes[i % 2];
		tern_id ids[] = { 1, 2, 3 };
		size_t count[] = { size, 4 };
		ptrdiff_t stride[] = { 1, (ptrdiff_t)size / 4 };
		tern_part parts[] = {
			{ .base = source, .run = size },
			{ { source + size }, 1, 1, &count[0], &stride[0] },
			{ { source + 2 * size }, size / 4, 1, &count[1], &stride[1] }
		};
		tern_op so = TERN_OP;
		CHECK_IS(tern_send_each_start(local[0], 1, ids, parts, 3, modes[i / 2], &so), 0);
		memset(ids, 0xff, sizeof ids);
		memset(parts, 0xff, sizeof parts);
		memset(count, 0xff, sizeof count);
		memset(stride, 0xff, sizeof stride);
		for (tern_id id = 1; id < 4; id++) {
			CHECK_IS(tern_recv(local[1], 0, id, target, size, NULL), 0);
			CHECK(memcmp(target, source + (id - 1) * size, size) == 0);
		}
		CHECK_IS(tern_op_wait(local[0], &so), 0);
	}
	local_close();
}

TEST(parts_with_an_id_each_travel_in_one_message_when_they_fit)
{
	const tern_id ids[] = { 1, 2, 3, 4 };
	const tern_part parts[] = { { .base = source, .run = 100 },
				    { .base = source, .run = 200 },
				    { .base = source, .run = 300 },
				    { .base = source, .run = 400 } };
	tern_op so = TERN_OP;
	local_open(2);
	CHECK_IS(tern_send_each_start(local[0], 1, ids, parts, 4, 0, &so), 0);
	CHECK_IS(so.pending, 0);
	CHECK_IS(local_settle(), 1);
	CHECK_IS(msg_of(local[1])->arrivals.used, 4);
	local_close();
}

TEST(parts_with_an_id_each_keep_their_order_with_other_sends)
{
	const tern_id ids[] = { ID, ID, ID };
	uint64_t word[] = { 1, 2, 3 }, before = 0, after = 4, got;
	const tern_part parts[] = { { .base = &word[0], .run = 8 },
				    { .base = &word[1], .run = 8 },
				    { .base = &word[2], .run = 8 } };
	static const unsigned modes[] = { TERN_SEND_AUTO, TERN_SEND_RENDEZVOUS, TERN_SEND_SYNC };
	local_open(2);
	for (unsigned i = 0; i < 3; i++) {
		tern_op so = TERN_OP;
		CHECK_IS(tern_send_start(local[0], 1, ID, &before, 8, TERN_SEND_RENDEZVOUS, &so),
			 0);
		CHECK_IS(tern_send_each_start(local[0], 1, ids, parts, 3, modes[i], &so), 0);
		CHECK_IS(tern_send_start(local[0], 1, ID, &after, 8, 0, &so), 0);
		for (uint64_t n = 0; n < 5; n++) {
			CHECK_IS(tern_recv(local[1], 0, ID, &got, sizeof got, NULL), 0);
			CHECK_IS(got, n);
		}
		CHECK_IS(tern_op_wait(local[0], &so), 0);
	}
	local_close();
}

TEST(one_part_of_several_that_does_not_fit_its_receive_does_not_harm_the_others)
{
	const tern_id ids[] = { 1, 2, 3 };
	const tern_part parts[] = { { .base = source, .run = 10 },
				    { .base = source + 10, .run = 20 },
				    { .base = source + 30, .run = 30 } };
	tern_op so = TERN_OP, good = TERN_OP, bad = TERN_OP;
	local_open(2);
	target = private_arena;
	memset(target, 0x44, 100);
	CHECK_IS(tern_recv_start(local[1], &(tern_match){ .rank = 0, .id = 1 }, target, 10, NULL,
				 &good),
		 0);
	CHECK_IS(tern_recv_start(local[1], &(tern_match){ .rank = 0, .id = 2 }, target + 10, 19,
				 NULL, &bad),
		 0);
	CHECK_IS(tern_recv_start(local[1], &(tern_match){ .rank = 0, .id = 3 }, target + 30, 30,
				 NULL, &good),
		 0);
	CHECK_IS(tern_send_each_start(local[0], 1, ids, parts, 3, 0, &so), 0);
	tern_poll(local[1]);
	CHECK_IS(tern_op_wait(local[1], &good), 0);
	int rc = tern_op_wait(local[1], &bad);
	CHECK_IS(rc, -EMSGSIZE);
	rc = tern_poll(local[0]);
	CHECK_IS(rc, -EMSGSIZE);
	CHECK(sentence_has(rc, "0x2") && sentence_has(rc, "rank 1"));
	CHECK(memcmp(target, source, 10) == 0 && target[10] == 0x44 && target[29] == 0x44 &&
	      memcmp(target + 30, source + 30, 30) == 0);
	local_close();
}

/* As SCMPSend() and SCMPReceive() do with a stride: a column here is a row there. */
TEST(a_strided_column_is_sent_and_received_in_one_call_each)
{
	enum { ROWS_N = 40, WIDE = 9 };
	uint64_t table[ROWS_N][WIDE], row[2 * ROWS_N];
	const tern_part column = ROWS(&table[0][4], 8, ROWS_N, sizeof table[0]);
	const tern_part spread = ROWS(row, 8, ROWS_N, 16), brief = ROWS(row, 8, ROWS_N - 1, 16);
	tern_envelope env = { 0 };
	local_open(1);
	for (unsigned i = 0; i < ROWS_N; i++)
		for (unsigned k = 0; k < WIDE; k++)
			table[i][k] = 100 * i + k;
	memset(row, 0x55, sizeof row);
	CHECK_IS(tern_send_parts(local[0], 0, ID, &column, 1), 0);
	CHECK_IS(tern_recv_parts(local[0], TERN_RANK_ANY, ID, &spread, 1, &env), 0);
	CHECK(env.src == 0 && env.id == ID && env.len == 8 * ROWS_N);
	for (unsigned i = 0; i < ROWS_N; i++)
		CHECK(row[2 * i] == 100 * i + 4 && row[2 * i + 1] == UINT64_C(0x5555555555555555));
	CHECK_IS(tern_send_parts(local[0], 0, ID, &column, 1), 0);
	CHECK_IS(tern_recv_parts(local[0], 0, ID, &brief, 1, NULL), -EMSGSIZE);
	tern_hold(local[0]);
	CHECK_IS(tern_recv_parts(local[0], 0, ID, &spread, 1, NULL), -EDEADLK);
	tern_release(local[0]);
	local_close();
}
