/* SPDX-License-Identifier: BSD-3-Clause */
/* The receiving end: what the inline get leaves to the library. */
#include <errno.h>
#include <string.h>

#include "base/cpu.h"
#include "base/error.h"
#include "chan/chan.h"
#include "core/wait.h"
#include "mem/mem.h"

enum { STARES = 64, LINGER = 128 };

/* -- Opening and closing ------------------------------------------------------------------ */

int in_open(struct chans *s, uint32_t from, uint64_t name, struct ring ring, struct tern_chan **out)
{
	bool maps = layer_maps(s->e, from);
	if (tern_addr_rank(ring.pipe) != from || ring.reader >= s->e->t->size)
		return -EBADMSG;
	void *at =
		maps ? heap_reach(mem_of(s->e->t), ring.pipe, pipe_bytes(ring.reader + 1)) : NULL;
	if (maps && (!at || (uintptr_t)at % TERN_CHAN_LEAF))
		return -EBADMSG;
	struct tern_chan *mirror = maps ? NULL : mirror_open(s, from, name, ring);
	struct tern_chan *c = maps || mirror ? chan_new(s, name, 0) : NULL;
	if (!c) {
		if (mirror)
			chan_free(mirror);
		return -ENOMEM;
	}
	c->pipe = maps ? at : mirror->pipe;
	c->reader = &c->pipe->reader[maps ? ring.reader : 0];
	c->from = from;
	c->ring = ring;
	c->mirror = mirror;
	c->lost = layer_lost(s->e, from);
	tern_chan_stand_(c, pipe_begin(c->pipe), -TERN_CHAN_FULL);
	reader_set(c->reader, READER_OPEN);
	*out = c;
	return 0;
}

void in_close(struct tern_chan *c, enum reader_state state)
{
	struct tern_chan *m = c->mirror;
	reader_set(c->reader, state);
	chan_free(c);
	if (m)
		chan_owes(m, true);
}

/* -- Cursors -------------------------------------------------------------------------------- */

struct cursor in_cursor(const tern_in *i)
{
	return (struct cursor){ .line = i->line, .at = i->at, .leaf = i->chan->leaf };
}

/* Enters a leaf, and gives back those before it. */
static inline void in_free(struct tern_chan *c, uint64_t leaf)
{
	c->leaf = leaf;
	/* chan.R6, release; acquired in out_limit(): the leaves before this one have been read. */
	atomic_store_explicit(&c->reader->freed, leaf - 1, memory_order_release);
}

void in_move(tern_in *i, const struct cursor *k)
{
	struct tern_chan *c = i->chan;
	i->line = k->line;
	i->at = k->at;
	if (k->leaf == c->leaf)
		return;
	in_free(c, k->leaf);
	if (c->mirror)
		chan_owes(c->mirror, true);
}

void in_pass(struct cursor *k)
{
	k->line++;
	k->at = -TERN_CHAN_FULL;
}

/* Past a control line, if its leaf has been entered. */
static bool cursor_enter(struct tern_chan *c, struct cursor *k)
{
	struct leaf *leaf = &c->pipe->leaf[k->leaf % PIPE_LEAVES];
	/* chan.R5, acquire; released in out_enter(): the leaf's first lines are of this lap. */
	if (atomic_load_explicit(&leaf->head.number, memory_order_acquire) != k->leaf + 1)
		return false;
	k->leaf++;
	k->line = leaf->line;
	k->at = -TERN_CHAN_FULL;
	return true;
}

static int cursor_bad(const struct tern_chan *c, const char *what, uint64_t value)
{
	return error_set(
		-EBADMSG,
		"channel %llu from rank %u has %s %llx: somebody has written over its memory",
		(unsigned long long)c->name, c->from, what, (unsigned long long)value);
}

/* The count of the line; it is not trusted. */
static int cursor_count(const struct tern_chan *c, struct cursor *k)
{
	/* chan.R4, acquire; released in tern_chan_publish_(): the words up to there can be read. */
	int32_t count = atomic_load_explicit(&k->line->count, memory_order_acquire);
	if (TERN_UNLIKELY(count < k->at || count > 0 || count % 8))
		return cursor_bad(c, "the count", (uint32_t)count);
	k->end = count;
	return 0;
}

