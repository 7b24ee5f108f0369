/* SPDX-License-Identifier: BSD-3-Clause */
/* Threads of the library's own: small, and deaf to signals, which are the program's. */
#ifndef TERN_BOOT_THREAD_H
#define TERN_BOOT_THREAD_H

#include <pthread.h>

/* 0, or a negative errno. */
int thread_start(pthread_t *thread, void *(*main)(void *arg), void *arg);

#endif
