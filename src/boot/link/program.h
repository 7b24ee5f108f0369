/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Finds Tern's programs: `tern` itself, a tern-NAME for each command that needs more than libc or
 * studies the machine, and tern-link. And executes tern-link apart from the program: in a session
 * of its own, without any descriptor of the program's but those that are given to it, and not as
 * its child.
 */
#ifndef TERN_BOOT_LINK_PROGRAM_H
#define TERN_BOOT_LINK_PROGRAM_H

#include <limits.h>
#include <stdbool.h>

enum { PROGRAM_FOLDERS = 8 }; /* before those of PATH */

/*
 * The i-th folder to look in, from 0: beside the library (or the program, if that has the library
 * in it), in libexec and bin of its prefix, where the build was to be installed, on PATH. False
 * behind the last one.
 */
bool program_folder(int i, char folder[PATH_MAX]);
/* The path of the first program of the name; false: there is none. */
bool program_locate(const char *name, char path[PATH_MAX]);
/* Where tern-link is: as TERN_LINK says, or there. -ENOTSUP with a sentence. */
int program_find(char path[PATH_MAX]);

/*
 * The descriptors that tern-link has when it begins: 0 and 1 are a socket to whoever started it, 2
 * is /dev/null; which of the last two of these are there, it is told.
 */
enum { PROGRAM_MEMORY = 3, PROGRAM_LISTENER, PROGRAM_NOTICE, PROGRAM_END };

/*
 * Executes it with `control` as descriptors 0 and 1, and fd[i] as PROGRAM_MEMORY + i, where that is
 * not -1. 0, or a negative errno of what stood in the way. No copy of the program is made: until
 * tern-link is executed, its process borrows this one's memory, and this thread waits.
 */
int program_start(const char *path, int control, const int fd[PROGRAM_END - PROGRAM_MEMORY]);

#endif
