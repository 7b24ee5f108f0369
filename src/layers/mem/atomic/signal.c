/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Puts that end with an operation on a word of the target's heap, and waits for such a word. Where
 * this process can touch the word, whoever waits for it looks at it while it spins and is rung for
 * when it sleeps. Elsewhere the owner is told in a message, which has the data too if that is not
 * more than a message carries.
 */
#include <errno.h>

#include "base/cpu.h"
#include "base/error.h"
#include "core/wait.h"
#include "mem/mem.h"
#include "mem/word.h"

/* -- Signals --------------------------------------------------------------------------------- */

static inline bool signal_aligned(const void *at)
{
	return (uintptr_t)at % sizeof(uint64_t) == 0;
}

/*
 * The word changes before we look at the bell, and whoever waits for it raises the bell and then
 * looks at the word once more: so both are sequentially consistent.
 */
static inline void signal_apply(struct mem *m, uint32_t rank, void *at, unsigned what,
				uint64_t value)
{
	if (what == TERN_AMO_STORE)
		atomic_store((_Atomic uint64_t *)at, value); /* nobody wants the value before */
	else
		amo_apply(at, amo_code(AMO_U64, what), (const uint64_t[]){ value, 0 });
	struct job_rank *r = &m->job->rank[rank];
	/* A progress thread that sleeps waits for no word. */
	if (TERN_UNLIKELY((atomic_load(&r->bell) & (BELL_ASLEEP | BELL_PROGRESS)) == BELL_ASLEEP))
		job_ring(m->job, rank);
	if (TERN_UNLIKELY(atomic_load(&r->workers_wait)))
		job_ring_workers(m->job, rank);
}

/* The owner does it: one message, answered for the handle. */
static int signal_send(struct mem *m, struct slot *s, const struct signal *g, const void *data,
		       size_t len, tern_op *op)
{
	union word value;
	uint64_t words[] = { g->dst, g->word, g->what, g->value, slot_name(m, s) };
	return slot_request(m, s, op, MEM_SIGNAL, len ? word_value(&value, data, len) : NULL, len,
			    5, words);
}

int signal_step(struct mem *m, struct follow *f)
{
	if (f->move.pending)
		return -EAGAIN;
	if (f->move.error)
		return f->move.error;
	char *at = heap_reach(m, f->signal.word, sizeof(uint64_t));
	struct slot *s = at ? NULL : slot_take(m, f->rank, SLOTS_QUICK);
	if (!at && !s)
		return -EAGAIN;
	f->over = true;
	if (at) {
		signal_apply(m, f->rank, at, f->signal.what, f->signal.value);
		return 0;
	}
	int rc = follow_passed_on(f, signal_send(m, s, &f->signal, NULL, 0, f->op));
	f->over = !rc;
	return rc;
}

static int signal_error(struct mem *m, const tern_msg *msg, char **at)
{
	unsigned what = (unsigned)tern_msg_word(msg, 2);
	tern_addr word = tern_msg_word(msg, 1);
	*at = tern_addr_rank(word) == m->rank ? heap_reach(m, word, sizeof(uint64_t)) : NULL;
	if (word == TERN_ADDR_NONE) /* a store */
		*at = (char *)&m->job->rank[m->rank].stored;
	if (!*at)
		return EFAULT;
	return what <= TERN_AMO_SMAX_ && signal_aligned(*at) ? 0 : EINVAL;
}

void on_signal(tern *t, const tern_msg *msg)
{
	struct mem *m = mem_of(t);
	size_t len;
	char *data = (char *)(uintptr_t)tern_msg_data(msg, &len), *at;
	int error = signal_error(m, msg, &at);
	if (!error && data)
		error = own_move(m, tern_msg_word(msg, 0), data, len, true);
	if (!error)
		signal_apply(m, m->rank, at, (unsigned)tern_msg_word(msg, 2),
			     tern_msg_word(msg, 3));
	if (tern_msg_count(msg) > 4)
		message_answer(t, tern_msg_word(msg, 4), error, 0);
	else if (error)
		poll_trouble_warn(t->own,
				  error_set(-EFAULT,
					    "rank %u refused a store of %zu bytes from rank %u: "
					    "the memory is not there (any more), or not that long",
					    m->rank, len, tern_msg_src(msg)));
}

