/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Processes that are not our children: the same one again under its number, and how it ended.
 *
 * Numbers are used again. A process is named by its number and the time of its start, and is
 * held by a descriptor (Linux 5.3), which cannot come to mean another one.
 */
#ifndef TERN_BASE_PROCESS_H
#define TERN_BASE_PROCESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct process_name {
	pid_t pid; /* 0: none */
	uint64_t born;
};

/* When the process began, in the kernel's ticks since it started; 0 if there is none. */
uint64_t process_born(pid_t pid);

/* Which process started it, or has inherited it; 0 if there is none. */
pid_t process_parent(pid_t pid);

/*
 * What it does, as /proc says it: R runs or waits for a core, S and D sleep, T and t are stopped;
 * and what time on a core it has used, in the kernel's ticks. 0, and *used as it was, if there is
 * none.
 */
char process_state(pid_t pid, uint64_t *used);

/* The same of a thread of this process. */
char thread_state(pid_t thread);

/*
 * Whether it has ended, be it that nobody has asked how yet. False if that cannot be seen. `born`
 * 0: it is a child whose number nobody else gets.
 */
bool process_ended(const struct process_name *name);

/*
 * A descriptor that becomes readable when the process ends. -ESRCH: it has; -ENOSYS: an old kernel;
 * else it cannot be known now.
 */
int process_open(pid_t pid, uint64_t born);

/*
 * A copy of a descriptor that the process has, closed on exec (Linux 5.6). A negative code where
 * the kernel does not let this process look at the other's memory either, or is older.
 */
int process_descriptor(pid_t pid, int theirs);

/*
 * As from waitpid, of a process that has ended. False where the kernel tells its parent alone,
 * which was faster.
 */
bool process_status(int fd, pid_t pid, uint64_t born, int *status);

/* Sends it a signal; nobody else gets it. */
void process_signal(int fd, int signal);

/*
 * What the environment that a process was started with says of `name`. False if it cannot be read,
 * or says nothing.
 */
bool process_variable(pid_t pid, const char *name, char *value, size_t len);

/*
 * Who started this process: the nearest process above it that was not started with the variable
 * `sign`, which its launcher gives to what it starts; those between are shells and the like. pid 0
 * if it cannot be seen from here.
 */
struct process_name process_launcher(const char *sign);

#endif
