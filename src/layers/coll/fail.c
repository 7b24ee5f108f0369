/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Members that leave, die or fail.
 *
 * To leave is not to die. A member that closes its endpoint has done its part of the calls that it
 * made: what it sent is handled before this layer hears that it has left, and what it wrote in its
 * outbox stays. So a call goes on, and fails only when it waits for something that the member has
 * not sent (run_needs()). That means that the member has left before its part was done: every
 * message has a receive that its call waits for, so a member that has left needs nothing any more.
 *
 * A death is told to every rank of the job, and a member that dies may have sent any part of
 * anything. So all calls on its teams that cannot complete at once fail, at each member by itself.
 *
 * Other failures are those of one member: it waits for one that has left too early, it has given
 * one up, or its memory is used up. Nobody else would hear of them, and whoever waits for this
 * member would wait for ever. So it tells all members which call has failed, COLL_FAILED, and that
 * call and later ones fail there, too, unless they are complete. If it dies over that, its death
 * tells them.
 *
 * A team is made by a call of its parent, which may fail at some of its members and succeed at
 * others. Whoever fails tells this, too, whatever the reason is. The team then fails at those that
 * have it, if the one that has it not is a member; and those that are late fail to make it.
 * models/leave.pml checks these rules.
 */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "coll/message.h"

/* -- Failing ----------------------------------------------------------------------------------- */

/* Who has left may have done so because another one died: then that one is the reason. */
static struct failure failure_reason(const tern_team *team, const struct failure *why)
{
	const struct endpoint *e = team->coll->e;
	for (uint32_t i = 0; i < team->all.n && why->code == -ESHUTDOWN; i++)
		if (job_rank_state(&e->group->job, team->all.rank[i]) == RANK_DEAD)
			return (struct failure){ team->all.rank[i], -EOWNERDEAD, "" };
	return *why;
}

void team_fail_as(tern_team *team, uint64_t call, const struct failure *why)
{
	if (call >= team->fails)
		return;
	team->fails = call;
	team->failure = failure_reason(team, why);
}

void team_fail(tern_team *team, uint64_t call, uint32_t rank, int code)
{
	team_fail_as(team, call, &(struct failure){ rank, code, "" });
}

int team_failure(const tern_team *team)
{
	struct endpoint *e = team->coll->e;
	uint32_t rank = team->failure.rank;
	if (team->failure.words[0])
		return error_set(team->failure.code, "%s", team->failure.words);
	struct net *net = e->site.peer[rank].net;
	int code = rank == e->t->rank ? 0 : net->ops->check(net, rank);
	if (code)
		return code;
	return error_set(team->failure.code,
			 "a member could not complete a call on this team, because of rank %u: "
			 "all members that live may call tern_team_survivors()",
			 rank);
}

/* -- Telling ----------------------------------------------------------------------------------- */

/* Of several calls the first one says it all; that there are no survivors is said by itself. */
void team_fail_tell(tern_team *team, uint64_t call)
{
	struct coll *c = team->coll;
	if (team->failed != UINT64_MAX && call != CALL_SURVIVORS)
		return;
	team->failed = call;
	team->untold = team->all.n;
	c->telling++;
	coll_work(c);
}

void team_fail_note(tern_team *team, uint64_t call)
{
	if (team->failure.code != -EOWNERDEAD)
		team_fail_tell(team, call);
}

uint32_t members_tell(const tern_team *team, uint32_t untold, unsigned id, uint64_t call,
		      const void *data, size_t len)
{
	struct endpoint *e = team->coll->e;
	const uint64_t words[] = { team->id, call };
	library_hold(e);
	for (; untold; untold--) {
		uint32_t rank = team->all.rank[untold - 1];
		if (rank != e->t->rank && !e->site.peer[rank].lost &&
		    layer_request(e, rank, id, data, len, 2, words) == -EAGAIN)
			break;
	}
	library_release(e);
	return untold;
}

static unsigned team_tell(tern_team *team)
{
	uint32_t before = team->untold;
	team->untold = members_tell(team, before, COLL_FAILED, team->failed, &team->failure,
				    sizeof team->failure);
	team->coll->telling -= !team->untold;
	coll_work(team->coll);
	return before - team->untold;
}

unsigned failures_tell(struct coll *c)
{
	unsigned told = 0;
	for (tern_team *team = c->teams; team && c->telling; team = team->next)
		if (team->untold)
			told += team_tell(team);
	return told;
}

static bool all_told(struct endpoint *e, void *arg)
{
	(void)e;
	return !((const tern_team *)arg)->untold;
}

void team_fail_told(tern_team *team, const char *name)
{
	struct wait w = { .call = name, .way = "to", .bounded = true };
	if (team->untold)
		w.whom = team->all.rank[team->untold - 1] + 1;
	wait_through(team->coll->e, all_told, team, &w);
}

/* -- Being told -------------------------------------------------------------------------------- */

/* A team that was made of another one by a call that has failed at `src`, which has it not. */
static bool made_by(const tern_team *team, uint64_t parent, uint64_t call)
{
	const struct maker *maker = &team->maker;
	if (maker->team != parent)
		return false;
	return maker->call == CALL_SURVIVORS ? call == CALL_SURVIVORS : maker->call >= call;
}

/* And so has it not whatever was made of that. */
static void made_fail(struct coll *c, uint64_t parent, uint64_t call, uint32_t src,
		      const struct failure *why)
{
	for (tern_team *team = c->teams; team; team = team->next) {
		uint32_t member = team_member(team, src);
		if (!made_by(team, parent, call) || member == team->all.n)
			continue;
		team_fail(team, 0, why->rank, why->code);
		view_none(team, member);
		made_fail(c, team->id, 0, src, why);
		made_fail(c, team->id, CALL_SURVIVORS, src, why);
	}
}

static void on_failed(tern *t, const tern_msg *m)
{
	struct coll *c = coll_of(t);
	uint64_t id = tern_msg_word(m, 0), call = tern_msg_word(m, 1);
	tern_team *team = team_find(c, id);
	struct failure why;
	size_t len;
	const void *data = tern_msg_data(m, &len);
	c->handled++;
	if (!data || len != sizeof why)
		return;
	memcpy(&why, data, sizeof why);
	why.words[sizeof why.words - 1] = 0;
	if (why.rank >= t->size || why.code >= 0)
		return;
	made_fail(c, id, call, tern_msg_src(m), &why);
	if (team && team_member(team, tern_msg_src(m)) < team->all.n && call != CALL_SURVIVORS)
		team_fail_as(team, call, &why);
	else if (!team && !team_over(c, id))
		early_keep(c, m, EARLY_FAILURE, &why, sizeof why);
}

void fail_handlers(struct endpoint *e)
{
	layer_on(e, COLL_FAILED, on_failed);
}
