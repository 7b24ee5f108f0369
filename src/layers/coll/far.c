/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Collectives by messages, as steps. In each round receives come before sends, so that a member
 * that waits until its receiver is ready never keeps its own sender waiting.
 */
#include <string.h>

#include "coll/far.h"

/* A member, counted from the root on. */
static uint32_t rank_at(const struct members *p, uint32_t root, uint32_t place)
{
	return p->rank[(root + place) % p->n];
}

static uint32_t place_of(const struct members *p, uint32_t root)
{
	return (p->me + p->n - root) % p->n;
}

/* The i-th of n nearly equal parts of `len`, in units. */
static size_t part_at(size_t len, uint32_t n, uint32_t i)
{
	return (size_t)((__uint128_t)len * i / n);
}

/* -- Blocks ------------------------------------------------------------------------------------ */

struct blocks blocks_none(struct run *r, const void *base, uint32_t n)
{
	size_t bytes = 2 * n * sizeof(size_t);
	struct blocks b = { .base = (char *)base, .at = (void *)run_scratch(r, bytes) };
	if (b.at)
		b.len = (size_t *)memset(b.at, 0, bytes) + n;
	return b;
}

struct blocks blocks_lay(struct run *r, const void *base, uint32_t n, const size_t *counts,
			 size_t units, size_t unit)
{
	struct blocks b = blocks_none(r, base, n);
	size_t at = 0;
	for (uint32_t i = 0; b.at && i < n; i++) {
		size_t count = part_at(units, n, i + 1) - part_at(units, n, i);
		b.at[i] = at;
		b.len[i] = (counts ? counts[i] : count) * unit;
		at += b.len[i];
	}
	return b;
}

void far_exchange(struct run *r, const struct members *p, unsigned tag, const struct blocks *in,
		  const struct blocks *out)
{
	uint32_t n = p->n, me = p->me;
	if (r->error)
		return;
	size_t own = in->len[me] < out->len[me] ? in->len[me] : out->len[me];
	if (own)
		step_copy(r, out->base + out->at[me], in->base + in->at[me], own);
	for (uint32_t k = 1; k < n; k++) {
		uint32_t i = (me + n - k) % n;
		if (out->len[i])
			step_recv(r, p->rank[i], tag, out->base + out->at[i], out->len[i]);
	}
	for (uint32_t k = 1; k < n; k++) {
		uint32_t i = (me + k) % n;
		if (in->len[i])
			step_send(r, p->rank[i], tag, in->base + in->at[i], in->len[i]);
	}
	step_wait(r);
}

void far_rooted(struct run *r, const struct members *p, uint32_t root, struct blocks all,
		const void *one, size_t len, bool gathers)
{
	struct blocks mine = blocks_none(r, one, p->n);
	if (p->me != root)
		all = blocks_none(r, one, p->n);
	if (mine.len)
		mine.len[root] = len;
	far_exchange(r, p, 1, gathers ? &mine : &all, gathers ? &all : &mine);
}

/* Blocks of `count` members from one on, around: in one message, or in two. */
static void blocks_step(struct run *r, const struct blocks *b, uint32_t n, uint32_t first,
			uint32_t count, struct step s)
{
	uint32_t end = first + count < n ? first + count : n, more = first + count - end;
	s.to = b->base + b->at[first];
	s.len = b->at[end - 1] + b->len[end - 1] - b->at[first];
	s.from = s.to;
	step_add(r, s);
	s.to = b->base;
	s.len = more ? b->at[more - 1] + b->len[more - 1] : 0;
	s.from = s.to;
	s.tag++;
	if (s.len)
		step_add(r, s);
}

/* Each round doubles what a member has: its own and that of those behind it, around. */
void far_allgather(struct run *r, const struct members *p, const struct blocks *b)
{
	uint32_t n = p->n, me = p->me;
	for (uint32_t have = 1, tag = 2; have < n && !r->error; tag += 2) {
		uint32_t more = have < n - have ? have : n - have, from = (me + have) % n;
		struct step s = { .kind = STEP_RECV, .peer = p->rank[from], .tag = (uint16_t)tag };
		blocks_step(r, b, n, from, more, s);
		s.kind = STEP_SEND;
		s.peer = p->rank[(me + n - have) % n];
		blocks_step(r, b, n, me, more, s);
		step_wait(r);
		have += more;
	}
}

