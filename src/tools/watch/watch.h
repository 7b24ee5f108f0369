/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A job as it is seen from outside, by mapping its memory to read it. Nobody in the job is asked,
 * so a job that is stuck can be looked at like any other, and none is disturbed.
 */
#ifndef TERN_TOOLS_WATCH_WATCH_H
#define TERN_TOOLS_WATCH_WATCH_H

#include <stdbool.h>
#include <sys/types.h>

#include "endpoint/handler.h"
#include "job/job.h"
#include "tools/common/option.h"

struct watch {
	struct job job;
	pid_t launcher; /* or, without one, the process that made the job */
};

/*
 * Finds the job that `pid` is the launcher or a rank of; 0: the only one there is. `command` stands
 * before the sentence on standard error if there is none, or more than one. False then.
 */
bool watch_open(struct watch *w, pid_t pid, const char *command);
void watch_close(struct watch *w);

/* A rank at one moment. */
struct rank_view {
	enum rank_state state;
	uint32_t rank;  /* its own, or a worker's */
	bool elsewhere; /* on another machine, which has to be asked what it does: taken for one
			   that is not open */
	pid_t pid;
	uint32_t session; /* in which it was seen */
	uint64_t served;
	uint64_t count[PULSE_COUNTS];
	uint32_t hold; /* holds of the program's in force */
	bool counting;
	bool waits;
	struct rank_wait wait; /* if it waits */
	uint64_t queue;        /* messages that have arrived and that it has not handled, */
	bool queue_exact;      /* or at least so many, */
	unsigned queue_last;   /* and the handler that one of the last is for */
	uint64_t sent, bytes;  /* handled by ranks that count */
};

/*
 * What a count of a rank has grown by between two looks, from `then` to `n`. Counts begin at 0
 * with each session; what was counted between the first look and the end of an earlier session is
 * not known, and left out.
 */
uint64_t view_growth(const struct rank_view *now, const struct rank_view *before, uint64_t n,
		     uint64_t then);

/* Packets that have come to it, and were dropped before anything in them was used. */
uint64_t view_dropped(const struct rank_view *s);

/*
 * Looks at all ranks; several times within some milliseconds, because waits are shown by fits.
 * `view` has one for each rank, and behind them one for each worker that there can be: its rank,
 * its wait, and what it has handled. One that is not open is RANK_EXPECTED.
 */
void watch_look(const struct watch *w, struct rank_view *view);
static inline uint32_t watch_most(const struct watch *w)
{
	return w->job.size + w->job.seats;
}

/* Requests from one rank that another has not handled. */
struct queue {
	uint64_t count;
	bool exact;    /* or at least so many */
	unsigned last; /* the handler that the last one is for */
};
struct queue watch_queue(const struct watch *w, uint32_t from, uint32_t to);
/* "message 3 (on_push)" */
enum { HANDLER_TEXT = NUMBER_ROOM };
void watch_handler(const struct watch *w, unsigned id, char text[HANDLER_TEXT]);

/* The statistics of a rank, or NULL if it does not count. */
const struct stats *watch_stats(const struct watch *w, uint32_t rank);

/* "computing", "waiting", "asleep", "not open", "closed", "ended", "dead". */
const char *watch_state(const struct rank_view *s);

/* "12 s", "340 ms": how long ago `since` was. */
void watch_age(uint64_t since, char *text, size_t room);

/*
 * `tern why` of a job that has been found: looks at it for half a second and explains, on standard
 * output; false, with a sentence, if there is no memory.
 */
bool why_explain(const struct watch *watch, bool json);

/* What `tern top` and `tern why` have in common on their command lines. */
struct watch_options {
	pid_t job; /* 0: not given */
	bool json, once;
	double interval;
};

/*
 * Reads the options, and the job behind them. False: there is nothing to do, because help was
 * asked for or a mistake has been explained; *status is the exit status.
 */
bool watch_options_read(struct watch_options *o, const struct options *options, int argc,
			char **argv, int *status);

#endif
