/* SPDX-License-Identifier: BSD-3-Clause */
/* What a child that goes on for long without exec gives back of what it has inherited. */
#ifndef TERN_BOOT_SHED_H
#define TERN_BOOT_SHED_H

#include <sys/types.h>

/* Closes every descriptor but 0 to 2, which become /dev/null, and the `n` of `keep`, which may get other numbers; -1 stays. */
void shed_files(int *keep, unsigned n);

/*
 * Gives back the program's large private memory: as long as a child has it, each page that the program writes to is copied, and there
 * twice. Nothing may be allocated or freed behind this; `mine` is memory of the caller's that stays.
 */
void shed_memory(const void *mine);

/* fork() behind that: the C library's would look at what it has allocated. */
pid_t shed_fork(void);

#endif
