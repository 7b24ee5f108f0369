/* SPDX-License-Identifier: BSD-3-Clause */
/* Setting buffers aside for a type, giving them back one by one, and ending the type. */
#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "typed/typed.h"

static int alloc_check(struct typed *y, unsigned type, unsigned count, unsigned flags)
{
	enum { POLICIES = TERN_BUF_REFUSE | TERN_BUF_SPILL };
	if (type >= TERN_BUF_TYPES_MAX)
		return error_set(-EINVAL, "tern_buf_alloc() was given type %u; types are below %d",
				 type, TERN_BUF_TYPES_MAX);
	if ((count < 1 && (!(flags & TERN_BUF_SPILL) || y->queue[type])) || count > TERN_BUFS_MAX)
		return error_set(-EINVAL,
				 "tern_buf_alloc() was asked for %u buffers; a type has 1 to %d",
				 count, TERN_BUFS_MAX);
	if (flags & ~(unsigned)(POLICIES | TERN_BUF_ORDER) || (flags & POLICIES) == POLICIES)
		return error_set(-EINVAL,
				 "tern_buf_alloc() was given flags %#x; "
				 "it takes one policy of enum tern_buf_flags, and TERN_BUF_ORDER",
				 flags);
	if (y->queue[type] && y->queue[type]->flags != flags)
		return error_set(-EEXIST,
				 "rank %u has set buffers aside for type %u with other flags "
				 "already: tern_buf_close() ends them",
				 y->e->t->rank, type);
	return 0;
}

int tern_buf_alloc(tern *t, unsigned type, size_t bytes, unsigned count, unsigned flags)
{
	INSIDE struct scope scope = scope_given(t);
	struct typed *y = typed_here(t);
	int rc = rules_rank(t->own, "tern_buf_alloc()");
	if (!rc)
		rc = alloc_check(y, type, count, flags);
	size_t most = 0;
	if (!rc && flags & TERN_BUF_SPILL)
		rc = spill_make(y, &most);
	if (!rc && !count && bytes > most)
		rc = error_set(
			-EINVAL,
			"tern_buf_alloc() was asked for messages of %zu bytes without buffers; "
			"the spill holds messages of at most %zu bytes (TERN_SPILL)",
			bytes, most);
	return rc ? rc : type_queue_make(y, type, bytes, count, flags);
}

/* -- Closing ---------------------------------------------------------------------------------- */

int tern_buf_close(tern *t, unsigned type)
{
	INSIDE struct scope scope = scope_given(t);
	if (t->own->forked)
		return rules_forked(t->own);
	struct typed *y = typed_here(t);
	struct type_queue *s = type < TERN_BUF_TYPES_MAX ? y->queue[type] : NULL;
	if (!s)
		return error_set(-ENXIO,
				 "tern_buf_close() was given type %u, "
				 "for which rank %u has no buffers",
				 type, t->rank);
	const char *why = s->held ? "the program has one of its buffers: tern_buf_free() it first"
			  : !type_queue_shut(s) ? "a message is just landing: poll, and try again"
						: NULL;
	if (why)
		return error_set(-EBUSY, "type %u of rank %u cannot be closed: %s", s->type,
				 y->e->t->rank, why);
	while (s->first) { /* its own buffers end with it */
		struct buf_slot *l = buf_slot_pop(s);
		if (l->queue->type != s->type)
			buf_slot_drop(y, l);
	}
	for (struct type_queue *m = s, *more; m; m = more) {
		more = type_queue_next(m);
		type_queue_unmake(y, m);
	}
	offer_progress(y);
	return 0;
}

/* -- Giving back ------------------------------------------------------------------------------- */

static __attribute__((noinline)) int free_any(tern *t, void *buffer)
{
	INSIDE struct scope scope = scope_open(t);
	if (t->own->forked)
		return rules_forked(t->own);
	struct typed *y = typed_here(t);
	struct buf_slot *l = buf_slot_at(y, buffer);
	if (!l || l->state != BUF_SLOT_HELD)
		return error_set(
			-EINVAL,
			"tern_buf_free() was given %p, which is not a buffer that tern_buf_recv() "
			"gave and rank %u still has",
			buffer, t->rank);
	y->queue[l->type]->held--;
	buf_slot_drop(y, l);
	offer_progress(y);
	return 0;
}

/*
 * The common case: what was received last, in a buffer of its type's first pool, and no far sender
 * waits for it.
 */
int tern_buf_free(tern *t, void *buffer)
{
	struct typed *y = typed_of(t);
	struct buf_slot *l = y->given;
	if (TERN_UNLIKELY(!l || l->data != buffer || l->state != BUF_SLOT_HELD || !t->reach ||
			  l->queue->key != l->type || y->waiting || y->check))
		return free_any(t, buffer);
	l->queue->held--;
	buf_slot_free(l->queue, l);
	return 0;
}

/* -- TERN_CHECK -------------------------------------------------------------------------------- */

/* TERN_CHECK: a sum over data that is under way, and a pattern in buffers that are free. */

enum { PATTERN = 0xb5 };

uint64_t check_sum(const char *data, size_t len)
{
	uint64_t sum = len;
	for (size_t i = 0; i < len; i++)
		sum = (sum ^ (unsigned char)data[i]) * UINT64_C(0x100000001b3);
	return sum;
}

void check_fill(char *buffer, size_t len)
{
	memset(buffer, PATTERN, len);
}

bool check_filled(const char *buffer, size_t len)
{
	return !len || ((unsigned char)*buffer == PATTERN && !memcmp(buffer, buffer + 1, len - 1));
}
