/* SPDX-License-Identifier: BSD-3-Clause */
/* Ends a job through its process manager, in a thread that was started for it beforehand. */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>

#include "base/clock.h"
#include "base/kernel.h"
#include "base/world.h"
#include "boot/pmi/pmi.h"

#define SECOND UINT64_C(1000000000)

enum {
	STACK = 1 << 20, /* bytes; a process manager's library runs on it */
	PATIENCE_S = 2,
	SLEEP_S = 3600, /* and again */
};

/* seq_cst: a job ends once. */
static struct {
	const struct pmi_ops *pmi;
	_Atomic int status;
	_Atomic uint32_t asked, done;
} ending;

static void *ending_main(void *arg)
{
	(void)arg;
	while (!atomic_load(&ending.asked))
		world_wait(&ending.asked, 0, SLEEP_S * SECOND);
	ending.pmi->abort(atomic_load(&ending.status));
	atomic_store(&ending.done, 1);
	futex_wake32(&ending.done);
	return NULL;
}

/*
 * With all signals blocked: they are the program's. Without a thread the link alone ends the job.
 */
void pmi_abort_prepare(const struct pmi_ops *pmi)
{
	pthread_t thread;
	pthread_attr_t attributes;
	sigset_t all, before;
	if (!pmi->abort)
		return;
	ending.pmi = pmi;
	sigfillset(&all);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK);
	pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
	pthread_sigmask(SIG_SETMASK, &all, &before); /* inherited by the thread */
	if (pthread_create(&thread, &attributes, ending_main, NULL) != 0)
		ending.pmi = NULL;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
}

void pmi_abort(int status)
{
	uint64_t now = clock_ns(), end = now + PATIENCE_S * SECOND;
	if (!ending.pmi)
		return;
	atomic_store(&ending.status, status);
	atomic_store(&ending.asked, 1);
	futex_wake32(&ending.asked);
	for (; !atomic_load(&ending.done) && now < end; now = clock_ns())
		world_wait(&ending.done, 0, end - now);
}
