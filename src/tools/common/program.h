/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where Tern's programs are: `tern` itself, and a tern-NAME for each command that needs more than
 * libc or studies the machine. They are looked for beside the program that asks, then in
 * libexec/tern and bin of the same prefix, and then on PATH, as git does.
 */
#ifndef TERN_TOOLS_COMMON_PROGRAM_H
#define TERN_TOOLS_COMMON_PROGRAM_H

#include <limits.h>
#include <stdbool.h>

enum { PROGRAM_FOLDERS = 4 }; /* before those of PATH */

/* The i-th folder to look in, from 0; false behind the last one. */
bool program_folder(int i, char folder[PATH_MAX]);
/* The path of the first program of the name; false: there is none. */
bool program_locate(const char *name, char path[PATH_MAX]);

#endif
