/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Steps among members that share memory: each writes into cells of its own outbox and reads those
 * of the others, round by round. A cell is written again when all have left the round that used it.
 * Writing may be ahead of reading, within a step.
 *
 * The number of a cell is stored with release after the data and loaded with acquire before it. It
 * is also stored and loaded in the default order with `sleepers`: a member raises `sleepers`, looks
 * at the numbers once more and sleeps; who stores a number loads `sleepers` afterwards. One of the
 * two sees the other, so nobody sleeps through the number that it waits for.
 */
#include <string.h>

#include "base/cpu.h"
#include "coll/cell.h"

/*
 * Rounds that a member writes before it reads the first of them. Few where the members have a core
 * each, so that the data is read while it is in a cache. Where they take turns, one turn is to move
 * as much as there is room for.
 */
enum { AHEAD_FEW = 3 };

/*
 * The root of a reduction combines alone up to so many members, or bytes of each: members that do
 * not wait for it then go on, and write the data of calls to come.
 */
enum { REDUCE_FEW = 4 };

/* `root` is 0 where there is none. */
const struct flow flows[] = {
	[NEAR_BARRIER] = { ALL, ALL, ALL },
	[NEAR_BROADCAST] = { ROOT, ROOT, ROOT },
	[NEAR_REDUCE] = { OTHERS, ALL, NOBODY, .combines = true },
	[NEAR_ALLREDUCE] = { ALL, ALL, ALL, .combines = true },
	[NEAR_SCAN] = { ALL, UP_TO, UP_TO, .combines = true },
	[NEAR_EXSCAN] = { ALL, BEFORE, BEFORE, .combines = true },
	[NEAR_GATHER] = { OTHERS, ALL, NOBODY, .places = true },
	[NEAR_ALLGATHER] = { ALL, ALL, ALL, .places = true },
	[NEAR_SCATTER] = { ROOT, ROOT, ROOT, .pieces = true },
	[NEAR_ALLTOALL] = { ALL, ALL, ALL, .pieces = true, .places = true },
	[NEAR_ALLTOALLV] = { ALL, ALL, ALL, .pieces = true, .places = true },
	[NEAR_REDUCE_SCATTER] = { ALL, ALL, ALL, .pieces = true, .combines = true },
};

/* -- Who writes, and who is waited for -------------------------------------------------------- */

bool near_sliced(const tern_team *team, const struct near_step *s)
{
	uint32_t n = team->near.n;
	if (s->kind == NEAR_REDUCE)
		return n > REDUCE_FEW && s->len > REDUCE_SHORT;
	/* Of the whole, so that all its rounds are alike. What near_meet() does is in no slices. */
	return s->kind == NEAR_ALLREDUCE && s->len > CELL_LINE && s->len > (8 << 10) / n;
}

static bool near_writes(const tern_team *team, const struct near_step *s, uint32_t member)
{
	uint8_t who = flows[s->kind].writes;
	return who == ALL || (who == ROOT) == (member == s->root) || near_sliced(team, s);
}

/* The members whose data this one needs: [first, end). */
static void near_needs(const tern_team *team, const struct near_step *s, uint32_t *first,
		       uint32_t *end)
{
	uint32_t me = team->near.me;
	const struct flow *flow = &flows[s->kind];
	uint8_t who = me == s->root ? flow->root_needs : flow->needs;
	*first = who == ROOT ? s->root : 0;
	*end = 0;
	if (who == ROOT)
		*end = s->root + 1;
	else if (who == ALL || near_sliced(team, s))
		*end = team->near.n;
	else if (who != NOBODY)
		*end = who == UP_TO ? me + 1 : me;
}

/* -- How much of it a round moves ------------------------------------------------------------- */

/* A piece that all combine slices of takes two rounds of numbers, so it is larger. */
enum { PIECES = 8, PIECE_MOST = CELL_LONG };

/* Of a cell: one for each member, or one for all. */
static uint32_t near_pieces(const tern_team *team, const struct near_step *s)
{
	return flows[s->kind].pieces ? team->near.n : 1;
}

