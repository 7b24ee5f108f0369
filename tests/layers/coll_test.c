/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: TIMEOUT 300 */
/*
 * Every collective against a reference: each type with each operation, counts of 0 and counts that
 * do not divide, in place and not, on teams of several shapes, by outboxes and by messages, with
 * ranks that come early and late.
 */
#include <string.h>

#include "coll/run.h"
#include "lib/chance.h"
#include "lib/net_traffic.h"
#include "lib/ranks.h"
#include "lib/type_size.h"

enum { MOST = 70000, COUNTS_MOST = 9000, CALLS_MEMBERS = 16, GATHERINGS = 8, BARRIER_MESSAGES = 2 };

static uint64_t first_seed;
static _Thread_local uint64_t seed;
static _Thread_local struct chance late;

/* -- The reference ---------------------------------------------------------------------- */

/* Small whole numbers: every order of adding and multiplying gives the same. */
static long long value_of(uint32_t member, size_t i, unsigned how)
{
	uint64_t x = chance_of(seed, member * UINT64_C(1000003) + i);
	return how == TERN_REDUCE_PRODUCT ? (long long)(x % 3 == 0) + 1 : (long long)(x % 7);
}

static void element_set(void *at, size_t i, enum tern_type type, long long value, uint64_t where)
{
	switch (type) {
	case TERN_TYPE_INT8:
		((int8_t *)at)[i] = (int8_t)value;
		break;
	case TERN_TYPE_INT16:
		((int16_t *)at)[i] = (int16_t)value;
		break;
	case TERN_TYPE_INT32:
		((int32_t *)at)[i] = (int32_t)value;
		break;
	case TERN_TYPE_INT64:
		((int64_t *)at)[i] = (int64_t)value;
		break;
	case TERN_TYPE_UINT8:
		((uint8_t *)at)[i] = (uint8_t)value;
		break;
	case TERN_TYPE_UINT16:
		((uint16_t *)at)[i] = (uint16_t)value;
		break;
	case TERN_TYPE_UINT32:
		((uint32_t *)at)[i] = (uint32_t)value;
		break;
	case TERN_TYPE_UINT64:
		((uint64_t *)at)[i] = (uint64_t)value;
		break;
	case TERN_TYPE_FLOAT:
		((float *)at)[i] = (float)value;
		break;
	case TERN_TYPE_DOUBLE:
		((double *)at)[i] = (double)value;
		break;
	case TERN_TYPE_COMPLEX_FLOAT:
		((float *)at)[2 * i] = (float)value;
		((float *)at)[2 * i + 1] = 0;
		break;
	case TERN_TYPE_COMPLEX_DOUBLE:
		((double *)at)[2 * i] = (double)value;
		((double *)at)[2 * i + 1] = 0;
		break;
	case TERN_TYPE_INT64_AT:
		((tern_int64_at *)at)[i] = (tern_int64_at){ value, where };
		break;
	case TERN_TYPE_UINT64_AT:
		((tern_uint64_at *)at)[i] = (tern_uint64_at){ (uint64_t)value, where };
		break;
	default:
		((tern_double_at *)at)[i] = (tern_double_at){ (double)value, where };
		break;
	}
}

static long long two_combined(long long a, long long b, unsigned how)
{
	switch (how & ~(unsigned)TERN_REDUCE_EXACT) {
	case TERN_REDUCE_SUM:
		return a + b;
	case TERN_REDUCE_PRODUCT:
		return a * b;
	case TERN_REDUCE_MIN:
		return a < b ? a : b;
	case TERN_REDUCE_MAX:
		return a > b ? a : b;
	case TERN_REDUCE_AND:
		return a & b;
	case TERN_REDUCE_OR:
		return a | b;
	case TERN_REDUCE_XOR:
		return a ^ b;
	case TERN_REDUCE_ALL:
		return a && b;
	default:
		return a || b;
	}
}

