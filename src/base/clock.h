/* SPDX-License-Identifier: BSD-3-Clause */
/* The time of the library. */
#ifndef TERN_BASE_CLOCK_H
#define TERN_BASE_CLOCK_H

#include <stdint.h>
#include <time.h>

/*
 * Nanoseconds on the clock of the process's world, see world.h; of the real one, since the machine
 * started.
 */
uint64_t clock_ns(void);

#endif
