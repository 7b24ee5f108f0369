/* SPDX-License-Identifier: BSD-3-Clause */
/* From a seed to a program: see program.h. */
#include "program.h"

#include <string.h>

#include <tern/sequence.h>

#include "base/chance.h"
#include "base/threshold.h"
#include "chan/threshold.h"
#include "coll/threshold.h"
#include "mem/threshold.h"
#include "msg/threshold.h"
#include "post/threshold.h"
#include "sequence/threshold.h"
#include "spawn/threshold.h"
#include "typed/threshold.h"

const char *const kind_names[KINDS] = {
	"send",   "put",   "get",   "amo",   "store",   "signal",  "request", "post",   "typed",
	"chan",   "async", "spawn", "block", "stream",  "segment", "region",  "worker", "keep",
	"cancel", "call",  "make",  "free",  "barrier", "quiet",   "lock",    "lose"
};
const char *const call_names[CALLS] = { "barrier",    "broadcast", "reduce",         "allreduce",
					"scan",       "exscan",    "reduce_scatter", "gather",
					"allgather",  "scatter",   "alltoall",       "alltoallv",
					"allgatherv", "gatherv",   "scatterv",       "exchange",
					"transpose",  "quiet",     "split",          "list",
					"machine",    "free",      "survivors",      "memory",
					"traffic" };
const char *const lost_names[LOST_WAYS] = { "leaves", "dies before", "dies in", "dies after" };

/* The lengths of the library's own table. */
#define BYTES(name, bytes, what) bytes,
#define LAYERS(X)           \
	CORE_THRESHOLDS(X)  \
	MSG_THRESHOLDS(X)   \
	MEM_THRESHOLDS(X)   \
	COLL_THRESHOLDS(X)  \
	TYPED_THRESHOLDS(X) \
	CHAN_THRESHOLDS(X)  \
	SPAWN_THRESHOLDS(X) POST_THRESHOLDS(X) SEQUENCE_THRESHOLDS(X)
static const size_t thresholds[] = { LAYERS(BYTES) };
#undef BYTES
#undef LAYERS
enum { LENGTHS = sizeof thresholds / sizeof *thresholds };

/* A length of the table, or one byte less or more; now and then any other. */
static size_t length(struct chance *c, size_t most)
{
	for (;;) {
		size_t len = thresholds[chance_below(c, LENGTHS)] - 1 + chance_below(c, 3);
		if (chance_one_in(c, 6))
			len = chance_below(c, chance_one_in(c, 2) ? 80 : (uint32_t)most + 1);
		if (len <= most)
			return len;
	}
}

static const struct {
	unsigned often;
	size_t longest;
	unsigned count, forms, others;
} kinds[KINDS] = {
	[SEND] = { 8, LONGEST, 300, 5, 6 },
	[PUT] = { 5, LONGEST, 4, 11, 1 },
	[GET] = { 4, LONGEST, 4, 8, 1 },
	[AMO] = { 3, 0, 16, 6, 1 },
	[STORE] = { 1, 70000, 3, 1, 1 },
	[SIGNAL] = { 2, 70000, 6, 3, 4 },
	[REQUEST] = { 6, TERN_REQUEST_MAX, 20, 3, 6 },
	[POST] = { 2, 0, 400, 2, 1 },
	[TYPED] = { 3, 70000, 6, 2, 2 },
	[CHAN] = { 2, 70000, 8, 3, 1 },
	[ASYNC] = { 2, 70000, 4, 2, 1 },
	[SPAWN] = { 2, TERN_SPAWN_DATA_MAX, 8, 2, 1 },
	[BLOCK] = { 3, LONGEST_BLOCK, 3, 2, 2 },
	[STREAM] = { 2, 0, 3 * TERN_STREAM_WINDOW, 2, 5 },
	[SEGMENT] = { 3, 70000, 6, 5, 1 },
	[REGION] = { 3, 70000, 4, 5, 1 },
	[WORKER] = { 2, TERN_REQUEST_MAX, 12, 2, 2 },
	[KEEP] = { 2, TERN_REQUEST_MAX, 6, 2, 1 },
	[CANCEL] = { 2, 140000, 1, 3, 2 },
	[CALL] = { 14, LONGEST, 1, 2, 1 },
	[MAKE] = { 3, 0, 1, 5, 1 },
	[FREE] = { 1, 0, 1, 1, 1 },
	[BARRIER] = { 1, 0, 1, 1, 1 },
	[QUIET] = { 1, 0, 1, 1, 1 },
	[LOCK] = { 1, 0, 4, 2, 4 },
	[LOSE] = { 0, 70000, 1, 1, 1 },
};

