/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: RUN_SERIAL */
/*
 * Every atomic operation on every type, against a reference, from one table: in a heap and in
 * registered memory of another process, mapped and over UDP, and beside C11 atomics of the owner.
 */
#include <errno.h>
#include <math.h>

#include "lib/far.h"
#include "lib/handed.h"
#include "lib/ranks.h"
#include "mem/mem.h"

enum type { U64, U32, F64, F32, TYPES };
enum { OPERATIONS = TERN_AMO_SMAX_ + 1, VALUES = 12, TURNS = 60 };

static const size_t width[TYPES] = { 8, 4, 8, 4 };

/* Which types have it, and whether the order of many of them is of no importance. */
static const struct row {
	bool integer, floating, any_order;
} row[] = {
	[TERN_AMO_ADD] = { true, true, true },    [TERN_AMO_AND] = { true, false, true },
	[TERN_AMO_OR] = { true, false, true },    [TERN_AMO_XOR] = { true, false, true },
	[TERN_AMO_MIN] = { true, true, true },    [TERN_AMO_MAX] = { true, true, true },
	[TERN_AMO_SWAP] = { true, true, false },  [TERN_AMO_LOAD] = { true, true, true },
	[TERN_AMO_STORE] = { true, true, false }, [TERN_AMO_MUL] = { true, true, true },
	[TERN_AMO_SMIN_] = { true, false, true }, [TERN_AMO_SMAX_] = { true, false, true },
};
_Static_assert(sizeof row / sizeof *row == OPERATIONS, "an operation is not in the table");

static bool has(enum type type, unsigned what)
{
	if (what >= OPERATIONS)
		return false;
	return type == F64 || type == F32 ? row[what].floating : row[what].integer;
}

static double f64_of(uint64_t bits)
{
	double d;
	memcpy(&d, &bits, sizeof d);
	return d;
}

static uint64_t of_f64(double d)
{
	uint64_t bits;
	memcpy(&bits, &d, sizeof bits);
	return bits;
}

static float f32_of(uint64_t bits)
{
	float f;
	memcpy(&f, &(uint32_t){ (uint32_t)bits }, sizeof f);
	return f;
}

static uint64_t of_f32(float f)
{
	uint32_t bits;
	memcpy(&bits, &f, sizeof bits);
	return bits;
}

/* -- The reference ----------------------------------------------------------------------- */

static uint64_t reference64(unsigned what, uint64_t a, uint64_t b)
{
	int64_t sa = (int64_t)a, sb = (int64_t)b;
	const uint64_t after[OPERATIONS] = {
		[TERN_AMO_ADD] = a + b,
		[TERN_AMO_AND] = a & b,
		[TERN_AMO_OR] = a | b,
		[TERN_AMO_XOR] = a ^ b,
		[TERN_AMO_MIN] = a < b ? a : b,
		[TERN_AMO_MAX] = a > b ? a : b,
		[TERN_AMO_SWAP] = b,
		[TERN_AMO_LOAD] = a,
		[TERN_AMO_STORE] = b,
		[TERN_AMO_MUL] = a * b,
		[TERN_AMO_SMIN_] = sa < sb ? a : b,
		[TERN_AMO_SMAX_] = sa > sb ? a : b,
	};
	return after[what];
}

/* Of 32 bits, signed ones are compared when they have been widened so. */
static uint64_t reference32(unsigned what, uint64_t a, uint64_t b)
{
	bool is_signed = what == TERN_AMO_SMIN_ || what == TERN_AMO_SMAX_;
	uint64_t wide_a = is_signed ? (uint64_t)(int64_t)(int32_t)a : (uint32_t)a;
	uint64_t wide_b = is_signed ? (uint64_t)(int64_t)(int32_t)b : (uint32_t)b;
	return (uint32_t)reference64(what, wide_a, wide_b);
}

static uint64_t reference_f64(unsigned what, uint64_t a, uint64_t b)
{
	double x = f64_of(a), y = f64_of(b);
	if (what == TERN_AMO_ADD)
		return of_f64(x + y);
	if (what == TERN_AMO_MUL)
		return of_f64(x * y);
	if (what == TERN_AMO_MIN || what == TERN_AMO_MAX)
		return (what == TERN_AMO_MIN ? isless(y, x) : isgreater(y, x)) ? b : a;
	return reference64(what, a, b);
}

