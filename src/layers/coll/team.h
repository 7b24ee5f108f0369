/* SPDX-License-Identifier: BSD-3-Clause */
/* Teams: their members, where those are, and how calls on a team fail. */
#ifndef TERN_COLL_TEAM_H
#define TERN_COLL_TEAM_H

#include "coll/coll.h"
#include "core/wait.h"

struct run;
struct outbox;
struct seat;

/* Members of a team that exchange data in one way, in the order of the team. */
struct members {
	uint32_t n, me; /* `me` is n where this rank is not of them */
	uint32_t *rank; /* in the job */
};

/* Why a member cannot go on with a team: another one, which has left it, or it has. */
struct failure {
	uint32_t rank;
	int32_t code;
	char words[272]; /* the sentence; "": it says what has become of `rank` */
};

/* What a team was made by. */
struct maker {
	uint64_t team, call; /* the call, and the team that it was made on */
	bool checked;        /* TERN_CHECK at all members: see agree.c */
};

struct tern_team {
	struct coll *coll;
	struct tern_team *next; /* of the endpoint's */
	uint64_t id;
	uint64_t calls; /* made so far: the number of the next one */
	uint64_t ahead; /* calls since the members last met */
	/* Without outboxes each member counts as a machine of its own, as `near` and `heads` see
	 * it. */
	struct members all, near, heads;
	uint32_t *machine;      /* of each member: the place among `heads` */
	uint32_t *group;        /* of each member: its place, ordered by machines; see levels.c */
	uint32_t *group_at;     /* of each machine: the first of these places, */
	size_t *group_size;     /* and how many there are */
	struct members agents;  /* of the call that is being made; see levels.c */
	bool is_near;           /* all members share memory, and have outboxes */
	struct outbox **outbox; /* of the near ones, if there are others than this one */
	struct outbox *own_outbox; /* which this rank has allotted; NULL: it has no room */
	uint64_t round;            /* of the outboxes: the next */
	uint64_t all_left;         /* rounds that all near members have left, as far as is known */
	struct run *first, *last;  /* calls under way, in order */
	struct failure failure;    /* why calls fail from `fails` on; see fail.c */
	uint64_t fails;            /* UINT64_MAX: none does */
	uint32_t gone;             /* members that have left; a call fails where it needs one */
	uint64_t failed;           /* a call that has, which others are told; UINT64_MAX: none */
	uint32_t untold;           /* members, from the last one on, that are to be told */
	struct maker maker;
	bool retired;       /* its survivors have another one */
	struct view *views; /* of each member in the agreement on its survivors; see survivors.c */
	uint64_t pass;      /* of marks of tern_team_quiet(), and how many are not answered yet */
	uint32_t marks;
};

/* -- team.c -- */
tern_team *team_find(const struct coll *c, uint64_t id);
/* Where a member is in the team, by its rank; all.n: it is in none. */
uint32_t team_member(const tern_team *team, uint32_t rank);
/* Whether it is the first member of its machine, which exchanges messages with the others. */
static inline bool is_head(const tern_team *team)
{
	return team->heads.me < team->heads.n;
}
/* The place of a member among the near ones of its machine. */
static inline uint32_t near_place(const tern_team *team, uint32_t member)
{
	return team->group[member] - team->group_at[team->machine[member]];
}
/*
 * A team of `n` ranks, of which this one is: the first ones, without outboxes, if `seat` is NULL.
 */
int team_make(struct coll *c, uint64_t id, struct maker maker, const struct seat *seat, uint32_t n,
	      struct outbox *own, tern_team **out);

/* As the maker of a team of survivors, and told of one: its parent goes on making none. */
#define CALL_SURVIVORS UINT64_MAX

/* A team of survivors has the low bits of the first one's id, and counts in the others. */
enum { TEAM_FIRST = 1, ID_BITS = 48 };

/*
 * The scope of a call of the program's. A team that is NULL or was freed is one whose endpoint
 * refuses.
 */
void team_misused(tern_team **team, const char *call);
void team_not_set_up(tern_team **team, const char *call);
static inline struct scope team_scope(tern_team **team, const char *call)
{
	if (TERN_UNLIKELY(!*team || (*team)->coll->e == &misuse_endpoint))
		team_misused(team, call);
	return scope_open((*team)->coll->e->t);
}

/* With a handle. */
static inline struct scope team_scope_op(tern_team **team, const tern_op *op, const char *call)
{
	if (TERN_UNLIKELY(!op_is_set_up(op)))
		team_not_set_up(team, call);
	return team_scope(team, call);
}

/* -- fail.c -- */
void fail_handlers(struct endpoint *e);
/* Calls from this one on fail here. */
void team_fail(tern_team *team, uint64_t call, uint32_t rank, int code);
void team_fail_as(tern_team *team, uint64_t call, const struct failure *why);
/*
 * The others are told that a call has failed here, from now on and by polls. The second form: if
 * they might not hear of it by themselves.
 */
void team_fail_tell(tern_team *team, uint64_t call);
void team_fail_note(tern_team *team, uint64_t call);
void team_fail_told(tern_team *team, const char *name); /* waits until they are */
unsigned failures_tell(struct coll *c);
/*
 * A message of a call to the first `untold` members, under a hold, so that no send waits: returns
 * how many of them are still to be told. Who has left needs no word.
 */
uint32_t members_tell(const tern_team *team, uint32_t untold, unsigned id, uint64_t call,
		      const void *data, size_t len);
/* The code, with a sentence. */
int team_failure(const tern_team *team);
static inline bool team_fails(const tern_team *team, uint64_t call)
{
	return TERN_UNLIKELY(call >= team->fails);
}

/* In a wait that lasts, ranks that left without a word are found. */
static inline int team_stop(struct endpoint *e, struct wait *w)
{
	if (w->since)
		lost_look(e);
	return 0;
}

/* Why a message cannot be sent: its receiver has left the team's job, or is given up. */
static inline bool receiver_left(int rc)
{
	return rc == -EOWNERDEAD || rc == -ESHUTDOWN || rc == -EHOSTUNREACH || rc == -EPROTO;
}

/* -- survivors.c, quiet.c -- */
void survivors_handlers(struct endpoint *e);
void views_free(tern_team *team);
void view_none(tern_team *team, uint32_t member); /* it takes no part in the agreement */
extern unsigned survivors_dies_at;                /* for tests */
void quiet_handlers(struct endpoint *e);
bool threads_run(const struct endpoint *e); /* others than the one that calls */

/* -- agree.c -- */
tern_handler on_waits;

#endif
