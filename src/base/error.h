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

/* One line on standard error, "tern: " first; for what no caller can be told. */
void error_warn(const char *format, ...) __attribute__((format(printf, 1, 2)));

#endif
