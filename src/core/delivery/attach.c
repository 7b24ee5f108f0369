/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which thread has an endpoint. The first thread to use it attaches it; until
 * then it has no owner, and a thread that waits in another endpoint of the group
 * may borrow it to serve what has arrived, so that a single thread can play all
 * ranks. The head's `reach` is 0 until the endpoint is attached, which brings the
 * first send here without a test on the fast path.
 */
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/error.h"
#include "base/memory.h"
#include "core/core.h"
#include "core/delivery.h"
#include "core/layers.h"
#include "core/rules.h"
#include "core/scope.h"

/*
 * Its address names the thread; with BORROWED, the thread only borrows. LENT by itself is nobody
 * too, by tern_detach(); with a thread, that thread has the endpoint and rests in a wait.
 */
static _Thread_local struct group *opened;
enum { NOBODY = 0, BORROWED = 1, FORKED = 2, LENT = 4 };

uintptr_t attach_token(void)
{
	return (uintptr_t)&opened;
}

/* Acquire pairs with the release in attach_leave(): the caller sees what was handled before. */
static bool attach_take(struct endpoint *e, uintptr_t was, uintptr_t now)
{
	return atomic_compare_exchange_strong_explicit(&e->attached, &was, now,
						       memory_order_acquire, memory_order_relaxed);
}

static void attach_leave(struct endpoint *e, uintptr_t state)
{
	atomic_store_explicit(&e->attached, state, memory_order_release);
}

void attach_first(struct endpoint *e)
{
	for (;;) {
		uintptr_t was = atomic_load_explicit(&e->attached, memory_order_relaxed);
		if (was & BORROWED) {
			e->world->yield();
			continue;
		}
		if (was != NOBODY && was != LENT)
			return; /* another thread was first; the caller orders the two */
		if (attach_take(e, was, attach_token())) {
			delivery_begin(e);
			return;
		}
	}
}

void tern_attach(tern *t)
{
	struct endpoint *e = given(t)->own;
	if (e->forked)
		return;
	if (!attach_is_mine(e))
		attach_first(e);
	/* A thread that ends may leave its token to another. */
	if (attach_is_mine(e) && !interrupt_elsewhere(e))
		return;
	if (e->threaded) {
		error_warn("rank %u starts threads and stays with the thread that has it: "
			   "use it and close it there",
			   t->rank);
		return;
	}
	if (e->owner.interrupt)
		interrupt_end(e); /* there; from now on, here */
	INSIDE struct scope scope = scope_open(t);
	atomic_store_explicit(&e->attached, attach_token(), memory_order_relaxed);
	if (e->owner.interrupt)
		interrupt_begin(e);
}

bool attach_is_mine(const struct endpoint *e)
{
	uintptr_t owner =
		atomic_load_explicit(&e->attached, memory_order_relaxed) & ~(uintptr_t)BORROWED;
	return owner == attach_token() || (owner && e->owner.shared) || progress_is_me(e);
}

bool attach_has_thread(const struct endpoint *e)
{
	return atomic_load_explicit(&e->attached, memory_order_relaxed) != NOBODY;
}

bool attach_is_lent(const struct endpoint *e)
{
	return atomic_load_explicit(&e->attached, memory_order_relaxed) & BORROWED;
}

bool attach_is_own(const struct endpoint *e)
{
	return atomic_load_explicit(&e->attached, memory_order_relaxed) == attach_token();
}

/* So that whoever uses it next comes to the library, also from the inline paths. */
static void attach_give_up(struct endpoint *e, uintptr_t state)
{
	alert_raise(e, ALERT_LIBRARY);
	e->t->reach = 0;
	attach_leave(e, state);
}

void attach_release(struct endpoint *e)
{
	attach_give_up(e, NOBODY);
}

/* -- Lending ---------------------------------------------------------------------------------- */

/*
 * One thread at a time touches an endpoint, and `attached` says which. Whoever borrows it changes
 * that word from a state in which nobody touches it, in one step with acquire, and writes the same
 * state back with release. There are three such states:
 *
 *   - NOBODY: no thread has used it yet. Only the thread that opened it borrows it.
 *   - LENT: its thread called tern_detach() and has left the library. Every thread that waits in
 *     an endpoint of the group borrows it. The next call of a thread that uses it finds `reach` 0
 *     and ALERT_LIBRARY, comes to attach_first() and waits there until it is not borrowed.
 *   - a thread with LENT: that thread waits in the library and has nothing to do, so it yields,
 *     naps or sleeps, and touches nothing of the endpoint until attach_rested() has changed the
 *     word back. Workers of the rank borrow it, and do what the thread would do itself in the next
 *     step of its wait: a poll.
 *
 * So what the three do is ordered by the one word, and each sees all that the last one wrote. A
 * thread that sleeps does not miss what a borrower handles for it: the bell was armed before, and
 * a message that comes then rings it, whoever handles the message.
 */