void far_barrier(struct run *r, const struct members *p)
{
	struct blocks none = blocks_none(r, r, p->n); /* without bytes */
	far_allgather(r, p, &none);
}

/* -- Trees ------------------------------------------------------------------------------------- */

void far_broadcast(struct run *r, const struct members *p, uint32_t root, void *data, size_t len)
{
	uint32_t me = place_of(p, root), mask = 1;
	while (mask < p->n && !(me & mask))
		mask <<= 1;
	if (me) {
		step_recv(r, rank_at(p, root, me - mask), 0, data, len);
		step_wait(r);
	}
	while (mask >>= 1)
		if (me + mask < p->n)
			step_send(r, rank_at(p, root, me + mask), 0, data, len);
}

/* `data` is combined in place at members on the way. */
static void reduce_tree(struct run *r, const struct members *p, uint32_t root, void *data,
			void *temp, size_t n)
{
	uint32_t me = place_of(p, root);
	size_t bytes = n * r->combine.size;
	for (uint32_t mask = 1, tag = 0; mask < p->n; mask <<= 1, tag++) {
		if (me & mask) {
			step_send(r, rank_at(p, root, me - mask), tag, data, bytes);
			return;
		}
		if (me + mask >= p->n)
			continue;
		step_recv(r, rank_at(p, root, me + mask), tag, temp, bytes);
		step_wait(r);
		step_combine(r, data, temp, n);
	}
}

/* -- Reductions -------------------------------------------------------------------------------- */

void far_reduce(struct run *r, const struct members *p, uint32_t root, const void *in, void *out,
		size_t n)
{
	size_t bytes = n * r->combine.size;
	if (bytes > FAR_FEW) {
		far_ordered(r, p, root, in, out, n);
		return;
	}
	char *scratch = run_scratch(r, 2 * bytes);
	if (!scratch)
		return;
	step_copy(r, scratch, in, bytes);
	reduce_tree(r, p, root, scratch, scratch + bytes, n);
	if (p->me == root)
		step_copy(r, out, scratch, bytes);
}

/* Of what each member has given, in their order, into the first place. */
static void parts_combine(struct run *r, uint32_t parts, char *all, size_t bytes)
{
	for (uint32_t i = 1; i < parts; i++)
		step_combine(r, all, all + i * bytes, bytes / r->combine.size);
}

/*
 * Recursive doubling. Members beyond a power of two are combined into others first, and told the
 * result at the end. Of two that exchange, each has its own on the left; they get the same bits,
 * since every operation that comes here commutes bit by bit (reduce.c).
 */
static void allreduce_doubling(struct run *r, const struct members *p, void *data, void *temp,
			       size_t n)
{
	uint32_t power = 1, me = p->me;
	size_t bytes = n * r->combine.size;
	while (power * 2 <= p->n)
		power *= 2;
	if (me >= power) {
		step_send(r, p->rank[me - power], 0, data, bytes);
		step_recv(r, p->rank[me - power], 1, data, bytes);
		step_wait(r);
		return;
	}
	bool pair = me + power < p->n;
	if (pair) {
		step_recv(r, p->rank[me + power], 0, temp, bytes);
		step_wait(r);
		step_combine(r, data, temp, n);
	}
	for (uint32_t d = 1, tag = 2; d < power; d *= 2, tag++) {
		step_recv(r, p->rank[me ^ d], tag, temp, bytes);
		step_send(r, p->rank[me ^ d], tag, data, bytes);
		step_wait(r);
		step_combine(r, data, temp, n);
	}
	if (pair)
		step_send(r, p->rank[me + power], 1, data, bytes);
}

void far_allreduce(struct run *r, const struct members *p, void *data, size_t n)
{
	size_t bytes = n * r->combine.size;
	if (bytes > FAR_FEW) {
		far_ordered(r, p, UINT32_MAX, data, data, n);
		return;
	}
	char *temp = run_scratch(r, bytes);
	if (temp)
		allreduce_doubling(r, p, data, temp, n);
}

