/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * An endpoint that several threads use, one call at a time. The lock is taken by the outermost
 * call or hold of a thread and given back by its end; a call that waits gives it back between
 * its steps, so that other threads get on.
 */
#ifndef TERN_CORE_SHARE_H
#define TERN_CORE_SHARE_H

#include "core/endpoint.h"

int share_open(struct endpoint *e);
void share_close(struct endpoint *e); /* gives the lock back; a sibling's thread may still try it */
void share_free(struct endpoint *e);
void share_lock(struct endpoint *e);
bool share_try(struct endpoint *e); /* false if another thread has it */
void share_unlock(struct endpoint *e);
bool share_is_mine(const struct endpoint *e);

/* Between two steps of a wait: lets other threads in, for `ns` if that is not 0. */
void share_breathe(struct endpoint *e, uint64_t ns);

#endif

/* cost: protection control */
