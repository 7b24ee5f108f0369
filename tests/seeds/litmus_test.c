/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: TIMEOUT 120 RUN_SERIAL MODES */
/*
 * Litmus tests of the memory model that tern_mem(7) states. A row of the table has a short program
 * for each of up to four roles, and an outcome that the model forbids or allows. Each row runs in
 * many cells (copies of its places) until its time is over; the roles move from rank to rank.
 * A forbidden outcome fails. One that is allowed is counted and printed; one that is marked COMMON
 * must appear, which shows that the test looks at the right thing.
 *
 * litmus.h has the table and says what the steps are.
 */
#include <ctype.h>
#include <sched.h>

#include <tern/lock.h>

#include "lib/chance.h"
#include "lib/far.h"
#include "lib/handed.h"
#include "lib/ranks.h"
#include "litmus.h"

enum {
	PLACES = 3,
	REGISTERS = 4,
	CELLS = 128,
	FAR_CELLS = 16, /* where a get is a round trip over a network */
	FEW_CELLS = 8,  /* of rows with barriers or long puts, which take longer */
	STEPS = 8,
	APART = 64,
	LONG = 96 << 10, /* more than a split-phase put moves before it returns */
	MEET_SPINS = 3000,
	ROW_NS = 15000000,
};
enum { REQUEST, REPLY };
#define UNSET (UINT64_MAX - 1)

enum { ROWS = sizeof rows / sizeof *rows };

struct turn;
struct step {
	void (*act)(const struct turn *u);
	unsigned place[2], reg;
	uint64_t value;
};

/* A step at work. */
struct turn {
	tern *t;
	const struct step *step;
	unsigned cell;
	const tern_msg *msg; /* in its handler */
};

/* In the heap of each rank, and registered; results are put into the heap of rank 0. */
struct board {
	_Atomic uint64_t word[PLACES][CELLS][APART / 8];
	char wide[FEW_CELLS][LONG]; /* what `lay` and `many` write: x is the last word */
	uint64_t result[ROLES][CELLS][REGISTERS];
	tern_lock lock[CELLS];
	tern_addr region;
	_Atomic uint64_t met; /* rank 0: how often ranks have come to a cell */
	uint64_t more;        /* rank 0: whether the row goes on */
};

static struct board *board, *private;
static tern_addr board_at, private_at[ROLES];
static bool with_file; /* `private` is registered with what it is mapped from */
static bool mapped;    /* every rank can touch the heap of every other */
static _Atomic uint64_t *meeting;

/* The row under way, as this rank sees it. */
static const struct row *row;
static unsigned roles, cells;
static uint32_t rank_of[ROLES];
static struct step program[STEPS], handler[STEPS];
static tern_addr at[PLACES];
static size_t apart[PLACES]; /* bytes from one cell to the next */
static _Atomic uint64_t reg[CELLS][REGISTERS], heard[CELLS], answered[CELLS];
static uint64_t source[CELLS][PLACES];
static char wide_source[LONG];
static tern_op op = TERN_OP;

/* A field of the board of rank 0. */
static tern_addr at_first(size_t offset)
{
	return handed_at(board_at, 0) + offset;
}

static tern_addr place(const struct turn *u, unsigned i)
{
	unsigned k = u->step->place[i];
	return at[k] + u->cell * apart[k];
}

static void set(const struct turn *u, uint64_t value)
{
	if (u->step->reg < REGISTERS)
		atomic_store(&reg[u->cell][u->step->reg], value);
}

static void rest(tern *t, unsigned *turns)
{
	CHECK(tern_poll(t) >= 0);
	if (++*turns % 64 == 0)
		sched_yield();
}

/* -- Steps ----------------------------------------------------------------- */

static void do_put(const struct turn *u)
{
	CHECK_IS(tern_put(u->t, place(u, 0), &u->step->value, sizeof u->step->value), 0);
}

static void do_get(const struct turn *u)
{
	uint64_t value = UNSET;
	CHECK_IS(tern_get(u->t, &value, place(u, 0), sizeof value), 0);
	set(u, value);
}

static void do_start(const struct turn *u)
{
	uint64_t *from = &source[u->cell][u->step->place[0]];
	*from = u->step->value;
	CHECK_IS(tern_put_start(u->t, place(u, 0), from, sizeof *from, &op), 0);
}