/* Of members 0 .. last, into `at`. */
static void expect_set(void *at, size_t n, enum tern_type type, unsigned how, uint32_t last)
{
	for (size_t i = 0; i < n; i++) {
		long long sum = value_of(0, i, how);
		uint64_t where = 0;
		for (uint32_t m = 1; m <= last; m++) {
			long long next = two_combined(sum, value_of(m, i, how), how);
			if (next != sum)
				where = m;
			sum = next;
		}
		element_set(at, i, type, sum, where);
	}
}

/* -- Reductions -------------------------------------------------------------------------------- */

static bool is_defined(enum tern_type type, unsigned how)
{
	if (type >= TERN_TYPE_INT64_AT)
		return how == TERN_REDUCE_MIN || how == TERN_REDUCE_MAX;
	if (type >= TERN_TYPE_COMPLEX_FLOAT)
		return how == TERN_REDUCE_SUM || how == TERN_REDUCE_PRODUCT;
	return type < TERN_TYPE_FLOAT || how <= TERN_REDUCE_MAX;
}

static void arrive(tern *t)
{
	if (chance_one_in(&late, 8))
		ranks_nap(chance_below(&late, 200000));
	if (chance_one_in(&late, 8))
		tern_poll(t);
}

static _Thread_local unsigned char in[COUNTS_MOST * 16], out[COUNTS_MOST * 16],
	expected[COUNTS_MOST * 16];

static void reduce_one(tern *t, tern_team *team, enum tern_type type, unsigned how, size_t n,
		       unsigned form)
{
	uint32_t me = tern_team_rank(team), size = tern_team_size(team);
	uint32_t root = (uint32_t)chance_of(seed, 7) % size;
	bool in_place = chance_of(seed, 8) % 2;
	size_t bytes = n * type_size(type);
	unsigned char *to = in_place ? in : out;
	unsigned what = how & ~(unsigned)TERN_REDUCE_EXACT;
	int rc;
	for (size_t i = 0; i < n; i++)
		element_set(in, i, type, value_of(me, i, what), me);
	memset(out, 0xee, bytes);
	arrive(t);
	if (form == 0)
		rc = tern_team_allreduce(team, in, to, n, type, how);
	else if (form == 1)
		rc = tern_team_reduce(team, root, in, to, n, type, how);
	else if (form == 2)
		rc = tern_team_scan(team, in, to, n, type, how);
	else
		rc = tern_team_exscan(team, in, to, n, type, how);
	CHECK_IS(rc, 0);
	if ((form == 1 && me != root) || (form == 3 && me == 0))
		return;
	expect_set(expected, n, type, what, form == 2 ? me : form == 3 ? me - 1 : size - 1);
	if (!CHECK(memcmp(to, expected, bytes) == 0))
		printf("    form %u type %d how %u n %zu member %u of %u\n", form, (int)type, how,
		       n, me, size);
}

static void reduce_all(tern *t, tern_team *team, bool quick)
{
	static const size_t counts[] = { 0, 1, 2, 3, 7, 48, 70, 71, 129, 1000, 9000 };
	for (int type = 0; type < TERN_TYPES; type++)
		for (unsigned how = 0; how < TERN_REDUCES; how++) {
			if (!is_defined((enum tern_type)type, how)) {
				CHECK_IS(tern_team_allreduce(team, in, out, 1, (enum tern_type)type,
							     how),
					 -EINVAL);
				continue;
			}
			for (unsigned c = 0; c < sizeof counts / sizeof *counts; c++) {
				seed++;
				unsigned form = (unsigned)(seed % 4);
				bool exact = seed % 5 == 0;
				if (quick && seed % 3)
					continue;
				reduce_one(t, team, (enum tern_type)type,
					   exact ? how | TERN_REDUCE_EXACT : how, counts[c], form);
			}
		}
}

/* -- Moving ------------------------------------------------------------------------------------ */

enum { MEMBERS_MOST = 8 };
static _Thread_local unsigned char from[MEMBERS_MOST * MOST], to[MEMBERS_MOST * MOST];

static uint64_t number_of(uint32_t src, uint32_t dst)
{
	return chance_of(seed, src * 64 + dst);
}

enum moving { BROADCAST, GATHER, ALLGATHER, SCATTER, ALLTOALL, MOVINGS };

