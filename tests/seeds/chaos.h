/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a seed makes of a job: how it is started, over which network, what goes wrong, and when. The
 * driver (chaos_test.c) and every rank (chaos_ranks.c) draw the same from the same seed, so nothing
 * else travels between them.
 */
#ifndef TERN_TESTS_CHAOS_H
#define TERN_TESTS_CHAOS_H

#include <stdio.h>
#include <string.h>

#include "lib/chance.h"

enum { CHAOS_RANKS = 6, CHAOS_SESSIONS = 3, CHAOS_DEATHS = 2 };

/* Exit statuses of a rank, besides 0 and those of the drawn deaths. */
enum { CHAOS_LIMITED = 4, CHAOS_GAVE_UP = 5, CHAOS_EXITED = 3, CHAOS_BROKEN = 9 };

enum chaos_launcher { BY_RUN, BY_HOSTS, BY_MPIRUN, BY_MPIEXEC };
enum chaos_end {
	LIVES,
	DIES_EARLY,    /* before it opens */
	DIES_RUNNING,  /* between two of its own calls */
	DIES_ANYWHERE, /* at a moment that it does not choose */
	EXITS,         /* with a status that is not 0 */
	DIES_CLOSING,  /* inside tern_close() */
	LEAVES,        /* closes and returns 0 while others go on */
	RETURNS,       /* returns 0 without closing */
	CHAOS_ENDS
};
enum chaos_limit {
	NO_LIMIT,
	LITTLE_HEAP,
	LITTLE_MEMORY,
	FEW_DESCRIPTORS,
	FEW_ADDRESSES,
	CHAOS_LIMITS
};
enum chaos_fork { NO_FORK, FORK_ENDS, FORK_EXECS, FORK_USES, CHAOS_FORKS };

struct chaos_death {
	enum chaos_end how;
	uint32_t rank, session, at; /* `at`: messages that it has sent to each before */
	uint32_t us;                /* how much later, where somebody else sees to it */
};

struct chaos {
	uint64_t seed;
	enum chaos_launcher launcher;
	uint32_t ranks, machines, sessions, messages;
	const char *net, *flow, *protect;
	char fault[160];
	uint8_t delivery[CHAOS_RANKS];
	bool survive, barriers;
	struct chaos_death death[CHAOS_DEATHS];
	unsigned deaths;
	uint32_t stop_rank, stop_at, stop_ms; /* stop_ms 0: nobody is stopped */
	uint32_t fork_rank, fork_at;
	enum chaos_fork fork;
	uint32_t reset_rank, reset_at; /* at UINT32_MAX: no connection is reset */
	enum chaos_limit limit;
	uint32_t limit_size;
	uint32_t kill_at, kill_which; /* a process of the launcher's is killed; at 0: none */
	uint32_t pause_at, pause_which, pause_ms; /* one is stopped for a time */
	uint32_t cut_at, cut_ms;                  /* no packet arrives for a time */
	bool wrap;                                /* numbers begin shortly before they wrap */
	bool posts;                               /* as many gathered items are sent as requests, */
	uint32_t post_limit; /* of which a rank keeps so many words back; 0: no limit */
};

static inline const char *chaos_of(struct chance *c, const char *const *words, uint32_t n)
{
	return words[chance_below(c, n)];
}
#define CHAOS_OF(c, ...)                                  \
	chaos_of(c, (const char *const[]){ __VA_ARGS__ }, \
		 sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(char *))

static inline void chaos_draw_fault(struct chaos *d, struct chance *c)
{
	const char *first =
		CHAOS_OF(c, "drop=0.01", "drop=0.1", "duplicate=0.1", "reorder=0.1", "corrupt=0.02",
			 "truncate=0.02", "delay=0.05,late=2000", "partition=0.0005", "slow=20");
	const char *second = CHAOS_OF(c, "", "", ",drop=0.02", ",duplicate=0.05", ",reorder=0.05",
				      ",corrupt=0.01");
	uint32_t seed = chance_below(c, 1000000);
	bool any = chance_one_in(c, 2);
	if (any && strcmp(d->net, "shm") != 0)
		snprintf(d->fault, sizeof d->fault, "%s%s,seed=%u", first,
			 strncmp(first, second + 1, 4) == 0 ? "" : second, seed);
}

