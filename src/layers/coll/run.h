/* SPDX-License-Identifier: BSD-3-Clause */
/* Runs: calls under way. A run is a list of steps; a turn does what can be done of them now. */
#ifndef TERN_COLL_RUN_H
#define TERN_COLL_RUN_H

#include "base/error.h"
#include "coll/combine.h"
#include "coll/near.h"
#include "coll/team.h"

enum step_kind {
	STEP_NEAR,
	STEP_BOARD,
	STEP_RECV,
	STEP_SEND,
	STEP_WAIT,
	STEP_COMBINE,
	STEP_COPY,
	STEP_CALL
};

struct run;

struct step {
	uint8_t kind;
	bool begun, over;
	uint16_t tag;
	uint32_t peer; /* a rank in the job */
	char *to;
	const char *from;
	size_t len, moved; /* bytes; of STEP_COMBINE: elements */
	void (*call)(struct run *r);
};

enum { RUN_STEPS = 8, RUN_NEARS = 6 };

struct run {
	struct run *next; /* of its team; then of those that are to be freed */
	tern_team *team;
	uint64_t call;
	uint64_t ahead; /* of the team, before this call */
	const char *name;
	tern_op *op; /* NULL: its call waits for it */
	int error;
	int result;         /* of one that did all it could, and not all that was asked */
	bool over, meets;   /* it has met all members when it is over */
	uint32_t receiving; /* receives under way */
	unsigned at, steps, nears;
	struct scratch *scratch;
	struct combine combine;
	struct varied varied;
	/* From here on, what a new run finds need not be 0. */
	struct error_kept why; /* of the result, while others are written over it */
	unsigned room;
	struct step *step;
	struct near_step near[RUN_NEARS];
	struct step few[RUN_STEPS];
};

/* A run of a call on `team`, without steps; -ENOMEM, or why there can be no call. */
int run_begin(tern_team *team, const char *name, struct run **out);
/* Begins it, and with `op` returns; else waits for its end. Frees it in the end. */
int run_go(struct run *r, tern_op *op);
/* Both in one, for a call that is one near step; `k` may be NULL. */
int run_near(tern_team *team, const char *name, struct near_step *s, const struct combine *k,
	     tern_op *op);
void run_free(struct coll *c, struct run *r);
/* Of a call that is not made after all: members count the same calls. */
void run_drop(struct run *r);
void runs_free_spent(struct coll *c);
/* It ends with this code because of `rank`, and so do later calls on the team. */
void run_fail(struct run *r, uint32_t rank, int code);
/* "tern_team_barrier() of team 2, call 17", and the ranks that it waits for. */
void run_words(const struct run *r, char *words, size_t room);
void run_awaits(const struct run *r, uint64_t *set);
/* Does what can be done now for the runs of a team. */
unsigned team_turn(tern_team *team);
/* 0, or why there can be no call on it (any more), with a sentence. */
int team_check(tern_team *team, const char *name);
/* Steps; -ENOMEM is kept in the run. */
void step_add(struct run *r, struct step s);
static inline void step_wait(struct run *r)
{
	step_add(r, (struct step){ .kind = STEP_WAIT });
}
static inline void step_recv(struct run *r, uint32_t peer, unsigned tag, void *to, size_t len)
{
	step_add(r, (struct step){ .kind = STEP_RECV,
				   .peer = peer,
				   .tag = (uint16_t)tag,
				   .to = to,
				   .len = len });
}
static inline void step_send(struct run *r, uint32_t peer, unsigned tag, const void *from,
			     size_t len)
{
	step_add(r, (struct step){ .kind = STEP_SEND,
				   .peer = peer,
				   .tag = (uint16_t)tag,
				   .from = from,
				   .len = len });
}
static inline void step_copy(struct run *r, void *to, const void *from, size_t len)
{
	step_add(r, (struct step){ .kind = STEP_COPY, .to = to, .from = from, .len = len });
}
/* left = left op right, n elements */
static inline void step_combine(struct run *r, void *left, const void *right, size_t n)
{
	step_add(r, (struct step){ .kind = STEP_COMBINE, .to = left, .from = right, .len = n });
}
/* Calls a function, which finds `to`, `from` and `len` in the run's current step. */
static inline void step_call(struct run *r, void (*call)(struct run *r), void *to, const void *from,
			     size_t len)
{
	step_add(r, (struct step){ .kind = STEP_CALL,
				   .peer = UINT32_MAX,
				   .call = call,
				   .to = to,
				   .from = from,
				   .len = len });
}
void step_near(struct run *r, struct near_step s);
enum { HEAD = 0 }; /* the place of a machine's head among its members */
/* A near step, unless this member is alone on its machine. */
static inline void near_add(struct run *r, enum near_kind kind, uint32_t root, const void *in,
			    void *out, size_t len)
{
	if (r->team->near.n > 1)
		step_near(r,
			  (struct near_step){
				  .kind = kind, .root = root, .in = in, .out = out, .len = len });
}
/* Memory that lasts as long as the run. NULL: kept as -ENOMEM. */
char *run_scratch(struct run *r, size_t bytes);

/* -- call.c -- */
/* A run that lets no member be further ahead than others can keep messages for. */
int call_begin(tern_team *team, const char *name, struct run **r);
/* The name of a call in sentences: without a handle it is that of the blocking form. */
#define CALLED(call, op) ((op) ? "tern_team_" #call "_start()" : "tern_team_" #call "()")
/* -EINVAL where the team has no such member. */
int root_check(const tern_team *team, uint32_t root, const char *name);
/* Memory for `len` bytes, in each of so many parts: -EINVAL if it is NULL, -EOVERFLOW. */
int memory_check(const void *at, size_t len, uint32_t parts, const char *name);
/* Barrier and allreduce, as a part of the call `name`; `op` may be NULL. */
int call_barrier(tern_team *team, tern_op *op, const char *name);
int call_max(tern_team *team, const uint64_t *in, uint64_t *out, const char *name);
/* `len` bytes of each member, at every member. */
void steps_allgather(struct run *r, const void *in, void *out, size_t len);
/* A block of each member for each. */
void steps_alltoall(struct run *r, const void *in, void *out, size_t len);

/* -- agree.c -- */
/* In a checked team: the run fails unless all members make its call, with the same words behind. */
__attribute__((format(printf, 2, 3))) void run_agree(struct run *r, const char *format, ...);
/* Behind that: it fails unless each sends what the other expects. `varied` has the lengths. */
void run_agree_lengths(struct run *r);

/* -- board.c: what each rank of one machine offers, `len` bytes of it, to all -- */
bool board_turn(struct run *r, struct step *s);
bool board_ready(const struct run *r, uint32_t *seen); /* as near_ready() */
/* What a rank has offered in a call that is over, until this rank's next one. */
const void *board_offer(const tern_team *team, uint64_t call, uint32_t rank);
uint32_t board_lacks(const struct run *r); /* as near_lacks() */

#endif
