/* SPDX-License-Identifier: BSD-3-Clause */
/* Joins a job through whichever process manager there is, and exchanges cards. */
#include "boot/pmi/pmi.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/kernel.h"
#include "base/setting.h"
#include "base/text.h"
#include "base/world.h"
#include "boot/pmi/liveness.h"

const struct pmi_ops *const pmi_table[PMI_PROTOCOLS] = { &pmix_ops, &pmi1_ops, &pmi_slurm_ops };

/*
 * Keys carry the rank. PMIx would tell the ranks' values apart by itself, PMI-1 has one
 * table for all.
 */
static void card_key(char *text, size_t room, const char *key, uint32_t rank)
{
	snprintf(text, room, "tern-%s-%u", key, rank);
}

int pmi_load(void **library, const char *file, int flags, const char *const *names, void *functions,
	     const char *todo)
{
	if (!*library && !(*library = dlopen(file, flags)))
		return error_set(-ENOTSUP, "%s cannot be loaded (%s): %s", file, dlerror(), todo);
	for (size_t i = 0; names[i]; i++) {
		void *found = dlsym(*library, names[i]);
		if (!found)
			return error_set(-ENOTSUP, "%s lacks %s: %s", file, names[i], todo);
		/* The pointer of a function, which C does not convert. */
		memcpy((char *)functions + i * sizeof found, &found, sizeof found);
	}
	return 0;
}

/* -- In a thread of its own ---------------------------------------------------------------- */

/*
 * Managers wait for a rank that does not come for as long as they like, and a manager that hangs
 * does not answer at all, in calls that nobody can end. So a thread makes these calls, and the
 * caller looks at the clock and for processes that have ended. When the caller gives up, the thread
 * and its memory are left alone.
 */
struct call {
	const struct pmi_ops *pmi;
	int (*make)(struct call *c);
	uint32_t rank, size;
	const char *key;
	size_t len;
	unsigned char *mine, *all; /* NULL before the ranks are known */
	struct rank_list late;
	bool left; /* the thread may still be at it */
	int rc;
	struct error_kept said;
	_Atomic uint32_t done; /* seq_cst: once for each call to a manager */
};

enum { STACK = 1 << 20 }; /* bytes; process managers' libraries run on it */

static bool given_up;
static uint64_t begun; /* when this process first asked the manager, ns */

bool pmi_waits(void)
{
	return given_up;
}

static void *call_main(void *arg)
{
	struct call *c = arg;
	c->rc = c->make(c);
	error_keep(&c->said);
	atomic_store(&c->done, 1);
	futex_wake32(&c->done);
	return NULL;
}

int pmi_thread(pthread_t *thread, void *(*body)(void *arg), void *arg)
{
	pthread_attr_t attributes;
	sigset_t all, before;
	sigfillset(&all);
	pthread_attr_init(&attributes);
	pthread_attr_setstacksize(&attributes, STACK);
	pthread_sigmask(SIG_SETMASK, &all, &before); /* inherited by the thread */
	int error = pthread_create(thread, &attributes, body, arg);
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attributes);
	return -error;
}

static void call_free(struct call *c)
{
	if (!c || c->left)
		return;
	free(c->mine);
	free(c->all);
	free(c);
}

/* NULL: no memory. */
static struct call *call_make(const struct pmi_ops *pmi, int (*make)(struct call *c), uint32_t size,
			      size_t len)
{
	struct call *c = calloc(1, sizeof *c);
	if (!c)
		return NULL;
	*c = (struct call){ .pmi = pmi, .make = make, .size = size, .len = len };
	if (!len)
		return c;
	c->mine = malloc(len);
	c->all = calloc(size, len);
	if (!c->mine || !c->all) {
		call_free(c);
		return NULL;
	}
	return c;
}