/* This member's part of everybody, in the order of the members. NULL: kept as -ENOMEM. */
static char *parts_exchange(struct run *r, const struct members *p, const struct blocks *in)
{
	size_t all = r->error ? 0 : p->n * in->len[p->me];
	char *scratch = run_scratch(r, all);
	struct blocks out = blocks_lay(r, scratch, p->n, NULL, all, 1);
	far_exchange(r, p, 0, in, &out);
	return r->error ? NULL : scratch;
}

void far_reduce_scatter(struct run *r, const void *in, void *out, const size_t *counts)
{
	const struct members *p = &r->team->all;
	struct blocks parts = blocks_lay(r, in, p->n, counts, 0, r->combine.size);
	char *mine = parts_exchange(r, p, &parts);
	if (!mine)
		return;
	parts_combine(r, p->n, mine, parts.len[p->me]);
	step_copy(r, out, mine, parts.len[p->me]);
}

void far_ordered(struct run *r, const struct members *p, uint32_t root, const void *in, void *out,
		 size_t n)
{
	struct blocks parts = blocks_lay(r, in, p->n, NULL, n, r->combine.size);
	char *mine = parts_exchange(r, p, &parts);
	if (!mine)
		return;
	parts_combine(r, p->n, mine, parts.len[p->me]);
	parts.base = out;
	if (root < p->n) {
		far_rooted(r, p, root, parts, mine, parts.len[p->me], true);
	} else {
		step_copy(r, parts.base + parts.at[p->me], mine, parts.len[p->me]);
		far_allgather(r, p, &parts);
	}
}

/* -- Scans ------------------------------------------------------------------------------------- */

/* Member i combines part i from the first member on, and tells each one how far that is there. */
void far_scan(struct run *r, const void *in, char *out, size_t n, bool inclusive)
{
	const struct members *p = &r->team->all;
	struct blocks parts = blocks_lay(r, in, p->n, NULL, n, r->combine.size);
	char *part = parts_exchange(r, p, &parts);
	size_t mine = part ? parts.len[p->me] : 0;
	char *sum = run_scratch(r, mine);
	uint32_t first = inclusive ? 0 : 1; /* who gets a result */
	if (r->error)
		return;
	for (uint32_t i = 0; p->me >= first && i < p->n; i++)
		if (i != p->me && parts.len[i])
			step_recv(r, p->rank[i], 1, out + parts.at[i], parts.len[i]);
	step_copy(r, sum, part, mine);
	for (uint32_t i = 0; i < p->n; i++) {
		if (i && inclusive)
			step_combine(r, sum, part + i * mine, mine / r->combine.size);
		if (i >= first && i == p->me)
			step_copy(r, out + parts.at[i], sum, mine);
		else if (i >= first && mine)
			step_send(r, p->rank[i], 1, sum, mine);
		if (i && !inclusive)
			step_combine(r, sum, part + i * mine, mine / r->combine.size);
	}
	step_wait(r);
}

/* -- Moving many bytes: each once, from its member to the other ------------------------------- */

/* A block of each of the team's members. */
static struct blocks blocks_each(struct run *r, const void *base, size_t len)
{
	return blocks_lay(r, base, r->team->all.n, NULL, r->team->all.n * len, 1);
}

void far_gather(struct run *r, uint32_t root, const void *in, void *out, size_t len)
{
	far_rooted(r, &r->team->all, root, blocks_each(r, out, len), in, len, true);
}

void far_scatter(struct run *r, uint32_t root, const void *in, void *out, size_t len)
{
	far_rooted(r, &r->team->all, root, blocks_each(r, in, len), out, len, false);
}

void far_alltoall(struct run *r, uint32_t root, const void *in, void *out, size_t len)
{
	struct blocks from = blocks_each(r, in, len), to = blocks_each(r, out, len);
	(void)root;
	if (in == out && (from.base = run_scratch(r, r->team->all.n * len)))
		step_copy(r, from.base, in, r->team->all.n * len);
	far_exchange(r, &r->team->all, 0, &from, &to);
}
