/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The layer of teams and collectives: its state in an endpoint, teams, and the run, which is a call
 * under way. docs/collectives.md has the design.
 */
#ifndef TERN_COLL_STATE_H
#define TERN_COLL_STATE_H

#include <tern/coll.h>

#include "base/cpu.h"
#include "coll/threshold.h"
#include "core/layer.h"
#include "core/wait.h"
#include "layers.h"

extern const struct layer coll_layer;

enum coll_handler {
	COLL_DATA = COLL_HANDLERS, /* team, call, tag, place, total; and bytes */
	COLL_READY,                /* team, call, tag: a long message may come */
	COLL_MARK,                 /* team, pass */
	COLL_MARKED,               /* the same */
	COLL_VIEW,                 /* of a team of survivors: team, leader; and a set of members */
	COLL_FAILED, /* team, call; and struct failure: the call failed at the sender */
};

/* -- Desks: see desk.c -- */

enum { DESK_CELLS = 32, DESK_PLACES = 8 };
enum { LOOKS_MOST = 400, YIELDS_MOST = 8 }; /* at the desks, before a wait begins */

/* What a member says in a round, and to whom it does not matter. CELL_LINE bytes are in one line.
 */
struct desk_cell {
	_Alignas(64) _Atomic uint64_t ready; /* the round whose data is here, plus 1 */
	uint32_t place; /* where the data is if it is longer: see struct desk, `bytes` */
	_Alignas(16) unsigned char data[CELL_SHORT];
	_Alignas(64) _Atomic uint64_t combined; /* the round whose slice is combined, plus 1 */
};

/*
 * A desk is used again by later teams, and is never given back: who is slow to leave the last round
 * of a team may still look at it. Its numbers only grow, so what it sees then is not too small.
 */
struct desk {
	struct desk_cell cell[DESK_CELLS];
	_Alignas(64) _Atomic uint64_t left; /* rounds that its owner has left */
	/* In the first member's desk: members that may sleep in a round. */
	_Alignas(64) _Atomic uint64_t sleepers;
	struct desk *next; /* of those that the owner does not use */
	/*
	 * Where its DESK_PLACES places of CELL_LONG bytes are in the job's memory; 0: they were not
	 * needed yet. Written before the number of the first cell that names one.
	 */
	uint64_t places;
};

/* Members of a team that exchange data in one way, in the order of the team. */
struct members {
	uint32_t n, me; /* `me` is n where this rank is not of them */
	uint32_t *rank; /* in the job */
};

/* Why a member cannot go on with a team: another one, which has left it, or it has. */
struct failure {
	uint32_t rank;
	int32_t code;
};

struct tern_team {
	struct coll *coll;
	struct tern_team *next; /* of the endpoint's */
	uint64_t id;
	uint64_t calls; /* made so far: the number of the next one */
	uint64_t ahead; /* calls since the members last met */
	struct members all, near, heads;
	uint32_t *machine;        /* of each member: the place among `heads` */
	uint32_t *group;          /* of each member: its place, ordered by machines; see levels.c */
	uint32_t *group_at;       /* of each machine, and of the end: the first of these places */
	struct members agents;    /* of the call that is being made; see levels.c */
	bool two_levels;          /* desks bring data to one member of each machine */
	bool is_near;             /* all members share memory, and have desks */
	bool checked;             /* TERN_CHECK at all members: see agree.c */
	struct desk **desk;       /* of the near ones; NULL: data goes in messages */
	struct desk *own_desk;    /* which this rank has allotted; NULL: it has no room */
	uint64_t round;           /* of the desks: the next */
	uint64_t all_left;        /* rounds that all near members have left, as far as is known */
	struct run *first, *last; /* calls under way, in order */
	struct failure failure;   /* why calls fail from `fails` on; see fail.c */
	uint64_t fails;           /* UINT64_MAX: none does */
	uint32_t gone;            /* members that have left; a call fails where it needs one */
	uint64_t failed;          /* a call that has, which others are told; UINT64_MAX: none */
	uint32_t untold;          /* members, from the last one on, that are to be told */
	uint64_t parent, maker;   /* the team that it was made of, and the call that made it */
	bool no_direct;           /* a member may not read the memory of others */
	bool retired;             /* its survivors have another one */
	struct views *views;      /* of the agreement on its survivors; see survivors.c */
	uint64_t pass;            /* of marks of tern_team_quiet(), and how many were answered */
	uint32_t marked;
};

