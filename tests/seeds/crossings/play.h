/* SPDX-License-Identifier: BSD-3-Clause */
/* A rank that plays its part of a program, and compares all it gets with the model. */
#ifndef TERN_CROSSINGS_PLAY_H
#define TERN_CROSSINGS_PLAY_H

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <tern/mem.h>
#include <tern/send.h>

#include "program.h"

/* The team of a family that this rank is in. */
struct place {
	tern_team *team;
	struct group group;
	int lost; /* the code that calls get which need a member that is gone; 0: all are there */
};

extern struct program program;
extern tern *t;
extern uint32_t me;
extern struct place place[FAMILIES];
extern uint64_t gone; /* ranks that are lost, */
extern int gone_code; /* and why */
extern bool simulated;

/* -- play.c: comparing, and what is under way -- */

__attribute__((format(printf, 2, 3))) void wrong(const struct step *s, const char *format, ...);
bool code_is(const struct step *s, const char *what, int rc, int want);
/* Bytes that follow from a number, from `at` on. */
bool bytes_are(const struct step *s, const char *what, void *got, size_t at, size_t len,
	       uint64_t number);
bool same_bytes(const struct step *s, const char *what, void *got, const void *want, size_t len);
bool number_is(const struct step *s, const char *what, uint64_t got, uint64_t want);

/* An operation that was started: `check` is called with its result, and then it is freed. */
struct pending {
	struct pending *next;
	tern_op op;
	const struct step *s;
	void (*check)(struct pending *w, int rc);
	unsigned i; /* which message of the step */
	size_t len;
	uint64_t word, old;
	tern_part part[2];
	void *own[2]; /* freed with it */
	char *bytes;  /* `len` of them, and then a few that nobody may touch */
	tern_envelope env;
};

struct pending *pending_new(const struct step *s, unsigned i, size_t bytes,
			    void (*check)(struct pending *w, int rc));
/* Its call has returned rc: an error ends it. Waits for it unless it may stay under way. */
void pending_begun(struct pending *w, int rc, bool stay);
void pending_wait_all(void);
void pending_drop(struct pending *w); /* nothing was begun */
bool untouched(const struct pending *w, size_t from);

/* A word from one of two ranks to the other, which may be the same one: the n-th of the step. */
uint64_t word_pass(const struct step *s, uint32_t from, uint32_t to, unsigned n, uint64_t word);
bool plays(enum kind kind); /* whether the program has such steps */
int failed(void);           /* the status to exit with */
void come_late(const struct step *s);
bool waits_here(const struct step *s); /* whether this rank makes the call without a handle */

/* Where the n-th message of a step leads: what its bytes follow from. */
static inline uint64_t message_number(const struct step *s, unsigned i)
{
	return s->value + UINT64_C(0x100000000) * i;
}

/* -- Players of the kinds of steps -- */

void send_play(const struct step *s);
void memory_open(void);
void put_play(const struct step *s);
void get_play(const struct step *s);
void amo_play(const struct step *s);
void store_play(const struct step *s);
void signal_play(const struct step *s);
void lock_play(const struct step *s);
void locked_check(const struct step *s);
/* Where a handler of this rank's request puts its answer, here and at every rank. */
void *reply_room(uint32_t of);
/* Uses memory of a rank that is gone, until it is told. */
void memory_lost_at_once(const struct step *s, uint32_t rank, enum kind how);
void memory_lost(const struct step *s, uint32_t rank, enum kind how);
/* Operations of all kinds with a rank that may be gone are under way now. */
void traffic_memory(const struct step *s, uint32_t rank, size_t len,
		    void (*ended)(struct pending *w, int rc));
void traffic_lock(const struct step *s, bool stay);
void requests_open(void);
void request_play(const struct step *s);
void request_lost(const struct step *s, uint32_t rank);
void replies_wait(const struct step *s);
void post_play(const struct step *s);
/* All that the steps before this one have sent is handled: the counts say so. */
void handled_check(const struct step *s, bool replied);
void shared_check(const struct step *s);
void more_open(void);
void typed_play(const struct step *s);
void chan_play(const struct step *s);
void async_play(const struct step *s);
void spawn_play(const struct step *s);
void async_check(const struct step *s);
void sequence_open(void);
void sequence_play(const struct step *s); /* blocks and streams */
void sequence_check(const struct step *s);
void regions_open(void);
void segment_play(const struct step *s);
void region_play(const struct step *s);
void workers_open(void);
void worker_play(const struct step *s);
void keep_play(const struct step *s);
void cancel_play(const struct step *s);

/* -- Teams -- */

void teams_open(void);
void call_play(const struct step *s);
void make_play(const struct step *s);
/* The members of a group that share memory with this rank. */
void machine_group(const struct group *of, struct group *out);
void free_play(const struct step *s);
void quiet_play(const struct step *s);
/*
 * `may`: the code that it may end with because a member is gone; `must`: where it needs that one.
 */
int call_make(const struct step *s, tern_team *team, const struct group *g, bool stay, int may,
	      bool must);
void others_are_ready(const struct step *s);
void lose_play(const struct step *s);
/* A step between two of which one is gone. */
void lost_play(const struct step *s, uint32_t other);
/* The team of all who are left, at the end. */
void left_meet(void);

#endif
