/* SPDX-License-Identifier: BSD-3-Clause */
/* Ends a job through its process manager, in a thread that was started for it beforehand. */
#include "base/kernel.h"
#include "base/world.h"
#include "boot/pmi/pmi.h"

#define SECOND UINT64_C(1000000000)

enum {
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

/* Without a thread the link alone ends the job. */
void pmi_abort_prepare(const struct pmi_ops *pmi)
{
	pthread_t thread;
	if (!pmi->abort)
		return;
	ending.pmi = pmi;
	if (pmi_thread(&thread, ending_main, NULL) == 0)
		pthread_detach(thread);
	else
		ending.pmi = NULL;
}

void pmi_abort(int status)
{
	if (!ending.pmi)
		return;
	atomic_store(&ending.status, status);
	atomic_store(&ending.asked, 1);
	futex_wake32(&ending.asked);
	pmi_done_within(&ending.done, PATIENCE_S * SECOND);
}
