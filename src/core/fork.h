/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fork(2). A child has the endpoint's private memory as a copy and everything else in common with
 * its parent: rings with two producers would lose messages, and a socket with two readers packets.
 * So in the child every endpoint of its parent is disowned. Calls return -EPERM, and the job's
 * memory becomes a private copy, so that what the inline paths and the program itself write there
 * reaches nobody. It costs the parent nothing, and a send no instruction: the head of the child's
 * endpoint brings each one to the library, as before a thread has it.
 */
#ifndef TERN_CORE_FORK_H
#define TERN_CORE_FORK_H

#include "core/endpoint.h"

void fork_opened(struct group *g);
void fork_closed(struct group *g); /* nothing if it was not opened */

#endif
