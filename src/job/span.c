/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What each member knows of the heaps, in the job's memory: whoever sees a rank's process end takes
 * its heap away from all of them. So puts and atomics need not ask whether the rank lives.
 */
#include <stdio.h>
#include <string.h>

#include "job/job.h"

int job_spans_open(struct job *j, uint32_t member, struct job_span **spans)
{
	char what[64];
	*spans = job_part_in(j, &j->span, member);
	if (atomic_load(&j->spanned[member])) /* by a worker that was closed */
		return 0;
	snprintf(what, sizeof what, "the table of heaps at rank %u", job_member_rank(j, member));
	int rc = job_commit(j, job_part_at(&j->span, member), j->span.bytes, what);
	if (!rc)
		atomic_store(&j->spanned[member], 1);
	return rc;
}

void job_span_clear(struct job_span *s)
{
	memset(&s->own, 0, offsetof(struct job_span, unused_) - offsetof(struct job_span, own));
}

/*
 * The state says already that the rank is dead. Dekker's pattern with span_look(): we write the
 * state and then the spans; it writes its span and then looks at the state. So either it sees the
 * state, or what is written here is the later of the two.
 */
void job_heap_withdraw(struct job *j, uint32_t rank)
{
	atomic_thread_fence(memory_order_seq_cst);
	for (uint32_t m = 0; m < job_members(j); m++)
		if (atomic_load(&j->spanned[m]))
			job_span_clear((struct job_span *)job_part_in(j, &j->span, m) + rank);
}
