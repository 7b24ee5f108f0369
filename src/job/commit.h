/* SPDX-License-Identifier: BSD-3-Clause */
/* Pages of a job's memory: whether there are any, and which of them a core dump has. */
#ifndef TERN_JOB_COMMIT_H
#define TERN_JOB_COMMIT_H

#include "job/job.h"

/*
 * Whether so much can be taken without the kernel killing somebody of this process's cgroup for it.
 */
bool commit_fits(struct job *j, size_t bytes);

/* TERN_CORE; -EINVAL with a sentence. */
int commit_core(bool *all);
/*
 * A core dump has the front of what was just mapped, and nothing else but what job_dump() adds; or
 * it has all.
 */
void commit_dump(struct job *j, size_t front, bool all);

#endif
