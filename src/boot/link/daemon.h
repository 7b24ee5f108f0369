/* SPDX-License-Identifier: BSD-3-Clause */
/* What a child that goes on for long without exec gives back of what it has inherited. */
#ifndef TERN_BOOT_LINK_DAEMON_H
#define TERN_BOOT_LINK_DAEMON_H

#include <sys/types.h>

/*
 * Closes every descriptor but 0 to 2, which become /dev/null, and the `n` of `keep`, which may get
 * other numbers; -1 stays.
 */
void daemon_close_files(int *keep, unsigned n);

/*
 * Gives back the program's large private memory: as long as a child has it, each page that the
 * program writes to is copied, and there twice. Nothing may be allocated or freed behind this;
 * `mine` is memory of the caller's that stays.
 */
void daemon_drop_memory(const void *mine);

/*
 * fork() for such a child: the C library's would look at what it has allocated. `signal` is what
 * the end of the child sends to its parent; with 0 nobody is told, and waitpid() finds the child
 * only with __WALL. In builds with a sanitizer it is SIGCHLD in any case.
 */
pid_t daemon_fork(int signal);

#endif
