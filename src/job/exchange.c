/* SPDX-License-Identifier: BSD-3-Clause */
/* Cards: what a rank tells the others of itself when it opens. */
#include "job/exchange.h"

#include <string.h>

#include "job/job.h"

void boot_publish(struct job *j, uint32_t rank, const void *card, size_t len)
{
	memcpy(j->card[rank].bytes, card, len);
	/* card.R5, release; acquired below: whoever sees it published sees the bytes. */
	atomic_store_explicit(&j->card[rank].published, atomic_load(&j->head->session),
			      memory_order_release);
	job_tell(j, rank);
}

bool boot_look(const struct job *j, uint32_t rank, void *card, size_t len)
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

/* cost: base setup */