/* -- Runs: see run.c -- */

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

enum near_kind {
	NEAR_BARRIER,
	NEAR_BROADCAST,
	NEAR_REDUCE, /* to the root */
	NEAR_ALLREDUCE,
	NEAR_SCAN,
	NEAR_EXSCAN,
	NEAR_GATHER,
	NEAR_ALLGATHER,
	NEAR_SCATTER,
	NEAR_ALLTOALL,
	NEAR_ALLTOALLV,
};

enum near_phase { NEAR_WAIT, NEAR_READ, NEAR_SLICES };

/* What a member tells another of the part that it sends it, and of the one that it expects. */
struct lengths {
	uint64_t sends, expects;
};

/* What goes to each member, and comes from it, where the lengths differ; see varied.c. */
struct varied {
	const tern_part *out;
	size_t *in_len, *out_len;    /* in bytes, of each member */
	struct lengths *mine, *said; /* for each member, and by it */
	char *in_at, *out_at;        /* packed, one part behind the other */
	uint64_t longest[2];         /* part that this member sends, and that any does */
	void *kept;                  /* what the parts point to; freed with the run */
};

/* A step among members that share memory, and how far it is. */
struct near_step {
	enum near_kind kind;
	uint32_t root; /* a place among the near members */
	const char *in;
	char *out;
	size_t len;     /* bytes of one member's part */
	size_t filled;  /* of these, written into cells */
	size_t done;    /* and left behind; */
	size_t chunk;   /* what the round moves that is to be left next */
	uint32_t ahead; /* rounds whose cell is written, and that are not left */
	enum near_phase phase;
	uint32_t seen;                /* members from the first on whose number has come */
	uint16_t summed[DESK_PLACES]; /* members whose data the root has combined, of each round */
	struct varied *varied;
	bool direct;  /* the kernel moves it; see direct.c */
	size_t moved; /* bytes of the block that it reads */
};

/* How elements are combined. */
struct combine {
	enum tern_type type;
	size_t size, n; /* bytes of one, and how many in the whole */
	void (*fn)(void *left, const void *right, size_t n); /* NULL: */
	tern_reduce_fn *user;
	void *arg;
	bool ordered; /* members in their order, wherever they are */
};

enum { RUN_STEPS = 8, RUN_NEARS = 4 };

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
	unsigned room;
	struct step *step;
	struct near_step near[RUN_NEARS];
	struct step few[RUN_STEPS];
};

struct coll {
	struct endpoint *e;
	tern_team *teams;
	uint64_t next_id;
	uint64_t handled;  /* messages of this layer */
	struct run *spent; /* to be freed in the program's next call */
	struct run *spare; /* for the next one */
	uint32_t started;  /* runs with a handle */
	uint32_t telling;  /* teams with members that are to be told of a failure */
	struct early *early, *early_free, *note_free;
	struct slab *slabs; /* that these lie in */
	struct desk *desks; /* that no team uses */
	bool desk_first;    /* this rank has had the one of JOB_DESK */
	struct {
		tern_reduce_fn *fn;
		void *arg;
	} user[TERN_REDUCE_USER_MAX];
	char words[PULSE_TEXT]; /* of coll_awaits() */
};

static inline struct coll *coll_of(tern *t)
{
	return t->own->layer[LAYER_COLL];
}

/* -- call.c -- */
/* A run that lets no member be further ahead than others can keep messages for. */
int call_begin(tern_team *team, const char *name, struct run **r);
/* Memory for `len` bytes, in each of so many parts: -EINVAL if it is NULL, -EOVERFLOW. */
int memory_check(const void *at, size_t len, uint32_t parts, const char *name);
/* Barrier and allreduce, as a part of the call `name`; `op` may be NULL. */
int call_barrier(tern_team *team, tern_op *op, const char *name);
int call_max(tern_team *team, const uint64_t *in, uint64_t *out, const char *name);
/* `len` bytes of each member, at every member. */
void steps_allgather(struct run *r, const void *in, void *out, size_t len);