static int move_call(tern_team *team, enum moving what, uint32_t root, const void *source,
		     void *target, size_t len, tern_op *op)
{
	switch (what) {
	case BROADCAST:
		return op ? tern_team_broadcast_start(team, root, target, len, op)
			  : tern_team_broadcast(team, root, target, len);
	case GATHER:
		return op ? tern_team_gather_start(team, root, source, target, len, op)
			  : tern_team_gather(team, root, source, target, len);
	case ALLGATHER:
		return op ? tern_team_allgather_start(team, source, target, len, op)
			  : tern_team_allgather(team, source, target, len);
	case SCATTER:
		return op ? tern_team_scatter_start(team, root, source, target, len, op)
			  : tern_team_scatter(team, root, source, target, len);
	default:
		return op ? tern_team_alltoall_start(team, source, target, len, op)
			  : tern_team_alltoall(team, source, target, len);
	}
}

/* In place, the shorter of the two buffers is this member's part of the longer one. */
static void move_one(tern *t, tern_team *team, enum moving what, size_t len, bool in_place)
{
	uint32_t me = tern_team_rank(team), n = tern_team_size(team);
	uint32_t root = (uint32_t)chance_of(seed, 3) % n;
	bool alike = what == BROADCAST || what == GATHER || what == ALLGATHER;
	unsigned char *source = from, *target = to;
	memset(to, 0xee, n * len);
	if (in_place && (what == ALLGATHER || (what == GATHER && me == root)))
		source = to + me * len;
	else if (in_place && what == SCATTER && me == root)
		target = from + me * len;
	else if (what == BROADCAST || (in_place && what == ALLTOALL))
		source = to;
	for (uint32_t i = 0; i < (alike ? 1 : n); i++)
		chance_fill(source + i * len, len, number_of(me, i));
	arrive(t);
	tern_op op = TERN_OP;
	bool start = seed % 2;
	CHECK_IS(move_call(team, what, root, source, target, len, start ? &op : NULL), 0);
	if (start)
		CHECK_IS(tern_op_wait(t, &op), 0);
	bool one = what == BROADCAST || what == SCATTER, right = true;
	if (one) /* part, of the root */
		right = chance_filled(target, len, number_of(root, what == SCATTER ? me : 0));
	for (uint32_t i = 0; i < n && !one && (what != GATHER || me == root); i++)
		right &= chance_filled(target + i * len, len, number_of(i, alike ? 0 : me));
	if (!CHECK(right))
		printf("    moving %d len %zu member %u of %u, in place %d\n", (int)what, len, me,
		       n, in_place);
}

static void move_all(tern *t, tern_team *team)
{
	static const size_t lengths[] = {
		0, 1, 8, 48, 49, 560, 561, 1000, 8192, 8193, 65536, MOST
	};
	for (unsigned i = 0; i < sizeof lengths / sizeof *lengths; i++)
		for (int what = 0; what < MOVINGS; what++)
			for (int again = 0; again < 2; again++) {
				seed++;
				move_one(t, team, (enum moving)what, lengths[i], seed / 2 % 2);
			}
}

/* -- Lengths that differ, and matrices --------------------------------------------------------- */

static size_t length_of(uint32_t src, uint32_t dst)
{
	return chance_of(seed, src * 131 + dst) % 5 ? chance_of(seed, src * 77 + dst) % 9000 : 0;
}

static void vary_one(tern *t, tern_team *team)
{
	uint32_t me = tern_team_rank(team), n = tern_team_size(team);
	tern_part in_part[MEMBERS_MOST], out_part[MEMBERS_MOST];
	size_t in_at = 0, out_at = 0;
	for (uint32_t i = 0; i < n; i++) {
		in_part[i] = (tern_part){ .run = length_of(me, i) };
		out_part[i] = (tern_part){ .run = length_of(i, me) };
		in_part[i].base = from + in_at;
		out_part[i].base = to + out_at;
		chance_fill(from + in_at, in_part[i].run, number_of(me, i));
		in_at += in_part[i].run;
		out_at += out_part[i].run;
	}
	memset(to, 0xee, out_at);
	bool odd = n > 1 && seed % 4 == 0; /* the first two do not agree */
	if (odd && me == 0)
		in_part[1].run = in_part[1].run ? in_part[1].run - 1 : 1;
	arrive(t);
	int rc = tern_team_alltoallv(team, in_part, out_part);
	CHECK_IS(rc, odd && me < 2 ? -EMSGSIZE : 0);
	for (uint32_t i = 0; i < n; i++)
		if (!(odd && me == 1 && i == 0))
			CHECK(chance_filled(out_part[i].base, out_part[i].run, number_of(i, me)));
}