static inline void chaos_draw_death(struct chaos *d, struct chance *c, struct chaos_death *death)
{
	death->how = 1 + chance_below(c, CHAOS_ENDS - 1);
	death->rank = chance_below(c, d->ranks);
	death->session = chance_below(c, d->sessions);
	death->at = chance_below(c, d->messages);
	death->us = 1 + (chance_one_in(c, 2) ? chance_below(c, 300) : chance_below(c, 5000));
	if (death->how == DIES_EARLY)
		death->session = 0;
}

/* At most one of these in a job that is to show something: who is killed hides much else. */
static inline void chaos_draw_trouble(struct chaos *d, struct chance *c)
{
	uint32_t what = chance_below(c, 8), total = d->sessions * d->ranks * d->ranks * d->messages;
	uint32_t at = 1 + chance_below(c, total), which = chance_below(c, 1000),
		 ms = 1 + chance_below(c, 300);
	if (what == 0)
		d->kill_at = at, d->kill_which = which;
	else if (what == 1)
		d->pause_at = at, d->pause_which = which, d->pause_ms = ms;
	else if (what == 2)
		d->cut_at = at, d->cut_ms = ms;
	else if (what == 3)
		d->limit = 1 + chance_below(c, CHAOS_LIMITS - 1);
	d->limit_size = chance_below(c, 64);
	if (what < 5 || d->limit)
		return;
	d->deaths = d->ranks > 2 && chance_one_in(c, 3) ? 2 : 1;
	for (unsigned i = 0; i < d->deaths; i++)
		chaos_draw_death(d, c, &d->death[i]);
	if (d->deaths == 2 && d->death[0].rank == d->death[1].rank)
		d->deaths = 1;
}

static inline void chaos_draw_ranks(struct chaos *d, struct chance *c)
{
	for (uint32_t r = 0; r < CHAOS_RANKS; r++)
		d->delivery[r] = (uint8_t)chance_below(c, 3);
	if (chance_one_in(c, 2))
		memset(d->delivery, d->delivery[0], sizeof d->delivery);
	for (uint32_t r = 0; r < CHAOS_RANKS; r++)
		if (d->delivery[r] == 2 && strstr(d->net, "ofi"))
			d->delivery[r] = 1; /* libfabric raises no signal */
	d->stop_rank = chance_below(c, d->ranks);
	d->stop_at = chance_below(c, d->messages);
	d->stop_ms = chance_one_in(c, 4) ? 1 + chance_below(c, 400) : 0;
	d->fork_rank = chance_below(c, d->ranks);
	d->fork_at = chance_below(c, d->messages);
	d->fork = chance_one_in(c, 4) ? 1 + chance_below(c, CHAOS_FORKS - 1) : NO_FORK;
	d->reset_rank = chance_below(c, d->ranks);
	d->reset_at = chance_below(c, d->messages);
	if (strncmp(d->net, "ofi", 3) != 0 || d->deaths || !chance_one_in(c, 3))
		d->reset_at = UINT32_MAX;
}