/* -- agree.c -- */
/* In a checked team: the run fails unless all members make its call, with the same words behind. */
__attribute__((format(printf, 2, 3))) void run_agree(struct run *r, const char *format, ...);

/* -- run.c -- */
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
void step_near(struct run *r, struct near_step s);
/* Memory that lasts as long as the run. NULL: kept as -ENOMEM. */
char *run_scratch(struct run *r, size_t bytes);

/* -- desk.c, cell.c -- */
/* Does what can be done of it now; whether it is over. */
bool near_turn(struct run *r, struct near_step *s);
/*
 * A barrier (`k` is NULL) or an allreduce of few bytes, without the turns of a run, if all come
 * within a moment. False: a run goes on from where the step is.
 */
bool near_meet(tern_team *team, struct near_step *s, const struct combine *k);
/* Makes the places of this member's desk if the step needs them: 0, or -ENOMEM with a sentence. */
int near_places(tern_team *team, const struct near_step *s);
/* Whether near_turn() would get further; no effects. */
bool near_ready(const struct run *r, const struct near_step *s);
/* A member that has left, and that the step waits for: its rank, plus 1; 0: none. */
uint32_t near_lacks(const struct run *r, const struct near_step *s);
/* Whether it waits until a cell of this member is free, of which no bell tells. */
static inline bool near_full(const struct near_step *s)
{
	return !s->ahead && s->filled < s->len;
}
/*
 * Between two looks. Where the members have not a core each, others get this one. False: that takes
 * long, and the call should wait.
 */
static inline bool near_rest(struct endpoint *e)
{
	if (!e->spin)
		return wait_yield(e);
	cpu_relax();
	return true;
}
void near_doze(tern_team *team, bool begin); /* may sleep, and does not any more */
/* Sets the bits of the ranks that it waits for. */
void near_awaits(const struct run *r, const struct near_step *s, uint64_t *set);
static inline void set_add(uint64_t *set, uint32_t rank)
{
	if (rank < TERN_RANKS_MAX)
		set[rank / 64] |= UINT64_C(1) << rank % 64;
}

/* -- message.c -- */
void message_handlers(struct endpoint *e);
/* Both: whether it is over. */
bool send_turn(struct run *r, struct step *s);
bool recv_turn(struct run *r, struct step *s);
void early_close(struct coll *c);
/* Of a team that is not there: whether it was once, so that nobody waits for the message. */
bool team_over(const struct coll *c, uint64_t id);
/* A failure of a team that is not made here yet, and taking it when it is; see fail.c. */
void early_keep_failure(struct coll *c, const tern_msg *m, const struct failure *why);
bool early_take_failure(tern_team *team, uint64_t *call, struct failure *why);
void early_forget(struct coll *c, uint64_t team); /* whatever has come for it */
/* A view of a team that is not made here yet, and taking it when it is; see survivors.c. */
void early_keep_view(struct coll *c, const tern_msg *m, const void *view, size_t len);
bool early_take_view(tern_team *team, uint64_t *leader, void *view, size_t len);

/* -- board.c: what each rank of one machine offers, `len` bytes of it, to all -- */
bool board_turn(struct run *r, struct step *s);
bool board_ready(const struct run *r, const struct step *s);
uint32_t board_lacks(const struct run *r); /* as near_lacks() */

/* -- reduce.c -- */
/* How `how` combines elements of `type`; -EINVAL with a sentence. */
int combine_find(struct coll *c, enum tern_type type, unsigned how, const char *name,
		 struct combine *out);
void combine_apply(const struct combine *k, void *left, const void *right, size_t n);
/* "double, SUM | EXACT" */
enum { COMBINE_WORDS = 64 };
void combine_words(enum tern_type type, unsigned how, char words[COMBINE_WORDS]);

/* -- far.c: steps of messages among a party -- */
void far_barrier(struct run *r, const struct members *p);
void far_broadcast(struct run *r, const struct members *p, uint32_t root, void *data, size_t len);
void far_reduce(struct run *r, const struct members *p, uint32_t root, const void *in, void *out,
		size_t n);
