/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Objects that are NULL, closed or freed. A call that is given one goes on with an endpoint that
 * refuses everything, as a forked child's does: so what a call checks in any case is all that it
 * checks. That endpoint stands behind the head that tern_close() leaves, and a state of zeros that
 * names it behind teams, channels and streams that are gone. The memory of these can be read for a
 * while (memory_bury()). The sentence names the call and what it was given.
 */
#ifndef TERN_ENDPOINT_MISUSE_H
#define TERN_ENDPOINT_MISUSE_H

#include "endpoint/endpoint.h"

extern struct endpoint misuse_endpoint; /* it refuses */
/* What stands for the state of any layer; each begins with its endpoint. */
enum { MISUSE_STATE = 9 << 13 };
extern union misuse_state {
	struct endpoint *e;
	_Alignas(64) char room[MISUSE_STATE]; /* as memory_new() has it */
} misuse_state;

/* The head of that endpoint, for a call that was given `what` ("a team that is NULL"). */
tern *misuse_of(const char *call, const char *what);
/* An endpoint that is NULL, closed or a parent's: what the call goes on with. */
tern *misuse_given(const tern *t, const char *call);
/* -EINVAL, with a sentence about what the last call was given; else about `call`. */
int misuse_error(const char *call);
/* From now on whoever uses the head is told that it is closed. */
void misuse_close(tern *t);

/*
 * From now on a fault at NULL is said on standard error before it ends the process: what the inline
 * paths are given is not looked at.
 */
void misuse_watch(void);

/* What a call goes on with that was given `t`. */
#define given(t) given_to(t, __func__)
static inline tern *given_to(const tern *t, const char *call)
{
	return TERN_UNLIKELY(!t || t->own->forked) ? misuse_given(t, call) : (tern *)(uintptr_t)t;
}

#endif