/* There is no data (any more) in the line; is there an item? */
static int cursor_item(struct tern_chan *c, struct cursor *k)
{
	/* chan.R7, acquire; released in out_mark(): the count does not change any more. */
	if (atomic_load_explicit(&k->line->mark, memory_order_acquire) == MARK_NONE)
		return TERN_CHAN_NOTHING;
	int rc = cursor_count(c, k);
	if (rc || k->end != k->at)
		return rc ? rc : TERN_CHAN_DATA;
	k->item = k->line->word[LINE_WORDS - 1];
	unsigned kind = k->item & ((1u << ITEM_BITS) - 1);
	return kind == ITEM_END    ? TERN_CHAN_END
	       : kind == ITEM_CALL ? TERN_CHAN_PROCEDURE
				   : cursor_bad(c, "the item", k->item);
}

static int cursor_see(struct tern_chan *c, struct cursor *k)
{
	if (k->at == 0)
		in_pass(k);
	if (line_is_control(k->line) && !cursor_enter(c, k))
		return TERN_CHAN_NOTHING;
	int rc = cursor_count(c, k);
	if (rc)
		return rc;
	return k->end != k->at ? TERN_CHAN_DATA : cursor_item(c, k);
}

static bool in_ended(const struct tern_chan *c)
{
	/* chan.R9, acquire; released in out_close(): what was put before can be seen now. */
	return c->lost || atomic_load_explicit(&c->pipe->state, memory_order_acquire) != PIPE_OPEN;
}

int in_see(struct tern_chan *c, struct cursor *k)
{
	int kind = cursor_see(c, k);
	if (kind != TERN_CHAN_NOTHING || !in_ended(c))
		return kind;
	kind = cursor_see(c, k); /* it may have been put just before */
	return kind == TERN_CHAN_NOTHING ? TERN_CHAN_CLOSED : kind;
}

/* -- What waits at an end ---------------------------------------------------------------------- */

int in_over(const struct tern_chan *c)
{
	uint32_t state = atomic_load_explicit(&c->pipe->state, memory_order_acquire);
	int code = state == PIPE_OPEN   ? chan_check(c->chans, c->from)
		   : state == PIPE_LEFT ? -ESHUTDOWN
					: -EPIPE;
	return error_set(
		code,
		"channel %llu from rank %u has ended, and all that was put is read: rank %u has %s",
		(unsigned long long)c->name, c->from, c->from,
		code == -EPIPE ? "closed it" : chan_fate(code));
}

/* What gets return for it; frequent ones have the general sentence. */
static int in_code(const struct tern_chan *c, int kind)
{
	static const int code[] = { [TERN_CHAN_NOTHING] = -EAGAIN,
				    [TERN_CHAN_PROCEDURE] = -ENOMSG,
				    [TERN_CHAN_END] = -ENODATA };
	return kind == TERN_CHAN_CLOSED ? in_over(c) : kind < 0 ? kind : code[kind];
}

/*
 * A few looks at the line and at nothing else: a value that is on its way is seen as soon as it
 * comes. Then messages have their turn.
 */
static void in_stare(struct tern_chan *c, const struct cursor *k)
{
	bool stream = (size_t)(k->line - c->stalled) > 1; /* behind it too: it has come round */
	if (stream && c->chans->e->waiting.spin)
		for (int i = 0; i < LINGER; i++)
			cpu_relax();
	c->stalled = k->line;
	for (int looks = 0; looks < STARES && c->chans->e->waiting.spin; looks++) {
		if (!tern_chan_stands_(k->line, k->at))
			return;
		cpu_relax();
	}
}

/* What a wait for data waits for. */
struct awaited {
	struct tern_chan *c;
	const struct cursor *k;
};

static bool in_come(struct endpoint *e, void *arg)
{
	const struct awaited *a = arg;
	struct cursor k = *a->k;
	(void)e;
	return in_see(a->c, &k) != TERN_CHAN_NOTHING;
}