/* What the call has said; or, when `wait` has given it up, why. */
static int call_run(struct call *c, int (*wait)(struct call *c))
{
	pthread_t thread;
	int rc = c ? pmi_thread(&thread, call_main, c) : -ENOMEM;
	if (rc)
		return error_set(rc, "joining the other ranks: %s", strerror(-rc));
	rc = wait(c);
	if (rc) {
		pthread_detach(thread);
		c->left = given_up = true;
		return rc;
	}
	pthread_join(thread, NULL);
	if (c->rc)
		error_restore(&c->said);
	return c->rc;
}

bool pmi_done_within(_Atomic uint32_t *done, uint64_t ns)
{
	uint64_t now = clock_ns(), end = now + ns;
	for (; !atomic_load(done) && now < end; now = clock_ns())
		world_wait(done, 0, end - now);
	return atomic_load(done);
}

/* -- Waiting for it ------------------------------------------------------------------------- */

enum {
	STUCK_S = 30,        /* until a warning, unless TERN_STUCK says otherwise */
	LOOK_NS = 500000000, /* between looks */
	LIVENESS_EVERY = 3,  /* looks: it reads what /proc has of every process */
	ASK_LOOKS = 10,      /* how long a manager may take to say who has not come */
};

static uint64_t seconds_of(enum setting s, uint64_t otherwise)
{
	uint64_t seconds;
	return setting_number(s, &seconds) == 0 ? seconds : otherwise;
}

/*
 * 0 when the thread is done; else why it is not waited for any longer. `neighbours` says who is to
 * be on this node, of so many ranks of which this is one.
 */
static int call_wait(struct call *c, bool (*neighbours)(char *list, size_t len), uint32_t rank,
		     uint32_t size, void (*warn)(const struct call *c, uint64_t seconds),
		     int (*late)(const struct call *c, uint64_t seconds))
{
	uint64_t stuck = seconds_of(SETTING_STUCK, 0), join = seconds_of(SETTING_JOIN, 0);
	struct liveness liveness;
	bool warned = false, seen = liveness_open(&liveness, c->pmi, neighbours, rank, size);
	int rc = 0, looks = 0;
	stuck = stuck ? stuck : STUCK_S;
	while (!rc && !pmi_done_within(&c->done, LOOK_NS)) {
		uint64_t waited = (clock_ns() - begun) / UINT64_C(1000000000);
		if (!warned && waited >= stuck) {
			warn(c, stuck);
			warned = true;
		}
		if (seen && ++looks % LIVENESS_EVERY == 0)
			rc = liveness_check(&liveness);
		if (!rc && join && waited >= join)
			rc = late(c, join);
	}
	liveness_close(&liveness);
	return rc;
}

/* -- Opening -------------------------------------------------------------------------------- */

static int open_make(struct call *c)
{
	int rc = pmi_usable(c->pmi);
	return rc ? rc : c->pmi->open(&c->rank, &c->size);
}

static void open_warn(const struct call *c, uint64_t seconds)
{
	error_warn("tern_open() has waited for %llu s for %s of the launcher (%s), which does not "
		   "answer",
		   (unsigned long long)seconds, c->pmi->name, c->pmi->starters);
}

static int open_late(const struct call *c, uint64_t seconds)
{
	return error_set(
		-ETIMEDOUT,
		"%s of the launcher (%s) has not answered within %llu s (TERN_JOIN); it may hang "
		"because a rank was killed while it connected: start the job again",
		c->pmi->name, c->pmi->starters, (unsigned long long)seconds);
}

/* 0 if it is not said. */
static uint32_t number_of(const char *variable)
{
	const char *text = getenv(variable);
	return text ? (uint32_t)strtoul(text, NULL, 10) : 0;
}

/*
 * Who is to be on this node the manager cannot be asked yet; what it started this process with may
 * say so.
 */
static int open_wait(struct call *c)
{
	return call_wait(c, c->pmi->started, number_of(c->pmi->number), number_of(c->pmi->count),
			 open_warn, open_late);
}