/* Bytes of each member's part that there is room for; all members come to the same. */
static size_t near_room(const tern_team *team, const struct near_step *s)
{
	size_t each = CELL_LONG / team->near.n;
	size_t least = near_sliced(team, s) ? SLICED_LEAST : PIECE_LEAST;
	if (flows[s->kind].pieces)
		return each >= 64 ? each - each % 64 : each;
	if (flows[s->kind].writes == ALL)
		return CELL_LONG;
	/* One writes while another reads: there are to be some pieces. */
	each = s->len / PIECES & ~(size_t)63;
	each = each < least ? least : each;
	return each < PIECE_MOST ? each : PIECE_MOST;
}

/* From `at` on. Elements are not divided: their sizes divide CELL_LONG and 64, or are the unit. */
static size_t near_chunk(const tern_team *team, const struct near_step *s, size_t at)
{
	size_t left = s->len - at, most = near_room(team, s);
	if (TERN_UNLIKELY(s->unit))
		most -= most % s->unit;
	return left < most ? left : most;
}

/* Bytes of a cell that its data may have; of the last kind a step before finds out. */
static size_t near_bytes(const tern_team *team, const struct near_step *s)
{
	if (s->kind == NEAR_ALLTOALLV)
		return CELL_LONG;
	return near_pieces(team, s) * near_chunk(team, s, 0);
}

bool near_placed(const tern_team *team, const struct near_step *s)
{
	return team->outbox[team->near.me]->places || near_bytes(team, s) <= CELL_SHORT ||
	       !near_writes(team, s, team->near.me);
}

/* Nobody else has this team's places, so the others are told that there are none. */
int near_places(tern_team *team, const struct near_step *s)
{
	struct endpoint *e = team->coll->e;
	void *p;
	if (near_placed(team, s))
		return 0;
	int rc = tern_alloc(e->t, (size_t)OUTBOX_PLACES * CELL_LONG, &p);
	if (rc) {
		team_fail(team, team->calls, e->t->rank, rc);
		team_fail_tell(team, team->calls);
		return rc;
	}
	team->outbox[team->near.me]->places = (uint64_t)((char *)p - e->group->job.base);
	return 0;
}

/* -- Looking ---------------------------------------------------------------------------------- */

/* Rounds after which what a member writes in one is written again. */
static uint32_t near_back(const tern_team *team, const struct near_step *s)
{
	return near_pieces(team, s) * s->chunk > CELL_SHORT ? OUTBOX_PLACES : OUTBOX_CELLS;
}

/* Whether this member's cell of a round may be written: all others have left that of `back` ago. */
static bool cell_free(const tern_team *team, uint64_t round, uint32_t back, uint64_t *all_left)
{
	if (round < back || *all_left > round - back)
		return true;
	uint64_t least = UINT64_MAX;
	for (uint32_t i = 0; i < team->near.n; i++) {
		if (i == team->near.me)
			continue;
		uint64_t left = atomic_load_explicit(&team->outbox[i]->left, memory_order_acquire);
		least = left < least ? left : least;
	}
	*all_left = least;
	return least > round - back;
}

/* Whether a member's number of the phase has come in the team's round. */
static bool number_come(const tern_team *team, const struct near_step *s, uint32_t member)
{
	const struct outbox_cell *c = cell_of(team, member, team->round);
	return atomic_load(s->phase == NEAR_SLICES ? &c->combined : &c->ready) > team->round;
}

bool near_cell_free(tern_team *team, const struct near_step *s)
{
	return cell_free(team, team->round, near_back(team, s), &team->all_left);
}

bool numbers_come(const tern_team *team, struct near_step *s, uint32_t first, uint32_t end)
{
	if (s->seen < first)
		s->seen = first;
	for (; s->seen < end; s->seen++)
		if (s->seen != team->near.me && !number_come(team, s, s->seen))
			return false;
	return true;
}

/* -- Telling ---------------------------------------------------------------------------------- */

/* Whether all who write in a round have written. */
static bool round_whole(const tern_team *team, const struct near_step *s, uint64_t round,
			bool combined)
{
	for (uint32_t i = 0; i < team->near.n; i++) {
		const struct outbox_cell *c = cell_of(team, i, round);
		if (atomic_load(combined ? &c->combined : &c->ready) <= round &&
		    near_writes(team, s, i))
			return false;
	}
	return true;
}