static tern_addr wide(const struct turn *u)
{
	size_t before = LONG - sizeof u->step->value;
	memcpy(wide_source + before, &u->step->value, sizeof u->step->value);
	return place(u, 0) - before;
}

static void do_lay(const struct turn *u)
{
	CHECK_IS(tern_put(u->t, wide(u), wide_source, LONG), 0);
}

static void do_many(const struct turn *u)
{
	CHECK_IS(tern_put_start(u->t, wide(u), wide_source, LONG, &op), 0);
}

static void do_wait(const struct turn *u)
{
	CHECK_IS(tern_op_wait(u->t, &op), 0);
}

static void do_write(const struct turn *u)
{
	_Atomic uint64_t *p = handed_local(u->t, place(u, 0), sizeof *p);
	if (p)
		atomic_store_explicit(p, u->step->value, memory_order_release);
	else
		do_put(u);
}

static void do_read(const struct turn *u)
{
	_Atomic uint64_t *p = handed_local(u->t, place(u, 0), sizeof *p);
	if (p)
		set(u, atomic_load_explicit(p, memory_order_acquire));
	else
		do_get(u);
}

static void operate(const struct turn *u, enum tern_amo what)
{
	uint64_t old = UNSET;
	CHECK_IS(tern_amo(u->t, place(u, 0), what, u->step->value, &old), 0);
	set(u, old);
}

static void do_swap(const struct turn *u)
{
	operate(u, TERN_AMO_SWAP);
}

static void do_add(const struct turn *u)
{
	operate(u, TERN_AMO_ADD);
}

static void do_bump(const struct turn *u)
{
	_Atomic uint64_t *p = handed_local(u->t, place(u, 0), sizeof *p);
	if (p)
		atomic_fetch_add(p, u->step->value);
	else
		do_add(u);
}

static void do_store(const struct turn *u)
{
	CHECK_IS(tern_store(u->t, place(u, 0), &u->step->value, sizeof u->step->value), 0);
}

static void do_sync(const struct turn *u)
{
	CHECK_IS(tern_store_sync(u->t, sizeof(uint64_t)), 0);
}

static void do_signal(const struct turn *u)
{
	uint64_t value = u->step->value;
	CHECK_IS(tern_put_signal(u->t, place(u, 0), &value, sizeof value, place(u, 1),
				 TERN_AMO_STORE, value),
		 0);
}

static void do_word(const struct turn *u)
{
	const uint64_t *word = handed_local(u->t, place(u, 0), sizeof *word);
	CHECK_IS(tern_wait_word(u->t, word, TERN_WORD_NE, 0), 0);
}

static void do_take(const struct turn *u)
{
	CHECK_IS(tern_lock_take(u->t, &board->lock[u->cell]), 0);
}

static void do_give(const struct turn *u)
{
	CHECK_IS(tern_lock_release(u->t, &board->lock[u->cell]), 0);
}

static void do_copy(const struct turn *u)
{
	CHECK_IS(tern_copy_start(u->t, place(u, 0), place(u, 1), 8, NULL), 0);
}

static void do_long(const struct turn *u)
{
	CHECK_IS(tern_put_request(u->t, place(u, 0), REQUEST, &u->step->value, 8, u->cell), 0);
}

static void do_when(const struct turn *u)
{
	uint64_t value = UNSET;
	tern_addr flag = place(u, 1);
	CHECK_IS(tern_get_when_start(u->t, &value, place(u, 0), sizeof value, flag, 1, NULL), 0);
	set(u, value);
}

static void do_await(const struct turn *u)
{
	uint64_t value = 0;
	for (unsigned turns = 0; !value; rest(u->t, &turns))
		REQUIRE(tern_get(u->t, &value, place(u, 0), sizeof value) == 0);
}

/* Of the forms of a request one word is the shortest, two take a line, some have a payload. */
static void do_request(const struct turn *u)
{
	static const char payload[APART];
	uint32_t to = rank_of[u->step->value];
	if (u->cell % 4 == 3)
		CHECK_IS(tern_request_data(u->t, to, REQUEST, payload, sizeof payload, u->cell), 0);
	else if (u->cell % 2)
		CHECK_IS(tern_request(u->t, to, REQUEST, u->cell, 0), 0);
	else
		CHECK_IS(tern_request(u->t, to, REQUEST, u->cell), 0);
}

