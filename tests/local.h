/* SPDX-License-Identifier: BSD-3-Clause */
/* Endpoints of one process, played by one thread: the simplest job there is. */
#ifndef TERN_TESTS_LOCAL_H
#define TERN_TESTS_LOCAL_H

#include <tern/tern.h>

#include "check.h"

enum { LOCAL_MOST = 256 };

static tern *local[LOCAL_MOST];
static uint32_t local_size;

static inline void local_open(uint32_t n)
{
	int rc = tern_open_local(n, local);
	if (rc)
		printf("    %s\n", tern_strerror(rc));
	REQUIRE(rc == 0);
	local_size = n;
}

static inline void local_on(unsigned id, tern_handler *fn)
{
	for (uint32_t r = 0; r < local_size; r++)
		CHECK_IS(tern_on(local[r], id, fn), 0);
}

/* Polls everybody until nothing more arrives; how many messages were handled. */
static inline unsigned local_settle(void)
{
	unsigned sum = 0, quiet = 0;
	while (quiet < 2) {
		unsigned handled = 0;
		for (uint32_t r = 0; r < local_size; r++) {
			int rc = local[r] ? tern_poll(local[r]) : 0;
			handled += rc > 0 ? (unsigned)rc : 0;
		}
		quiet = handled ? 0 : quiet + 1;
		sum += handled;
	}
	return sum;
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

struct arrival {
	unsigned count;
	uint32_t rank, src; /* where, and from whom */
	unsigned words;
	uint64_t word[TERN_WORDS_MAX];
	size_t len;
	bool has_payload;
	unsigned char data[TERN_PAYLOAD_MAX];
};

static struct arrival requests, replies; /* of one thread: with threads, do not use */

static inline void arrival_note(struct arrival *a, tern *t, const tern_msg *m)
{
	a->count++;
	a->rank = tern_rank(t);
	a->src = tern_msg_src(m);
	a->words = tern_msg_words(m);
	for (unsigned i = 0; i < a->words; i++)
		a->word[i] = tern_msg_arg(m, i);
	const void *data = tern_msg_data(m, &a->len);
	a->has_payload = data != NULL;
	if (data)
		memcpy(a->data, data, a->len);
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
