/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The one place for time and for waiting. A simulated network brings a world of its own, and the
 * library asks no other clock and waits nowhere else (tests/docs/world_test.sh). Two timers stay
 * outside, those that raise signals for delivery by interrupt and for time slices: a simulation has
 * neither.
 */
#ifndef TERN_BASE_WORLD_H
#define TERN_BASE_WORLD_H

#include <poll.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/kernel.h"

/*
 * A bell: its low half is the futex that its owner sleeps on. Ringing adds RUNG and
 * leaves ASLEEP to the owner, so that whoever rings next wakes it too: the first may
 * have been killed, or stopped, between the two steps.
 */
enum bell {
	BELL_QUIET = 0,
	BELL_ASLEEP = 1,
	/* With ASLEEP: the progress thread sleeps, instead of the program, and waits for this. */
	BELL_PROGRESS = 2,
	BELL_CALL = 4, /* its owner computes: whoever rings sends it the signal */
	BELL_RUNG = 8, /* the greatest, so that one comparison tells */
};

enum { SLEEP_FDS = 16 };

/*
 * What a sleeping thread can be woken by: the bells of its endpoints, and descriptors. Whoever
 * sleeps on a descriptor has told those who ring its bell where to knock instead, which makes the
 * descriptor readable.
 */
struct sleep {
	_Atomic uint64_t *bell[FUTEX_MANY];
	unsigned bells;
	uint32_t says; /* what the bells say until they ring: ASLEEP, and AGENT, or CALL */
	int signal;    /* with CALL: this signal shall be sent to that thread */
	int32_t thread;
	int fd[SLEEP_FDS];
	unsigned fds;
	/* Of the bells: those whose ringing makes one of the descriptors readable. */
	unsigned ports;
	const int *wake; /* a descriptor besides, which is no bell's; NULL: none */
	/* When a network wants to be asked again, on the world's clock; 0: whenever. */
	uint64_t until;
	/* Whoever sleeps leaves what lies in rings, and the bells, to the program. */
	bool serving;
	bool limited; /* the wait has a limit: a world may not let it sleep longer than it asks */
};

struct tern_work; /* <tern/sim.h> */

/* What a program that computes does next. */
enum working {
	WORK_DONE,
	WORK_SERVE, /* something has arrived, which a communication processor handles */
	WORK_SWITCH /* another thread has its turn */
};

struct world {
	bool ticks;            /* its time is that of base/clock.h, too */
	bool spins;            /* others run while a rank looks: looking again may find something */
	uint64_t (*now)(void); /* ns */
	void (*yield)(void);   /* let another process run */
	void (*nap)(uint64_t ns);
	/*
	 * Until a bell is not BELL_ASLEEP any more, a descriptor can be read, or `ns` have passed.
	 */
	void (*sleep)(const struct sleep *s, uint64_t ns);
	/*
	 * Until the word, which threads of this process share, is not `value` any more, or `ns`
	 * have passed.
	 */
	void (*wait)(_Atomic uint32_t *word, uint32_t value, uint64_t ns);
	int (*poll)(struct pollfd *fd, unsigned n, int ms); /* as poll(2) */
	/* How long declared work takes, in a unit of the world's. 0, or a code with a sentence. */
	int (*price)(const struct tern_work *work, uint64_t *left);
	/*
	 * Does some of what is left, in the light thread of that number. `may`: messages may be
	 * served here; `others`: there may be other threads. NULL: work takes its own time.
	 */
	enum working (*work)(uint64_t *left, uint64_t thread, bool may, bool others);
};

extern const struct world world_real;

/*
 * The world of this process, for what belongs to no endpoint: the real one, or that of world_use().
 */
const struct world *world_used(void);
/* Before anything is opened. */
void world_use(const struct world *w);

void world_nap(uint64_t ns);
void world_wait(_Atomic uint32_t *word, uint32_t value, uint64_t ns);
int world_poll(struct pollfd *fd, unsigned n, int ms);

#endif
