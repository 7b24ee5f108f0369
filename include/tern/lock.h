/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Locks that any rank can take. A lock is a tern_lock at the same place of every rank, memory of
 * tern_alloc_all(), zero while it is free. It goes to whoever asked first, and what the rank that
 * releases it had completed is seen by the next. When a rank dies that has it or waits for it,
 * those who wait and those who ask later get -EOWNERDEAD.
 */
#ifndef TERN_LOCK_H
#define TERN_LOCK_H

#include <tern/mem.h>

TERN_BEGIN_

typedef struct tern_lock {
	uint64_t last, next, turn; /* the library's */
} tern_lock;

/* Waits until this rank has the lock, and serves messages meanwhile. -EDEADLK if it has it. */
int tern_lock_take(tern *t, tern_lock *lock);
/* -EAGAIN instead of waiting. */
int tern_lock_try(tern *t, tern_lock *lock);
/* Gives it to the next rank that waits. -EPERM if this rank does not have it. */
int tern_lock_release(tern *t, tern_lock *lock);

TERN_END_

#endif
