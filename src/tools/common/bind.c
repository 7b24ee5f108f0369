/* SPDX-License-Identifier: BSD-3-Clause */
/* Chooses the core of each rank, and binds processes to theirs. */
#include "tools/common/bind.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CORES_MAX = sizeof(struct cores) * 8 };

/*
 * Unless told, only a job that takes most of the machine is bound: two small jobs
 * would else sit on the same first cores, and a single rank's threads on one.
 */
static bool bind_decide(enum binding asked, uint32_t ranks, uint32_t count)
{
	if (asked == BINDING_UNSAID)
		return ranks <= count && ranks > count / 2 && count > 1;
	return asked == BINDING_CORE && count > 0;
}

void bind_plan(struct bind *b, enum binding asked, uint32_t ranks)
{
	memset(b, 0, sizeof *b);
	if (sched_getaffinity(0, sizeof b->usable, b->usable.set) == 0)
		b->count = (uint32_t)CPU_COUNT_S(sizeof b->usable, b->usable.set);
	b->bound = bind_decide(asked, ranks, b->count);
}

static int bind_core(const struct bind *b, uint32_t rank)
{
	uint32_t skip = rank % b->count;
	for (int core = 0; core < CORES_MAX; core++)
		if (CPU_ISSET_S(core, sizeof b->usable, b->usable.set) && skip-- == 0)
			return core;
	return 0;
}

void bind_apply(const struct bind *b, uint32_t rank)
{
	struct cores one;
	if (!b->bound)
		return;
	CPU_ZERO_S(sizeof one, one.set);
	CPU_SET_S(bind_core(b, rank), sizeof one, one.set);
	sched_setaffinity(0, sizeof one, one.set);
}

int bind_spare(const struct bind *b, uint32_t ranks)
{
	return b->bound && ranks < b->count ? bind_core(b, ranks) : -1;
}

void environment_set(enum setting s, uint32_t value)
{
	char text[16];
	snprintf(text, sizeof text, "%u", value);
	setenv(setting_table[s].name, text, 1);
}
