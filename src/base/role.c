/* SPDX-License-Identifier: BSD-3-Clause */
/* The roles of handlers, in this process. */
#include "base/role.h"

#include <stdatomic.h>
#include <tern/tern.h>

static _Atomic unsigned char roles[TERN_HANDLER_SLOTS - TERN_HANDLER_MAX];

void role_set(unsigned handler, enum role role)
{
	atomic_store_explicit(&roles[handler], (unsigned char)role, memory_order_relaxed);
}

enum role role_of(unsigned handler)
{
	return (enum role)atomic_load_explicit(&roles[handler], memory_order_relaxed);
}
