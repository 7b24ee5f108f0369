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

#include "lib/far.h"
#include "litmus_steps.h"

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
	bool slow = *row_together(row) || row_is_long(row);
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
	REQUIRE(tern_team_all(t, &team) == 0);
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
	bool interrupts = tern_delivery_get(t) == TERN_DELIVERY_INTERRUPT;
	REQUIRE(tern_on(t, REQUEST, on_request) == 0 && tern_on(t, REPLY, on_reply) == 0);
	board_open(t);
	for (row = rows; row < rows + ROWS; row++) {
		roles = row_roles(row);
		if (roles < least || roles > tern_size(t))
			continue;
		if (interrupts && !mapped && row_has_workers(row)) /* there are none */
			continue;
		bool cores = sysconf(_SC_NPROCESSORS_ONLN) >= (long)roles;
		meeting = handed_local(t, at_first(offsetof(struct board, met)), 8);
		if (!mapped || !cores)
			meeting = NULL;
		row_run(t);
	}
	aside_end();
	CHECK_IS(tern_unregister(t, board->region), 0);
	REQUIRE(tern_team_free(team) == 0);
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
