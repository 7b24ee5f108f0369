/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that are made by name, in folders where others may have put something under that name. */
#ifndef TERN_BASE_FILE_H
#define TERN_BASE_FILE_H

#include <stdio.h>
#include <sys/types.h>

/*
 * A file of the library, empty, for writing: no symbolic link is followed, and a regular file is
 * this user's, has no other name, and gets mode 0600. `flags` are more of open(2)'s. A descriptor,
 * or -1 with errno.
 */
int file_private(const char *path, int flags);

/*
 * A file that a person names to a tool: its mode is the umask's, and a symbolic link is followed if
 * this user or root made it. What it has stays. A descriptor, or -1 with errno.
 */
int file_named(const char *path);
/* The same, empty, as a stream; NULL with errno. */
FILE *file_named_empty(const char *path);

/* write(2), but a limit of file size is EFBIG and not SIGXFSZ, which is left to the program. */
ssize_t file_append(int fd, const void *bytes, size_t len);

#endif
