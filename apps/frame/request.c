/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Request threads: memory of another rank is asked for by a thread that is created there. This is
 * how SCMP's programs were written before it had send and receive. Three messages travel, as there:
 * the one that creates the thread, the data, and one that says that they have come, which is sent
 * behind them to the same rank, so it is handled after them.
 */
#include "frame/app.h"

#include <tern/mem.h>
#include <tern/thread.h>

enum { REQUEST, DATA = TERN_HANDLER_MAX - 1 };

static uint64_t asked;
static tern_flag answered;
static int failed; /* what a thread has returned, or could not be created for */

/* What the data bring with them: nothing is to be done before the thread has ended. */
static void on_data(tern *t, const tern_msg *msg)
{
	(void)t, (void)msg;
}

/* Words: where the data go, where they are, how many bytes. */
static uint64_t request(tern *t, const uint64_t word[TERN_WORDS_MAX], void *arg)
{
	(void)arg;
	void *p;
	tern_op left = TERN_OP;
	int rc = tern_addr_local(t, word[1], word[2], &p);
	if (!rc)
		rc = tern_put_request_start(t, word[0], DATA, p, word[2], &left, NULL);
	if (!rc)
		rc = tern_op_wait(t, &left);
	return (uint64_t)-rc;
}

static void request_done(tern *t, uint32_t rank, int rc, uint64_t result, void *arg)
{
	(void)rank, (void)arg;
	if (rc || result)
		failed = rc ? rc : -(int)result;
	tern_signal(t, &answered, 1);
}

void app_requests_open(struct app_job *j)
{
	app_must(j, tern_thread_on(j->t, REQUEST, request, NULL));
	app_must(j, tern_on(j->t, DATA, on_data));
	app_must(j, tern_barrier(j->t)); /* every rank knows the function */
}

void app_request(struct app_job *j, tern_addr to, tern_addr from, size_t len)
{
	asked++;
	app_must(j, tern_spawn(j->t, tern_addr_rank(from), REQUEST, request_done, NULL, to, from,
			       len));
}

void app_requests_wait(struct app_job *j)
{
	app_must(j, tern_wait(j->t, &answered, asked));
	asked = 0;
	app_must(j, failed);
}
