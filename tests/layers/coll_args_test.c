/* SPDX-License-Identifier: BSD-3-Clause */
/* Arguments of tern/coll.h that cannot be right: a code, a sentence, and the team goes on. */
#include <errno.h>
#include <string.h>
#include <tern/coll.h>

#include "coll/run.h"
#include "lib/check.h"

static tern *t;
static tern_team *all;
static uint64_t in[4], out[4];

static void refused(int rc, int code, const char *name, const char *words, int line)
{
	const char *sentence = rc ? tern_strerror(rc) : "";
	if (!CHECK_IS(rc, code) || !CHECK(strstr(sentence, name) && strstr(sentence, words)))
		printf("    line %d: %s\n", line, sentence);
	CHECK_IS(tern_team_barrier(all), 0);
}

#define U64 TERN_TYPE_UINT64
#define SUM TERN_REDUCE_SUM
/* Both forms of a call: the one with a handle leaves that alone. */
#define BAD(code, words, name, ...)                                                               \
	do {                                                                                      \
		tern_op op = TERN_OP;                                                             \
		refused(tern_team_##name(all, __VA_ARGS__), code, "tern_team_" #name "()", words, \
			__LINE__);                                                                \
		refused(tern_team_##name##_start(all, __VA_ARGS__, &op), code,                    \
			"tern_team_" #name "_start()", words, __LINE__);                          \
		CHECK_IS(tern_op_wait(t, &op), 0);                                                \
	} while (0)

static void begin(void)
{
	REQUIRE(tern_open_local(1, &t) == 0 && tern_team_all(t, &all) == 0);
}

static void end(void)
{
	CHECK_IS(tern_team_free(all), 0);
	CHECK_IS(tern_close(t), 0);
}

TEST(a_root_that_is_no_member_is_refused)
{
	begin();
	BAD(-EINVAL, "member 1 as its root", broadcast, 1, in, 8);
	BAD(-EINVAL, "member 1 as its root", reduce, 1, in, out, 1, U64, SUM);
	BAD(-EINVAL, "member 7 as its root", gather, 7, in, out, 8);
	BAD(-EINVAL, "member 7 as its root", scatter, 7, in, out, 8);
	tern_part part = { .base = in, .run = 8 };
	tern_neighbor other = { .to = 0, .from = 1, .in = part, .out = part };
	BAD(-EINVAL, "member 7 as its root", gatherv, 7, &part, &part);
	BAD(-EINVAL, "member 7 as its root", scatterv, 7, &part, &part);
	BAD(-EINVAL, "member 1 as a neighbour", exchange, &other, 1);
	end();
}

static void keep_left(void *left, const void *right, size_t n, void *arg)
{
	(void)left, (void)right, (void)n, (void)arg;
}

TEST(types_and_operations_that_there_are_not_are_refused)
{
	begin();
	BAD(-EINVAL, "type 99", reduce, 0, in, out, 1, (enum tern_type)99, SUM);
	BAD(-EINVAL, "type 99", allreduce, in, out, 1, (enum tern_type)99, SUM);
	BAD(-EINVAL, "type 99", scan, in, out, 1, (enum tern_type)99, SUM);
	BAD(-EINVAL, "type 99", exscan, in, out, 1, (enum tern_type)99, SUM);
	BAD(-EINVAL, "operation 50", reduce, 0, in, out, 1, U64, 50);
	BAD(-EINVAL, "operation 50", allreduce, in, out, 1, U64, 50);
	BAD(-EINVAL, "operation 50", scan, in, out, 1, U64, 50);
	BAD(-EINVAL, "operation 64", exscan, in, out, 1, U64, 64);
	BAD(-EINVAL, "type 64", exscan, in, out, 1, TERN_TYPE_USER, SUM);
	BAD(-EINVAL, "TERN_REDUCE_XOR is not defined", allreduce, in, out, 1, TERN_TYPE_DOUBLE,
	    TERN_REDUCE_XOR);
	tern_reduce_op none = { NULL, NULL, 8 }, empty = { keep_left, NULL, 0 };
	BAD(-EINVAL, "another type than TERN_TYPE_USER", allreduce, in, out, 1, U64,
	    TERN_REDUCE_BY(&empty));
	BAD(-EINVAL, "without a function", scan, in, out, 1, TERN_TYPE_USER, TERN_REDUCE_BY(&none));
	BAD(-EINVAL, "elements of 0 bytes", reduce, 0, in, out, 1, TERN_TYPE_USER,
	    TERN_REDUCE_BY(&empty));
	end();
}

TEST(data_without_memory_is_refused)
{
	begin();
	BAD(-EINVAL, "no memory for them", broadcast, 0, NULL, 8);
	BAD(-EINVAL, "no memory for them", reduce, 0, NULL, out, 1, U64, SUM);
	BAD(-EINVAL, "no memory for them", reduce, 0, in, NULL, 1, U64, SUM);
	BAD(-EINVAL, "no memory for them", allreduce, NULL, out, 1, U64, SUM);
	BAD(-EINVAL, "no memory for them", allreduce, in, NULL, 1, U64, SUM);
	BAD(-EINVAL, "no memory for them", scan, NULL, out, 1, U64, SUM);
	BAD(-EINVAL, "no memory for them", scan, in, NULL, 1, U64, SUM);
	BAD(-EINVAL, "no memory for them", exscan, NULL, out, 1, U64, SUM);
	BAD(-EINVAL, "no memory for them", gather, 0, NULL, out, 8);
	BAD(-EINVAL, "no memory for them", gather, 0, in, NULL, 8);
	BAD(-EINVAL, "no memory for them", allgather, NULL, out, 8);
	BAD(-EINVAL, "no memory for them", allgather, in, NULL, 8);
	BAD(-EINVAL, "no memory for them", scatter, 0, NULL, out, 8);
	BAD(-EINVAL, "no memory for them", scatter, 0, in, NULL, 8);
	BAD(-EINVAL, "no memory for them", alltoall, NULL, out, 8);
	BAD(-EINVAL, "no memory for them", alltoall, in, NULL, 8);
	tern_part none = { .run = 8 }, some = { .base = out, .run = 8 };
	BAD(-EINVAL, "no list of parts", alltoallv, NULL, &some);
	BAD(-EINVAL, "no list of parts", alltoallv, &some, NULL);
	BAD(-EINVAL, "no list of parts", allgatherv, NULL, &some);
	BAD(-EINVAL, "no list of parts", gatherv, 0, &some, NULL);
	BAD(-EINVAL, "no list of parts", scatterv, 0, NULL, &some);
	BAD(-EINVAL, "no list of 1 neighbours", exchange, NULL, 1);
	BAD(-EINVAL, "no counts", reduce_scatter, in, out, NULL, U64, SUM);
	BAD(-EINVAL, "no memory for them", reduce_scatter, in, NULL, &(size_t){ 1 }, U64, SUM);
	CHECK_IS(tern_team_alltoallv(all, &none, &some), -EINVAL);
	CHECK_IS(tern_team_alltoallv(all, &some, &none), -EINVAL);
	end();
}

TEST(no_bytes_need_no_memory)
{
	begin();
	CHECK_IS(tern_team_broadcast(all, 0, NULL, 0), 0);
	CHECK_IS(tern_team_allreduce(all, NULL, NULL, 0, U64, SUM), 0);
	CHECK_IS(tern_team_allgather(all, NULL, NULL, 0), 0);
	CHECK_IS(tern_team_alltoall(all, NULL, NULL, 0), 0);
	CHECK_IS(tern_team_exscan(all, in, NULL, 1, U64, SUM), 0); /* the first gets nothing */
	end();
}

TEST(more_than_memory_has_is_refused)
{
	begin();
	BAD(-EOVERFLOW, "elements", reduce, 0, in, out, SIZE_MAX / 8, U64, SUM);
	BAD(-EOVERFLOW, "elements", allreduce, in, out, SIZE_MAX / 8, U64, SUM);
	BAD(-EOVERFLOW, "elements", scan, in, out, SIZE_MAX / 8, U64, SUM);
	BAD(-EOVERFLOW, "elements", exscan, in, out, SIZE_MAX / 8, U64, SUM);
	BAD(-EOVERFLOW, "bytes for each", broadcast, 0, in, SIZE_MAX / 2);
	BAD(-EOVERFLOW, "bytes for each", gather, 0, in, out, SIZE_MAX / 2);
	BAD(-EOVERFLOW, "bytes for each", allgather, in, out, SIZE_MAX / 2);
	BAD(-EOVERFLOW, "bytes for each", scatter, 0, in, out, SIZE_MAX / 2);
	BAD(-EOVERFLOW, "bytes for each", alltoall, in, out, SIZE_MAX / 2);
	end();
}

TEST(matrices_that_cannot_be_are_refused)
{
	begin();
	tern_matrix a = { in, 1, 2, 8, 0 }, b = { out, 2, 1, 8, 0 };
	tern_matrix c = { out, 2, 2, 8, 0 }, narrow = { in, 1, 2, 8, 8 },
		    empty = { in, 1, 2, 0, 0 };
	tern_matrix huge = { in, SIZE_MAX / 2, 2, 8, 0 };
	BAD(-EINVAL, "to become one of 2 times 2", transpose, &a, &c);
	BAD(-EINVAL, "no matrix", transpose, NULL, &b);
	BAD(-EINVAL, "no matrix", transpose, &a, NULL);
	BAD(-EINVAL, "rows 8 bytes apart", transpose, &narrow, &b);
	BAD(-EINVAL, "elements of 0 bytes", transpose, &empty, &b);
	BAD(-EOVERFLOW, "elements of 8 bytes", transpose, &huge, &b);
	CHECK_IS(tern_team_transpose(all, &a, &b), 0);
	end();
}

TEST(teams_that_cannot_be_are_refused)
{
	tern_team *none = (tern_team *)1;
	uint32_t twice[2] = { 0, 0 }, stranger = 3;
	begin();
	refused(tern_team_split(all, -2, 0, &none), -EINVAL, "tern_team_split()", "color -2",
		__LINE__);
	refused(tern_team_split(all, 0, 0, NULL), -EINVAL, "tern_team_split()", "no place",
		__LINE__);
	refused(tern_team_list(all, &stranger, 1, &none), -EINVAL, "tern_team_list()",
		"not in the team", __LINE__);
	refused(tern_team_list(all, twice, 2, &none), -EINVAL, "tern_team_list()",
		"in the list twice", __LINE__);
	refused(tern_team_list(all, NULL, 2, &none), -EINVAL, "tern_team_list()", "no list",
		__LINE__);
	refused(tern_team_machine(all, NULL), -EINVAL, "tern_team_machine()", "no place", __LINE__);
	refused(tern_team_survivors(all, NULL), -EINVAL, "tern_team_survivors()", "no place",
		__LINE__);
	refused(tern_team_all(t, NULL), -EINVAL, "tern_team_all()", "no place", __LINE__);
	CHECK(none == (tern_team *)1);
	CHECK_IS(tern_team_free(NULL), 0);
	CHECK_IS(tern_team_member(all, 1), TERN_RANK_NONE);
	end();
}

TEST(without_a_handle_a_call_waits)
{
	begin();
	in[0] = 5;
	CHECK_IS(tern_team_allreduce_start(all, in, out, 1, U64, SUM, NULL), 0);
	CHECK_IS(out[0], 5);
	CHECK_IS(tern_team_barrier_start(all, NULL), 0);
	end();
}

/* Else this member would meet the others in another call than they. */
TEST(a_call_that_has_no_memory_is_not_counted)
{
	begin();
	for (int i = 0; i < 200; i++) {
		uint64_t ahead = all->ahead, calls = all->calls;
		struct run *r;
		REQUIRE(call_begin(all, "a test", &r) == 0);
		r->error = -ENOMEM;
		CHECK_IS(run_go(r, NULL), -ENOMEM);
		CHECK(strstr(tern_strerror(-ENOMEM), "a test"));
		CHECK_IS(all->ahead, ahead);
		CHECK_IS(all->calls, calls);
		CHECK_IS(tern_team_broadcast(all, 0, in, 8), 0);
	}
	end();
}