/* Rings members that sleep, if what they wait for in this round has come. */
static __attribute__((noinline)) void
sleepers_ring(const tern_team *team, const struct near_step *s, uint64_t round, bool combined)
{
	struct job *job = &team->coll->e->group->job;
	if (s->kind != NEAR_SCAN && s->kind != NEAR_EXSCAN &&
	    !round_whole(team, s, round, combined))
		return;
	for (uint32_t i = 0; i < team->near.n; i++)
		if (i != team->near.me &&
		    atomic_load(&job->rank[team->near.rank[i]].bell) & BELL_ASLEEP)
			job_ring(job, team->near.rank[i]);
}

void number_tell(const tern_team *team, const struct near_step *s, uint64_t round, bool combined)
{
	struct outbox_cell *c = cell_of(team, team->near.me, round);
	atomic_store(combined ? &c->combined : &c->ready, round + 1);
	if (TERN_UNLIKELY(atomic_load(&team->outbox[0]->sleepers)))
		sleepers_ring(team, s, round, combined);
}

void near_doze(tern_team *team, bool begin)
{
	if (begin)
		atomic_fetch_add(&team->outbox[0]->sleepers, 1);
	else
		atomic_fetch_sub(&team->outbox[0]->sleepers, 1);
}

/* -- Turns ------------------------------------------------------------------------------------ */

static void step_open(tern_team *team, struct near_step *s)
{
	if (s->kind == NEAR_BARRIER)
		s->len = 1; /* one round, in which nothing moves */
	if (s->kind == NEAR_ALLTOALLV)
		s->len = s->varied->longest; /* which a step before has found out */
	s->direct = direct_may(team, s);
	s->chunk = near_chunk(team, s, 0);
	if (!near_writes(team, s, team->near.me))
		s->filled = s->len;
}

void round_skip(tern_team *team, struct near_step *s)
{
	team->round++;
	atomic_store_explicit(&team->outbox[team->near.me]->left, team->round,
			      memory_order_release);
	s->phase = NEAR_WAIT;
	s->seen = 0;
}

static void round_leave(tern_team *team, struct near_step *s, bool all)
{
	if (all && s->chunk == s->len) /* who comes to a step has left all rounds before it */
		team->all_left = team->round;
	s->done += s->chunk;
	s->chunk = near_chunk(team, s, s->done);
	s->ahead -= s->ahead != 0;
	round_skip(team, s);
}

static void rounds_fill(tern_team *team, struct near_step *s)
{
	/* Never over what this member wrote and has not left: fewer than `back`. */
	uint32_t back = near_back(team, s), most = team->coll->e->waiting.spin ? AHEAD_FEW : back;
	while (s->filled < s->len && s->ahead < most) {
		uint64_t round = team->round + s->ahead;
		if (!cell_free(team, round, back, &team->all_left))
			return;
		size_t chunk = near_chunk(team, s, s->filled);
		cell_of(team, team->near.me, round)->place = (uint32_t)(round % OUTBOX_PLACES);
		cell_fill(team, s, round, s->filled, chunk);
		number_tell(team, s, round, false);
		s->filled += chunk;
		s->ahead++;
	}
}

static bool round_wait(struct run *r, struct near_step *s)
{
	tern_team *team = r->team;
	uint32_t first, end;
	near_needs(team, s, &first, &end);
	if (!numbers_come(team, s, first, end))
		return false;
	if (near_sliced(team, s)) {
		slice_combine(r, s);
		number_tell(team, s, team->round, true);
		s->phase = NEAR_SLICES;
		s->seen = 0;
		if (s->kind == NEAR_REDUCE && team->near.me != s->root)
			round_leave(team, s, true); /* nothing comes back */
	} else {
		cells_take(r, s, first, end);
		round_leave(team, s, first == 0 && end == team->near.n);
	}
	return true;
}