static uint64_t reference_f32(unsigned what, uint64_t a, uint64_t b)
{
	float x = f32_of(a), y = f32_of(b);
	if (what == TERN_AMO_ADD)
		return of_f32(x + y);
	if (what == TERN_AMO_MUL)
		return of_f32(x * y);
	if (what == TERN_AMO_MIN || what == TERN_AMO_MAX)
		return (what == TERN_AMO_MIN ? isless(y, x) : isgreater(y, x)) ? b : a;
	return reference32(what, a, b);
}

static uint64_t reference(enum type type, unsigned what, uint64_t a, uint64_t b)
{
	static uint64_t (*const of[TYPES])(unsigned, uint64_t,
					   uint64_t) = { reference64, reference32, reference_f64,
							 reference_f32 };
	return of[type](what, a, b);
}

/* -- The operation: on bits, whatever the type --------------------------------------------- */

static int start(tern *t, enum type type, unsigned what, tern_addr a, uint64_t bits, void *old,
		 tern_op *op)
{
	if (type == U64)
		return tern_amo_start(t, a, what, bits, (uint64_t *)old, op);
	if (type == U32)
		return tern_amo_start(t, a, what, (uint32_t)bits, (uint32_t *)old, op);
	if (type == F64)
		return tern_amo_start(t, a, what, f64_of(bits), (double *)old, op);
	return tern_amo_start(t, a, what, f32_of(bits), (float *)old, op);
}

/* The type of `old` says that integers are signed; the operation is the same. */
static int block_signed(tern *t, enum type type, unsigned what, tern_addr a, uint64_t bits,
			void *old)
{
	what = what == TERN_AMO_SMIN_ ? TERN_AMO_MIN : TERN_AMO_MAX;
	return type == U64 ? tern_amo(t, a, what, (int64_t)bits, (int64_t *)old)
			   : tern_amo(t, a, what, (int32_t)bits, (int32_t *)old);
}

static int block(tern *t, enum type type, unsigned what, tern_addr a, uint64_t bits, void *old)
{
	if ((type == U64 || type == U32) && (what == TERN_AMO_SMIN_ || what == TERN_AMO_SMAX_))
		return block_signed(t, type, what, a, bits, old);
	if (type == U64)
		return tern_amo(t, a, what, bits, (uint64_t *)old);
	if (type == U32)
		return tern_amo(t, a, what, (uint32_t)bits, (uint32_t *)old);
	if (type == F64)
		return tern_amo(t, a, what, f64_of(bits), (double *)old);
	return tern_amo(t, a, what, f32_of(bits), (float *)old);
}

/* -- Two processes: rank 0 has the words, in its heap and registered ------------------------ */

static struct board {
	tern_addr at[2];
} * board;
static uint64_t *words[2], private[8];

static tern *words_open(void)
{
	tern *t = ranks_open();
	if (tern_rank(t) == 0) {
		words[0] = handed_alloc(t, sizeof private);
		words[1] = private;
		REQUIRE(words[0]);
		board->at[0] = handed_addr(t, words[0]);
		REQUIRE(tern_register(t, private, sizeof private, &board->at[1]) == 0);
	}
	CHECK_IS(tern_barrier(t), 0);
	return t;
}

static void words_close(tern *t)
{
	CHECK_IS(tern_barrier(t), 0);
	CHECK_IS(tern_close(t), 0);
}

static const uint64_t value[TYPES][VALUES] = {
	[U64] = { 0, 1, 2, 3, UINT64_MAX, INT64_MAX, (uint64_t)INT64_MIN, UINT32_MAX,
		  UINT64_C(1) << 32, 0x123456789abcdef0, 0xdeadbeefcafef00d, 77 },
	[U32] = { 0, 1, 2, 3, UINT32_MAX, INT32_MAX, (uint32_t)INT32_MIN, 0xffff, 1 << 16,
		  0x12345678, 0xdeadbeef, 77 },
};

/* Zeros of both signs, numbers, an overflow, infinities, NaNs with a payload. */
static uint64_t floating(bool wide, unsigned i)
{
	static const double some[VALUES - 1] = { 0.0,   -0.0,     1.5,       -2.25, 0.1,     1e38,
						 -3e38, INFINITY, -INFINITY, 1e-45, 16777216 };
	if (i == VALUES - 1)
		return wide ? UINT64_C(0x7ff8000000000123) : 0x7fc00123;
	return wide ? of_f64(some[i] == 1e38 ? 1e308 : some[i]) : of_f32((float)some[i]);
}

