/* SPDX-License-Identifier: BSD-3-Clause */
/* Every call of <tern/tern.h> as a function of one kind, for legal_test.c. */
#ifndef TERN_LEGAL_CALLS_H
#define TERN_LEGAL_CALLS_H

#include <errno.h>
#include <tern/async.h>

#include "lib/handed.h"
#include "lib/local.h"

enum { ASK, TELL, PLACE_REQUEST, PLACE_REPLY, PROVOKE, KEEP };

static tern *here;     /* the endpoint that calls */
static uint32_t other; /* whom it talks with: rank 0, or itself in a job of one */
static void *claimed;  /* a claim of the program's */
static const tern_msg *kept;
static int (*calling)(tern *t, const tern_msg *m);
static _Atomic int code;
static char sentence[400]; /* of the call, if it was refused */
static tern_op turn;
static _Atomic unsigned arrived; /* messages that the call has led to */

/* -- The calls ---------------------------------------------------------------------- */

static int call_request(tern *t, const tern_msg *m)
{
	(void)m;
	return tern_request(t, other, ASK, 1);
}

static int call_request_array(tern *t, const tern_msg *m)
{
	static const uint64_t words[4];
	(void)m;
	return tern_request_array(t, other, ASK, 4, words);
}

static int call_reply_to(tern *t, const tern_msg *m)
{
	(void)m;
	return tern_reply_to(t, other, TELL, 1, 2);
}

static int call_request_data(tern *t, const tern_msg *m)
{
	(void)m;
	return tern_request_data(t, other, ASK, "text", 5, 1);
}

static int call_request_data_array(tern *t, const tern_msg *m)
{
	static const uint64_t words[4];
	(void)m;
	return tern_request_data_array(t, other, ASK, "text", 5, 4, words);
}

static int call_claim(tern *t, const tern_msg *m)
{
	(void)m;
	void *mine = handed_claim(t, other, 10);
	return mine ? tern_abandon(t, mine) : -errno;
}

static int call_commit(tern *t, const tern_msg *m)
{
	(void)m;
	return tern_commit(t, claimed, ASK, 1);
}

static int call_commit_array(tern *t, const tern_msg *m)
{
	static const uint64_t words[4];
	(void)m;
	return tern_commit_array(t, claimed, ASK, 4, words);
}

static int call_claim_shorten(tern *t, const tern_msg *m)
{
	(void)m;
	return tern_claim_shorten(t, claimed, 10);
}

static int call_abandon(tern *t, const tern_msg *m)
{
	(void)m;
	return tern_abandon(t, claimed);
}

static int call_reply(tern *t, const tern_msg *m)
{
	return tern_reply(t, m, TELL, 1);
}

static int call_reply_array(tern *t, const tern_msg *m)
{
	static const uint64_t words[4];
	return tern_reply_array(t, m, TELL, 4, words);
}

static int call_reply_data(tern *t, const tern_msg *m)
{
	return tern_reply_data(t, m, TELL, "text", 5);
}

static int call_reply_data_array(tern *t, const tern_msg *m)
{
	static const uint64_t words[4];
	return tern_reply_data_array(t, m, TELL, "text", 5, 4, words);
}

static int call_reply_claim(tern *t, const tern_msg *m)
{
	return handed_reply_claim(t, m, 10) ? 0 : -errno;
}

static int call_reply_commit(tern *t, const tern_msg *m)
{
	void *reply = handed_reply_claim(t, m, 10);
	return tern_reply_commit(t, m, reply ? reply : claimed, TELL);
}

static int call_reply_commit_array(tern *t, const tern_msg *m)
{
	static const uint64_t words[4];
	void *reply = handed_reply_claim(t, m, 10);
	return tern_reply_commit_array(t, m, reply ? reply : claimed, TELL, 4, words);
}

static int call_keep(tern *t, const tern_msg *m)
{
	const tern_msg *mine = handed_keep(t, m);
	return mine ? tern_msg_drop(t, mine) : -errno;
}

static int call_drop(tern *t, const tern_msg *m)
{
	(void)m;
	return tern_msg_drop(t, kept);
}

static void nothing(tern *t, void *arg)
{
	(void)t, (void)arg;
}

static int call_defer(tern *t, const tern_msg *m)
{
	(void)m;
	return tern_defer(t, nothing, NULL);
}

static int call_poll(tern *t, const tern_msg *m)
{
	(void)m;
	return tern_poll(t);
}

static int call_poll_requests(tern *t, const tern_msg *m)
{
	(void)m;
	return tern_poll_requests(t);
}

static int call_poll_replies(tern *t, const tern_msg *m)
{
	(void)m;
	return tern_poll_replies(t);
}

static int call_wait(tern *t, const tern_msg *m)
{
	_Atomic uint64_t flag = 3;
	(void)m;
	int rc = tern_wait(t, &flag, 3);
	CHECK_IS(atomic_load(&flag), rc ? 3 : 0);
	return rc;
}

static int call_wait_for(tern *t, const tern_msg *m)
{
	_Atomic uint64_t flag = 3;
	(void)m;
	int rc = tern_wait_for(t, &flag, 3, 0);
	CHECK_IS(atomic_load(&flag), rc ? 3 : 0);
	return rc;
}

static int holds(tern *t, void *arg)
{
	(void)t, (void)arg;
	return 1;
}

static int call_wait_until(tern *t, const tern_msg *m)
{
	(void)m;
	return tern_wait_until(t, holds, NULL);
}

static int call_wait_until_for(tern *t, const tern_msg *m)
{
	(void)m;
	return tern_wait_until_for(t, holds, NULL, 0);
}

static int call_barrier(tern *t, const tern_msg *m)
{
	(void)m;
	return tern_barrier(t);
}

static int call_signal(tern *t, const tern_msg *m)
{
	_Atomic uint64_t flag = 3;
	(void)m;
	tern_signal(t, &flag, 4);
	return atomic_load(&flag) == 7 ? 0 : -1;
}

static int call_forgive(tern *t, const tern_msg *m)
{
	(void)m;
	return tern_forgive(t, other);
}

static int call_on_lost(tern *t, const tern_msg *m)
{
	(void)m;
	return tern_lost_on(t, NULL, NULL);
}

static int call_on_end(tern *t, const tern_msg *m)
{
	(void)m;
	return tern_end_on(t, NULL, NULL);
}

static int call_hold(tern *t, const tern_msg *m)
{
	(void)m;
	tern_hold(t);
	tern_release(t);
	return 0;
}

static int call_on(tern *t, const tern_msg *m)
{
	(void)m;
	return tern_on(t, 100, note_request);
}

static int call_set_delivery(tern *t, const tern_msg *m)
{
	(void)m;
	return tern_delivery_set(t, TERN_DELIVERY_POLL);
}

static int call_delivery(tern *t, const tern_msg *m)
{
	(void)m;
	return tern_delivery_get(t) == TERN_DELIVERY_DEFAULT;
}

static int call_close(tern *t, const tern_msg *m)
{
	(void)m;
	return tern_close(t);
}

#endif
