/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The test of crossings: a program that follows from a seed. Every rank makes the same list of
 * steps and plays its part of each, in their order. A step needs nothing but that its ranks come to
 * it, so whichever is the first that is not done, all its ranks come, and no program hangs by
 * itself. What each call must give follows from the step alone: model.c.
 */
#ifndef TERN_CROSSINGS_PROGRAM_H
#define TERN_CROSSINGS_PROGRAM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <tern/coll.h>

enum { RANKS_MOST = 8, STEPS_MOST = 256, FAMILIES = 6, LONGEST = (256 << 10) + 2 };
enum { LONGEST_BLOCK = (512 << 10) + 2 };

enum kind {
	SEND, /* tern_send() and tern_recv(), in their forms */
	PUT,
	GET,
	AMO,
	STORE,
	SIGNAL,  /* a put, and a word that the other side waits for */
	REQUEST, /* and its reply */
	POST,
	TYPED,
	CHAN,
	ASYNC,
	SPAWN,
	BLOCK,   /* of any length, in packets */
	STREAM,  /* of packets */
	SEGMENT, /* a transfer into one */
	REGION,  /* memory that there is for this step: allocated, granted, registered */
	WORKER,  /* requests to a worker, and their replies */
	KEEP,    /* messages that are kept, behind a hold, and dealt with when that is allowed */
	CANCEL,  /* a send that is taken back, unless it is too late */
	CALL,    /* a collective on a team of a family */
	MAKE,    /* a family of teams: split, list or machines of another */
	FREE,    /* it */
	BARRIER, /* of the job: what was sent before is handled */
	QUIET,   /* of the team of all: the same */
	LOCK,    /* some ranks take a lock, and add to a number of one of them */
	LOSE,    /* a rank leaves or dies about a call on a team */
	KINDS
};

enum call {
	C_BARRIER,
	C_BROADCAST,
	C_REDUCE,
	C_ALLREDUCE,
	C_SCAN,
	C_EXSCAN,
	C_REDUCE_SCATTER,
	C_GATHER,
	C_ALLGATHER,
	C_SCATTER,
	C_ALLTOALL,
	C_ALLTOALLV,
	C_ALLGATHERV,
	C_GATHERV,
	C_SCATTERV,
	C_EXCHANGE,
	C_TRANSPOSE,
	C_QUIET, /* these only where a rank is lost */
	C_SPLIT,
	C_LIST,
	C_MACHINE,
	C_FREE,
	C_SURVIVORS,
	C_MEMORY, /* nobody calls: the others use the memory of the lost rank until they are told */
	C_TRAFFIC, /* the same with operations of all kinds under way, while that rank polls */
	CALLS,
	C_WITH_HANDLE = C_QUIET
};

enum values { WHOLE, FRACTION, SPECIAL }; /* of a reduction: small numbers, any, NaN and zeros */

enum lost {
	LEAVES,      /* closes when its own part is done */
	DIES_BEFORE, /* it makes the call */
	DIES_IN,
	DIES_AFTER,
	LOST_WAYS
};

struct step {
	enum kind kind;
	unsigned number;
	uint32_t from, to;
	size_t len;
	unsigned count, words; /* messages of `len` bytes, and words of each */
	unsigned form;         /* of the call at `from`, */
	unsigned other;        /* and at the other side */
	uint64_t started;      /* ranks that make the call with a handle */
	uint64_t late;         /* ranks that come late */
	uint64_t value;        /* what data follow from */
	/* Of teams: */
	unsigned family, of; /* `of`: the one that it is made from */
	enum call call;
	enum tern_type type;
	unsigned how;
	enum values values;
	/* Of a loss: */
	enum lost lost;
	uint64_t victims;  /* `from`, and perhaps another one, */
	unsigned after[2]; /* and how many us or events after the call began they die in it */
};

enum ending { ENDS_TOGETHER, ENDS_ONE_BY_ONE, ENDS_AFTER_A_LOSS, ENDINGS };

struct program {
	uint64_t seed;
	uint32_t ranks;
	enum ending ending;
	enum lost lost;
	int planted; /* from this step on, the first thing that is compared is made wrong; -1 */
	unsigned steps, lasting; /* `lasting`: the first after which nobody is sure of the others */
	struct step step[STEPS_MOST];
};

/* What is asked for beside the seed; -1: what the seed says. */
enum {
	ENDING,
	LOSING,
	HOW_LOST,
	VICTIM,
	SECOND,
	AFTER,
	AFTER2,
	ONLY_KIND,
	VALUES,
	LIST,
	SAY,
	CALM,
	WISHES
};
struct wish {
	int of[WISHES];
};

extern const char *const kind_names[KINDS], *const call_names[CALLS], *const lost_names[LOST_WAYS];

void program_make(struct program *p, uint64_t seed, uint32_t ranks, const struct wish *wish);
void step_print(const struct step *s, FILE *to);

static inline bool step_has(uint64_t set, uint32_t rank)
{
	return set >> rank & 1;
}

/* -- The model: model.c -- */

/* The bytes from `at` on of what follows from a number. */
void content_fill(void *to, size_t at, size_t len, uint64_t number);
/* Where the first byte is wrong; len if none is. */
size_t content_check(const void *from, size_t at, size_t len, uint64_t number);
uint64_t content_of(uint64_t number, uint64_t i);

/* The members of a team, as far as a rank has to know. */
struct group {
	uint32_t n, me;
	uint32_t rank[RANKS_MOST];
};

size_t model_in_bytes(const struct step *s, const struct group *g);
size_t model_out_bytes(const struct step *s, const struct group *g);
uint32_t model_root(const struct step *s, const struct group *g);
/* What member `who` gives, and what the member `me` of the group gets; 0xee: it is left alone. */
void model_in(const struct step *s, const struct group *g, uint32_t who, void *in);
void model_out(const struct step *s, const struct group *g, void *out);
/* Whether a member gets a result without `lost` having made the call. */
bool model_needs(const struct step *s, const struct group *g, uint32_t lost);
/* Of a call with parts of any length: what member `from` has for `to`. */
size_t model_piece(const struct step *s, const struct group *g, uint32_t from, uint32_t to);
/* Of reduce_scatter: the first element of a member. */
size_t model_first(const struct step *s, const struct group *g, uint32_t who);
/* Of exchange: the neighbour in entry i, TERN_RANK_NONE for nobody, and how long its data are. */
enum { NEIGHBOURS = 4 };
uint32_t model_neighbour(const struct group *g, uint32_t who, unsigned i, bool to);
size_t model_neighbour_len(const struct step *s, const struct group *g, uint32_t from, uint32_t to,
			   unsigned i);
/* The family that a step makes, seen by a rank; false: it gets no team. */
bool model_family(const struct step *s, const struct group *of, struct group *out);
int model_color(const struct step *s, uint32_t rank, int *key);
/* The list that this rank gives. */
uint32_t model_list(const struct step *s, const struct group *of, uint32_t *list);
/* The program's own operation: composed maps x -> ax + b, which do not commute. */
enum { HOW_COMPOSE = 64 }; /* of a reduction: this function */
void model_compose(void *left, const void *right, size_t n, void *arg);

#endif
