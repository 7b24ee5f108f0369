/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/thread.h"

#include <signal.h>

enum { STACK = 1 << 20 }; /* bytes; process managers' libraries run on it */

int thread_start(pthread_t *thread, void *(*main)(void *arg), void *arg)
{
	pthread_attr_t attributes;
	sigset_t all, before;
	sigfillset(&all);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK);
	pthread_sigmask(SIG_SETMASK, &all, &before); /* inherited by the thread */
	int error = pthread_create(thread, &attributes, main, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return -error;
}
