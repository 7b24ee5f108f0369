/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A long all-to-all of members that share memory: each block is copied from where its sender has it
 * to where its receiver wants it, once, by the receiver out of the sender's heap, else by the
 * kernel. In one round of the outboxes members say where their data is, read what is for them, and
 * say that they have; nobody leaves before all have.
 *
 * Where a member cannot read, or its data is in place, all of them see that in the cells, and the
 * blocks go through the outboxes instead.
 */
#include <string.h>
#include <sys/uio.h>

#include "coll/cell.h"
#include "mem/mem.h"

/* What is in a cell. */
struct note {
	uint64_t in;
	tern_addr addr; /* the same, if it has one */
	bool refuses;   /* before the number, */
	bool failed;    /* and before the number of what is combined */
};

static struct note *note_of(const tern_team *team, uint32_t member)
{
	return (void *)cell_of(team, member, team->round)->data;
}

bool direct_may(const tern_team *team, const struct near_step *s)
{
	size_t least = team->near.n > 4 ? DIRECT_LEAST : DIRECT_FEW;
	return s->kind == NEAR_ALLTOALL && s->len >= least;
}

static void note_write(const tern_team *team, const struct near_step *s)
{
	struct mem *m = mem_of(team->coll->e->t);
	mem_let_in(m);
	*note_of(team, team->near.me) = (struct note){
		.in = (uintptr_t)s->in,
		.addr = mem_addr_all(m, s->in, team->near.n * s->len),
		.refuses = !m->single_copy || s->in == s->out,
	};
}

/*
 * The same at all members: each looks at what all have written before the numbers of the phase.
 * Who is ahead may have failed already, so that is looked at in its own phase only.
 */
static bool direct_refused(const tern_team *team, const struct near_step *s)
{
	bool refused = false;
	for (uint32_t i = 0; i < team->near.n && s->phase != NEAR_READ; i++) {
		const struct note *note = note_of(team, i);
		refused |= s->phase == NEAR_WAIT ? note->refuses : note->failed;
	}
	return refused;
}

/* Bytes of a member's block that were read; 0: it cannot be. */
static size_t block_read(const tern_team *team, const struct near_step *s, uint32_t from,
			 size_t len)
{
	uint32_t me = team->near.me;
	size_t part = me * s->len + s->moved;
	const struct note *note = note_of(team, from);
	struct mem *m = mem_of(team->coll->e->t);
	char *at = (char *)(uintptr_t)note->in + part, *to = s->out + from * s->len + s->moved;
	char *near = from == me ? at : NULL;
	if (addr_in_heap(note->addr))
		near = heap_reach(m, note->addr + part, len);
	if (near) {
		memcpy(to, near, len);
		return len;
	}
	struct iovec here = { to, len }, there = { at, len };
	ssize_t moved = process_vm_readv(atomic_load(&m->job->rank[team->near.rank[from]].pid),
					 &here, 1, &there, 1, 0);
	if (moved > 0)
		return moved;
	note_of(team, me)->failed = true;
	return 0;
}

/* Reads on, from the next member first; false when a turn has moved enough. */
static bool blocks_read(const tern_team *team, struct near_step *s)
{
	uint32_t n = team->near.n;
	size_t most = DIRECT_TURN;
	while (s->seen < n && most) {
		uint32_t from = (team->near.me + s->seen) % n;
		size_t left = s->len - s->moved, len = left < most ? left : most;
		size_t moved = block_read(team, s, from, len);
		if (!moved)
			return true;
		s->moved += moved;
		most -= moved;
		if (s->moved == s->len) {
			s->moved = 0;
			s->seen++;
		}
	}
	return s->seen == n;
}

/* Whether the phase is over. */
static bool direct_phase(tern_team *team, struct near_step *s)
{
	if (s->phase == NEAR_READ) {
		if (!blocks_read(team, s))
			return false;
		number_tell(team, s, team->round, true);
		return true;
	}
	if (!s->ahead) {
		if (!near_cell_free(team, s))
			return false;
		note_write(team, s);
		s->ahead = 1;
		s->filled = s->len;
		number_tell(team, s, team->round, false);
	}
	return numbers_come(team, s, 0, team->near.n);
}

/* In the end the step is over, or begins again by the outboxes. */
bool direct_turn(tern_team *team, struct near_step *s)
{
	while (direct_phase(team, s)) {
		bool refused = direct_refused(team, s);
		s->seen = 0;
		if (refused || s->phase == NEAR_SLICES) {
			s->direct = false;
			s->ahead = 0;
			s->done = s->filled = refused ? 0 : s->len;
			round_skip(team, s);
			return true;
		}
		s->phase++;
	}
	return false;
}
