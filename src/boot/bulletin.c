/* SPDX-License-Identifier: BSD-3-Clause */
/* cost: base setup */
#include "boot/bulletin.h"

#include <string.h>

/* The session is looked at twice: in between, the memory may have been made new. */
void bulletin_read(const struct job *j, uint32_t rank, struct bulletin *n)
{
	const struct job_rank *r = &j->rank[rank];
	do {
		*n = (struct bulletin){ .rank = rank, .session = atomic_load(&j->head->session) };
		n->state = atomic_load(&r->state);
		n->status = atomic_load(&r->status);
		n->passed = atomic_load(&r->passed);
		n->passed_before = atomic_load(&r->passed_before);
		n->published = atomic_load_explicit(&j->card[rank].published, memory_order_acquire);
		memcpy(n->card, j->card[rank].bytes, sizeof n->card);
	} while (atomic_load(&j->head->session) != n->session);
}

/* How many barriers it has passed is asked only of those who have left. */
bool bulletin_news(const struct bulletin *n, const struct bulletin *before)
{
	return n->session != before->session || n->state != before->state ||
	       n->published != before->published;
}

static uint64_t passed_in(const struct bulletin *n, uint32_t session)
{
	if (n->session == session)
		return n->passed;
	return n->session == session + 1 ? n->passed_before : n->session > session ? UINT64_MAX : 0;
}

/* Whoever reads it meanwhile sees, before or afterwards, that it is none of this session. */
static void card_take(struct job_card *c, const struct bulletin *n)
{
	atomic_store(&c->published, 0);
	atomic_thread_fence(memory_order_release);
	memcpy(c->bytes, n->card, sizeof c->bytes);
	atomic_store_explicit(&c->published, n->published, memory_order_release);
}

bool bulletin_take(struct job *j, const struct bulletin *n)
{
	if (n->rank >= j->size || job_here(j, n->rank) || n->state > RANK_DEAD)
		return false;
	struct job_rank *r = &j->rank[n->rank];
	if (atomic_load(&r->told) >> 8 > n->session || (atomic_load(&r->told) & 0xff) >= RANK_GONE)
		return true; /* it comes late */
	if (n->published != atomic_load(&j->card[n->rank].published))
		card_take(&j->card[n->rank], n);
	atomic_store(&r->status, n->status);
	atomic_store(&r->passed, passed_in(n, atomic_load(&j->head->session)));
	job_rank_told(j, n->rank, n->session, (enum rank_state)n->state);
	return true;
}

void bulletin_lost(struct bulletin *n, uint32_t rank)
{
	*n = (struct bulletin){
		.rank = rank, .session = UINT32_MAX, .state = RANK_DEAD, .status = STATUS_LOST
	};
}
