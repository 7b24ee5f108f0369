/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Steps among members that share memory: each writes into a cell of its own desk and reads those of
 * the others, round by round. A cell is written again when all have left the round that used it.
 *
 * The number of a cell is stored with release after the data and loaded with acquire before it. It
 * is also stored and loaded in the default order with `sleepers`: a member raises `sleepers`, looks
 * at the numbers once more and sleeps; who stores a number loads `sleepers` afterwards. One of the
 * two sees the other, so nobody sleeps through the number that it waits for.
 */
#include <string.h>

#include "base/cpu.h"
#include "coll/coll.h"

static inline unsigned slot_of(uint64_t round)
{
	return (unsigned)(round % DESK_CELLS);
}

static inline struct desk_cell *cell_of(const tern_team *team, uint32_t member)
{
	return &team->desk[member]->cell[slot_of(team->round)];
}

/* Where a member's data of this round lies. */
static inline unsigned char *data_of(const tern_team *team, uint32_t member, size_t bytes)
{
	return bytes <= CELL_SHORT ? cell_of(team, member)->data
				   : team->desk[member]->bytes[slot_of(team->round)];
}

/* -- Who writes, and who is waited for ----------------------------------------------------------
 */

static bool near_writes(const tern_team *team, const struct near_step *s)
{
	if (s->kind == NEAR_BROADCAST || s->kind == NEAR_SCATTER)
		return team->near.me == s->root;
	return true;
}

/* The members whose data this one needs: [first, end). */
static void near_needs(const tern_team *team, const struct near_step *s, uint32_t *first,
		       uint32_t *end)
{
	uint32_t me = team->near.me, n = team->near.n;
	*first = 0;
	*end = n;
	switch (s->kind) {
	case NEAR_BROADCAST:
	case NEAR_SCATTER:
		*first = s->root;
		*end = s->root + 1;
		break;
	case NEAR_GATHER:
	case NEAR_REDUCE:
		if (me != s->root)
			*end = 0;
		break;
	case NEAR_SCAN:
	case NEAR_EXSCAN:
		*end = me + 1;
		break;
	default:
		break;
	}
}

/* -- How much of it a round moves ---------------------------------------------------------------
 */

/* Bytes of each member's part; all members come to the same. */
static size_t near_most(const struct run *r, const struct near_step *s)
{
	const tern_team *team = r->team;
	switch (s->kind) {
	case NEAR_SCATTER:
	case NEAR_ALLTOALL:
	case NEAR_ALLTOALLV: { /* the cell has a piece for each member */
		size_t each = CELL_LONG / team->near.n;
		return each >= 64 ? each - each % 64 : each;
	}
	case NEAR_REDUCE:
	case NEAR_ALLREDUCE:
	case NEAR_SCAN:
	case NEAR_EXSCAN:
		return CELL_LONG - CELL_LONG % r->combine.size;
	default:
		return CELL_LONG;
	}
}

static size_t near_chunk(const struct run *r, const struct near_step *s)
{
	size_t left = s->len - s->done, most = near_most(r, s);
	return left < most ? left : most;
}

/* Bytes that a member writes into its cell. */
static size_t near_bytes(const tern_team *team, const struct near_step *s)
{
	bool pieces =
		s->kind == NEAR_SCATTER || s->kind == NEAR_ALLTOALL || s->kind == NEAR_ALLTOALLV;
	return pieces ? s->chunk * team->near.n : s->chunk;
}

/* Whether each member combines a slice, rather than whoever needs the result all of it. */
static bool near_sliced(const tern_team *team, const struct near_step *s)
{
	return (s->kind == NEAR_ALLREDUCE || s->kind == NEAR_REDUCE) &&
	       s->chunk * team->near.n > 8 << 10;
}

/* -- Looking ----------------------------------------------------------------------------------- */

/* Whether this member's cell may be written: all others have left the round that used it. */
static bool cell_free(const tern_team *team, uint64_t *all_left)
{
	if (team->round < DESK_CELLS || *all_left > team->round - DESK_CELLS)
		return true;
	uint64_t least = UINT64_MAX;
	for (uint32_t i = 0; i < team->near.n; i++) {
		if (i == team->near.me)
			continue;
		uint64_t left = atomic_load_explicit(&team->desk[i]->left, memory_order_acquire);
		least = left < least ? left : least;
	}
	*all_left = least;
	return least > team->round - DESK_CELLS;
}

