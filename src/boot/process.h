/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes that are not our children: the same one again under its number, and how it ended.
 *
 * Numbers are used again. A process is named by its number and the time of its start, and is
 * held by a descriptor (Linux 5.3), which cannot come to mean another one.
 */
#ifndef TERN_BOOT_PROCESS_H
#define TERN_BOOT_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

/* When the process began, in the kernel's ticks since it started; 0 if there is none. */
uint64_t process_born(pid_t pid);

/* A descriptor that becomes readable when the process ends. -ESRCH: it has; -ENOSYS: an old kernel; else it cannot be known now. */
int process_open(pid_t pid, uint64_t born);

/* As from waitpid, of a process that has ended. False where the kernel tells its parent alone, which was faster. */
bool process_status(int fd, pid_t pid, uint64_t born, int *status);

#endif
