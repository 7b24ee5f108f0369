/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages kept beyond their handlers: their lines are copied; a payload in a block stays there. */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "core/scope.h"

struct kept {
	/* A payload behind it is copied, too. */
	struct tern_msg line[1 + TERN_CARRY_MAX / TERN_LINE];
};

static int keep_slots(struct endpoint *e)
{
	if (!e->keeps.kept) {
		e->keeps.kept = memory_aligned(TERN_LINE, TERN_KEEP_MAX * sizeof *e->keeps.kept);
		if (!e->keeps.kept)
			return error_set(-ENOMEM, "keeping a message: no memory");
		for (uint16_t i = 0; i < TERN_KEEP_MAX; i++)
			e->keeps.free[i] = i;
		e->keeps.left = TERN_KEEP_MAX;
	}
	if (!e->keeps.left)
		return error_set(-ENOBUFS, "rank %u keeps %d messages already: drop one first",
				 e->t->rank, TERN_KEEP_MAX);
	return 0;
}

static void keep_copy(tern_msg *to, const tern_msg *m)
{
	uint64_t head = atomic_load_explicit(&m->head, memory_order_relaxed);
	unsigned n = tern_msg_count(m);
	for (unsigned i = 0; i < n && i < TERN_LINE_WORDS; i++)
		to->word[i] = m->word[i];
	for (unsigned i = TERN_LINE_WORDS; i < n; i++)
		to[1].word[i - TERN_LINE_WORDS] = tern_msg_word(m, i);
	if (head & TERN_HEAD_PAYLOAD) {
		size_t len;
		const char *data = tern_msg_data(m, &len);
		if (message_carries(m, head))
			data = memcpy(to + 1, data, len);
		to->payload = (uint64_t)(data - (const char *)to) << TERN_LEN_BITS | len;
	}
	atomic_store_explicit(&to->head, head, memory_order_relaxed);
}

static int keep_checked(struct endpoint *e, const tern_msg *m)
{
	int rc = rules_handling(e, m, "tern_msg_keep()");
	if (!rc && e->item) /* a copy, and the batch that it came in is not kept */
		return keep_slots(e);
	if (!rc && e->block && e->block_kept)
		rc = error_set(-EALREADY, "this message's payload was kept or sent back already");
	if (!rc && e->keeps.cursor == e->inlet->cursor && e->keeps.leaf == e->inlet->leaf)
		rc = error_set(-EALREADY, "this message was kept already");
	return rc ? rc : keep_slots(e);
}

int tern_msg_keep(tern *t, const tern_msg *m, const tern_msg **out)
{
	struct endpoint *e = given(t)->own;
	int rc = keep_checked(e, m);
	if (rc)
		return rc;
	tern_msg *kept = e->keeps.kept[e->keeps.free[--e->keeps.left]].line;
	keep_copy(kept, m);
	*out = kept;
	if (e->item)
		return 0;
	struct net *net = e->site.peer[e->inlet->peer].net;
	if (e->block && net_ours(net, e->block))
		block_set(e->block, BLOCK_KEPT);
	e->block_kept = true;
	e->keeps.cursor = e->inlet->cursor;
	e->keeps.leaf = e->inlet->leaf;
	return 0;
}

int tern_msg_drop(tern *t, const tern_msg *kept)
{
	INSIDE struct scope scope = scope_given(t);
	if (t->own->forked)
		return rules_forked(t->own);
	struct endpoint *e = t->own;
	size_t at = (size_t)((const char *)kept - (const char *)e->keeps.kept);
	if (!e->keeps.kept || at >= TERN_KEEP_MAX * sizeof *e->keeps.kept ||
	    at % sizeof *e->keeps.kept || !atomic_load_explicit(&kept->head, memory_order_relaxed))
		return error_set(-EINVAL, "%p is not a message that rank %u keeps",
				 (const void *)kept, t->rank);
	const void *data = tern_msg_data(kept, NULL);
	if (data && !message_carries(kept, atomic_load_explicit(&kept->head, memory_order_relaxed)))
		block_set(block_of(data), BLOCK_FREE);
	uint16_t slot = (uint16_t)(at / sizeof *e->keeps.kept);
	/* A second drop is an error. */
	atomic_store_explicit(&e->keeps.kept[slot].line[0].head, 0, memory_order_relaxed);
	e->keeps.free[e->keeps.left++] = slot;
	return 0;
}

void keep_drop_all(struct endpoint *e)
{
	for (unsigned i = 0; e->keeps.kept && i < TERN_KEEP_MAX; i++)
		if (atomic_load_explicit(&e->keeps.kept[i].line[0].head, memory_order_relaxed))
			tern_msg_drop(e->t, &e->keeps.kept[i].line[0]);
}