/* How many of [first, end) have come, from the first on. */
static uint32_t numbers_look(const tern_team *team, bool combined, uint32_t first, uint32_t end)
{
	uint64_t want = team->round + 1;
	for (; first < end; first++) {
		const struct desk_cell *c = cell_of(team, first);
		uint64_t now = atomic_load(combined ? &c->combined : &c->ready);
		if (now < want && first != team->near.me)
			break;
	}
	return first;
}

static bool numbers_come(const tern_team *team, struct near_step *s, uint32_t first, uint32_t end)
{
	if (s->seen < first)
		s->seen = first;
	s->seen = numbers_look(team, s->phase == NEAR_SLICES, s->seen, end);
	return s->seen >= end;
}

/* -- Telling ----------------------------------------------------------------------------------- */

/* Rings members that sleep, if what they wait for in this round has come. */
static __attribute__((noinline)) void sleepers_ring(const tern_team *team,
						    const struct near_step *s, bool combined)
{
	struct job *job = &team->coll->e->group->job;
	bool one = s->kind == NEAR_BROADCAST || s->kind == NEAR_SCATTER;
	bool all = one || numbers_look(team, combined, 0, team->near.n) == team->near.n;
	if (!all && s->kind != NEAR_SCAN && s->kind != NEAR_EXSCAN)
		return;
	for (uint32_t i = 0; i < team->near.n; i++)
		if (i != team->near.me &&
		    atomic_load(&job->rank[team->near.rank[i]].bell) & BELL_ASLEEP)
			job_ring(job, team->near.rank[i]);
}

static void number_tell(const tern_team *team, const struct near_step *s, bool combined)
{
	struct desk_cell *c = cell_of(team, team->near.me);
	atomic_store(combined ? &c->combined : &c->ready, team->round + 1);
	if (TERN_UNLIKELY(atomic_load(&team->desk[0]->sleepers)))
		sleepers_ring(team, s, combined);
}

void near_doze(tern_team *team, bool begin)
{
	if (begin)
		atomic_fetch_add(&team->desk[0]->sleepers, 1);
	else
		atomic_fetch_sub(&team->desk[0]->sleepers, 1);
}

/* -- Writing and reading ------------------------------------------------------------------------
 */

/* What is left of a member's part in this round, where lengths differ. */
static size_t varied_part(const struct near_step *s, size_t len)
{
	size_t left = len > s->done ? len - s->done : 0;
	return left < s->chunk ? left : s->chunk;
}

static void varied_fill(const tern_team *team, const struct near_step *s, unsigned char *to)
{
	const struct varied *v = s->varied;
	const char *from = v->in_at;
	for (uint32_t i = 0; i < team->near.n; from += v->in_len[i++]) {
		size_t len = varied_part(s, v->mine[i].sends);
		if (len)
			memcpy(to + i * s->chunk, from + s->done, len);
	}
}

static void varied_take(const tern_team *team, const struct near_step *s)
{
	const struct varied *v = s->varied;
	char *to = v->out_at;
	for (uint32_t i = 0; i < team->near.n; to += v->out_len[i++]) {
		size_t len = varied_part(s, v->mine[i].expects);
		if (len)
			memcpy(to + s->done,
			       data_of(team, i, near_bytes(team, s)) + team->near.me * s->chunk,
			       len);
	}
}

static void cell_fill(const tern_team *team, const struct near_step *s)
{
	unsigned char *to = data_of(team, team->near.me, near_bytes(team, s));
	if (s->kind == NEAR_ALLTOALLV) {
		varied_fill(team, s, to);
		return;
	}
	if (s->kind != NEAR_SCATTER && s->kind != NEAR_ALLTOALL) {
		if (s->chunk && s->kind != NEAR_BARRIER)
			memcpy(to, s->in + s->done, s->chunk);
		return;
	}
	for (uint32_t i = 0; i < team->near.n && s->chunk; i++)
		memcpy(to + i * s->chunk, s->in + i * s->len + s->done, s->chunk);
}

/* Combines bytes [from, end) of this round's data of members 0 .. last. */
static void data_combine(const struct run *r, const struct near_step *s, char *out, size_t from,
			 size_t end, uint32_t last)
{
	const tern_team *team = r->team;
	size_t size = r->combine.size;
	if (from >= end)
		return;
	const unsigned char *first = data_of(team, 0, s->chunk) + from;
	if ((const unsigned char *)out != first)
		memcpy(out, first, end - from);
	for (uint32_t i = 1; i <= last; i++)
		combine_apply(&r->combine, out, data_of(team, i, s->chunk) + from,
			      (end - from) / size);
}

