/* SPDX-License-Identifier: BSD-3-Clause */
/* What a team keeps count of, at endpoints of one process that one thread plays. */
#include "coll/team.h"

#include <errno.h>

#include <tern/coll.h>

#include "lib/local.h"

static tern_team *team[2];

static void on_nothing(tern *t, const tern_msg *m)
{
	(void)t, (void)m;
}

static void *team_of(void *arg)
{
	tern *t = arg;
	tern_attach(t);
	CHECK_IS(tern_team_all(t, &team[tern_rank(t)]), 0);
	return NULL;
}

static void teams_open(uint32_t n)
{
	pthread_t thread;
	local_polled();
	local_open(n);
	local_on(0, on_nothing);
	REQUIRE(n == 1 || pthread_create(&thread, NULL, team_of, local[1]) == 0);
	team_of(local[0]);
	if (n > 1)
		pthread_join(thread, NULL);
	tern_attach(local[n - 1]);
}

static bool works(uint32_t r)
{
	return local[r]->own->work & 1u << LAYER_COLL;
}

TEST(when_a_call_with_a_handle_is_over_polls_have_nothing_to_do)
{
	static tern_op op[2] = { TERN_OP, TERN_OP };
	teams_open(2);
	CHECK_IS(tern_team_barrier_start(team[0], &op[0]), 0);
	CHECK(op[0].pending && works(0));
	CHECK_IS(tern_team_barrier_start(team[1], &op[1]), 0);
	while (op[0].pending || op[1].pending)
		for (uint32_t r = 0; r < 2; r++)
			CHECK(tern_poll(local[r]) >= 0);
	CHECK(!works(0) && !works(1));
	local_close();
}

TEST(a_member_whose_ring_is_full_is_told_of_a_failure_later)
{
	teams_open(2);
	struct coll *c = coll_of(local[0]);
	tern_hold(local[0]);
	while (tern_request(local[0], 1, 0) == 0)
		;
	tern_release(local[0]);
	team_fail_tell(team[0], 1);
	CHECK_IS(failures_tell(c), 0);
	CHECK(c->telling == 1 && works(0));
	CHECK(tern_poll(local[1]) > 0);
	CHECK_IS(failures_tell(c), 2);
	CHECK(c->telling == 0 && !works(0));
	local_close();
}

TEST(a_team_of_all_cannot_be_made_when_one_has_closed)
{
	local_polled();
	local_open(2);
	job_rank_leaves(&local[0]->own->group->job, 1, RANK_CLOSED);
	CHECK_IS(tern_team_all(local[0], &team[0]), -ESHUTDOWN);
	CHECK_IS(tern_close(local[0]), 0);
}

/* So that memory has some value before it is written. */
static void memory_spoil(void)
{
	enum { LEAST = 16, SIZES = 40 };
	char *of_size[SIZES];
	for (size_t i = 0; i < SIZES; i++) {
		of_size[i] = malloc(i * LEAST + LEAST);
		REQUIRE(of_size[i]);
		memset(of_size[i], 0x7e, i * LEAST + LEAST);
	}
	for (size_t i = 0; i < SIZES; i++)
		free(of_size[i]);
}

TEST(a_new_team_is_numbered_behind_those_of_its_members)
{
	teams_open(1);
	uint64_t next = coll_of(local[0])->next_id;
	tern_team *part;
	memory_spoil();
	CHECK_IS(tern_team_split(team[0], 0, 0, &part), 0);
	CHECK_IS(coll_of(local[0])->next_id, next + 1);
	CHECK_IS(tern_team_free(part), 0);
	local_close();
}
