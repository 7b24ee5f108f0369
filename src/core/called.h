/* SPDX-License-Identifier: BSD-3-Clause */
/* With TERN_CHECK: calls of all ranks that do not match; see called.c. */
#ifndef TERN_CORE_CALLED_H
#define TERN_CORE_CALLED_H

#include <tern/tern.h>

struct endpoint;

tern_handler on_called;
/* Tells the others which call this rank comes to the barrier for: `barrier.call`. */
void called_tell(struct endpoint *e);
/* -EINVAL, with a sentence, where ranks have come to the barrier for different calls. */
int called_compare(struct endpoint *e);

#endif