static void transpose_one(tern *t, tern_team *team, size_t rows, size_t cols, size_t pad)
{
	uint32_t me = tern_team_rank(team), n = tern_team_size(team);
	size_t first = rows * me / n, end = rows * (me + 1) / n;
	size_t first_out = cols * me / n, end_out = cols * (me + 1) / n;
	uint32_t *a = (uint32_t *)(void *)from, *b = (uint32_t *)(void *)to;
	for (size_t r = first; r < end; r++)
		for (size_t c = 0; c < cols; c++)
			a[(r - first) * (cols + pad) + c] = (uint32_t)(r * 1000 + c);
	memset(to, 0xee, sizeof to);
	tern_matrix x = { a, rows, cols, 4, pad ? (cols + pad) * 4 : 0 },
		    y = { b, cols, rows, 4, 0 };
	arrive(t);
	CHECK_IS(tern_team_transpose(team, &x, &y), 0);
	bool right = true;
	for (size_t r = first_out; r < end_out; r++)
		for (size_t c = 0; c < rows; c++)
			right &= b[(r - first_out) * rows + c] == c * 1000 + r;
	CHECK(right);
	y.rows++;
	CHECK_IS(tern_team_transpose(team, &x, &y), -EINVAL);
}

static void vary_all(tern *t, tern_team *team)
{
	for (int i = 0; i < 20; i++) {
		seed++;
		vary_one(t, team);
	}
	transpose_one(t, team, 1, 1, 0);
	transpose_one(t, team, 3, 17, 0);
	transpose_one(t, team, 64, 64, 5);
	transpose_one(t, team, 200, 101, 3);
}

/* -- Teams ------------------------------------------------------------------------------------- */

static void try_team(tern *t, tern_team *team, bool quick)
{
	reduce_all(t, team, quick);
	move_all(t, team);
	vary_all(t, team);
	CHECK_IS(tern_team_barrier(team), 0);
}

/* Gathering few bytes: one message from each other machine; and those of two barriers. */
static void try_messages(tern *t, tern_team *team)
{
	uint64_t one = tern_rank(t), all[CALLS_MEMBERS], before = coll_of(t)->handled;
	CHECK_IS(tern_team_barrier(team), 0); /* nobody gathers before all have looked */
	for (unsigned i = 0; i < GATHERINGS; i++)
		CHECK_IS(tern_team_gather(team, 0, &one, all, sizeof one), 0);
	uint64_t came = coll_of(t)->handled - before;
	CHECK_IS(tern_team_barrier(team), 0);
	if (tern_team_rank(team) == 0 && !team->maker.checked &&
	    !CHECK(came <= GATHERINGS * (team->heads.n - 1) + 2 * BARRIER_MESSAGES))
		printf("    %llu messages came from %u machines\n", (unsigned long long)came,
		       team->heads.n - 1);
}

/* Members of one machine do not follow each other; where there are several. */
static void try_mixed(tern *t, tern_team *all)
{
	tern_team *mixed;
	if (all->heads.n == 1 || all->heads.n == all->all.n)
		return;
	CHECK_IS(tern_team_split(all, 0, (int)tern_rank(t) % 2, &mixed), 0);
	try_team(t, mixed, true);
	try_messages(t, mixed);
	CHECK_IS(tern_team_free(mixed), 0);
}