static enum kind kind_draw(struct chance *c)
{
	unsigned sum = 0;
	for (unsigned i = 0; i < KINDS; i++)
		sum += kinds[i].often;
	unsigned at = chance_below(c, sum);
	for (unsigned i = 0;; i++) {
		if (at < kinds[i].often)
			return (enum kind)i;
		at -= kinds[i].often;
	}
}

/* -- Steps ------------------------------------------------------------------------------------ */

/* Ranks, each of them with a chance of one in n. */
static uint64_t some(struct chance *c, unsigned n)
{
	uint64_t set = 0;
	for (unsigned i = 0; i < RANKS_MOST; i++)
		set |= (uint64_t)chance_one_in(c, n) << i;
	return set;
}

static const enum tern_type rounding[] = { TERN_TYPE_FLOAT, TERN_TYPE_DOUBLE };

/* A reduction that is defined. */
static void operation_draw(struct chance *c, struct step *s)
{
	s->type = (enum tern_type)chance_below(c, TERN_TYPES);
	if (chance_one_in(c, 3))
		s->type = rounding[chance_below(c, 2)];
	if (s->type <= TERN_TYPE_UINT64)
		s->how = chance_below(c, TERN_REDUCES);
	else if (s->type <= TERN_TYPE_DOUBLE)
		s->how = chance_below(c, TERN_REDUCE_MAX + 1);
	else if (s->type <= TERN_TYPE_COMPLEX_DOUBLE)
		s->how = chance_below(c, TERN_REDUCE_PRODUCT + 1);
	else
		s->how = TERN_REDUCE_MIN + chance_below(c, 2);
	bool real = s->type == TERN_TYPE_FLOAT || s->type == TERN_TYPE_DOUBLE;
	bool ends = s->how == TERN_REDUCE_MIN || s->how == TERN_REDUCE_MAX;
	if (real)
		s->values = ends                 ? (enum values)chance_below(c, 3)
			    : chance_below(c, 2) ? FRACTION
						 : WHOLE;
	if (chance_one_in(c, 2))
		s->how |= TERN_REDUCE_EXACT;
	if (s->type == TERN_TYPE_UINT64 && chance_one_in(c, 3))
		s->how = HOW_COMPOSE;
}

static void call_draw(struct chance *c, struct step *s, unsigned calls)
{
	s->call = (enum call)chance_below(c, calls);
	if (chance_one_in(c, 3))
		s->call = (enum call)(C_REDUCE + chance_below(c, C_GATHER - C_REDUCE));
	operation_draw(c, s);
	/* Each member sends to each: that is many times as much. */
	if (s->call >= C_GATHER)
		s->len = length(c, chance_one_in(c, 8) ? LONGEST : 70000);
}

/* As many as fill a buffer of posts, or may be under way in a stream; one less, or more. */
static unsigned count_draw(struct chance *c, const struct step *s)
{
	unsigned words = s->words % 7 ? s->words % 7 : 1;
	unsigned buffer = (unsigned)GATHER_BYTES / 8;
	unsigned many = s->kind == STREAM    ? (unsigned)TERN_STREAM_WINDOW << chance_below(c, 2)
			: chance_below(c, 2) ? buffer / words
					     : (buffer - 1) / words;
	return many - 1 + chance_below(c, 3);
}