static int signal_check(struct mem *m, const struct signal *g, size_t len)
{
	static const char call[] = "a put with a signal";
	uint32_t rank = tern_addr_rank(g->word);
	int rc = mem_check(m, g->word, sizeof(uint64_t), call);
	if (!rc && len)
		rc = mem_check(m, g->dst, len, call);
	if (rc)
		return rc;
	if (len && tern_addr_rank(g->dst) != rank)
		return error_set(-EINVAL,
				 "%s was given data for rank %u and a word of rank %u: "
				 "they must be at one",
				 call, tern_addr_rank(g->dst), rank);
	if (g->what > TERN_AMO_SMAX_)
		return error_set(-EINVAL, "%s was given the operation %u, which is none", call,
				 g->what);
	if (!signal_aligned((const void *)(uintptr_t)g->word))
		return error_set(-EINVAL, "%s was given a word that is not aligned to 8 bytes",
				 call);
	if (layer_maps(m->e, rank) && !heap_reach(m, g->word, sizeof(uint64_t)))
		return error_set(-EFAULT,
				 "%s was given a word that is not in the heap of rank %u: allocate "
				 "it with tern_alloc() or tern_alloc_all()",
				 call, rank);
	return 0;
}

/* What cannot be done by the call. */
static int signal_later(struct mem *m, const struct signal *g, const void *src, size_t len,
			tern_op *op)
{
	uint32_t rank = tern_addr_rank(g->word);
	struct slot *s;
	int rc = rules_program(m->e, "a put with a signal to memory of another process");
	if (rc)
		return rc;
	if (len <= TERN_PAYLOAD_MAX && !heap_reach(m, g->word, sizeof(uint64_t))) {
		rc = slot_wait(m, rank, &s);
		return rc ? rc : signal_send(m, s, g, src, len, op);
	}
	tern_long put = { .dst = g->dst, .src = src, .len = len, .op = op };
	return follow_written_down(m, &put, rank, NULL, g);
}

static __attribute__((noinline)) int signal_any(tern *t, const struct signal *g, const void *src,
						size_t len, tern_op *op)
{
	INSIDE struct scope scope = scope_of_op(&t, op, "tern_put_signal_start");
	struct mem *m = mem_of(t);
	tern_op own = TERN_OP;
	int rc = signal_check(m, g, len);
	if (rc)
		return rc;
	char *at = heap_reach(m, g->word, sizeof(uint64_t));
	bool at_once = !op || len <= START_IN_ONE_GO || in_handler(m->e) || held(m->e);
	if (at && at_once && (!len || mem_reach(m, g->dst, len))) {
		rc = tern_put(t, g->dst, src, len);
		if (rc)
			return rc;
		signal_apply(m, tern_addr_rank(g->word), at, g->what, g->value);
		if (op)
			op_over(m->e, op);
		return 0;
	}
	rc = op ? 0 : rules_wait(m->e, "a blocking put with a signal");
	rc = rc ? rc : signal_later(m, g, src, len, op ? op : &own);
	return op_finish(t, op, &own, rc);
}

/* Release: the word orders the data, so that a few bytes need no fence of their own. */
static inline int signal_put(tern *t, tern_addr dst, char *to, const void *src, size_t len)
{
	if (len > TERN_LINE)
		return tern_put(t, dst, src, len);
	word_copy(to, src, len); /* cost: base write */
	return 0;
}

int tern_put_signal_start(tern *t, tern_addr dst, const void *src, size_t len,
			  const tern_change *change, tern_op *op)
{
	t = given(t);
	tern_addr word = change->word;
	unsigned what = change->what;
	uint64_t value = change->value;
	char *at = span_reach(t, word, SPAN_WORD), *to = NULL;
	if (at) /* the data goes into the same heap */
		to = len ? span_part(spans_of(t) + tern_addr_rank(word), dst, len) : at;
	bool near = to && signal_aligned(at) && what <= TERN_AMO_SMAX_ && (!op || op_silent(op)) &&
		    len <= TERN_PAYLOAD_MAX;
	if (TERN_UNLIKELY(!near))
		return signal_any(t, &(struct signal){ dst, word, what, value }, src, len, op);
	int rc = len ? signal_put(t, dst, to, src, len) : 0;
	if (!rc)
		signal_apply(mem_of(t), tern_addr_rank(word), at, what, value);
	return rc;
}

/* -- Waiting for a word ----------------------------------------------------------------------- */

enum {
	WORD_REST_NS = 1000000, /* a put that rings for nobody is noticed after so long */
	LIMITED_LOOKS = 64,     /* between two looks at the clock */
};

