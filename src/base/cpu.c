/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/cpu.h"

#include <sched.h>
#include <unistd.h>

uint32_t cpu_count(void)
{
	cpu_set_t set;
	if (sched_getaffinity(0, sizeof set, &set) == 0)
		return (uint32_t)CPU_COUNT(&set);
	long online = sysconf(_SC_NPROCESSORS_ONLN); /* more than 1024 cores */
	return online > 0 ? (uint32_t)online : 1;
}