static void step_draw(struct chance *c, struct program *p, struct step *s, enum kind kind)
{
	*s = (struct step){ .kind = kind, .number = p->steps };
	s->from = chance_below(c, p->ranks);
	s->to = (s->from + 1 + chance_below(c, p->ranks > 1 ? p->ranks - 1 : 1)) % p->ranks;
	if (chance_one_in(c, 12))
		s->to = s->from;
	s->len = length(c, kinds[kind].longest);
	s->count = 1 + chance_below(c, chance_one_in(c, 3) ? kinds[kind].count : 2);
	if (s->len > 64 && s->count > 40)
		s->count %= 40;
	if (s->len > 4096 && s->count > 3)
		s->count = 3;
	s->words = chance_below(c, TERN_WORDS_MAX + 1);
	if ((kind == POST || kind == STREAM) && chance_one_in(c, 2))
		s->count = count_draw(c, s);
	s->form = chance_below(c, kinds[kind].forms);
	s->other = chance_below(c, kinds[kind].others);
	s->started = some(c, 3);
	s->late = chance_one_in(c, 3) ? some(c, 2) : 0;
	s->value = chance_next(c);
	s->family = chance_below(c, FAMILIES);
	if (kind == STORE) /* bytes are counted, whoever they are from */
		s->from = (s->to + 1) % p->ranks;
	if (kind == CALL)
		call_draw(c, s, C_WITH_HANDLE);
}

/* A step on a family that there is not, or that makes one in a place that is taken, is none. */
static bool fits(struct step *s, uint64_t *there)
{
	bool has = *there >> s->family & 1;
	if (s->kind == MAKE) {
		s->of = s->other = (unsigned)(s->value % FAMILIES);
		if (has || !(*there >> s->of & 1))
			return false;
		*there |= UINT64_C(1) << s->family;
	} else if (s->kind == FREE) {
		if (!has || s->family == 0)
			return false;
		*there &= ~(UINT64_C(1) << s->family);
	} else if (s->kind == CALL && !has) {
		s->family = 0;
	} else if (s->kind == LOSE && !has) {
		s->family = 0;
	}
	return true;
}

static struct step *add(struct chance *c, struct program *p, enum kind kind, uint64_t *there)
{
	struct step *s = &p->step[p->steps];
	for (step_draw(c, p, s, kind); !fits(s, there);)
		step_draw(c, p, s, CALL);
	p->steps++;
	return s;
}

/* -- Endings ---------------------------------------------------------------------------------- */

/* What a rank has done before it closes, though others come late. */
static void one_by_one(struct chance *c, struct program *p, uint64_t *there)
{
	static const enum kind can[] = { CALL, CALL, CALL, SEND, TYPED, CHAN };
	for (unsigned i = 1 + chance_below(c, 4); i; i--)
		add(c, p, can[chance_below(c, 6)], there)->late = some(c, 2);
}

static void victims_draw(struct chance *c, struct program *p, struct step *s, uint64_t gone)
{
	bool two = p->ranks > 2 && chance_one_in(c, 6);
	while (step_has(gone, s->from))
		s->from = (s->from + 1) % p->ranks;
	s->victims = UINT64_C(1) << s->from;
	s->after[0] = chance_below(c, 2000);
	s->after[1] = chance_below(c, 2000);
	if (two && !gone && s->to != s->from)
		s->victims |= UINT64_C(1) << s->to;
}

static void wish_for(struct step *s, const struct wish *w)
{
	if (w->of[LOSING] >= 0)
		s->call = (enum call)w->of[LOSING];
	if (w->of[HOW_LOST] >= 0)
		s->lost = (enum lost)w->of[HOW_LOST];
	if (w->of[VICTIM] >= 0)
		s->victims = UINT64_C(1) << (s->from = (uint32_t)w->of[VICTIM]);
	if (w->of[SECOND] >= 0)
		s->victims |= UINT64_C(1) << (s->to = (uint32_t)w->of[SECOND]);
	if (w->of[AFTER] >= 0)
		s->after[0] = (unsigned)w->of[AFTER];
	if (w->of[AFTER2] >= 0)
		s->after[1] = (unsigned)w->of[AFTER2];
}