static void try_shapes(tern *t)
{
	tern_team *all, *part = NULL, *machine;
	seed = first_seed;
	late = (struct chance){ seed + tern_rank(t) };
	REQUIRE(tern_team_all(t, &all) == 0);
	CHECK_IS(tern_team_size(all), tern_size(t));
	CHECK_IS(tern_team_rank(all), tern_rank(t));
	try_team(t, all, false);
	try_mixed(t, all);
	/* Two halves, each in the order opposite to that of the ranks. */
	CHECK_IS(tern_team_split(all, (int)(tern_rank(t) % 2), -(int)tern_rank(t), &part), 0);
	CHECK_IS(tern_team_member(part, tern_team_rank(part)), tern_rank(t));
	CHECK_IS(tern_team_member(part, tern_team_size(part)), TERN_RANK_NONE);
	try_team(t, part, true);
	CHECK_IS(tern_team_free(part), 0);
	uint32_t first[2] = { tern_size(t) - 1, 0 };
	part = all;
	CHECK_IS(tern_team_list(all, first, tern_size(t) > 1 ? 2 : 1, &part), 0);
	bool in_it = tern_rank(t) == first[0] || tern_rank(t) == first[1];
	CHECK((part != NULL) == in_it);
	if (part)
		try_team(t, part, true);
	CHECK_IS(tern_team_free(part), 0);
	CHECK_IS(tern_team_machine(all, &machine), 0);
	uint32_t near = 0;
	for (uint32_t r = 0; r < tern_size(t); r++)
		near += tern_near_is(t, r) != 0;
	CHECK_IS(tern_team_size(machine), near);
	CHECK_IS(tern_team_free(machine), 0);
	CHECK_IS(tern_team_quiet(all), 0);
	CHECK_IS(tern_team_free(all), 0);
}

static void rank_main(void)
{
	atomic_store(&check_failures, 0);
	tern *t = ranks_open();
	try_shapes(t);
	CHECK_IS(tern_close(t), 0);
}

/* More than all places of an outbox hold, several times. */
enum { DOUBLES = 3 * OUTBOX_PLACES * CELL_LONG / 8 + 100 };

static void long_rank(void)
{
	static double mine[DOUBLES], got[DOUBLES];
	atomic_store(&check_failures, 0);
	tern *t = ranks_open();
	tern_team *all;
	uint32_t n = tern_size(t), me = tern_rank(t), wrong = 0;
	double ranks = n * (n - 1) / 2.0;
	CHECK_IS(tern_team_all(t, &all), 0);
	for (uint32_t call = 0; call < 12; call++) {
		for (int i = 0; i < DOUBLES; i++)
			mine[i] = i + me * 1000.0 + call;
		CHECK_IS(tern_team_allreduce(all, mine, got, DOUBLES, TERN_TYPE_DOUBLE,
					     TERN_REDUCE_SUM),
			 0);
		for (int i = 0; i < DOUBLES; i++)
			wrong += got[i] != n * ((double)i + call) + 1000 * ranks;
		CHECK_IS(tern_team_reduce(all, call % n, mine, got, DOUBLES, TERN_TYPE_DOUBLE,
					  TERN_REDUCE_MAX),
			 0);
		for (int i = 0; i < DOUBLES && me == call % n; i++)
			wrong += got[i] != i + (n - 1) * 1000.0 + call;
		CHECK_IS(tern_team_broadcast(all, call % n, mine, sizeof mine), 0);
		for (int i = 0; i < DOUBLES; i++)
			wrong += mine[i] != i + call % n * 1000.0 + call;
	}
	CHECK_IS(wrong, 0);
	CHECK_IS(tern_team_free(all), 0);
	CHECK_IS(tern_close(t), 0);
}

TEST(long_data_among_ranks_with_a_core_each_and_among_more)
{
	for (uint32_t n = 2; n <= 8; n *= 2) {
		ranks_start(n, 0, long_rank);
		CHECK_IS(ranks_reap(n, 0), 0);
		ranks_end();
	}
}

static void try_jobs(const char *net, const char *delivery)
{
	static const uint32_t sizes[] = { 1, 2, 3, 5, 8 };
	setenv("TERN_DELIVERY", delivery, 1);
	setenv("TERN_SIGNAL", "38", 1);
	if (net)
		setenv("TERN_NET", net, 1);
	for (unsigned i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		first_seed = check_seed();
		ranks_start(sizes[i], 0, rank_main);
		if (!CHECK_IS(ranks_reap(sizes[i], 0), 0))
			printf("    %u ranks, %s, %s\n", sizes[i], net ? net : "shm", delivery);
		ranks_end();
	}
	unsetenv("TERN_NET");
	unsetenv("TERN_DELIVERY");
}

