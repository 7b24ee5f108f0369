/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The end of a job that one of its ranks has asked for: a word in the job's memory of each machine.
 * The process that watches the ranks of a machine reads it and ends them. It is carried to other
 * machines in the status records of ranks. All operations are seq_cst: a job ends once.
 */
#include <unistd.h>

#include "base/kernel.h"
#include "job/job.h"

enum { STATUS_BITS = 8, STATUS_MASK = 0xff };

bool job_end_decode(uint64_t word, uint32_t size, struct job_end *end)
{
	uint64_t rank = (word >> STATUS_BITS) - 1; /* UINT64_MAX for none */
	if (rank >= size)
		return false;
	*end = (struct job_end){ .rank = (uint32_t)rank, .status = (int)(word & STATUS_MASK) };
	return true;
}

uint64_t job_end_word(const struct job *j)
{
	return atomic_load(&j->head->end);
}

bool job_end_read(const struct job *j, struct job_end *end)
{
	return job_end_decode(job_end_word(j), j->size, end);
}

void job_end_take(struct job *j, uint64_t word)
{
	struct job_end end;
	uint64_t none = 0;
	if (job_end_decode(word, j->size, &end) &&
	    atomic_compare_exchange_strong(&j->head->end, &none, word))
		loopback_knock((uint16_t)atomic_load(&j->head->end_port));
}

void job_end_write(struct job *j, uint32_t rank, int status, struct job_end *end)
{
	job_end_take(j, (uint64_t)(rank + 1) << STATUS_BITS | (uint64_t)status);
	job_tell(j, rank);
	if (!job_end_read(j, end)) /* the memory was written over */
		*end = (struct job_end){ .rank = rank, .status = status };
}