/* What comes in messages ends a sleep; other memory changes without a sound. */
int in_wait(tern_in *i, struct cursor *k)
{
	struct tern_chan *c = i->chan;
	struct awaited a = { c, k };
	struct wait w = { .bounded = !c->mirror,
			  .over = in_come,
			  .arg = &a,
			  .call = "tern_chan_get",
			  .way = "from",
			  .whom = c->from + 1 };
	int kind;
	while ((kind = in_see(c, k)) == TERN_CHAN_NOTHING) {
		if (!c->chans->e->turn && !c->mirror)
			in_stare(c, k);
		if (!tern_chan_stands_(k->line, k->at))
			continue;
		int rc = chan_may_wait(c->chans->e, "a get from a channel without data");
		if (rc)
			return rc;
		wait_step(c->chans->e, &w);
	}
	return in_code(c, kind);
}

/* -- Getting ----------------------------------------------------------------------------------- */

/* Gives nothing back unless there is data: a get that fails leaves its end where it was. */
__attribute__((noinline)) static struct tern_chan_place more_rare(tern_in *i)
{
	struct cursor k = in_cursor(i);
	i->chan->trouble = in_wait(i, &k);
	if (i->chan->trouble)
		return (struct tern_chan_place){ NULL, 0 };
	in_move(i, &k);
	return (struct tern_chan_place){ i->line, i->at };
}

struct tern_chan_place tern_chan_more_(tern_chan *c, struct tern_chan_line *line, intptr_t at)
{
	INSIDE struct scope scope = chan_scope(&c, "tern_chan_get");
	tern_in i = { line, at, c };
	struct cursor k = { .line = line, .at = at, .leaf = c->leaf };
	if (TERN_UNLIKELY(chan_home(c)->own->forked)) {
		c->trouble = rules_forked(chan_home(c)->own);
		return (struct tern_chan_place){ NULL, 0 };
	}
	if (TERN_UNLIKELY(!line_is_control(line) || c->mirror || !cursor_enter(c, &k) ||
			  tern_chan_stands_(k.line, k.at)))
		return more_rare(&i);
	in_free(c, k.leaf);
	return (struct tern_chan_place){ k.line, k.at };
}

int(tern_chan_ready)(tern_in *i, size_t bytes)
{
	INSIDE struct scope scope = chan_scope(&i->chan, __func__);
	struct tern_chan *c = i->chan;
	if (c->chans->e->forked)
		return rules_forked(c->chans->e);
	struct cursor k = in_cursor(i);
	size_t words = words_of(bytes), has = 0;
	if (words > PIPE_WORDS)
		return error_set(-EMSGSIZE,
				 "%zu bytes were asked for at once; a channel holds %d at most",
				 bytes, PIPE_WORDS * 8);
	while (has < words) {
		int kind = in_see(c, &k);
		if (has && kind > TERN_CHAN_DATA)
			return error_set(-EMSGSIZE,
					 "%zu bytes were asked for of channel %llu from rank %u; "
					 "this message has %zu",
					 bytes, (unsigned long long)c->name, c->from, has * 8);
		if (kind != TERN_CHAN_DATA)
			return in_code(c, kind);
		has += (size_t)(k.end - k.at) / 8;
		k.at = k.end;
	}
	return 0;
}

/* Gets what the line has; how many bytes. */
static size_t in_take(tern_in *i, struct cursor *k, char *to, size_t len)
{
	size_t has = (size_t)(k->end - k->at);
	size_t n = len < has ? len : has;
	memcpy(to, tern_chan_word_(k->line, k->at), n);
	k->at += (intptr_t)words_of(n) * 8;
	in_move(i, k);
	return n;
}

/* `missing` bytes of a block that the message ended within; 0 if it did not even begin. */
static int in_short(const struct tern_chan *c, int rc, size_t missing)
{
	if (!missing || (rc != -ENODATA && rc != -ENOMSG))
		return rc;
	return error_set(-EMSGSIZE,
			 "a block was asked for of channel %llu from rank %u; its message ended "
			 "%zu bytes before, and what it had is taken",
			 (unsigned long long)c->name, c->from, missing);
}

/* Gets up to `most` of the `len` bytes that are missing, which *done counts; waits if it may. */
static int in_get(tern_in *i, char *to, size_t most, size_t len, bool waits, size_t *done)
{
	struct tern_chan *c = i->chan;
	while (*done < most) {
		struct cursor k = in_cursor(i);
		int rc = waits ? in_wait(i, &k) : in_code(c, in_see(c, &k));
		if (rc)
			return *done ? in_short(c, rc, len - *done) : rc;
		*done += in_take(i, &k, to + *done, most - *done);
	}
	return *done < len;
}