TEST(collectives_through_outboxes)
{
	try_jobs(NULL, "poll");
}

TEST(collectives_through_outboxes_by_a_thread)
{
	try_jobs(NULL, "thread");
}

TEST(collectives_through_outboxes_by_interrupt)
{
	try_jobs(NULL, "interrupt");
}

TEST(collectives_by_messages)
{
	try_jobs("udp", "poll");
}

/* Each member hears from one other in each round, and of rounds there are as few as can be. */
static void rounds_rank(void)
{
	enum { BARRIERS = 10 };
	atomic_store(&check_failures, 0);
	tern *t = ranks_open();
	tern_team *all;
	uint64_t rounds = 0;
	while (1u << rounds < tern_size(t))
		rounds++;
	CHECK_IS(tern_team_all(t, &all), 0);
	CHECK_IS(tern_team_barrier(all), 0);
	uint64_t before = coll_of(t)->handled;
	CHECK_IS(tern_barrier(t), 0); /* nobody goes on before all have looked */
	for (unsigned i = 0; i < BARRIERS; i++)
		CHECK_IS(tern_team_barrier(all), 0);
	CHECK_IS(coll_of(t)->handled - before, BARRIERS * rounds);
	CHECK_IS(tern_barrier(t), 0);
	CHECK_IS(tern_team_free(all), 0);
	CHECK_IS(tern_close(t), 0);
}

TEST(a_barrier_by_messages_takes_each_member_one_message_in_each_round)
{
	setenv("TERN_NET", "udp", 1);
	setenv("TERN_DELIVERY", "poll", 1);
	for (uint32_t n = 2; n <= 9; n += n < 5 ? 3 : 4) {
		ranks_start(n, 0, rounds_rank);
		CHECK_IS(ranks_reap(n, 0), 0);
		ranks_end();
	}
	unsetenv("TERN_NET");
	unsetenv("TERN_DELIVERY");
}

/* Packets are lost, doubled and late; one job of each delivery is enough. */
TEST(collectives_by_messages_with_faults)
{
	static const char *const modes[] = { "poll", "thread", "interrupt" };
	setenv("TERN_SIGNAL", "38", 1);
	setenv("TERN_NET", "udp", 1);
	setenv("TERN_FAULT", "drop=0.05,duplicate=0.05,reorder=0.1,delay=0.1,seed=3", 1);
	for (unsigned i = 0; i < sizeof modes / sizeof *modes; i++) {
		setenv("TERN_DELIVERY", modes[i], 1);
		first_seed = check_seed();
		ranks_run(3, rank_main);
	}
	unsetenv("TERN_FAULT");
	unsetenv("TERN_NET");
	unsetenv("TERN_DELIVERY");
}

/* One job is enough: what differs from UDP is the network below. */
static void try_libfabric(const char *net)
{
	if (!traffic_usable(net))
		check_skip("this build, or this machine, has no such network");
	setenv("TERN_NET", net, 1);
	first_seed = check_seed();
	ranks_run(4, rank_main);
}

TEST(collectives_over_libfabric_by_tcp)
{
	try_libfabric("ofi/tcp");
}

TEST(collectives_over_libfabric_by_shared_memory)
{
	try_libfabric("ofi/shm");
}

/* By name alone: up to 8 ranks of several machines, of which some share memory. */
TEST(collectives_by_the_ranks_of_a_launcher)
{
	if (!getenv("TERN_RANK"))
		check_skip("no launcher started it");
	first_seed = 17; /* the same at all ranks */
	rank_main();
}

static void prepare(tern *t)
{
	(void)t;
}

/* In one process, where a thread sanitizer sees both sides. */
TEST(collectives_of_threads)
{
	first_seed = check_seed();
	ranks_run_threads(3, prepare, try_shapes);
}
