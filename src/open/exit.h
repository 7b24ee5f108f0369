/* SPDX-License-Identifier: BSD-3-Clause */
/* The end of the whole job, for the library's own reasons too. */
#ifndef TERN_OPEN_EXIT_H
#define TERN_OPEN_EXIT_H

#include <tern/tern.h>

/* Ends every rank, in any thread, and does not return. Who calls it has said why. */
__attribute__((noreturn)) void job_exit(tern *t, int status);

#endif
