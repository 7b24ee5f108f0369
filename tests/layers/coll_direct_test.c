/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Long blocks of an all-to-all on one machine: each member copies them out of the heaps of the
 * others, and the kernel those that lie elsewhere, in one round of the outboxes. Where it may not
 * at one member, or a member's data is in place, all members use the outboxes.
 */
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <stddef.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <tern/coll.h>

#include "coll/run.h"
#include "lib/chance.h"
#include "lib/ranks.h"

enum { MEMBERS = 5, LEN = 300007, CALLS = 4 };

enum trouble {
	NONE,
	ALL_IN_HEAP,
	ONE_IN_HEAP,
	ALL_IN_PLACE,
	ONE_IN_PLACE,
	ONE_UNWILLING,
	ONE_REFUSED
};
static enum trouble trouble;

static _Thread_local unsigned char private[MEMBERS * LEN], to[MEMBERS * LEN];
static _Thread_local unsigned char *from;

/* From now on the kernel does not let this process read the memory of others. */
static bool reading_refuse(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof filter / sizeof *filter, filter };
	return prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0 &&
	       prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0;
}

static void alltoall_one(tern *t, tern_team *team, uint32_t call)
{
	uint32_t me = tern_team_rank(team), n = tern_team_size(team);
	bool in_place = trouble == ALL_IN_PLACE || (trouble == ONE_IN_PLACE && me == 1);
	unsigned char *in = in_place ? to : from;
	tern_op op = TERN_OP;
	memset(to, 0xee, sizeof to);
	for (uint32_t i = 0; i < n; i++)
		chance_fill(in + i * LEN, LEN, chance_of(call, me * n + i));
	if (call % 2) {
		CHECK_IS(tern_team_alltoall_start(team, in, to, LEN, &op), 0);
		CHECK_IS(tern_op_wait(t, &op), 0);
	} else {
		CHECK_IS(tern_team_alltoall(team, in, to, LEN), 0);
	}
	for (uint32_t i = 0; i < n; i++)
		CHECK(chance_filled(to + i * LEN, LEN, chance_of(call, i * n + me)));
	memset(from, 0x55, n * LEN); /* nobody reads it any more */
}

/* Whether calls take one round. */
static bool direct(void)
{
	return trouble <= ONE_IN_HEAP;
}

static void try_calls(tern *t)
{
	tern_team *all;
	void *heap;
	REQUIRE(tern_team_all(t, &all) == 0);
	REQUIRE(tern_alloc(t, sizeof private, &heap) == 0);
	from = private;
	if (trouble == ALL_IN_HEAP || (trouble == ONE_IN_HEAP && tern_rank(t) == 1))
		from = heap;
	for (uint32_t call = 0; call < CALLS; call++) {
		uint64_t round = all->round;
		alltoall_one(t, all, call);
		CHECK((all->round == round + 1) == direct());
		CHECK(all->round > round);
	}
	CHECK_IS(tern_free(t, heap), 0);
	CHECK_IS(tern_team_free(all), 0);
}

static void rank_main(void)
{
	atomic_store(&check_failures, 0);
	bool odd = strcmp(getenv("TERN_RANK"), "1") == 0;
	if (odd && trouble == ONE_UNWILLING)
		setenv("TERN_SINGLE_COPY", "0", 1);
	if (odd && (trouble == ONE_REFUSED || trouble == ALL_IN_HEAP))
		CHECK(reading_refuse());
	tern *t = ranks_open();
	try_calls(t);
	CHECK_IS(tern_close(t), 0);
}

static void try_with(enum trouble what)
{
	static const char *const modes[] = { "poll", "thread", "interrupt" };
	trouble = what;
	setenv("TERN_SIGNAL", "38", 1);
	setenv("TERN_CHECK", "0", 1); /* its calls take other steps */
	for (unsigned i = 0; i < sizeof modes / sizeof *modes; i++) {
		setenv("TERN_DELIVERY", modes[i], 1);
		for (uint32_t n = 2; n <= MEMBERS; n += 3)
			ranks_run(n, rank_main);
	}
	unsetenv("TERN_DELIVERY");
}

TEST(the_kernel_copies_long_blocks_in_one_round)
{
	try_with(NONE);
}

/* One of the members may not even read what is private. */
TEST(members_copy_long_blocks_out_of_heaps_in_one_round)
{
	try_with(ALL_IN_HEAP);
	try_with(ONE_IN_HEAP);
}

TEST(blocks_in_place_go_through_the_outboxes)
{
	try_with(ALL_IN_PLACE);
	try_with(ONE_IN_PLACE);
}

TEST(blocks_go_through_the_outboxes_where_one_member_does_not_read)
{
	try_with(ONE_UNWILLING);
}

TEST(blocks_go_through_the_outboxes_where_one_member_may_not_read)
{
	try_with(ONE_REFUSED);
}

static void prepare(tern *t)
{
	(void)t;
}

/* In one process, where a thread sanitizer sees both sides. */
TEST(long_blocks_of_threads)
{
	trouble = NONE;
	setenv("TERN_CHECK", "0", 1);
	ranks_run_threads(3, prepare, try_calls);
	trouble = ALL_IN_HEAP;
	ranks_run_threads(3, prepare, try_calls);
	trouble = ONE_IN_PLACE;
	ranks_run_threads(3, prepare, try_calls);
}