static uint64_t value_of(enum type type, unsigned i)
{
	return type == F64 || type == F32 ? floating(type == F64, i) : value[type][i];
}

static bool is_nan(enum type type, uint64_t bits)
{
	return (type == F64 && isnan(f64_of(bits))) || (type == F32 && isnan(f32_of(bits)));
}

/* Which NaN a sum of two is, compilers choose. */
static void expect(enum type type, uint64_t got, uint64_t expected)
{
	if (is_nan(type, expected))
		CHECK(is_nan(type, got));
	else
		CHECK_IS(got, expected);
}

/* In one of four forms: with a result and without, blocking and split-phase; neighbours stay. */
static void apply(tern *t, enum type type, unsigned what, int k, uint64_t before, uint64_t operand,
		  unsigned form)
{
	static const uint64_t other = 0xeeeeeeeeeeeeeeee;
	uint64_t all[3] = { other, other, other }, old[2] = { 0, other }, now = 0;
	tern_addr a = board->at[k] + 8 + (width[type] == 4 && form % 2 ? 4 : 0);
	char *there = (char *)all + (a - board->at[k]);
	tern_op op = TERN_OP;
	memcpy(there, &before, width[type]);
	CHECK_IS(tern_put(t, board->at[k], all, sizeof all), 0);
	void *to = form < 2 ? old : NULL;
	if (form % 2) {
		CHECK_IS(start(t, type, what, a, operand, to, &op), 0);
		CHECK_IS(tern_op_wait(t, &op), 0);
	} else {
		CHECK_IS(block(t, type, what, a, operand, to), 0);
	}
	CHECK_IS(tern_get(t, all, board->at[k], sizeof all), 0);
	memcpy(&now, there, width[type]);
	expect(type, now, reference(type, what, before, operand));
	CHECK_IS(old[0], form < 2 ? before : 0);
	memset(there, 0xee, width[type]);
	CHECK(all[0] == other && all[1] == other && all[2] == other && old[1] == other);
}

static void refuse(tern *t, enum type type, unsigned what, int k)
{
	uint64_t before = 5, old = 77;
	tern_op op = TERN_OP;
	CHECK_IS(tern_put(t, board->at[k], &before, 8), 0);
	CHECK_IS(block(t, type, what, board->at[k], 1, &old), -EINVAL);
	CHECK_IS(start(t, type, what, board->at[k], 1, &old, &op), -EINVAL);
	CHECK(strstr(tern_strerror(-EINVAL), "there is no atomic operation"));
	CHECK_IS(tern_get(t, &before, board->at[k], 8), 0);
	CHECK(before == 5 && old == 77 && op.pending == 0);
}

static void misaligned(tern *t, enum type type, unsigned what, int k)
{
	uint64_t before[2] = { 5, 6 }, old = 77;
	CHECK_IS(tern_put(t, board->at[k], before, 16), 0);
	for (unsigned off = 1; off < width[type]; off++)
		CHECK_IS(block(t, type, what, board->at[k] + off, 1, &old), -EINVAL);
	CHECK_IS(tern_get(t, before, board->at[k], 16), 0);
	CHECK(before[0] == 5 && before[1] == 6 && old == 77);
}

static void every_operation(void)
{
	tern *t = words_open();
	unsigned done = 0;
	for (int k = 0; k < 2 && tern_rank(t) == 1; k++)
		for (enum type type = 0; type < TYPES; type++)
			for (unsigned what = 0; what < OPERATIONS + 2; what++) {
				if (!has(type, what)) {
					refuse(t, type, what, k);
					continue;
				}
				misaligned(t, type, what, k);
				for (unsigned i = 0; i < VALUES; i++, done++)
					apply(t, type, what, k, value_of(type, i),
					      value_of(type, (i * 5 + what) % VALUES),
					      (i + what / 3) % 4);
			}
	CHECK_IS(done, tern_rank(t) == 1 ? 2u * VALUES * (2 * OPERATIONS + 2 * 7) : 0);
	words_close(t);
}

static void board_run(void (*rank_main)(void))
{
	board = ranks_shared(sizeof *board);
	ranks_run(2, rank_main);
	munmap(board, sizeof *board);
}

