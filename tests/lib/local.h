/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Endpoints of one process, played by one thread: the simplest job there is.
 *
 * The tests that use it are run in every way of delivery, so handlers may run whenever the endpoint
 * is not held, on a thread of the library's, or in the middle of the test. A test settles before it
 * looks, holds an endpoint that is to handle nothing, or says local_polled().
 */
#ifndef TERN_TESTS_LOCAL_H
#define TERN_TESTS_LOCAL_H

#include <pthread.h>

#include <tern/stats.h>
#include <tern/tern.h>

#include "check.h"
#include "core/scope.h"
#include "far.h"

enum { LOCAL_MOST = 256 };

static tern *local[LOCAL_MOST];
static uint32_t local_size;
static uint64_t local_settled; /* messages handled when everybody last was */

/* Before opening: how messages are delivered, whatever the environment says. */
static inline void local_delivered(const char *how)
{
	setenv("TERN_DELIVERY", how, 1);
	setenv("TERN_SIGNAL", "40", 1);
}

/* For a test of what a single poll or send does: nothing is handled elsewhere. */
static inline void local_polled(void)
{
	local_delivered("poll");
}

static inline void local_open(uint32_t n)
{
	check_skip_crowd(n);
	far_need(getenv("TERN_NET"));
	int rc = tern_open_local(n, local);
	if (rc)
		printf("    %s\n", tern_strerror(rc));
	REQUIRE(rc == 0);
	local_size = n;
	local_settled = 0;
}

static inline void local_on_named(unsigned id, tern_handler *fn, const char *name)
{
	for (uint32_t r = 0; r < local_size; r++)
		CHECK_IS(tern_on_with(local[r], id, fn, NULL, name), 0);
}
#define local_on(id, fn) local_on_named(id, fn, #fn)

/* Messages that all of them have handled, in polls or otherwise. */
static inline uint64_t local_handled(void)
{
	uint64_t sum = 0;
	tern_stats_data d;
	for (uint32_t r = 0; r < local_size; r++)
		if (local[r] && CHECK_IS(tern_stats(local[r], &d), 0))
			sum += d.handled;
	return sum;
}

/* Whether something is on its way over a network, as far as its sender knows. */
static inline bool local_underway(void)
{
	bool underway = false;
	for (uint32_t r = 0; r < local_size; r++) {
		struct endpoint *e = local[r] ? local[r]->own : NULL;
		if (!e || !e->site.asks)
			continue;
		INSIDE struct scope scope = scope_open(local[r]);
		for (unsigned i = 0; i < e->nets; i++)
			underway |= e->net[i]->ops->settled &&
				    !e->net[i]->ops->settled(e->net[i], false);
	}
	return underway;
}

/* Once more round, while something is; bounded, because a rank under a hold does not take it. */
static inline bool local_patient(unsigned *rounds)
{
	if (!local_underway() || ++*rounds > 200)
		return false;
	world_nap(100000); /* in virtual time on a simulated machine */
	return true;
}

/*
 * Polls everybody until nothing more arrives; how many messages were handled since the last time.
 */
static inline unsigned local_settle(void)
{
	uint64_t before = local_settled, last = local_handled();
	for (unsigned quiet = 0, rounds = 0; quiet < 2 || local_patient(&rounds);) {
		for (uint32_t r = 0; r < local_size; r++)
			if (local[r])
				(void)!tern_poll(local[r]);
		uint64_t now = local_handled();
		quiet = now == last ? quiet + 1 : 0;
		rounds = now == last ? rounds : 0;
		last = now;
	}
	local_settled = last;
	return (unsigned)(last - before);
}

/* As local_settle(), for transfers too, which a poll carries on without handling anything. */
static inline void local_settle_transfers(void)
{
	for (int quiet = 0; quiet < 20; quiet++)
		quiet = local_settle() ? 0 : quiet;
}

static inline void local_close_one(uint32_t r)
{
	CHECK_IS(tern_close(local[r]), 0);
	local[r] = NULL;
}

static inline void local_close(void)
{
	for (uint32_t r = 0; r < local_size; r++)
		if (local[r])
			local_close_one(r);
}

/* -- What arrived last, and how often something did ---------------------------- */

struct noted {
	_Atomic unsigned count; /* raised last: whoever sees it sees the rest */
	uint32_t rank, src;     /* where, and from whom */
	unsigned words;
	uint64_t word[TERN_WORDS_MAX];
	size_t len;
	bool has_payload;
	unsigned char data[TERN_REQUEST_MAX];
};

static struct noted requests, replies;
static atomic_flag arrival_lock = ATOMIC_FLAG_INIT;

static inline void arrival_write(struct noted *a, tern *t, const tern_msg *m)
{
	a->rank = tern_rank(t);
	a->src = tern_msg_src(m);
	a->words = tern_msg_count(m);
	for (unsigned i = 0; i < a->words; i++)
		a->word[i] = tern_msg_word(m, i);
	const void *data = tern_msg_data(m, &a->len);
	a->has_payload = data != NULL;
	if (data)
		memcpy(a->data, data, a->len);
	a->count++;
}

/*
 * Handlers of two ranks may run at once; an interrupt's must not find the lock taken by what it
 * interrupts. That may be the handler of a rank that is polled, by the same thread.
 */
static inline void arrival_note(struct noted *a, tern *t, const tern_msg *m)
{
	sigset_t all, before;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	while (atomic_flag_test_and_set_explicit(&arrival_lock, memory_order_acquire))
		;
	arrival_write(a, t, m);
	atomic_flag_clear_explicit(&arrival_lock, memory_order_release);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
}

/* Handlers that only note what came. */
static inline void note_request(tern *t, const tern_msg *m)
{
	arrival_note(&requests, t, m);
}

static inline void note_reply(tern *t, const tern_msg *m)
{
	arrival_note(&replies, t, m);
}

/* Whether the sentence for rc, just returned, contains every one of these words. */
static inline bool sentence_has(int rc, const char *word)
{
	if (strstr(tern_strerror(rc), word))
		return true;
	printf("    the sentence lacks '%s': %s\n", word, tern_strerror(rc));
	return false;
}

#endif