bool attach_rests(struct endpoint *e)
{
	if (TERN_LIKELY(!atomic_load_explicit(&e->group->workers, memory_order_relaxed)) ||
	    e->main || e->owner.shared || e->threaded || e->owner.delivery != TERN_DELIVERY_POLL ||
	    !attach_is_own(e))
		return false;
	attach_leave(e, attach_token() | LENT);
	return true;
}

void attach_rested(struct endpoint *e)
{
	while (!attach_take(e, attach_token() | LENT, attach_token()))
		e->world->yield();
}

unsigned attach_main(const struct endpoint *worker, unsigned (*fn)(struct endpoint *main))
{
	struct endpoint *main = worker->main;
	uintptr_t was = main ? atomic_load_explicit(&main->attached, memory_order_relaxed) : NOBODY;
	if (!(was & LENT) || was == LENT || !attach_take(main, was, attach_token() | BORROWED))
		return 0;
	unsigned handled = fn(main);
	attach_leave(main, was);
	return handled;
}

static int detach_allowed(struct endpoint *e)
{
	int rc = rules_wait(e, "tern_detach()");
	if (!rc && (e->defer.running || e->inner))
		rc = rule_broken(RULE_PROGRAM,
				 "tern_detach() was called in a function that a poll of rank %u "
				 "calls",
				 e->t->rank);
	if (!rc && e->threaded)
		rc = error_set(-EBUSY,
			       "tern_detach() was called at rank %u, which starts threads and "
			       "stays with the thread that has it",
			       e->t->rank);
	if (!rc && !attach_is_mine(e))
		rc = rule_broken(RULE_THREAD,
				 "tern_detach() was called by a thread that does not have rank %u",
				 e->t->rank);
	return rc;
}

int tern_detach(tern *t)
{
	INSIDE struct scope scope = scope_given(t);
	struct endpoint *e = t->own;
	int rc = detach_allowed(e);
	if (rc || e->owner.shared || e->owner.delivery != TERN_DELIVERY_POLL)
		return rc; /* if 0: other threads serve it already */
	scope_close_unserved(&scope);
	attach_give_up(e, LENT);
	return 0;
}

/* -- fork(2) --------------------------------------------------------------------------------- */

/*
 * A child has the endpoint's private memory as a copy and everything else in common with its
 * parent: rings with two producers would lose messages, and a socket with two readers packets. So
 * in the child every endpoint of its parent is disowned. Calls return -EPERM, and the job's memory
 * becomes a private copy, so that what the inline paths and the program itself write there reaches
 * nobody. It costs the parent nothing, and a send no instruction: the head of the child's endpoint
 * brings each one to the library, as before a thread has it.
 */

static pthread_mutex_t groups_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t groups_once = PTHREAD_ONCE_INIT;
static struct group *groups; /* of this process */

static void fork_prepare(void)
{
	pthread_mutex_lock(&groups_lock);
}

static void fork_parent(void)
{
	pthread_mutex_unlock(&groups_lock);
}

/* Its memory is the child's own by now, the guard's word included: it keeps interrupts out. */
static void endpoint_disown(struct endpoint *e, pid_t child)
{
	tern *t = e->t;
	e->forked = child;
	e->owner.guarded = e->owner.scoped = true;
	e->owner.shared = NULL; /* another thread may have had the lock */
	e->inlet = NULL;
	t->reach = 0;
	t->current = NULL;
	t->answer = &e->refuse;
	/* The child has one thread: any order would do for these three. */
	atomic_store(e->owner.guard, GUARD_INSIDE);
	atomic_store(&t->alert, ALERT_LIBRARY);
	atomic_store(&e->attached, FORKED);
	layers_disown(e);
}

static void fork_child(void)
{
	for (struct group *g = groups; g; g = g->next_open) {
		job_disown(&g->job);
		for (uint32_t i = 0; i < g->size; i++)
			endpoint_disown(g->member[i], getpid());
		for (struct endpoint *w = g->workers; w; w = w->next_worker)
			endpoint_disown(w, getpid());
	}
	groups = NULL;
	progress_forget();
	pthread_mutex_unlock(&groups_lock);
}

static void fork_watch(void)
{
	pthread_atfork(fork_prepare, fork_parent, fork_child);
}

static void fork_opened(struct group *g)
{
	pthread_once(&groups_once, fork_watch);
	pthread_mutex_lock(&groups_lock);
	g->next_open = groups;
	groups = g;
	pthread_mutex_unlock(&groups_lock);
}

