/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Gathered messages, for programs that send very many tiny items to many ranks. An item is a
 * handler's number and up to 6 words. Items are gathered by destination, travel together, and are
 * handled one by one by an ordinary handler, which may answer with tern_reply() and may post; or
 * many in one call, by a handler that tern_post_on() has registered.
 *
 * Conventions are those of <tern/tern.h>. tern_post(7) has the rules: when items leave, their
 * order, what handlers may do, and how much memory this takes.
 */
#ifndef TERN_POST_H
#define TERN_POST_H

#include <tern/tern.h>

TERN_BEGIN_

/*
 * Returns when every item posted by this rank has left: each is handled before any request that
 * this rank sends later. -EOWNERDEAD and the like if items were dropped because their rank is gone;
 * told once. -EPERM in a handler.
 */
int tern_post_flush(tern *t);

/*
 * From now on the program of this rank keeps at most `words` words of items that have not left,
 * all destinations together; 0: what buffers hold, as at first. -EINVAL if that is less than 8.
 */
int tern_post_limit(tern *t, uint32_t words);

/*
 * Takes many items in one call: `count` items, whose words lie behind each other from `words`, all
 * of them from one rank and in the order of the posts. `m` says from whom and how many words each
 * has, and reads as the first of them. It may post, and does not reply.
 */
typedef void tern_post_handler(tern *t, const tern_msg *m, const uint64_t *words, size_t count);

/*
 * Registers handler `id`, in the place of tern_on(). A request that comes to it is one item of as
 * many words; it has up to 6, and its payload is not handed over. The handler finds `arg` with
 * tern_msg_handler_arg().
 */
int tern_post_on(tern *t, unsigned id, tern_post_handler *fn, void *arg);

/*
 * tern_post(t, dst, id, ...) gathers up to 6 words for handler `id` of rank `dst`. In the program
 * it may serve what arrives until there is room; in a handler it never waits, and -ENOBUFS says
 * that too much is waiting to leave. The item leaves when its buffer is full, when the rank waits,
 * polls in vain or enters a barrier, or with tern_post_flush().
 */
#define tern_post(t, ...)                           \
	tern_post_any_(t, TERN_COUNT_(__VA_ARGS__), \
		       TERN_TEN_(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0, 0, 0))
int tern_post_array(tern *t, uint32_t dst, unsigned id, unsigned n, const uint64_t *words);

/* -- The inline path -------------------------------------------------------------------------- */

int tern_post_rare_(tern *t, uint32_t dst, unsigned id, unsigned n, TERN_SIX_);

/* What a lane has of posts: where the next item goes, the low half of its end, its kind. */
struct tern_post_lane {
	uint64_t *next;
	uint32_t end, kind;
};

static inline struct tern_post_lane *tern_post_lane_(struct tern_lane *lane)
{
	return (struct tern_post_lane *)(void *)lane->layers;
}

/* Items of one kind follow each other without headers. 0 is none. */
static inline uint64_t tern_post_kind_(unsigned id, unsigned n)
{
	return (uint64_t)id << TERN_ID_SHIFT | 0x80 | n;
}

/* Whether the place for the next item is behind the last one that has room. */
static inline int tern_post_full_(const struct tern_post_lane *lane)
{
	return (int32_t)((uint32_t)(uintptr_t)lane->next - lane->end) > 0;
}

/* An item without words takes one, so that there is something to count. */
static inline uint64_t *tern_post_write_(uint64_t *p, unsigned n, TERN_SIX_)
{
	if (n > 0)
		p[0] = w0;
	if (n > 1)
		p[1] = w1;
	if (n > 2)
		p[2] = w2;
	if (n > 3)
		p[3] = w3;
	if (n > 4)
		p[4] = w4;
	if (n > 5)
		p[5] = w5;
	return p + (n ? n : 1);
}

/* The rank, the handler and the number of words were checked when the kind was begun. */
static inline int tern_post_inline_(tern *t, unsigned n, uint32_t dst, unsigned id, TERN_SIX_)
{
	struct tern_post_lane *lane = tern_post_lane_(&t->lane[dst]);
	if (TERN_UNLIKELY(dst >= t->reach || lane->kind != tern_post_kind_(id, n) ||
			  tern_post_full_(lane)))
		return tern_post_rare_(t, dst, id, n, TERN_SIX_VALUES_);
	lane->next = tern_post_write_(lane->next, n, TERN_SIX_VALUES_);
	return 0;
}

/* More words than an item has are refused with their number. */
static inline int tern_post_any_(tern *t, unsigned n, uint32_t dst, unsigned id, TERN_ALL_)
{
	(void)w6, (void)w7;
#ifdef TERN_NO_INLINE
	const uint64_t words[] = { TERN_SIX_VALUES_ };
	return tern_post_array(t, dst, id, n, words);
#else
	return tern_post_inline_(t, n, dst, id, TERN_SIX_VALUES_);
#endif
}

TERN_END_

#endif