static void do_reply(const struct turn *u)
{
	CHECK_IS(tern_reply(u->t, u->msg, REPLY, u->cell), 0);
}

static void until(tern *t, _Atomic uint64_t *flag)
{
	for (unsigned turns = 0; !atomic_load(flag);)
		rest(t, &turns);
}

static void do_heard(const struct turn *u)
{
	until(u->t, &heard[u->cell]);
}

static void do_answered(const struct turn *u)
{
	until(u->t, &answered[u->cell]);
}

static void do_from(const struct turn *u)
{
	for (unsigned i = 0; i < roles && !atomic_load(&heard[u->cell]); i++)
		if (rank_of[i] == tern_msg_src(u->msg))
			set(u, i);
}

static void do_flush(const struct turn *u)
{
	CHECK_IS(tern_flush(u->t), 0);
}

static void do_barrier(const struct turn *u)
{
	REQUIRE(tern_barrier(u->t) == 0);
}

static const struct verb {
	const char *name;
	void (*act)(const struct turn *u);
} verbs[] = {
	{ "put", do_put },           { "get", do_get },       { "start", do_start },
	{ "lay", do_lay },           { "many", do_many },     { "wait", do_wait },
	{ "write", do_write },       { "read", do_read },     { "swap", do_swap },
	{ "add", do_add },           { "bump", do_bump },     { "store", do_store },
	{ "sync", do_sync },         { "signal", do_signal }, { "word", do_word },
	{ "take", do_take },         { "give", do_give },     { "copy", do_copy },
	{ "long", do_long },         { "when", do_when },     { "await", do_await },
	{ "request", do_request },   { "reply", do_reply },   { "heard", do_heard },
	{ "answered", do_answered }, { "from", do_from },     { "flush", do_flush },
	{ "barrier", do_barrier },
};

/* -- Reading the table ----------------------------------------------------- */

static unsigned place_index(char letter)
{
	unsigned i = (unsigned)(tolower(letter) - 'x');
	REQUIRE(i < PLACES);
	return i;
}

static void step_parse(struct step *s, char *text)
{
	unsigned places = 0;
	char *rest_of = NULL, *word = strtok_r(text, " ", &rest_of);
	*s = (struct step){ .reg = REGISTERS };
	for (size_t i = 0; i < sizeof verbs / sizeof *verbs; i++)
		if (strcmp(verbs[i].name, word) == 0)
			s->act = verbs[i].act;
	REQUIRE(s->act);
	while ((word = strtok_r(NULL, " ", &rest_of)))
		if (*word == 'r')
			s->reg = (unsigned)atoi(word + 1);
		else if (isalpha((unsigned char)*word))
			s->place[places++] = place_index(*word);
		else
			s->value = (uint64_t)strtoll(word, NULL, 10);
}

static void steps_parse(struct step *steps, char *text)
{
	char *rest_of = NULL;
	memset(steps, 0, STEPS * sizeof *steps);
	for (char *one = strtok_r(text, ";", &rest_of); one; one = strtok_r(NULL, ";", &rest_of))
		step_parse(steps++, one);
}

static void role_parse(const char *text)
{
	char none[] = "", copy[300] = "";
	memcpy(copy, text, strstr(text, "||") ? (size_t)(strstr(text, "||") - text) : strlen(text));
	char *on_arrival = strchr(copy, '@');
	if (on_arrival)
		*on_arrival++ = '\0';
	steps_parse(program, copy);
	steps_parse(handler, on_arrival ? on_arrival : none);
}

static void steps_run(tern *t, const struct step *s, unsigned cell, const tern_msg *m)
{
	for (; s->act; s++)
		s->act(&(struct turn){ t, s, cell, m });
}

static void homes_parse(void)
{
	memset(at, 0, sizeof at);
	for (const char *p = row->homes; *p; p += p[2] ? 3 : 2) {
		unsigned i = place_index(p[0]);
		uint32_t home = rank_of[p[1] - '0'];
		bool wide = i == 0 && row_is_long(row);
		size_t offset = wide ? offsetof(struct board, wide) + LONG - sizeof(uint64_t)
				     : offsetof(struct board, word) + i * sizeof board->word[0];
		bool heap = islower((unsigned char)p[0]);
		at[i] = (heap ? handed_at(board_at, home) : private_at[home]) + offset;
		apart[i] = wide ? LONG : APART;
	}
}