static void data_take(const struct run *r, const struct near_step *s)
{
	const tern_team *team = r->team;
	uint32_t me = team->near.me, n = team->near.n;
	switch (s->kind) {
	case NEAR_BARRIER:
		break;
	case NEAR_BROADCAST:
		if (me != s->root && s->out && s->chunk)
			memcpy(s->out + s->done, data_of(team, s->root, s->chunk), s->chunk);
		break;
	case NEAR_REDUCE:
		if (me == s->root)
			data_combine(r, s, s->out + s->done, 0, s->chunk, n - 1);
		break;
	case NEAR_ALLREDUCE:
		data_combine(r, s, s->out + s->done, 0, s->chunk, n - 1);
		break;
	case NEAR_SCAN:
		data_combine(r, s, s->out + s->done, 0, s->chunk, me);
		break;
	case NEAR_EXSCAN:
		if (me)
			data_combine(r, s, s->out + s->done, 0, s->chunk, me - 1);
		break;
	case NEAR_GATHER:
	case NEAR_ALLGATHER:
		if (s->kind == NEAR_GATHER && me != s->root)
			break;
		for (uint32_t i = 0; i < n && s->chunk; i++)
			memcpy(s->out + i * s->len + s->done, data_of(team, i, s->chunk), s->chunk);
		break;
	case NEAR_SCATTER:
		if (s->chunk)
			memcpy(s->out + s->done,
			       data_of(team, s->root, near_bytes(team, s)) + me * s->chunk,
			       s->chunk);
		break;
	case NEAR_ALLTOALLV:
		varied_take(team, s);
		break;
	case NEAR_ALLTOALL:
		for (uint32_t i = 0; i < n && s->chunk; i++)
			memcpy(s->out + i * s->len + s->done,
			       data_of(team, i, near_bytes(team, s)) + me * s->chunk, s->chunk);
		break;
	}
}

/* -- Slices --------------------------------------------------------------------------------------
 */

static void slice_of(const struct run *r, const struct near_step *s, uint32_t member, size_t *from,
		     size_t *end)
{
	size_t n = s->chunk / r->combine.size, each = (n + r->team->near.n - 1) / r->team->near.n;
	size_t line = 64 / r->combine.size ? 64 / r->combine.size : 1;
	each = (each + line - 1) / line * line; /* members do not write to one line */
	*from = member * each < n ? member * each : n;
	*end = *from + each < n ? *from + each : n;
	*from *= r->combine.size;
	*end *= r->combine.size;
}

/*
 * In the first member's cell, whose slice nobody else reads now: so members are combined in their
 * order, and all of the result lies in one place.
 */
static void slice_combine(const struct run *r, const struct near_step *s)
{
	const tern_team *team = r->team;
	size_t from, end;
	slice_of(r, s, team->near.me, &from, &end);
	for (uint32_t i = 1; i < team->near.n && from < end; i++)
		combine_apply(&r->combine, data_of(team, 0, s->chunk) + from,
			      data_of(team, i, s->chunk) + from, (end - from) / r->combine.size);
}

static void slices_take(const struct run *r, const struct near_step *s)
{
	const tern_team *team = r->team;
	if (s->kind == NEAR_ALLREDUCE || team->near.me == s->root)
		memcpy(s->out + s->done, data_of(team, 0, s->chunk), s->chunk);
}

/* -- Turns ------------------------------------------------------------------------------------- */

static void round_leave(tern_team *team, struct near_step *s)
{
	uint32_t first, end;
	near_needs(team, s, &first, &end);
	if (near_writes(team, s) && first == 0 && end == team->near.n && s->kind != NEAR_BROADCAST)
		team->all_left = team->round; /* all have come, so they have left what was before */
	team->round++;
	atomic_store_explicit(&team->desk[team->near.me]->left, team->round, memory_order_release);
	s->done += s->chunk;
	s->phase = NEAR_ENTER;
	s->seen = 0;
	s->chunk = 0;
}

static bool round_enter(struct run *r, struct near_step *s)
{
	tern_team *team = r->team;
	s->chunk = near_chunk(r, s);
	if (near_writes(team, s)) {
		if (!cell_free(team, &team->all_left))
			return false;
		cell_fill(team, s);
		number_tell(team, s, false);
	}
	s->phase = NEAR_WAIT;
	return true;
}

