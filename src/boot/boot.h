/* SPDX-License-Identifier: BSD-3-Clause */
/* How a process finds its job: through `tern run`, or alone. */
#ifndef TERN_BOOT_BOOT_H
#define TERN_BOOT_BOOT_H

#include <stdint.h>

struct boot {
	uint32_t rank, size;
	int fd; /* of the job's memory; -1 alone */
};

/*
 * Reads the environment. A process that another launcher started as one of several
 * is refused with that launcher's name, instead of becoming several jobs of one.
 */
int boot_find(struct boot *b);

#endif