/* -- Outcomes -------------------------------------------------------------- */

static uint64_t finals[PLACES][CELLS];

static uint64_t value_of(const char *term, unsigned cell)
{
	if (*term != 'r')
		return finals[place_index(*term)][cell];
	for (unsigned i = 0; i < roles; i++)
		if (board->result[i][cell][term[1] - '0'] != UNSET)
			return board->result[i][cell][term[1] - '0'];
	CHECK(!"a register of the outcome was set");
	return UNSET;
}

/* Terms that are joined by &, up to a | or the end. */
static bool all_true(const char *terms, unsigned cell)
{
	for (const char *p = terms, *joint;; p = joint + 2) {
		const char *sign = strpbrk(p, "!=");
		bool differs = *sign == '!';
		uint64_t wanted = (uint64_t)strtoll(sign + 1 + differs, NULL, 10);
		if ((value_of(p, cell) != wanted) != differs)
			return false;
		joint = strpbrk(p, "&|");
		if (!joint || *joint == '|')
			return true;
	}
}

static bool outcome_is(unsigned cell)
{
	for (const char *p = row->outcome; p; p = strchr(p, '|') ? strchr(p, '|') + 2 : NULL)
		if (all_true(p, cell))
			return true;
	return false;
}

static void finals_get(tern *t)
{
	for (unsigned i = 0; i < PLACES; i++)
		for (unsigned c = 0; at[i] && c < cells; c++)
			CHECK_IS(tern_get(t, &finals[i][c], at[i] + c * apart[i], 8), 0);
}

/* -- Ranks ----------------------------------------------------------------- */

static void on_request(tern *t, const tern_msg *m)
{
	unsigned cell = (unsigned)tern_msg_word(m, 0);
	steps_run(t, handler, cell, m);
	atomic_fetch_add(&heard[cell], 1);
}

static void on_reply(tern *t, const tern_msg *m)
{
	(void)t;
	atomic_fetch_add(&answered[tern_msg_word(m, 0)], 1);
}

/* Who plays what in this batch: every rank computes the same. Returns the role of this one. */
static unsigned roles_deal(const tern *t, unsigned batch)
{
	uint64_t seed = (uint64_t)(row - rows);
	unsigned role = 0;
	for (uint32_t i = 0; i < tern_size(t); i++) {
		uint32_t k = (uint32_t)(chance_of(seed, batch * ROLES + i) % (i + 1));
		rank_of[i] = rank_of[k];
		rank_of[k] = i;
	}
	while (rank_of[role] != tern_rank(t))
		role++;
	return role;
}

static void board_clear(struct board *b)
{
	memset(b->word, 0, sizeof b->word);
	for (unsigned c = 0; c < FEW_CELLS; c++)
		memset(b->wide[c] + LONG - APART, 0, APART);
	atomic_store(&b->met, 0);
}

static unsigned batch_begin(const tern *t, unsigned batch)
{
	unsigned role = roles_deal(t, batch);
	homes_parse();
	role_parse(row_role(row, role));
	board_clear(board);
	board_clear(private);
	memset((void *)heard, 0, sizeof heard);
	memset((void *)answered, 0, sizeof answered);
	for (unsigned c = 0; c < CELLS; c++)
		for (unsigned r = 0; r < REGISTERS; r++)
			atomic_store(&reg[c][r], UNSET);
	return role;
}

/* Lets all roles begin a cell at the same moment, if they come in time. */
static void meet(unsigned cell)
{
	if (!meeting)
		return;
	atomic_fetch_add(meeting, 1);
	for (unsigned i = 0; i < MEET_SPINS && atomic_load(meeting) < (cell + 1) * roles; i++)
		;
}

static void batch_run(tern *t, unsigned role)
{
	for (unsigned c = 0; c < cells; c++) {
		if (role < roles)
			meet(c);
		steps_run(t, program, c, NULL);
	}
	REQUIRE(tern_op_wait(t, &op) == 0);
	REQUIRE(tern_barrier(t) == 0);
	tern_addr result = at_first(offsetof(struct board, result));
	if (role < roles)
		REQUIRE(tern_put(t, result + role * sizeof reg, (const void *)reg, sizeof reg) ==
			0);
	if (tern_rank(t) == 0)
		finals_get(t);
	REQUIRE(tern_barrier(t) == 0);
}

