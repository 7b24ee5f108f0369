/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Messages of words that asynchronous sends carry between ranks of one process, and what was
 * drained.
 */
#ifndef TERN_TESTS_ASYNC_PAIR_H
#define TERN_TESTS_ASYNC_PAIR_H

#include <errno.h>
#include <tern/async.h>

#include "local.h"

/* What a filler puts: `words` of them, counting from `first`; and how it ends. */
struct message {
	uint64_t first;
	unsigned words;
	_Atomic unsigned put, calls; /* atomic: another thread may be running the filler */
	int result;
};

static inline int message_fill(tern *t, tern_out *out, void *arg)
{
	struct message *l = arg;
	(void)t;
	l->calls++;
	for (; l->put < l->words; l->put++) {
		int rc = tern_chan_put(out, &(uint64_t){ l->first + l->put }, sizeof(uint64_t));
		if (rc)
			return rc;
	}
	return l->result;
}

/* What has been drained. */
struct mail {
	_Atomic unsigned messages, words, calls;
	_Atomic uint32_t src;
	_Atomic uint64_t first, last;
	_Atomic bool out_of_order;
	int result; /* of a drainer when its message is read */
};

/* All words of a message, which count up. */
static inline int mail_drain(tern *t, tern_incoming *m, void *arg)
{
	struct mail *mail = arg;
	uint64_t word;
	int rc;
	(void)t;
	mail->calls++;
	mail->src = m->src;
	while ((rc = tern_chan_get(m->in, &word, sizeof word)) == 0) {
		if (m->own[0]++ == 0)
			mail->first = word;
		else
			mail->out_of_order |= word != mail->last + 1;
		mail->last = word;
		mail->words++;
	}
	if (rc != -ENODATA)
		return rc;
	mail->messages++;
	return mail->result;
}

/* Polls everybody until nothing has a turn any more in which it gets on. */
static inline void turns_settle(void)
{
	unsigned rounds = 0;
	for (int quiet = 0; quiet < 3 || local_patient(&rounds); quiet++)
		for (uint32_t r = 0; r < local_size; r++)
			if (local[r] && tern_poll(local[r]) > 0)
				quiet = 0;
}

static inline void local_drains(unsigned id, tern_drainer *fn, void *arg)
{
	for (uint32_t r = 0; r < local_size; r++)
		CHECK_IS(tern_async_on(local[r], id, fn, arg), 0);
}

#endif
