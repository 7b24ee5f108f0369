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

static size_t part_len(size_t len, uint32_t n, uint32_t i)
{
	return part_at(len, n, i + 1) - part_at(len, n, i);
}

void far_barrier(struct run *r, const struct members *p)
{
	for (uint32_t d = 1, tag = 0; d < p->n; d *= 2, tag++) {
		step_recv(r, rank_at(p, p->me, p->n - d), tag, NULL, 0);
		step_send(r, rank_at(p, p->me, d), tag, NULL, 0);
		step_wait(r);
	}
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

/* -- Rings ------------------------------------------------------------------------------------- */

/* Parts of `data` go around; in the end everybody has all. Member i begins with part i. */
static void ring_allgather(struct run *r, const struct members *p, char *data, size_t len,
			   size_t unit, unsigned tag)
{
	uint32_t n = p->n, to = rank_at(p, p->me, 1), from = rank_at(p, p->me, n - 1);
	for (uint32_t k = 0; k + 1 < n; k++) {
		uint32_t out = (p->me + n - k) % n, in = (out + n - 1) % n;
		step_recv(r, from, tag + k, data + part_at(len, n, in) * unit,
			  part_len(len, n, in) * unit);
		step_send(r, to, tag + k, data + part_at(len, n, out) * unit,
			  part_len(len, n, out) * unit);
		step_wait(r);
	}
}

/* -- Reductions -------------------------------------------------------------------------------- */

void far_reduce(struct run *r, const struct members *p, uint32_t root, const void *in, void *out,
		size_t n)
{
	size_t bytes = n * r->combine.size;
	if (bytes > FAR_FEW && n >= p->n) {
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

/*
 * Members beyond a power of two are combined into others first, and told the result at the end. Of
 * two that exchange, each has its own on the left; they get the same bits, since every operation
 * that comes here commutes bit by bit (reduce.c).
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
	if (p->n < 2)
		return;
	if (bytes > FAR_FEW && n >= p->n) {
		far_ordered(r, p, UINT32_MAX, data, data, n);
		return;
	}
	char *temp = run_scratch(r, bytes);
	if (temp)
		allreduce_doubling(r, p, data, temp, n);
}

/* Where part i of n elements begins: by `cuts`, or, if that is NULL, in nearly equal parts. */
static size_t cut_at(const size_t *cuts, size_t n, uint32_t parts, uint32_t i)
{
	return cuts ? cuts[i] : part_at(n, parts, i);
}

/* Member i gets part i of everybody, which lie in its scratch in the order of the members. */
static char *parts_exchange(struct run *r, const struct members *p, const char *from, size_t n,
			    const size_t *cuts)
{
	size_t unit = r->combine.size, at = cut_at(cuts, n, p->n, p->me);
	size_t mine = cut_at(cuts, n, p->n, p->me + 1) - at;
	char *scratch = run_scratch(r, (size_t)p->n * mine * unit);
	if (!scratch)
		return NULL;
	step_copy(r, scratch + p->me * mine * unit, from + at * unit, mine * unit);
	for (uint32_t k = 1; k < p->n && mine; k++) {
		uint32_t i = (p->me + p->n - k) % p->n;
		step_recv(r, p->rank[i], 0, scratch + i * mine * unit, mine * unit);
	}
	for (uint32_t k = 1; k < p->n; k++) {
		uint32_t i = (p->me + k) % p->n;
		at = cut_at(cuts, n, p->n, i);
		size_t len = cut_at(cuts, n, p->n, i + 1) - at;
		if (len)
			step_send(r, p->rank[i], 0, from + at * unit, len * unit);
	}
	step_wait(r);
	return scratch;
}

/* The same, and combines them, in the order of the members. */
static char *parts_combine(struct run *r, const struct members *p, const char *from, size_t n,
			   const size_t *cuts)
{
	char *scratch = parts_exchange(r, p, from, n, cuts);
	size_t mine = cut_at(cuts, n, p->n, p->me + 1) - cut_at(cuts, n, p->n, p->me);
	for (uint32_t i = 1; scratch && i < p->n; i++)
		step_combine(r, scratch, scratch + i * mine * r->combine.size, mine);
	return scratch;
}

void far_reduce_scatter(struct run *r, const struct members *p, const void *in, void *out,
			const size_t *cuts)
{
	char *mine = parts_combine(r, p, in, cuts[p->n], cuts);
	if (mine)
		step_copy(r, out, mine, (cuts[p->me + 1] - cuts[p->me]) * r->combine.size);
}

void far_ordered(struct run *r, const struct members *p, uint32_t root, const void *in, void *out,
		 size_t n)
{
	size_t unit = r->combine.size, mine = part_len(n, p->n, p->me);
	char *scratch = parts_combine(r, p, in, n, NULL), *to = out;
	if (!scratch)
		return;
	if (p->me == root || root >= p->n)
		step_copy(r, to + part_at(n, p->n, p->me) * unit, scratch, mine * unit);
	if (root >= p->n) {
		ring_allgather(r, p, out, n, unit, 1);
		return;
	}
	for (uint32_t i = 0; i < p->n && p->me == root; i++)
		if (i != root)
			step_recv(r, p->rank[i], 1, to + part_at(n, p->n, i) * unit,
				  part_len(n, p->n, i) * unit);
	if (p->me != root)
		step_send(r, p->rank[root], 1, scratch, mine * unit);
	step_wait(r);
}

/* -- Scans ------------------------------------------------------------------------------------- */

/* Member i combines part i from the first member on, and tells each one how far that is there. */
void far_scan(struct run *r, const struct members *p, const void *in, char *out, size_t n,
	      bool inclusive)
{
	size_t unit = r->combine.size, mine = part_len(n, p->n, p->me) * unit;
	char *part = parts_exchange(r, p, in, n, NULL), *sum = run_scratch(r, mine);
	uint32_t first = inclusive ? 0 : 1; /* who gets a result */
	if (!part || !sum)
		return;
	for (uint32_t i = 0; p->me >= first && i < p->n; i++)
		if (i != p->me && part_len(n, p->n, i))
			step_recv(r, p->rank[i], 1, out + part_at(n, p->n, i) * unit,
				  part_len(n, p->n, i) * unit);
	step_copy(r, sum, part, mine);
	for (uint32_t i = 0; i < p->n; i++) {
		if (i && inclusive)
			step_combine(r, sum, part + i * mine, mine / unit);
		if (i >= first && i == p->me)
			step_copy(r, out + part_at(n, p->n, p->me) * unit, sum, mine);
		else if (i >= first && mine)
			step_send(r, p->rank[i], 1, sum, mine);
		if (i && !inclusive)
			step_combine(r, sum, part + i * mine, mine / unit);
	}
	step_wait(r);
}

/* -- Gathering --------------------------------------------------------------------------------- */

void far_gather(struct run *r, uint32_t root, const void *in, void *out, size_t len)
{
	const struct members *p = &r->team->all;
	char *to = out;
	if (p->me != root) {
		step_send(r, p->rank[root], 0, in, len);
		return;
	}
	for (uint32_t i = 0; i < p->n; i++)
		if (i != root)
			step_recv(r, p->rank[i], 0, to + i * len, len);
	step_copy(r, to + root * len, in, len);
	step_wait(r);
}

void far_scatter(struct run *r, uint32_t root, const void *in, void *out, size_t len)
{
	const struct members *p = &r->team->all;
	const char *from = in;
	if (p->me != root) {
		step_recv(r, p->rank[root], 0, out, len);
		step_wait(r);
		return;
	}
	for (uint32_t k = 1; k < p->n; k++) {
		uint32_t i = (root + k) % p->n;
		step_send(r, p->rank[i], 0, from + i * len, len);
	}
	step_copy(r, out, from + root * len, len);
}

/* Each round doubles what a member has: its own and that of those behind it, in their order. */
static void allgather_doubling(struct run *r, const struct members *p, const void *in, size_t len,
			       char *out)
{
	uint32_t n = p->n, have = 1;
	char *all = run_scratch(r, n * len);
	if (!all)
		return;
	step_copy(r, all, in, len);
	for (uint32_t tag = 0; have < n; tag++) {
		uint32_t more = have < n - have ? have : n - have;
		step_recv(r, rank_at(p, p->me, have), tag, all + have * len, more * len);
		step_send(r, rank_at(p, p->me, n - have), tag, all, more * len);
		step_wait(r);
		have += more;
	}
	step_copy(r, out + p->me * len, all, (n - p->me) * len);
	step_copy(r, out, all + (n - p->me) * len, p->me * len);
}

void far_allgather(struct run *r, uint32_t root, const void *in, void *out, size_t len)
{
	const struct members *p = &r->team->all;
	(void)root;
	if (p->n * len <= FAR_FEW * 4) {
		allgather_doubling(r, p, in, len, out);
		return;
	}
	step_copy(r, (char *)out + p->me * len, in, len);
	ring_allgather(r, p, out, p->n * len, 1, 0);
}

/* Short ones go at once, long ones pair by pair, so that no member is sent to by all. */
void far_alltoall(struct run *r, uint32_t root, const void *in, void *out, size_t len)
{
	const struct members *p = &r->team->all;
	const char *from = in;
	char *to = out;
	(void)root;
	if (in == out) {
		char *scratch = run_scratch(r, p->n * len);
		if (!scratch)
			return;
		step_copy(r, scratch, in, p->n * len);
		from = scratch;
	}
	step_copy(r, to + p->me * len, from + p->me * len, len);
	for (uint32_t k = 1; k < p->n && len <= FAR_FEW; k++) {
		uint32_t i = (p->me + p->n - k) % p->n;
		step_recv(r, p->rank[i], 0, to + i * len, len);
	}
	for (uint32_t k = 1; k < p->n; k++) {
		uint32_t next = (p->me + k) % p->n, i = (p->me + p->n - k) % p->n;
		if (len > FAR_FEW)
			step_recv(r, p->rank[i], 0, to + i * len, len);
		step_send(r, p->rank[next], 0, from + next * len, len);
		if (len > FAR_FEW)
			step_wait(r);
	}
	step_wait(r);
}
