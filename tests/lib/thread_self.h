/* SPDX-License-Identifier: BSD-3-Clause */
/* What a thread knows of itself, as a value. */
#ifndef THREAD_SELF_H
#define THREAD_SELF_H

#include <tern/thread.h>

static inline tern_thread_info thread_self(const tern *t)
{
	tern_thread_info self;
	tern_thread_self(t, &self);
	return self;
}

#endif
