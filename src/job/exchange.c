/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Cards and status records. Where no order is named here, operations are seq_cst: records change
 * when a rank opens, leaves, or passes a barrier by messages, and no message waits for that.
 */
#include "job/exchange.h"

#include <string.h>

/* -- Cards ---------------------------------------------------------------------------------- */

void card_publish(struct job *j, uint32_t rank, const void *card, size_t len)
{
	memcpy(j->card[rank].bytes, card, len);
	/* card.R5, release; acquired below: whoever sees it published sees the bytes. */
	atomic_store_explicit(&j->card[rank].published, atomic_load(&j->head->session),
			      memory_order_release);
	job_tell(j, rank);
}

bool card_read(const struct job *j, uint32_t rank, void *card, size_t len)
{
	/* card.R5. A card of another session is of no use: it has left, or will come. */
	uint64_t session = atomic_load(&j->head->session);
	if (atomic_load_explicit(&j->card[rank].published, memory_order_acquire) != session)
		return false;
	memcpy(card, j->card[rank].bytes, len);
	/* Of a rank elsewhere it may have been written anew meanwhile, for its next session. */
	atomic_thread_fence(memory_order_acquire);
	return atomic_load_explicit(&j->card[rank].published, memory_order_relaxed) == session;
}

/* -- Status records ------------------------------------------------------------------------- */

static void rank_status_fill(const struct job *j, uint32_t rank, struct rank_status *n)
{
	const struct job_rank *r = &j->rank[rank];
	n->status = atomic_load(&r->status);
	n->end = job_end_word(j);
	n->passed = atomic_load(&r->passed);
	n->passed_before = atomic_load(&r->passed_before);
	n->published = atomic_load_explicit(&j->card[rank].published, memory_order_acquire);
	memcpy(n->card, j->card[rank].bytes, sizeof n->card);
}

/*
 * Session and state belong together. While the memory is made new, a rank has the next session's
 * number and still the state of the one before, so this begins when nobody does that. The session
 * has then changed, or is about to, if anybody did it since. What is told of a rank of another
 * machine is one word.
 */
void rank_status_read(struct job *j, uint32_t rank, struct rank_status *n)
{
	const struct job_rank *r = &j->rank[rank];
	uint64_t told, session;
	do {
		job_renewed(j);
		*n = (struct rank_status){ .rank = rank, .serial = atomic_load(&r->serial) };
		told = atomic_load(&r->told);
		session = atomic_load(&j->head->session);
		n->session = job_rank_session(j, rank);
		n->state = job_here(j, rank) ? atomic_load(&r->state) : (uint32_t)(told & 0xff);
		rank_status_fill(j, rank, n);
	} while (atomic_load(&r->told) != told || atomic_load(&j->head->session) != session ||
		 job_renewing(j));
}

/* Whoever reads it meanwhile sees, before or afterwards, that it is none of this session. */
static void card_take(struct job_card *c, const struct rank_status *n)
{
	atomic_store(&c->published, 0);
	atomic_thread_fence(memory_order_release);
	memcpy(c->bytes, n->card, sizeof c->bytes);
	atomic_store_explicit(&c->published, n->published, memory_order_release);
}

/*
 * That a rank has ended may also be said by others, who do not know its serial; nothing comes
 * behind it.
 */
static bool rank_status_late(const struct job_rank *r, const struct rank_status *n)
{
	uint64_t told = atomic_load(&r->told);
	if ((told & 0xff) >= RANK_GONE)
		return true;
	if (n->state >= RANK_GONE)
		return false;
	return n->serial <= atomic_load(&r->serial) || (n->session << 8 | n->state) < told;
}

static enum rank_status_worth rank_status_write(struct job *j, const struct rank_status *n)
{
	struct job_rank *r = &j->rank[n->rank];
	if (rank_status_late(r, n))
		return RANK_STATUS_KNOWN;
	if (n->published != atomic_load(&j->card[n->rank].published) && n->state < RANK_GONE)
		card_take(&j->card[n->rank], n);
	atomic_store(&r->status, n->status);
	atomic_store(&r->passed, n->passed);
	atomic_store(&r->passed_before, n->passed_before);
	job_rank_told(j, n->rank, n->session, (enum rank_state)n->state);
	/* Last: if this process is killed before it, the record counts as not taken. */
	atomic_store(&r->serial, n->serial);
	return RANK_STATUS_NEWS;
}

/* As far as somebody can say who is not of its machine: well, if it had closed before. */
static void rank_status_end(struct job *j, uint32_t rank, int status, struct rank_status *n)
{
	rank_status_read(j, rank, n);
	if (n->state >= RANK_GONE)
		return;
	n->status = n->state == RANK_CLOSED ? 0 : status;
	n->state = n->state == RANK_CLOSED ? RANK_GONE : RANK_DEAD;
}

enum rank_status_worth rank_status_take(struct job *j, const struct rank_status *n)
{
	if (n->rank >= j->size || job_here(j, n->rank) || n->state > RANK_DEAD)
		return RANK_STATUS_NONSENSE;
	job_end_take(j, n->end); /* first: whoever sees that a rank has ended is to know why */
	struct rank_status ends;
	if (n->status == STATUS_LOST && n->state == RANK_DEAD) {
		/* The sender knew nothing else of it. */
		rank_status_end(j, n->rank, STATUS_LOST, &ends);
		n = &ends;
	}
	return rank_status_write(j, n);
}

void rank_status_lost(struct rank_status *n, uint32_t rank)
{
	*n = (struct rank_status){
		.rank = rank, .session = UINT64_MAX >> 8, .state = RANK_DEAD, .status = STATUS_LOST
	};
}

bool rank_status_news(struct job *j, uint64_t *told, struct rank_status *n)
{
	uint32_t r = 0;
	while (r < j->size && (!job_here(j, r) || atomic_load(&j->rank[r].serial) + 1 == told[r]))
		r++;
	if (n && r < j->size) {
		rank_status_read(j, r, n);
		told[r] = n->serial + 1;
	}
	return r < j->size;
}