struct word_wait {
	const _Atomic uint64_t *word;
	enum tern_word what;
	uint64_t value;
	struct wait w;
	_Atomic uint32_t *waits; /* of a worker: its rank's count, */
	bool counted;            /* which has this wait once it may sleep */
};

static inline bool word_holds(const struct word_wait *ww)
{
	/* Sequentially consistent: it is the last look before a sleep, too; see signal_apply(). */
	uint64_t is = atomic_load(ww->word);
	switch (ww->what) {
	case TERN_WORD_EQ:
		return is == ww->value;
	case TERN_WORD_NE:
		return is != ww->value;
	case TERN_WORD_LT:
		return is < ww->value;
	case TERN_WORD_LE:
		return is <= ww->value;
	case TERN_WORD_GT:
		return is > ww->value;
	default:
		return is >= ww->value;
	}
}

/*
 * Looks at the word and at what arrives, for as long as a wait spins: its steps look at messages
 * alone, many times, before they ask.
 */
static bool word_over(struct endpoint *e, void *arg)
{
	struct word_wait *ww = arg;
	uint32_t end = e->waiting.spin;
	if (TERN_UNLIKELY(ww->w.since && ww->waits && !ww->counted)) {
		ww->counted = true;
		atomic_fetch_add(ww->waits, 1); /* before the look that a sleep follows */
	}
	if (ww->w.until && end > ww->w.looks + LIMITED_LOOKS)
		end = ww->w.looks + LIMITED_LOOKS;
	while (!word_holds(ww)) {
		if (ww->w.looks >= end || e->work || wait_scheduler ||
		    pollset_find(&e->site, e->site.peek))
			return false;
		ww->w.looks++;
		cpu_relax();
	}
	return true;
}

static int word_check(struct mem *m, const uint64_t *word, enum tern_word what, const char *call)
{
	tern_addr a = mem_addr_all(m, word, sizeof *word);
	if (what > TERN_WORD_GE)
		return error_set(-EINVAL, "%s was given the comparison %u, which is none", call,
				 (unsigned)what);
	if (a == TERN_ADDR_NONE || !heap_reach(m, a, sizeof *word))
		return error_set(-EFAULT,
				 "%s was given %p, which is not in rank %u's heap: allocate it "
				 "with tern_alloc() or tern_alloc_all()",
				 call, (const void *)word, m->rank);
	if (!signal_aligned(word))
		return error_set(-EINVAL, "%s was given a word that is not aligned to 8 bytes",
				 call);
	return 0;
}

int word_await(struct mem *m, const uint64_t *word, enum tern_word what, uint64_t value,
	       const struct wait *how, uint64_t ns)
{
	int rc = rules_wait(m->e, how->rule);
	if (!rc)
		rc = word_check(m, word, what, how->rule);
	return rc ? rc
		  : word_reach(m, (const _Atomic uint64_t *)(const void *)word, what, value, how,
			       ns);
}

int word_reach(struct mem *m, const _Atomic uint64_t *word, enum tern_word what, uint64_t value,
	       const struct wait *how, uint64_t ns)
{
	struct word_wait ww = { .word = word, .what = what, .value = value, .w = *how };
	ww.w.rest_ns = WORD_REST_NS;
	if (m->e->main)
		ww.waits = &m->job->rank[m->rank].workers_wait;
	int rc = ns == UINT64_MAX ? wait_until(m->e, word_over, &ww, &ww.w)
				  : wait_until_limit(m->e, word_over, &ww, &ww.w, ns);
	if (ww.counted)
		atomic_fetch_sub(ww.waits, 1);
	return rc;
}

static int wait_word(tern *t, const uint64_t *word, enum tern_word what, uint64_t value,
		     uint64_t ns, const char *call, const char *rule)
{
	INSIDE struct scope scope = scope_of(&t, call);
	const struct wait how = { .call = call, .rule = rule, .stop = wait_blame };
	return word_await(mem_of(t), word, what, value, &how, ns);
}

int tern_wait_word(tern *t, const uint64_t *word, enum tern_word what, uint64_t value)
{
	return wait_word(t, word, what, value, UINT64_MAX, __func__, "tern_wait_word()");
}

int tern_wait_word_for(tern *t, const uint64_t *word, enum tern_word what, uint64_t value,
		       uint64_t ns)
{
	return wait_word(t, word, what, value, ns, __func__, "tern_wait_word_for()");
}