static bool round_slices(struct run *r, struct near_step *s)
{
	if (!numbers_come(r->team, s, 0, r->team->near.n))
		return false;
	slices_take(r, s);
	round_leave(r->team, s, true);
	return true;
}

bool near_turn(struct run *r, struct near_step *s)
{
	if (!s->chunk)
		step_open(r->team, s);
	if (s->direct && !direct_turn(r->team, s))
		return false;
	for (;;) {
		rounds_fill(r->team, s);
		if (s->done == s->len)
			return true;
		if (near_full(s))
			return false;
		if (!(s->phase == NEAR_WAIT ? round_wait(r, s) : round_slices(r, s)))
			return false;
	}
}

/* Whether a member has not come to where this one can go on from. */
static bool near_waits(const struct run *r, const struct near_step *s, uint32_t member)
{
	const tern_team *team = r->team;
	uint32_t first, end;
	if (member == team->near.me || s->done == s->len)
		return false;
	if (near_full(s))
		return atomic_load(&team->outbox[member]->left) + near_back(team, s) <= team->round;
	near_needs(team, s, &first, &end);
	return member >= first && member < end && !number_come(team, s, member);
}

bool near_ready(const struct run *r, const struct near_step *s, uint32_t *seen)
{
	while (*seen < r->team->near.n && !near_waits(r, s, *seen))
		++*seen;
	return *seen == r->team->near.n;
}

/* Who has left is looked for first: what it has written is seen then. */
uint32_t near_lacks(const struct run *r, const struct near_step *s)
{
	const tern_team *team = r->team;
	for (uint32_t i = 0; i < team->near.n; i++)
		if (layer_lost(team->coll->e, team->near.rank[i]) && near_waits(r, s, i))
			return team->near.rank[i] + 1;
	return 0;
}

void near_awaits(const struct run *r, const struct near_step *s, uint64_t *set)
{
	for (uint32_t i = 0; i < r->team->near.n; i++)
		if (near_waits(r, s, i))
			set_add(set, r->team->near.rank[i]);
}

/* -- Meeting ---------------------------------------------------------------------------------- */

/* Whether all numbers of the round come within a moment. */
static bool meet_wait(const tern_team *team, struct near_step *s)
{
	struct endpoint *e = team->coll->e;
	uint64_t want = team->round + 1;
	uint32_t looks = near_looks(e);
	for (; s->seen < team->near.n; s->seen++) {
		const _Atomic uint64_t *ready = &cell_of(team, s->seen, team->round)->ready;
		while (atomic_load_explicit(ready, memory_order_acquire) < want)
			if (!looks-- || !near_rest(e))
				return false;
	}
	return true;
}

/* In the order of the members, as cells_take(). */
static void meet_combine(const tern_team *team, const struct near_step *s, const struct combine *k)
{
	_Alignas(16) unsigned char sum[CELL_LINE];
	memcpy(sum, cell_of(team, 0, team->round)->data, sizeof sum);
	for (uint32_t i = 1; i < team->near.n; i++)
		k->fn(sum, cell_of(team, i, team->round)->data, k->n);
	if (s->len == sizeof(uint64_t))
		memcpy(s->out, sum, sizeof(uint64_t));
	else
		memcpy(s->out, sum, s->len);
}

bool near_meet(tern_team *team, struct near_step *s, const struct combine *k)
{
	struct outbox *own = team->outbox[team->near.me];
	struct outbox_cell *c = &own->cell[team->round % OUTBOX_CELLS];
	if (!cell_free(team, team->round, OUTBOX_CELLS, &team->all_left))
		return false;
	if (!k)
		s->len = 1; /* one round, in which nothing moves */
	else if (s->len == sizeof(uint64_t))
		memcpy(c->data, s->in, sizeof(uint64_t));
	else
		memcpy(c->data, s->in, s->len);
	s->chunk = s->filled = s->len;
	s->ahead = 1;
	number_tell(team, s, team->round, false);
	if (!meet_wait(team, s))
		return false;
	if (k)
		meet_combine(team, s, k);
	team->all_left = team->round++; /* all have come, so they have left what was before */
	atomic_store_explicit(&own->left, team->round, memory_order_release);
	return true;
}
