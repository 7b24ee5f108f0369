/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Scattered memory over networks, beside packing by hand: the sender gathers the runs into claimed
 * payloads, and the receiver's handler lays them down.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "tools/bench/words.h"
#include "tools/perf/parts.h"

#include <tern/mem.h>

enum {
	HANDLER_LAY = WORDS_FREE,
	HANDLER_LAID,
	RUN = 64,
	APART = 2 * RUN,
	FIT = TERN_PAYLOAD_MAX / RUN, /* in a payload */
};

static char *heap, *here;
static tern_addr there;
static _Atomic uint64_t laid;

static void lay(tern *t, const tern_msg *m)
{
	size_t len, at = tern_msg_arg(m, 0);
	const char *from = tern_msg_data(m, &len);
	for (size_t i = 0; i < len / RUN; i++)
		memcpy(heap + (at + i) * APART, from + i * RUN, RUN);
	tern_reply(t, m, HANDLER_LAID);
}

static void lay_answered(tern *t, const tern_msg *m)
{
	(void)m;
	tern_signal(t, &laid, 1);
}

int parts_open(struct bench_rank *p)
{
	void *own = NULL;
	size_t bytes = (size_t)p->size * APART;
	here = calloc(1, bytes);
	int rc = here ? words_register(p->t) : error_set(-ENOMEM, "no memory for %zu bytes", bytes);
	if (!rc)
		rc = tern_on(p->t, HANDLER_LAY, lay);
	if (!rc)
		rc = tern_on(p->t, HANDLER_LAID, lay_answered);
	if (!rc)
		rc = tern_alloc_all(p->t, bytes, &own);
	if (!rc)
		rc = tern_addr_of(p->t, own, &there);
	heap = own;
	there = tern_addr_at(there, 1 - p->rank);
	return rc;
}

int parts_move(struct bench_rank *p)
{
	const size_t count[] = { p->size };
	const ptrdiff_t stride[] = { APART };
	tern_part far = { .addr = there, .run = RUN, .dims = 1, .count = count, .stride = stride };
	tern_part near = { .base = here, .run = RUN, .dims = 1, .count = count, .stride = stride };
	for (uint64_t i = 0; i < p->count && !p->rc; i++)
		p->rc = p->way == PARTS_GET ? tern_get_parts(p->t, &near, 1, &far, 1)
					    : tern_put_parts(p->t, &far, 1, &near, 1);
	return p->rc;
}

static int pack_one(struct bench_rank *p, size_t at, size_t n)
{
	void *claimed;
	int rc = tern_claim(p->t, 1, n * RUN, &claimed);
	for (size_t i = 0; !rc && i < n; i++)
		memcpy((char *)claimed + i * RUN, here + (at + i) * APART, RUN);
	return rc ? rc : tern_commit(p->t, claimed, HANDLER_LAY, at);
}

int parts_pack(struct bench_rank *p)
{
	uint64_t sent = 0;
	for (uint64_t i = 0; i < p->count; i++, sent = 0) {
		for (size_t at = 0; at < p->size && !p->rc; at += FIT, sent++)
			p->rc = pack_one(p, at, p->size - at < FIT ? p->size - at : FIT);
		if (!p->rc)
			p->rc = tern_wait(p->t, &laid, sent);
	}
	return p->rc;
}
