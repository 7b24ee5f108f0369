/* SPDX-License-Identifier: BSD-3-Clause */
/* Files that are made by name, in folders where others may have put something under that name. */
#ifndef TERN_BASE_FILE_H
#define TERN_BASE_FILE_H

#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/types.h>

/*
 * A file that the library or a tool makes, for writing: no symbolic link is followed, and a regular
 * file is this user's, has no other name, and gets mode 0600. `flags` are more of open(2)'s, of
 * which O_TRUNC empties it. A descriptor, or -1 with errno.
 */
int file_private(const char *path, int flags);
/* Empty, as a stream; NULL with errno. */
FILE *file_private_stream(const char *path);
/*
 * The beginning of a small file of the kernel's, as text; false if there is none, or it is empty.
 * Without stdio, which an interrupt may find in use.
 */
bool file_text(const char *path, char *text, size_t room);
/* What errno of these means, in words. */
const char *file_why(int error);

/* write(2), but a limit of file size is EFBIG and not SIGXFSZ, which is left to the program. */
ssize_t file_append(int fd, const void *bytes, size_t len);

#endif