/* Nothing if it was not opened. */
static void fork_closed(struct group *g)
{
	pthread_mutex_lock(&groups_lock);
	for (struct group **p = &groups; *p; p = &(*p)->next_open)
		if (*p == g) {
			*p = g->next_open;
			break;
		}
	pthread_mutex_unlock(&groups_lock);
}

/* -- Workers ---------------------------------------------------------------------------------- */

void attach_worker(struct endpoint *worker)
{
	pthread_mutex_lock(&groups_lock);
	worker->next_worker = atomic_load(&worker->group->workers);
	/* Who waits looks through the list without the lock, which only grows. */
	atomic_store_explicit(&worker->group->workers, worker, memory_order_release);
	pthread_mutex_unlock(&groups_lock);
}

/* Takes it out of the parked ones: no other thread finds it. */
struct endpoint *attach_parked(struct endpoint *main, struct endpoint *after)
{
	pthread_mutex_lock(&groups_lock);
	struct endpoint *w = after ? after->next_worker : main->group->workers;
	while (w && (w->main != main || !w->parked))
		w = w->next_worker;
	if (w) {
		w->parked = false;
		w->forked = 0;
	}
	pthread_mutex_unlock(&groups_lock);
	return w;
}

void attach_park(struct endpoint *worker)
{
	pthread_mutex_lock(&groups_lock);
	worker->parked = true;
	worker->forked = NO_ENDPOINT; /* until it is opened again */
	pthread_mutex_unlock(&groups_lock);
}

uint32_t attach_workers(struct endpoint *main)
{
	uint32_t open = 0;
	pthread_mutex_lock(&groups_lock);
	for (struct endpoint *w = main->group->workers; w; w = w->next_worker)
		open += w->main == main && !w->parked;
	pthread_mutex_unlock(&groups_lock);
	return open;
}

/* -- Groups of endpoints --------------------------------------------------------------------- */

void endpoint_free(struct endpoint *e)
{
	if (!e)
		return;
	share_free(e);
	memory_free(e->keeps.kept);
	free(e->owes);
	free(e->handlers.meant);
	free(e->site.peer);
	memory_bury(e->t, false);
	free(e);
}

void group_free(struct group *g)
{
	fork_closed(g);
	for (uint32_t i = 0; i < g->size; i++)
		endpoint_free(g->member[i]);
	for (struct endpoint *w = g->workers, *next; w; w = next) {
		next = w->next_worker;
		endpoint_free(w);
	}
	if (g->job.base)
		job_unmap(&g->job);
	if (g->made_job || g->gathered)
		job_forget(&g->job);
	free(g);
}

/* Groups whose endpoints are all closed are freed here, by the thread that lists them. */
void attach_closed(void)
{
	for (struct group **g = &opened; *g;) {
		struct group *closed = *g;
		if (atomic_load_explicit(&closed->open, memory_order_acquire)) {
			g = &closed->next;
			continue;
		}
		*g = closed->next;
		group_free(closed);
	}
}

void attach_opened(struct group *g)
{
	attach_closed();
	g->next = opened;
	opened = g;
	fork_opened(g);
}

typedef unsigned each_fn(struct endpoint *sibling, void *arg);

/* `nobodys`: also what no thread has used yet. */
static unsigned borrow_each(struct endpoint *sibling, bool nobodys, each_fn *fn, void *arg)
{
	uintptr_t was = atomic_load_explicit(&sibling->attached, memory_order_relaxed);
	bool may = was == LENT || (nobodys && was == NOBODY);
	if (!may || !attach_take(sibling, was, attach_token() | BORROWED))
		return 0;
	bool closed = atomic_load_explicit(&sibling->closed, memory_order_relaxed);
	unsigned sum = closed ? 0 : fn(sibling, arg);
	attach_leave(sibling, was);
	return sum;
}

static unsigned group_each(struct group *g, struct endpoint *e, bool nobodys, each_fn *fn,
			   void *arg)
{
	unsigned sum = 0;
	for (uint32_t i = 0; i < g->size; i++) {
		struct endpoint *sibling = g->member[i];
		if (sibling == e)
			continue;
		if (!attach_is_mine(sibling))
			sum += borrow_each(sibling, nobodys, fn, arg);
		else if (!atomic_load_explicit(&sibling->closed, memory_order_relaxed))
			sum += fn(sibling, arg);
	}
	for (struct endpoint *w = atomic_load_explicit(&g->workers, memory_order_acquire); w;
	     w = w->next_worker)
		sum += w != e && attach_is_own(w) ? fn(w, arg) : borrow_each(w, false, fn, arg);
	return sum;
}