static bool round_wait(struct run *r, struct near_step *s)
{
	uint32_t first, end;
	bool sliced = near_sliced(r->team, s);
	near_needs(r->team, s, &first, &end);
	if (sliced) {
		first = 0;
		end = r->team->near.n;
	}
	if (!numbers_come(r->team, s, first, end))
		return false;
	if (!sliced) {
		data_take(r, s);
		round_leave(r->team, s);
		return true;
	}
	slice_combine(r, s);
	number_tell(r->team, s, true);
	s->phase = NEAR_SLICES;
	s->seen = 0;
	return true;
}

static bool round_slices(struct run *r, struct near_step *s)
{
	/* Nobody leaves before all slices are combined: they are read where others write. */
	if (!numbers_come(r->team, s, 0, r->team->near.n))
		return false;
	slices_take(r, s);
	round_leave(r->team, s);
	return true;
}

/* Between two looks. Where the members have not a core each, others get this one. */
static void meet_rest(const struct endpoint *e)
{
	if (e->spin)
		cpu_relax();
	else
		e->world->yield();
}

/* Whether all numbers of the round come within a moment. */
static bool meet_wait(const tern_team *team, struct near_step *s)
{
	const struct endpoint *e = team->coll->e;
	uint64_t want = team->round + 1;
	uint32_t looks = !e->spin ? YIELDS_MOST : e->spin < LOOKS_MOST ? e->spin : LOOKS_MOST;
	for (; s->seen < team->near.n; s->seen++) {
		const _Atomic uint64_t *ready = &cell_of(team, s->seen)->ready;
		for (; atomic_load_explicit(ready, memory_order_acquire) < want; meet_rest(e))
			if (!looks--)
				return false;
	}
	return true;
}

/* In the order of the members, as data_combine(). */
static void meet_combine(const tern_team *team, const struct near_step *s, const struct combine *k)
{
	_Alignas(16) unsigned char sum[CELL_SHORT];
	memcpy(sum, cell_of(team, 0)->data, sizeof sum);
	for (uint32_t i = 1; i < team->near.n; i++)
		k->fn(sum, cell_of(team, i)->data, k->n);
	if (s->len == sizeof(uint64_t))
		memcpy(s->out, sum, sizeof(uint64_t));
	else
		memcpy(s->out, sum, s->len);
}

bool near_meet(tern_team *team, struct near_step *s, const struct combine *k)
{
	struct desk *own = team->desk[team->near.me];
	struct desk_cell *c = &own->cell[slot_of(team->round)];
	if (!cell_free(team, &team->all_left))
		return false;
	if (!k)
		s->len = 1; /* one round, in which nothing moves */
	else if (s->len == sizeof(uint64_t))
		memcpy(c->data, s->in, sizeof(uint64_t));
	else
		memcpy(c->data, s->in, s->len);
	s->chunk = s->len;
	number_tell(team, s, false);
	s->phase = NEAR_WAIT;
	if (!meet_wait(team, s))
		return false;
	if (k)
		meet_combine(team, s, k);
	team->all_left = team->round++; /* all have come, so they have left what was before */
	atomic_store_explicit(&own->left, team->round, memory_order_release);
	return true;
}

bool near_turn(struct run *r, struct near_step *s)
{
	if (s->kind == NEAR_BARRIER && s->len == 0)
		s->len = 1; /* one round, in which nothing moves */
	if (s->kind == NEAR_ALLTOALLV)
		s->len = s->varied->longest[1]; /* which a step before has found out */
	for (;;) {
		if (s->phase == NEAR_ENTER && s->done == s->len)
			return true;
		bool on = s->phase == NEAR_ENTER  ? round_enter(r, s)
			  : s->phase == NEAR_WAIT ? round_wait(r, s)
						  : round_slices(r, s);
		if (!on)
			return false;
	}
}

bool near_ready(const struct run *r, const struct near_step *s)
{
	const tern_team *team = r->team;
	uint32_t first, end;
	if (s->phase == NEAR_ENTER) {
		uint64_t all_left = team->all_left;
		return s->done == s->len || !near_writes(team, s) || cell_free(team, &all_left);
	}
	near_needs(team, s, &first, &end);
	if (s->phase == NEAR_SLICES || near_sliced(team, s)) {
		first = 0;
		end = team->near.n;
	}
	first = s->seen > first ? s->seen : first;
	return numbers_look(team, s->phase == NEAR_SLICES, first, end) >= end;
}