int(tern_chan_get)(tern_in *i, void *data, size_t len)
{
	INSIDE struct scope scope = chan_scope(&i->chan, __func__);
	size_t done = 0;
	struct endpoint *e = i->chan->chans->e;
	int rc = rules_forked(e);
	if (!rc)
		rc = (tern_chan_ready)(i, len);
	if (rc == -EAGAIN ||
	    (words_of(len) > PIPE_WORDS && !e->turn)) /* if it may not wait, nothing is taken */
		rc = chan_may_wait(e, "a block get from a channel without data");
	return rc ? rc : in_get(i, data, len, len, true, &done);
}

int(tern_chan_get_some)(tern_in *i, void *data, size_t len, size_t *done)
{
	INSIDE struct scope scope = chan_scope(&i->chan, __func__);
	size_t most = len - *done < PIPE_WORDS * 8 ? len : *done + PIPE_WORDS * 8;
	int rc = rules_forked(i->chan->chans->e);
	return rc ? rc : in_get(i, data, most, len, false, done);
}

/* -- Messages ---------------------------------------------------------------------------------- */

int(tern_chan_next)(tern_in *i)
{
	INSIDE struct scope scope = chan_scope(&i->chan, __func__);
	if (i->chan->chans->e->forked)
		return rules_forked(i->chan->chans->e);
	for (;;) {
		struct cursor k = in_cursor(i);
		int rc = in_wait(i, &k);
		if (rc && rc != -ENODATA && rc != -ENOMSG)
			return rc;
		if (rc)
			in_pass(&k);
		else
			k.at = k.end;
		in_move(i, &k);
		if (rc == -ENODATA)
			return 0;
	}
}

enum tern_chan_kind(tern_chan_peek)(tern_in *i)
{
	INSIDE struct scope scope = chan_scope(&i->chan, __func__);
	if (i->chan->chans->e == &misuse_endpoint)
		return TERN_CHAN_CLOSED; /* a get says why */
	struct cursor k = in_cursor(i);
	int kind = in_see(i->chan, &k);
	return kind < 0 ? TERN_CHAN_CLOSED
			: (enum tern_chan_kind)kind; /* unreadable: a get says so */
}

static int any_check(tern_in *const *ends, unsigned n, const unsigned *next, unsigned flags)
{
	bool good = next && (!n || ends) && !(flags & ~(unsigned)TERN_CHAN_NOWAIT);
	for (unsigned k = 0; good && k < n; k++)
		good = ends[k] && ends[k]->chan;
	if (!good)
		return error_set(-EINVAL,
				 "tern_chan_any() was given an end or an index that is NULL, or "
				 "the flags %#x",
				 flags);
	return n || flags ? 0
			  : error_set(-EINVAL,
				      "tern_chan_any() was given no ends: nothing will ever come");
}

/* The first where something waits, from *next on; -EAGAIN if there is none. */
static int any_look(tern_in *const *ends, unsigned n, unsigned *next)
{
	for (unsigned k = 0; k < n; k++) {
		unsigned at = (*next % n + k) % n;
		if (tern_chan_peek(ends[at]) == TERN_CHAN_NOTHING)
			continue;
		*next = (at + 1) % n;
		return (int)at;
	}
	return -EAGAIN;
}

/* Whether all that can come comes in messages, which end a sleep. */
static bool any_sounds(tern_in *const *ends, unsigned n)
{
	bool all = true;
	for (unsigned k = 0; k < n; k++)
		all &= ends[k]->chan->mirror != NULL;
	return all;
}

int tern_chan_any(tern_in *const *ends, unsigned n, unsigned *next, unsigned flags)
{
	int rc = any_check(ends, n, next, flags);
	if (rc)
		return rc;
	if (flags & TERN_CHAN_NOWAIT)
		return any_look(ends, n, next);
	struct wait w = { .bounded = !any_sounds(ends, n), .call = "tern_chan_any" };
	INSIDE struct scope scope = chan_scope(&ends[0]->chan, __func__);
	while ((rc = any_look(ends, n, next)) == -EAGAIN) {
		struct endpoint *e = ends[0]->chan->chans->e;
		rc = chan_may_wait(e, "tern_chan_any()");
		if (rc)
			return rc;
		wait_step(e, &w);
	}
	return rc;
}
