/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How far the ranks' clocks are apart, from the messages between them.
 *
 * If b's clock is ahead of a's by x, the least delay measured from a to b is the true
 * one plus x, and that from b to a the true one minus x. No true delay is negative,
 * so x lies between minus the one and the other, and if the quickest messages took
 * the same time both ways, in the middle. Ranks of one machine have one clock; x
 * is 0 for them, and the middle only says which of them was slow to look. So a
 * correction is made where 0 is impossible, and not where it merely seems unlikely.
 *
 * Clocks are compared along a tree that grows from the first track by the pair with
 * the least time there and back.
 */
#include "tools/trace/merge.h"

#include <errno.h>
#include <stdlib.h>

#include "base/error.h"

#define NEVER INT64_MAX
#define CORRECTION_MOST (INT64_C(1) << 60)

struct delays {
	int64_t *least; /* [from][to], of the messages that were matched */
	uint32_t n;
};

static int64_t *delay(const struct delays *d, uint32_t from, uint32_t to)
{
	return &d->least[(size_t)from * d->n + to];
}

static void delays_measure(const struct merged *m, struct delays *d)
{
	for (size_t i = 0; i < (size_t)d->n * d->n; i++)
		d->least[i] = NEVER;
	for (size_t i = 0; i < m->messages; i++) {
		const struct message *x = &m->message[i];
		if (x->from == NO_TRACK || x->span == NO_SPAN || x->source == x->target)
			continue;
		const struct span *s = &m->span[x->span];
		int64_t took = s->begin - x->sent, *least = delay(d, x->from, s->track);
		*least = took < *least ? took : *least;
	}
}

static struct offset offset_of(const struct delays *d, const struct merged *m, uint32_t beside,
			       uint32_t track)
{
	int64_t there = *delay(d, beside, track), back = *delay(d, track, beside);
	int64_t base = m->offset[beside].correction;
	struct offset o = { .estimate = (back - there) / 2 };
	o.correction = base + (there >= 0 && back >= 0 ? 0 : o.estimate);
	if (o.correction > CORRECTION_MOST || o.correction < -CORRECTION_MOST)
		o.correction = base; /* no clocks are that far apart: the times are damaged */
	return o;
}

/*
 * The pair of a track whose clock is known and one whose is not, with the least time there and
 * back.
 */
static bool pair_find(const struct delays *d, const bool *known, uint32_t *a, uint32_t *b)
{
	int64_t best = NEVER;
	for (uint32_t i = 0; i < d->n; i++)
		for (uint32_t k = 0; known[i] && k < d->n; k++) {
			int64_t there = *delay(d, i, k), back = *delay(d, k, i);
			if (known[k] || there == NEVER || back == NEVER || there + back >= best)
				continue;
			best = there + back;
			*a = i;
			*b = k;
		}
	return best != NEVER;
}

static void tree_grow(struct merged *m, const struct delays *d, bool *known)
{
	uint32_t a, b;
	known[0] = true;
	while (pair_find(d, known, &a, &b)) {
		m->offset[b] = offset_of(d, m, a, b);
		known[b] = true;
	}
}

int clocks_compare(struct merged *m)
{
	struct delays d = { calloc((size_t)m->tracks * m->tracks, sizeof *d.least), m->tracks };
	bool *known = calloc(m->tracks, sizeof *known);
	int rc = d.least && known ? 0
				  : error_set(-ENOMEM, "no memory to compare %u clocks", m->tracks);
	if (!rc) {
		delays_measure(m, &d);
		tree_grow(m, &d, known);
	}
	free(d.least);
	free(known);
	return rc;
}
