/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The runtime layer's active messages. Two arguments are one of Tern's words. The number that a
 * message is sent to says the rest: which handler, whether the last word has one argument, and
 * whether the message is long. A long message has the destination and the length in two words more;
 * where the arguments leave no room for them, in a payload.
 */
#include "runtime.h"

#include <errno.h>

enum { LONG = 2, PLACE = 16 /* bytes */ };

static rt_handler *handlers[RT_HANDLERS];

static unsigned number_of(unsigned handler, unsigned n, unsigned kind)
{
	return rt.first + handler * RT_NUMBERS + kind + n % 2;
}

static unsigned args_pack(uint64_t *words, unsigned n, const uint32_t *args)
{
	for (unsigned i = 0; i < n / 2; i++)
		words[i] = args[2 * i] | (uint64_t)args[2 * i + 1] << 32;
	if (n % 2)
		words[n / 2] = args[n - 1];
	return (n + 1) / 2;
}

/* -- Arrival ----------------------------------------------------------------------------- */

static void handler_run(tern *t, const tern_msg *m, unsigned first, const void *data, size_t len)
{
	tern *before = rt_here.t;
	rt_token token = { m, tern_msg_src(m) };
	unsigned number = tern_msg_handler(m) - rt.first, n = tern_msg_count(m) - first;
	uint32_t args[RT_ARGS_MAX];
	for (unsigned i = 0; i < n; i++) {
		uint64_t word = tern_msg_word(m, first + i);
		args[2 * i] = (uint32_t)word;
		args[2 * i + 1] = (uint32_t)(word >> 32);
	}
	rt_here.t = t; /* not the thread's own where a worker serves its rank */
	handlers[number / RT_NUMBERS](&token, args, 2 * n - number % 2, (void *)(uintptr_t)data,
				      len);
	rt_here.t = before;
}

static void on_message(tern *t, const tern_msg *m)
{
	size_t len;
	const void *data = tern_msg_data(m, &len);
	handler_run(t, m, 0, data, len);
}

static void on_long(tern *t, const tern_msg *m)
{
	size_t payload;
	const char *data = tern_msg_data(m, &payload);
	uint64_t place[2] = { tern_msg_word(m, 0), tern_msg_word(m, 1) };
	if (data)
		memcpy(place, data, PLACE);
	if (payload > PLACE)
		memcpy((void *)place[0], data + PLACE, place[1]);
	handler_run(t, m, data ? 0 : 2, (void *)place[0], place[1]);
}

void rt_on_named(unsigned number, rt_handler *fn, const char *name)
{
	handlers[number] = fn;
	for (unsigned i = 0; i < RT_NUMBERS; i++)
		rt_must(tern_on_with(rt_here.t, rt.first + number * RT_NUMBERS + i,
				     i < LONG ? on_message : on_long, NULL, name));
}

/* -- Sending ----------------------------------------------------------------------------- */

static int sent(int rc)
{
	if (rc == -EAGAIN)
		return 1;
	rt_must(rc);
	return 0;
}

int rt_request(uint32_t rank, unsigned handler, const void *data, size_t len, unsigned n,
	       const uint32_t *args)
{
	uint64_t words[TERN_WORDS_MAX];
	unsigned count = args_pack(words, n, args), number = number_of(handler, n, 0);
	return sent(data ? tern_request_data_array(rt_here.t, rank, number, data, len, count, words)
			 : tern_request_array(rt_here.t, rank, number, count, words));
}

void rt_reply(rt_token *token, unsigned handler, const void *data, size_t len, unsigned n,
	      const uint32_t *args)
{
	uint64_t words[TERN_WORDS_MAX];
	unsigned count = args_pack(words, n, args), number = number_of(handler, n, 0);
	rt_must(data ? tern_reply_data_array(rt_here.t, token->m, number, data, len, count, words)
		     : tern_reply_array(rt_here.t, token->m, number, count, words));
}

void rt_commit(rt_token *token, void *claimed, unsigned handler, size_t len, unsigned n,
	       const uint32_t *args)
{
	uint64_t words[TERN_WORDS_MAX];
	unsigned count = args_pack(words, n, args), number = number_of(handler, n, 0);
	rt_must(tern_claim_shorten(rt_here.t, claimed, len));
	rt_must(token ? tern_reply_commit_array(rt_here.t, token->m, claimed, number, count, words)
		      : tern_commit_array(rt_here.t, claimed, number, count, words));
}

/* One of Tern's long messages, with the destination and the length before the arguments. */
static tern_long long_of(uint32_t rank, unsigned handler, void *dst, const void *data, size_t len,
			 unsigned n, const uint32_t *args, uint64_t *words)
{
	words[0] = (uintptr_t)dst;
	words[1] = len;
	return (tern_long){ .dst = rt_addr(rank, dst),
			    .src = data,
			    .len = len,
			    .id = number_of(handler, n, LONG),
			    .n = 2 + args_pack(words + 2, n, args),
			    .words = words };
}

int rt_request_long(uint32_t rank, unsigned handler, void *dst, const void *data, size_t len,
		    tern_op *local, unsigned n, const uint32_t *args)
{
	uint64_t words[2 + TERN_WORDS_MAX];
	tern_long what = long_of(rank, handler, dst, data, len, n, args, words);
	what.local = local;
	if (n <= RT_LONG_ARGS)
		return sent(tern_put_request_start_array(rt_here.t, &what));
	int rc = tern_put(rt_here.t, what.dst, data, len);
	return sent(rc ? rc
		       : tern_request_data_array(rt_here.t, rank, what.id, words, PLACE, what.n - 2,
						 words + 2));
}

int rt_request_parts(unsigned handler, const tern_parts *parts, tern_op *local, tern_op *op,
		     unsigned n, const uint32_t *args)
{
	uint64_t words[TERN_WORDS_MAX];
	return sent(tern_put_request_start_array(rt_here.t,
						 &(tern_long){ .id = number_of(handler, n, 0),
							       .n = args_pack(words, n, args),
							       .local = local,
							       .op = op,
							       .words = words,
							       .parts = parts }));
}

static int reply_packed(rt_token *token, const tern_long *what)
{
	char *claimed;
	int rc = tern_reply_claim(rt_here.t, token->m, PLACE + what->len, TERN_CLAIM_FRESH,
				  (void **)&claimed);
	if (rc)
		return rc;
	memcpy(claimed, what->words, PLACE);
	memcpy(claimed + PLACE, what->src, what->len);
	return tern_reply_commit_array(rt_here.t, token->m, claimed, what->id, what->n - 2,
				       what->words + 2);
}

void rt_reply_long(rt_token *token, unsigned handler, void *dst, const void *data, size_t len,
		   unsigned n, const uint32_t *args)
{
	uint64_t words[2 + TERN_WORDS_MAX];
	tern_long what = long_of(token->src, handler, dst, data, len, n, args, words);
	rt_must(n <= RT_LONG_ARGS ? tern_put_reply_array(rt_here.t, token->m, &what)
				  : reply_packed(token, &what));
}
