/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/pmi.h"

#include <errno.h>
#include <semaphore.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/hex.h"
#include "base/setting.h"
#include "boot/roll.h"
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

/* -- In a thread of its own ---------------------------------------------------------------- */

/*
 * Managers wait for a rank that does not come for as long as they like, in calls that nobody can end. So a thread makes these calls, and the caller
 * looks at the clock and for processes that have ended. When the caller gives up, the thread and its memory are left alone.
 */
struct gathering {
	const struct pmi_ops *pmi;
	uint32_t rank, size;
	const char *key;
	size_t len;
	unsigned char *mine, *all;
	int rc;
	struct error_kept said;
	sem_t done;
};

static bool given_up;

bool pmi_waits(void)
{
	return given_up;
}

static int card_get(const struct gathering *g, uint32_t rank)
{
	char name[64], value[PMI_VALUE_MAX];
	card_key(name, sizeof name, g->key, rank);
	int rc = g->pmi->get(rank, name, value, sizeof value);
	if (!rc && !hex_read(value, g->all + rank * g->len, g->len))
		rc = error_set(-EPROTO,
			       "what rank %u said of itself through %s is not what this Tern says: "
			       "all ranks must run the same version",
			       rank, g->pmi->name);
	return rc;
}

/* All cards; those that are not there are named. */
static int cards_get(const struct gathering *g)
{
	struct names absent = { .count = 0 };
	int rc = 0;
	for (uint32_t r = 0; !rc && r < g->size; r++) {
		rc = card_get(g, r);
		if (rc == -ENODATA) {
			names_add(&absent, r);
			rc = 0;
		}
	}
	if (!rc && absent.count)
		rc = error_set(-EOWNERDEAD, "%s ended before joining the others in tern_open()",
			       names_text(&absent, ""));
	return rc;
}

static void *gather_main(void *arg)
{
	struct gathering *g = arg;
	char name[64], value[PMI_VALUE_MAX];
	hex_write(value, g->mine, g->len);
	card_key(name, sizeof name, g->key, g->rank);
	g->rc = g->pmi->put(name, value);
	if (!g->rc)
		g->rc = g->pmi->fence();
	if (!g->rc)
		g->rc = cards_get(g);
	error_keep(&g->said);
	sem_post(&g->done);
	return NULL;
}

/* -- Waiting for it ------------------------------------------------------------------------- */

enum {
	STUCK_S = 30,        /* until a warning, unless TERN_STUCK says otherwise */
	LOOK_NS = 500000000, /* between looks */
	ROLL_EVERY = 3,      /* looks: it reads what /proc has of every process */
};

static bool done_within(struct gathering *g, uint64_t ns)
{
	struct timespec end;
	clock_gettime(CLOCK_REALTIME, &end);
	uint64_t then = (uint64_t)end.tv_nsec + ns;
	end.tv_sec += (time_t)(then / 1000000000);
	end.tv_nsec = (long)(then % 1000000000);
	int rc;
	do
		rc = sem_timedwait(&g->done, &end);
	while (rc != 0 && errno == EINTR);
	return rc == 0;
}

static uint64_t seconds_of(enum setting s, uint64_t otherwise)
{
	uint64_t seconds;
	return setting_number(s, &seconds) == 0 ? seconds : otherwise;
}

/* Who has put no card, where that can be asked while the thread waits. */
static int gather_late(struct gathering *g, uint64_t seconds)
{
	struct names late = { .count = 0 };
	for (uint32_t r = 0; g->pmi->parallel && r < g->size; r++)
		if (card_get(g, r) == -ENODATA)
			names_add(&late, r);
	return error_set(
		-ETIMEDOUT,
		"%s not called tern_open(), which every rank has to call, within %llu s (TERN_JOIN); a "
		"program that a rank has started is none: set TERN_ALONE=1 for it",
		late.count > 1    ? names_text(&late, " have")
		: late.count == 1 ? names_text(&late, " has")
				  : "some rank has",
		(unsigned long long)seconds);
}

/* A rank that never calls tern_open() makes the others wait. They say so, once. */
static void gather_warn(const struct gathering *g, uint64_t seconds)
{
	error_warn("rank %u has waited for %llu s in tern_open(), which every rank has to call; "
		   "a program that a rank has started is none: set TERN_ALONE=1 for it",
		   g->rank, (unsigned long long)seconds);
}

/* 0 when the thread is done; else why it is not waited for any longer. */
static int gather_wait(struct gathering *g)
{
	uint64_t begun = clock_ns(), stuck = seconds_of(SETTING_STUCK, 0), join = seconds_of(SETTING_JOIN, 0);
	struct roll roll;
	bool seen = roll_open(&roll, g->pmi, g->rank, g->size), warned = false;
	int rc = 0, looks = 0;
	stuck = stuck ? stuck : STUCK_S;
	while (!rc && !done_within(g, LOOK_NS)) {
		uint64_t waited = (clock_ns() - begun) / UINT64_C(1000000000);
		if (!warned && waited >= stuck) {
			gather_warn(g, stuck);
			warned = true;
		}
		if (seen && ++looks % ROLL_EVERY == 0)
			rc = roll_look(&roll);
		if (!rc && join && waited >= join)
			rc = gather_late(g, join);
	}
	roll_close(&roll);
	return rc;
}

static void gathering_free(struct gathering *g)
{
	if (!g)
		return;
	sem_destroy(&g->done);
	free(g->mine);
	free(g->all);
	free(g);
}

static struct gathering *gathering_make(const struct pmi_ops *pmi, uint32_t rank, uint32_t size,
					const void *mine, size_t len)
{
	struct gathering *g = calloc(1, sizeof *g);
	if (!g)
		return NULL;
	*g = (struct gathering){ .pmi = pmi, .rank = rank, .size = size, .len = len };
	sem_init(&g->done, 0, 0);
	g->mine = malloc(len);
	g->all = calloc(size, len);
	if (!g->mine || !g->all) {
		gathering_free(g);
		return NULL;
	}
	memcpy(g->mine, mine, len);
	return g;
}

int pmi_gather(const struct pmi_ops *pmi, uint32_t rank, uint32_t size, const char *key, const void *mine,
	       size_t len, void *all)
{
	pthread_t thread;
	struct gathering *g = gathering_make(pmi, rank, size, mine, len);
	int rc = g ? 0 : -ENOMEM;
	if (!rc) {
		g->key = key;
		rc = thread_start(&thread, gather_main, g);
	}
	if (rc) {
		gathering_free(g);
		return error_set(rc, "joining %u ranks: %s", size, strerror(-rc));
	}
	rc = gather_wait(g);
	if (rc) {
		pthread_detach(thread);
		given_up = true;
		return rc;
	}
	pthread_join(thread, NULL);
	rc = g->rc;
	if (rc)
		error_restore(&g->said);
	else
		memcpy(all, g->all, size * len);
	gathering_free(g);
	return rc;
}