/*
 * Only the thread that opened a group borrows what nobody has used: another thread that got one of
 * the endpoints must not run handlers of those that its fellows are about to use.
 */
unsigned attach_each(struct endpoint *e, each_fn *fn, void *arg)
{
	unsigned sum = 0;
	bool listed = false;
	for (struct group *g = opened; g; g = g->next) {
		listed |= g == e->group;
		sum += group_each(g, e, true, fn, arg);
	}
	return listed ? sum : sum + group_each(e->group, e, false, fn, arg);
}

static bool group_elsewhere(const struct group *g, const struct endpoint *e)
{
	for (uint32_t i = 0; i < g->size; i++) {
		const struct endpoint *sibling = g->member[i];
		uintptr_t owner = atomic_load_explicit(&sibling->attached, memory_order_relaxed);
		if (sibling != e && !atomic_load_explicit(&sibling->closed, memory_order_relaxed) &&
		    (owner == NOBODY || owner == LENT ||
		     (owner & ~(uintptr_t)BORROWED) == attach_token()))
			return false;
	}
	return true;
}

bool attach_is_alone(const struct endpoint *e)
{
	for (const struct group *g = opened; g; g = g->next)
		if (!group_elsewhere(g, e))
			return false;
	return true;
}

uint32_t tern_rank(const tern *t)
{
	return t ? t->rank : UINT32_MAX;
}

uint32_t tern_size(const tern *t)
{
	return t ? t->size : 0;
}

/* -- An endpoint that several threads use, one call at a time ------------------------------ */

/*
 * The lock is taken by the outermost call or hold of a thread and given back by its end; a call
 * that waits gives it back between its steps, so that other threads get on.
 */
struct share {
	pthread_mutex_t lock;
	_Atomic uintptr_t holder; /* the token of the thread that has it */
	uint32_t depth;           /* of its calls and holds */
	_Atomic uint32_t queue;   /* threads that want it */
};

int share_open(struct endpoint *e)
{
	e->owner.shared = calloc(1, sizeof *e->owner.shared);
	if (!e->owner.shared)
		return error_set(-ENOMEM, "sharing the endpoint of rank %u: no memory", e->t->rank);
	pthread_mutex_init(&e->owner.shared->lock, NULL);
	return 0;
}

/* Only this thread writes its own token there, so what it reads is never wrong for itself. */
bool share_is_mine(const struct endpoint *e)
{
	return atomic_load_explicit(&e->owner.shared->holder, memory_order_relaxed) ==
	       attach_token();
}

static void share_taken(struct share *s)
{
	atomic_store_explicit(&s->holder, attach_token(), memory_order_relaxed);
}

static void share_take(struct share *s)
{
	atomic_fetch_add_explicit(&s->queue, 1, memory_order_relaxed);
	pthread_mutex_lock(&s->lock);
	atomic_fetch_sub_explicit(&s->queue, 1, memory_order_relaxed);
	share_taken(s);
}

static void share_give(struct share *s)
{
	atomic_store_explicit(&s->holder, 0, memory_order_relaxed);
	pthread_mutex_unlock(&s->lock);
}

void share_close(struct endpoint *e)
{
	if (!e->owner.shared)
		return;
	if (share_is_mine(e)) /* by the close itself */
		share_give(e->owner.shared);
}

void share_free(struct endpoint *e)
{
	if (!e->owner.shared)
		return;
	pthread_mutex_destroy(&e->owner.shared->lock);
	free(e->owner.shared);
	e->owner.shared = NULL;
}

void share_lock(struct endpoint *e)
{
	if (!share_is_mine(e))
		share_take(e->owner.shared);
	e->owner.shared->depth++;
}

bool share_try(struct endpoint *e)
{
	if (!share_is_mine(e)) {
		if (pthread_mutex_trylock(&e->owner.shared->lock))
			return false;
		share_taken(e->owner.shared);
	}
	e->owner.shared->depth++;
	return true;
}

void share_unlock(struct endpoint *e)
{
	if (--e->owner.shared->depth == 0)
		share_give(e->owner.shared);
}

void share_breathe(struct endpoint *e, uint64_t ns)
{
	struct share *s = e->owner.shared;
	if (!ns && !atomic_load_explicit(&s->queue, memory_order_relaxed))
		return;
	uint32_t depth = s->depth;
	s->depth = 0;
	share_give(s);
	if (ns)
		e->world->nap(ns);
	else
		e->world->yield(); /* a mutex goes to whoever comes, and that would be us again */
	share_take(s);
	s->depth = depth;
}