static bool row_goes_on(tern *t)
{
	uint64_t more;
	REQUIRE(tern_get(t, &more, at_first(offsetof(struct board, more)), sizeof more) == 0);
	return more;
}

static void row_run(tern *t)
{
	unsigned seen = 0, ran = 0;
	uint64_t end = clock_ns() + ROW_NS;
	bool slow = row_has_barriers(row) || row_is_long(row);
	cells = slow ? FEW_CELLS : mapped ? CELLS : FAR_CELLS;
	board->more = 1;
	for (unsigned batch = 0;; batch++) {
		unsigned role = batch_begin(t, batch);
		REQUIRE(tern_barrier(t) == 0);
		if (!row_goes_on(t))
			break;
		batch_run(t, role);
		if (tern_rank(t))
			continue;
		for (unsigned c = 0; c < cells; c++)
			seen += outcome_is(c);
		ran += cells;
		board->more = clock_ns() < end;
	}
	REQUIRE(tern_barrier(t) == 0); /* before `more` is set anew */
	if (tern_rank(t))
		return;
	printf("    %-6s %6u of %6u  %s: %s\n", verdict_name[row->verdict], seen, ran, row->name,
	       row->outcome);
	if (!CHECK(row->verdict != NEVER || !seen) ||
	    !CHECK(row->verdict != COMMON || seen || !mapped || with_file))
		printf("    %s\n", row->name);
}

static void board_open(tern *t)
{
	board = handed_alloc_all(t, sizeof *board);
	REQUIRE(board);
	board_at = handed_addr(t, board);
	int fd;
	size_t bytes = sizeof *private;
	REQUIRE((private = handed_file(0, bytes, &fd)));
	CHECK_IS(with_file ? tern_register_fd(t, private, bytes, fd, 0, &board->region)
			   : tern_register(t, private, bytes, &board->region),
		 0);
	REQUIRE(tern_barrier(t) == 0);
	mapped = true;
	for (uint32_t r = 0; r < tern_size(t); r++) {
		tern_addr there = handed_at(board_at, r);
		mapped &= handed_local(t, there, sizeof *board) != NULL;
		there += offsetof(struct board, region);
		REQUIRE(tern_get(t, &private_at[r], there, sizeof there) == 0);
	}
}

/* Runs the rows that need at least so many ranks, and no more than there are. */
static void rows_run(unsigned least)
{
	tern *t = ranks_open();
	REQUIRE(tern_size(t) <= ROLES);
	REQUIRE(tern_on(t, REQUEST, on_request) == 0 && tern_on(t, REPLY, on_reply) == 0);
	board_open(t);
	for (row = rows; row < rows + ROWS; row++) {
		roles = row_roles(row);
		if (roles < least || roles > tern_size(t))
			continue;
		bool cores = sysconf(_SC_NPROCESSORS_ONLN) >= (long)roles;
		meeting = handed_local(t, at_first(offsetof(struct board, met)), 8);
		if (!mapped || !cores)
			meeting = NULL;
		row_run(t);
	}
	CHECK_IS(tern_unregister(t, board->region), 0);
	REQUIRE(tern_barrier(t) == 0);
	CHECK_IS(tern_close(t), 0);
}

static void rows_of_the_size(void)
{
	rows_run(ranks_size);
}

static void jobs_run(void)
{
	if (check_threads_watched())
		check_skip("the thread sanitizer forbids races, and here they are the subject");
	for (uint32_t n = 2; n <= ROLES; n++)
		ranks_run(n, rows_of_the_size);
}

TEST(no_outcome_is_seen_that_the_memory_model_forbids)
{
	jobs_run();
	with_file = true;
	jobs_run();
}

TEST(none_is_seen_over_udp)
{
	far_use(NULL);
	jobs_run();
}

/* By name alone, with 4 ranks or fewer, such as those of several machines. */
TEST(none_is_seen_by_the_ranks_of_a_launcher)
{
	if (!getenv("TERN_RANK"))
		check_skip("no launcher started it");
	rows_run(2);
}
