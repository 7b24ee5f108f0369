/* SPDX-License-Identifier: BSD-3-Clause */
/* The sentence behind an error code, kept per thread. */
#ifndef TERN_BASE_ERROR_H
#define TERN_BASE_ERROR_H

/*
 * Records the sentence for `rc` (negative) in this thread and returns `rc`. The
 * level that first knows the cause calls it: what was asked, what stood in the
 * way, what to do.
 */
int error_set(int rc, const char *format, ...) __attribute__((format(printf, 2, 3)));

/*
 * The same with what a system call has left in errno, whose words end the sentence: a bare -errno
 * would be given what the code means in Tern, which is something else.
 */
int error_system(const char *format, ...) __attribute__((format(printf, 1, 2)));

/* The last error, set aside for an interrupt. */
struct error_kept {
	int rc;
	char text[800];
};
void error_keep(struct error_kept *kept);
void error_restore(const struct error_kept *kept);

/* One line on standard error, "tern: " first; for what no caller can be told. */
void error_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
