/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/pmi.h"

#include <errno.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/error.h"
#include "base/hex.h"
#include "base/setting.h"
#include "boot/thread.h"

const struct pmi_ops *const pmi_table[PMI_PROTOCOLS] = { &pmix_ops, &pmi_wire_ops, &pmi_slurm_ops };

/*
 * Keys carry the rank. PMIx would tell the ranks' values apart by itself, PMI-1 has one
 * table for all.
 */
static void card_key(char *text, size_t room, const char *key, uint32_t rank)
{
	snprintf(text, room, "tern-%s-%u", key, rank);
}

/* -- The fence ------------------------------------------------------------------------ */

enum { PATIENCE_S = 30 }; /* unless TERN_STUCK says otherwise */

struct patience {
	sem_t over;
	uint32_t rank;
	uint64_t seconds;
};

/* Managers' fences cannot be asked how far they are, so somebody else looks at the clock. */
static void *patience_main(void *arg)
{
	struct patience *p = arg;
	struct timespec end;
	clock_gettime(CLOCK_REALTIME, &end);
	end.tv_sec += (time_t)p->seconds;
	while (sem_timedwait(&p->over, &end) != 0)
		if (errno == ETIMEDOUT) {
			error_warn(
				"rank %u has waited for %llu s in tern_open(), which every rank has to call; "
				"a program that a rank has started is none: set TERN_ALONE=1 for it",
				p->rank, (unsigned long long)p->seconds);
			break;
		}
	return NULL;
}

/* A rank that never calls tern_open() makes the others wait for ever. They say so, once. */
static int fence_patiently(const struct pmi_ops *pmi, uint32_t rank)
{
	struct patience p = { .rank = rank };
	pthread_t thread;
	if (setting_number(SETTING_STUCK, &p.seconds) != 0 || !p.seconds)
		p.seconds = PATIENCE_S;
	sem_init(&p.over, 0, 0);
	bool watched = thread_start(&thread, patience_main, &p) == 0;
	int rc = pmi->fence();
	sem_post(&p.over);
	if (watched)
		pthread_join(thread, NULL);
	sem_destroy(&p.over);
	return rc;
}

int pmi_gather(const struct pmi_ops *pmi, uint32_t rank, uint32_t size, const char *key, const void *mine,
	       size_t len, void *all)
{
	char name[64], value[PMI_VALUE_MAX];
	hex_write(value, mine, len);
	card_key(name, sizeof name, key, rank);
	int rc = pmi->put(name, value);
	if (!rc)
		rc = fence_patiently(pmi, rank);
	for (uint32_t r = 0; !rc && r < size; r++) {
		card_key(name, sizeof name, key, r);
		rc = pmi->get(r, name, value, sizeof value);
		if (!rc && !hex_read(value, (unsigned char *)all + r * len, len))
			rc = error_set(-EPROTO,
				       "what rank %u said of itself through %s is not what this Tern says: "
				       "all ranks must run the same version",
				       r, pmi->name);
	}
	return rc;
}