void far_allreduce(struct run *r, const struct members *p, void *data, size_t n);
void far_scan(struct run *r, const struct members *p, const void *in, void *out, size_t n,
	      bool inclusive);
void far_gather(struct run *r, const struct members *p, uint32_t root, const void *in, size_t len,
		char *out);
void far_allgather(struct run *r, const struct members *p, const void *in, size_t len, char *out);
void far_scatter(struct run *r, const struct members *p, uint32_t root, const char *in, void *out,
		 size_t len);
void far_alltoall(struct run *r, const struct members *p, const char *in, char *out, size_t len);
void far_alltoallv(struct run *r, const struct members *p, const struct varied *v);
/* In the order of the members; to everybody, or to `root` if that is a member. */
void far_ordered(struct run *r, const struct members *p, uint32_t root, const void *in, void *out,
		 size_t n);

/* -- levels.c: near steps, messages between machines, near steps; for teams with two levels -- */
void levels_gather(struct run *r, uint32_t root, const void *in, size_t len, char *out);
void levels_scatter(struct run *r, uint32_t root, const char *in, void *out, size_t len);
void levels_allgather(struct run *r, const void *in, size_t len, char *out);
void levels_alltoall(struct run *r, const char *in, char *out, size_t len);
void levels_reduce(struct run *r, uint32_t root, const void *in, void *out, size_t n);

/* -- fail.c -- */
void fail_handlers(struct endpoint *e);
/* Calls from this one on fail here. */
void team_fail(tern_team *team, uint64_t call, uint32_t rank, int code);
/*
 * The others are told that a call has failed here, from now on and by polls. The second form: if
 * they might not hear of it by themselves.
 */
void team_fail_tell(tern_team *team, uint64_t call);
void team_fail_note(tern_team *team, uint64_t call);
void team_fail_told(tern_team *team, const char *name); /* waits until they are */
unsigned failures_tell(struct coll *c);
/* The code, with a sentence. */
int team_failure(const tern_team *team);
static inline bool team_fails(const tern_team *team, uint64_t call)
{
	return TERN_UNLIKELY(call >= team->fails);
}
/* Tells polls whether the layer has something to do. */
static inline void coll_work(struct coll *c)
{
	layer_work(c->e, LAYER_COLL, c->started || c->telling);
}

/* -- survivors.c, quiet.c -- */
void survivors_handlers(struct endpoint *e);
void views_free(tern_team *team);
void view_none(tern_team *team, uint32_t member); /* it takes no part in the agreement */
extern unsigned survivors_dies_at;                /* for tests */
void quiet_handlers(struct endpoint *e);

/* -- team.c -- */
tern_team *team_find(const struct coll *c, uint64_t id);
/* What a member brings to a team. */
struct place {
	uint64_t desk;  /* where it is in the job's memory; DESK_NONE: it has none */
	uint64_t round; /* the first that the desk has not been used for */
};
enum { DESK_NONE = 0 }; /* where the job's head is; also of a member that has not said */
/* Where a member is in the team, by its rank; all.n: it is in none. */
uint32_t team_member(const tern_team *team, uint32_t rank);
/* A team of `n` ranks, of which this one is; without desks if `places` is NULL. */
int team_make(struct coll *c, uint64_t id, const uint32_t *ranks, uint32_t n,
	      const struct place *places, struct desk *own, tern_team **out);
/* NULL, and DESK_NONE, if the heap has no room, or others do not map it. */
struct desk *desk_take(struct coll *c, struct place *place);
void desk_give(struct coll *c, struct desk *d);

/* As the maker of a team of survivors, and told of one: its parent goes on making none. */
#define CALL_SURVIVORS UINT64_MAX

/* A team of survivors has the low bits of the first one's id, and counts in the others. */
enum { TEAM_FIRST = 1, ID_BITS = 48 };

/* Of a team that has just been made: its calls are checked, and none is a near step alone. */
static inline void team_check_calls(tern_team *team)
{
	team->checked = true;
	team->is_near = false;
}

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

#endif