/* Ranks are lost about a call; the others make more calls there, and go on with who is left. */
static void lose(struct chance *c, struct program *p, uint64_t *there, uint64_t *gone,
		 const struct wish *w)
{
	if (chance_one_in(c, 2) && w->of[LOSING] < 0)
		add(c, p, MAKE, there);
	struct step *s = add(c, p, LOSE, there);
	call_draw(c, s, C_SURVIVORS);
	if (chance_one_in(c, 3))
		s->call = (enum call)(C_QUIET + chance_below(c, CALLS - C_QUIET));
	s->lost = (enum lost)chance_below(c, LOST_WAYS);
	s->count = chance_below(c, 3); /* calls before the survivors meet */
	s->late = some(c, 2);
	victims_draw(c, p, s, *gone);
	wish_for(s, w);
	if (*gone) /* of both, calls have the same code */
		s->lost = p->lost;
	p->lost = s->lost;
	if (s->call >= C_MEMORY && s->victims & (s->victims - 1)) /* they use that of one */
		s->victims = UINT64_C(1) << s->from;
	if (s->call == C_MEMORY && s->lost == LEAVES) /* then its memory may still be used */
		s->call = C_BARRIER;
	if (s->call == C_QUIET) /* members have sent to members only */
		s->family = 0;
	if (s->call == C_FREE && s->family == 0 && w->of[LOSING] < 0) /* it is needed afterwards */
		s->call = C_SPLIT;
	s->form = s->call == C_LIST ? 2 + 2 * chance_below(c, 2) : chance_below(c, 2);
	*gone |= s->victims;
	for (unsigned i = 3 + chance_below(c, 8); i && w->of[LOSING] < 0; i--)
		add(c, p, kind_draw(c), there);
}

void program_make(struct program *p, uint64_t seed, uint32_t ranks, const struct wish *w)
{
	struct chance c = { seed };
	uint64_t there = 1, gone = 0; /* family 0: the team of all */
	memset(p, 0, sizeof *p);
	p->seed = seed;
	p->ranks = ranks;
	p->ending = (enum ending)chance_below(&c, ENDINGS);
	unsigned steps = 6 + chance_below(&c, 40);
	if (w->of[ENDING] >= 0)
		p->ending = (enum ending)w->of[ENDING];
	if (w->of[LOSING] >= 0)
		steps = 0;
	for (unsigned i = 0; i < steps; i++) {
		enum kind kind = kind_draw(&c);
		add(&c, p, w->of[ONLY_KIND] >= 0 ? (enum kind)w->of[ONLY_KIND] : kind, &there);
		if (w->of[CALM] > 0) /* nobody does something else meanwhile */
			add(&c, p, BARRIER, &there);
	}
	p->planted = seed % 100 == 99 ? (int)chance_below(&c, steps) : -1;
	add(&c, p, BARRIER, &there);
	p->lasting = p->steps;
	if (p->ending == ENDS_ONE_BY_ONE)
		one_by_one(&c, p, &there);
	while (p->ending == ENDS_AFTER_A_LOSS && !(gone & (gone - 1))) {
		lose(&c, p, &there, &gone, w);
		if (ranks < 3 || !chance_one_in(&c, 4) || w->of[LOSING] >= 0)
			break;
	}
	for (unsigned i = 0; w->of[VALUES] >= 0 && i < p->steps; i++)
		if (p->step[i].values > (enum values)w->of[VALUES])
			p->step[i].values = (enum values)w->of[VALUES];
}

void step_print(const struct step *s, FILE *to)
{
	fprintf(to, "step %u: %s", s->number, kind_names[s->kind]);
	if (s->kind < CALL)
		fprintf(to, " %u -> %u, %u x %zu bytes, %u words, form %u/%u", s->from, s->to,
			s->count, s->len, s->words, s->form, s->other);
	else if (s->kind == CALL || s->kind == LOSE)
		fprintf(to, " %s of %zu bytes, type %d, how %u, values %d, family %u",
			call_names[s->call], s->len, (int)s->type, s->how, (int)s->values,
			s->family);
	else if (s->kind == MAKE)
		fprintf(to, " family %u of %u, form %u", s->family, s->of, s->form);
	else if (s->kind == FREE)
		fprintf(to, " family %u", s->family);
	if (s->kind == LOSE)
		fprintf(to, "; ranks %#llx: %s, after %u, %u; %u more",
			(unsigned long long)s->victims, lost_names[s->lost], s->after[0],
			s->after[1], s->count);
	fprintf(to, "; late %#llx, started %#llx\n", (unsigned long long)s->late,
		(unsigned long long)s->started);
}