static inline struct chaos chaos_draw(uint64_t seed)
{
	struct chance c = { chance_of(seed, 0x6368616f73) };
	struct chaos d = { .seed = seed };
	uint32_t by = chance_below(&c, 10);
	d.launcher = by < 6 ? BY_RUN : by < 8 ? BY_HOSTS : by < 9 ? BY_MPIRUN : BY_MPIEXEC;
	d.ranks = 2 + chance_below(&c, CHAOS_RANKS - 1);
	d.machines = d.launcher == BY_RUN ? 1 : 2 + chance_below(&c, 2);
	if (d.machines > d.ranks)
		d.machines = d.ranks;
	d.sessions = 1 + chance_below(&c, CHAOS_SESSIONS);
	d.messages = 20 + chance_below(&c, chance_one_in(&c, 4) ? 1000 : 150);
	d.net = d.machines == 1 ? CHAOS_OF(&c, "shm", "shm", "udp", "udp", "ofi/tcp")
				: CHAOS_OF(&c, "shm,udp", "shm,udp", "udp", "shm,ofi/tcp");
	d.flow = CHAOS_OF(&c, "credit", "credit", "return", "drop", "nack", "token", "permit",
			  "reserve");
	d.protect = CHAOS_OF(&c, "auto", "auto", "encrypt", "none");
	chaos_draw_fault(&d, &c);
	if (strstr(d.fault, "corrupt") ||
	    strstr(d.fault, "truncate")) /* refused where nobody would notice */
		d.protect = strcmp(d.protect, "encrypt") == 0 ? "encrypt" : "auth";
	d.survive = !chance_one_in(&c, 5);
	d.barriers = chance_one_in(&c, 2);
	chaos_draw_trouble(&d, &c);
	chaos_draw_ranks(&d, &c);
	d.wrap = chance_one_in(&c, 4);
	d.posts = chance_one_in(&c, 2);
	d.post_limit = chance_one_in(&c, 3) ? 8 + chance_below(&c, 200) : 0;
	return d;
}

/* -- What a rank is to do ------------------------------------------------------ */

static inline const struct chaos_death *chaos_death_of(const struct chaos *d, uint32_t rank)
{
	for (unsigned i = 0; i < d->deaths; i++)
		if (d->death[i].rank == rank)
			return &d->death[i];
	return NULL;
}

/* Connections of libfabric break, and messages are lost with them: a rank that is told so ends. */
static inline bool chaos_breaks_ofi(const struct chaos *d)
{
	return strstr(d->net, "ofi") && (d->reset_at != UINT32_MAX || d->cut_at);
}

/* A launcher that is not told to go on ends everybody when a rank has died. */
static inline bool chaos_ends_all(const struct chaos *d)
{
	bool deadly = false;
	for (unsigned i = 0; i < d->deaths; i++)
		deadly |= d->death[i].how != LEAVES &&
			  (d->death[i].how != RETURNS || d->launcher >= BY_MPIRUN);
	return d->kill_at || d->limit || chaos_breaks_ofi(d) ||
	       (deadly && (!d->survive || d->launcher == BY_MPIEXEC));
}

/* What may be said of a rank to others: that it died, or that it left while they needed it. */
static inline bool chaos_may_die(const struct chaos *d, uint32_t rank)
{
	const struct chaos_death *death = chaos_death_of(d, rank);
	if (!death || chaos_ends_all(d))
		return chaos_ends_all(d);
	return death->how != LEAVES;
}

static inline bool chaos_may_leave(const struct chaos *d, uint32_t rank)
{
	const struct chaos_death *death = chaos_death_of(d, rank);
	if (!death)
		return d->kill_at || d->limit;
	return death->how == LEAVES || death->how == RETURNS || death->how == DIES_CLOSING ||
	       death->how == DIES_ANYWHERE;
}

/*
 * How many messages `from` sends each rank in a session; `exact` unless the last of them may be
 * lost with it.
 */
static inline uint32_t chaos_sends(const struct chaos *d, uint32_t from, uint32_t session,
				   bool *exact)
{
	const struct chaos_death *death = chaos_death_of(d, from);
	*exact = true;
	if (!death || death->session > session || death->how == DIES_CLOSING)
		return death && death->session < session ? 0 : d->messages;
	if (death->session < session || death->how == DIES_EARLY)
		return 0;
	*exact = death->how == LEAVES;
	return death->how == DIES_ANYWHERE ? d->messages : death->at;
}

#endif
