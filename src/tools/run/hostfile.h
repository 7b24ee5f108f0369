/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A file with a host in each line, as other launchers read it: `name`, `name:4` or `name slots=4`. Empty lines do
 * not count, nor does what follows a #.
 */
#ifndef TERN_TOOLS_RUN_HOSTFILE_H
#define TERN_TOOLS_RUN_HOSTFILE_H

#include <stddef.h>

/* *list is the same as one would write after --hosts, malloced; -EINVAL with a sentence that names file and line. */
int hostfile_read(const char *path, char **list);

/* The same of the `len` bytes of a file, which end with a 0 behind them and are cut apart. */
int hostfile_take(const char *path, char *text, size_t len, char **list);

#endif