int pmi_open(const struct pmi_ops *pmi, uint32_t *rank, uint32_t *size)
{
	begun = clock_ns();
	struct call *c = call_make(pmi, open_make, 0, 0);
	int rc = call_run(c, open_wait);
	if (!rc) {
		*rank = c->rank;
		*size = c->size;
	}
	call_free(c);
	return rc;
}

/* -- Gathering ------------------------------------------------------------------------------ */

static int card_get(const struct call *c, uint32_t rank)
{
	char name[64], value[PMI_VALUE_MAX];
	card_key(name, sizeof name, c->key, rank);
	int rc = c->pmi->get(rank, name, value, sizeof value);
	if (!rc && !hex_read(value, c->all + rank * c->len, c->len))
		rc = error_set(-EPROTO,
			       "what rank %u said of itself through %s is not what this Tern says: "
			       "all ranks must run the same version",
			       rank, c->pmi->name);
	return rc;
}

/* All cards, and who has none. */
static int cards_get(struct call *c)
{
	int rc = 0;
	for (uint32_t r = 0; !rc && r < c->size; r++) {
		rc = card_get(c, r);
		if (rc == -ENODATA) {
			rank_list_add(&c->late, r);
			rc = 0;
		}
	}
	return rc;
}

static int gather_make(struct call *c)
{
	char name[64], value[PMI_VALUE_MAX];
	hex_write(value, c->mine, c->len);
	card_key(name, sizeof name, c->key, c->rank);
	int rc = c->pmi->put(name, value);
	if (!rc)
		rc = c->pmi->fence();
	if (!rc)
		rc = cards_get(c);
	if (!rc && c->late.count)
		rc = error_set(-EOWNERDEAD, "%s ended before joining the others in tern_open()",
			       rank_list_text(&c->late, ""));
	return rc;
}

/* A rank that never calls tern_open() makes the others wait. They say so, once. */
static void gather_warn(const struct call *c, uint64_t seconds)
{
	error_warn("rank %u has waited for %llu s in tern_open(), which every rank has to call; "
		   "a program that a rank has started is none: set TERN_ALONE=1 for it",
		   c->rank, (unsigned long long)seconds);
}

static int ask_wait(struct call *c)
{
	return pmi_done_within(&c->done, (uint64_t)ASK_LOOKS * LOOK_NS) ? 0 : -ETIMEDOUT;
}

/*
 * Who has put no card, where that can be asked while another thread waits, and the manager answers.
 */
static void late_ask(const struct call *c, struct rank_list *late)
{
	struct call *asking =
		c->pmi->parallel ? call_make(c->pmi, cards_get, c->size, c->len) : NULL;
	if (!asking)
		return;
	asking->key = c->key;
	if (call_run(asking, ask_wait) == 0)
		*late = asking->late;
	call_free(asking);
}

static int gather_late(const struct call *c, uint64_t seconds)
{
	struct rank_list late = { .count = 0 };
	late_ask(c, &late);
	return error_set(-ETIMEDOUT,
			 "%s not called tern_open(), which every rank has to call, within %llu s "
			 "(TERN_JOIN); a "
			 "program that a rank has started is none: set TERN_ALONE=1 for it",
			 late.count > 1    ? rank_list_text(&late, " have")
			 : late.count == 1 ? rank_list_text(&late, " has")
					   : "some rank has",
			 (unsigned long long)seconds);
}

static int gather_wait(struct call *c)
{
	return call_wait(c, c->pmi->neighbours, c->rank, c->size, gather_warn, gather_late);
}

int pmi_gather(const struct pmi_ops *pmi, uint32_t rank, uint32_t size, const char *key,
	       const void *mine, size_t len, void *all)
{
	struct call *c = call_make(pmi, gather_make, size, len);
	if (c) {
		c->rank = rank;
		c->key = key;
		memcpy(c->mine, mine, len);
	}
	int rc = call_run(c, gather_wait);
	if (!rc)
		memcpy(all, c->all, size * len);
	call_free(c);
	return rc;
}
