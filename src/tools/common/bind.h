/* SPDX-License-Identifier: BSD-3-Clause */
/* Which core a rank stays on, and the settings that it is started with. */
#ifndef TERN_TOOLS_COMMON_BIND_H
#define TERN_TOOLS_COMMON_BIND_H

#include <sched.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/setting.h"

enum binding { BINDING_UNSAID, BINDING_NONE, BINDING_CORE };

/* Room for 8192 cores; the kernel refuses a mask that is smaller than its own. */
struct cores {
	cpu_set_t set[8];
};

struct bind {
	bool bound;
	uint32_t count;
	struct cores usable;
};

/* Decides for a job of `ranks`; the cores are those that this process may use. */
void bind_plan(struct bind *b, enum binding asked, uint32_t ranks);
/* Binds the calling process as `rank` is to be; nothing for a job that is not bound. */
void bind_apply(const struct bind *b, uint32_t rank);
/* Sets a setting in the environment of this process. */
void environment_set(enum setting s, uint32_t value);
/* A core that no rank of a bound job has, or -1. */
int bind_spare(const struct bind *b, uint32_t ranks);

#endif