TEST(every_operation_on_every_type_does_what_the_reference_does)
{
	board_run(every_operation);
}

TEST(every_operation_on_every_type_does_it_by_messages_too)
{
	setenv("TERN_SINGLE_COPY", "0", 1);
	board_run(every_operation);
}

TEST(every_operation_on_every_type_does_it_over_udp_too)
{
	far_use(NULL);
	board_run(every_operation);
}

/* -- Beside C11 atomics of the owner --------------------------------------------------------- */

/* Operands whose order does not matter; of floating point, those that are exact. */
static uint64_t operand_of(enum type type, unsigned what, unsigned turn, bool owner)
{
	static const double factor[4] = { 2, -1, 0.5, -1 };
	unsigned n = 2 * turn + owner;
	if (type == F64 || type == F32) {
		double v = what == TERN_AMO_MUL ? factor[n % 4] : (double)(n * 37 % 101) - 50;
		return type == F64 ? of_f64(v) : of_f32((float)v);
	}
	uint64_t v = what == TERN_AMO_MUL ? 2 * n + 3 : UINT64_C(0x9e3779b97f4a7c15) * (n + 1);
	if (what == TERN_AMO_AND)
		v = ~(UINT64_C(1) << n % 31);
	return type == U32 ? (uint32_t)v : v;
}

static uint64_t first_of(enum type type)
{
	return type == F64 ? of_f64(3) : type == F32 ? of_f32(3) : type == U32 ? 0xf0f0f0f1 : ~0ull;
}

static uint64_t c11_apply(uint64_t *word, enum type type, unsigned what, uint64_t v)
{
	if (width[type] == 4) {
		uint32_t old = atomic_load((_Atomic uint32_t *)(void *)word);
		while (!atomic_compare_exchange_weak((_Atomic uint32_t *)(void *)word, &old,
						     (uint32_t)reference(type, what, old, v)))
			;
		return old;
	}
	uint64_t old = atomic_load((_Atomic uint64_t *)word);
	while (!atomic_compare_exchange_weak((_Atomic uint64_t *)word, &old,
					     reference(type, what, old, v)))
		;
	return old;
}

static enum type now_type;
static unsigned now_what;

static void *owner_applies(void *arg)
{
	for (unsigned i = 0; i < TURNS; i++)
		c11_apply(arg, now_type, now_what, operand_of(now_type, now_what, i, true));
	return NULL;
}

static void own_both(tern *t, int k)
{
	pthread_t beside;
	uint64_t expected = first_of(now_type), got = 0;
	words[k][0] = expected;
	CHECK_IS(tern_barrier(t), 0);
	REQUIRE(pthread_create(&beside, NULL, owner_applies, &words[k][0]) == 0);
	CHECK_IS(tern_barrier(t), 0);
	pthread_join(beside, NULL);
	for (unsigned n = 0; n < 2 * TURNS; n++)
		expected = reference(now_type, now_what, expected,
				     operand_of(now_type, now_what, n / 2, n % 2));
	memcpy(&got, &words[k][0], width[now_type]);
	expect(now_type, got, expected);
}

static void apply_both(tern *t, int k)
{
	tern_op op = TERN_OP;
	uint64_t old[TURNS];
	CHECK_IS(tern_barrier(t), 0);
	for (unsigned i = 0; i < TURNS; i++)
		CHECK_IS(start(t, now_type, now_what, board->at[k],
			       operand_of(now_type, now_what, i, false), &old[i], &op),
			 0);
	CHECK_IS(tern_op_wait(t, &op), 0);
	CHECK_IS(tern_barrier(t), 0);
}

static void beside_owner(void)
{
	tern *t = words_open();
	for (int k = 0; k < 2; k++)
		for (now_type = 0; now_type < TYPES; now_type++)
			for (now_what = 0; now_what < OPERATIONS; now_what++)
				if (has(now_type, now_what) && row[now_what].any_order)
					(tern_rank(t) == 0 ? own_both : apply_both)(t, k);
	words_close(t);
}

TEST(every_operation_is_atomic_beside_c11_atomics_of_the_owner)
{
	board_run(beside_owner);
}

TEST(every_operation_is_atomic_beside_c11_atomics_of_the_owner_over_udp)
{
	far_use(NULL);
	board_run(beside_owner);
}
