/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: MODES */
/*
 * What is legal where: every call from every place, and the table of tern(7) held
 * against what the library does. What is refused must change nothing, so after
 * each refusal nothing has arrived anywhere and the next messages do.
 */
#include "legal_calls.h"

/* -- The places --------------------------------------------------------------------- */

enum place { PROGRAM, REQUEST, REPLY, DEFERRED, HOLD, CLAIM, TURN, PLACES };
static const char *const place_name[PLACES] = { "program", "request", "reply", "deferred",
						"hold",    "claim",   "turn" };

static void note_any(tern *t, const tern_msg *m)
{
	(void)t, (void)m;
	arrived++;
}

/* The code last: whoever sees it reads the sentence. */
static void call_now(tern *t, const tern_msg *m)
{
	int rc = calling(t, m);
	snprintf(sentence, sizeof sentence, "%s", rc < 0 ? tern_strerror(rc) : "");
	code = rc;
}

static void run_in_handler(tern *t, const tern_msg *m)
{
	call_now(t, m);
}

static void provoke_reply(tern *t, const tern_msg *m)
{
	CHECK_IS(tern_reply_data(t, m, PLACE_REPLY, "0123456789", 10), 0);
}

static void in_deferred(tern *t, void *arg)
{
	(void)arg;
	call_now(t, NULL);
}

static int in_turn(tern *t, void *arg)
{
	(void)arg;
	call_now(t, NULL);
	return 0;
}

static void keep_it(tern *t, const tern_msg *m)
{
	kept = handed_keep(t, m);
}

static void call_from(enum place place)
{
	switch (place) {
	case PROGRAM:
	case CLAIM:
		call_now(here, NULL);
		break;
	case REQUEST:
		CHECK_IS(tern_request_data(local[other], tern_rank(here), PLACE_REQUEST,
					   "0123456789", 10),
			 0);
		while (code == 1)
			tern_poll(here);
		break;
	case REPLY:
		CHECK_IS(tern_request(here, other, PROVOKE), 0);
		while (code == 1)
			local_settle();
		break;
	case DEFERRED:
		CHECK_IS(tern_defer(here, in_deferred, NULL), 0);
		while (code == 1)
			tern_poll(here);
		break;
	case TURN:
		CHECK_IS(tern_async_start(here, in_turn, NULL, &turn), 0);
		while (code == 1)
			tern_poll(here);
		break;
	default:
		tern_hold(here);
		call_now(here, NULL);
		if (calling != call_close)
			tern_release(here);
	}
}

static void job_open(uint32_t ranks)
{
	local_open(ranks);
	here = local[ranks - 1];
	other = 0;
	local_on(ASK, note_any);
	local_on(TELL, note_any);
	local_on(PLACE_REQUEST, run_in_handler);
	local_on(PLACE_REPLY, run_in_handler);
	local_on(PROVOKE, provoke_reply);
	local_on(KEEP, keep_it);
	CHECK_IS(tern_request_data(local[0], tern_rank(here), KEEP, "x", 1), 0);
	local_settle();
	claimed = handed_claim(here, other, 10);
	REQUIRE(kept && claimed);
	memcpy(claimed, "composed!", 10);
	code = 1;
	arrived = 0;
}

/* Everything still works: messages both ways, and the claim is as it was. */
static void check_unharmed(bool claim_open)
{
	local_settle();
	arrived = 0;
	for (uint32_t r = 0; r < local_size; r++) {
		CHECK_IS(tern_request(local[r], local_size - 1 - r, ASK, 1), 0);
		CHECK_IS(tern_request_data(local[r], local_size - 1 - r, ASK, "x", 1, 1, 2), 0);
	}
	local_settle();
	CHECK_IS(arrived, 2 * local_size);
	if (claim_open) {
		CHECK(memcmp(claimed, "composed!", 10) == 0);
		CHECK_IS(tern_commit(here, claimed, ASK), 0);
	}
	local_close();
}

/* The code of one cell, and the check that a refusal changed nothing. */
static int cell(int (*call)(tern *t, const tern_msg *m), enum place place, uint32_t ranks)
{
	job_open(ranks);
	calling = call;
	call_from(place);
	if (calling == call_close && code == 0) {
		local[local_size - 1] = NULL;
		local_close();
		return 0;
	}
	local_settle();
	if (code < 0)
		CHECK_IS(arrived, 0);
	bool used = code == 0 &&
		    (call == call_commit || call == call_commit_array || call == call_abandon);
	check_unharmed(!used);
	return code;
}

/* -- The table ---------------------------------------------------------------------- */

static const struct row {
	const char *name;
	int (*call)(tern *t, const tern_msg *m);
	int code[PLACES]; /* program, request, reply, deferred, hold, claim, turn */
} table[] = {
	{ "tern_request", call_request, { 0, -EPERM, -EPERM, 0, 0, 0, 0 } },
	{ "tern_request_array", call_request_array, { 0, -EPERM, -EPERM, 0, 0, 0, 0 } },
	{ "tern_request_data", call_request_data, { 0, -EPERM, -EPERM, 0, 0, 0, 0 } },
	{ "tern_claim", call_claim, { 0, -EPERM, -EPERM, 0, 0, 0, 0 } },
	{ "tern_commit", call_commit, { 0, -EPERM, -EPERM, 0, 0, 0, 0 } },
	{ "tern_claim_shorten", call_claim_shorten, { 0, 0, 0, 0, 0, 0, 0 } },
	{ "tern_abandon", call_abandon, { 0, 0, 0, 0, 0, 0, 0 } },
	{ "tern_reply", call_reply, { -EPERM, 0, -EPERM, -EPERM, -EPERM, -EPERM, -EPERM } },
	{ "tern_reply_array",
	  call_reply_array,
	  { -EPERM, 0, -EPERM, -EPERM, -EPERM, -EPERM, -EPERM } },
	{ "tern_reply_to", call_reply_to, { 0, -EPERM, -EPERM, 0, 0, 0, 0 } },
	{ "tern_reply_data",
	  call_reply_data,
	  { -EPERM, 0, -EPERM, -EPERM, -EPERM, -EPERM, -EPERM } },
	{ "tern_reply_claim",
	  call_reply_claim,
	  { -EPERM, 0, -EPERM, -EPERM, -EPERM, -EPERM, -EPERM } },
	{ "tern_reply_commit",
	  call_reply_commit,
	  { -EPERM, 0, -EPERM, -EPERM, -EPERM, -EPERM, -EPERM } },
	{ "tern_msg_keep", call_keep, { -EPERM, 0, 0, -EPERM, -EPERM, -EPERM, -EPERM } },
	{ "tern_msg_drop", call_drop, { 0, 0, 0, 0, 0, 0, 0 } },
	{ "tern_defer", call_defer, { 0, 0, 0, 0, 0, 0, 0 } },
	{ "tern_poll", call_poll, { 0, -EPERM, -EPERM, 0, 0, 0, 0 } },
	{ "tern_poll_requests", call_poll_requests, { 0, -EPERM, -EPERM, 0, 0, 0, 0 } },
	{ "tern_poll_replies", call_poll_replies, { 0, 0, -EPERM, 0, 0, 0, 0 } },
	{ "tern_wait", call_wait, { 0, -EPERM, -EPERM, 0, -EDEADLK, 0, -EDEADLK } },
	{ "tern_wait_for", call_wait_for, { 0, -EPERM, -EPERM, 0, -EDEADLK, 0, -EDEADLK } },
	{ "tern_wait_until", call_wait_until, { 0, -EPERM, -EPERM, 0, -EDEADLK, 0, -EDEADLK } },
	{ "tern_wait_until_for",
	  call_wait_until_for,
	  { 0, -EPERM, -EPERM, 0, -EDEADLK, 0, -EDEADLK } },
	{ "tern_barrier", call_barrier, { 0, -EPERM, -EPERM, 0, -EDEADLK, 0, -EDEADLK } },
	{ "tern_signal", call_signal, { 0, 0, 0, 0, 0, 0, 0 } },
	{ "tern_forgive", call_forgive, { 0, 0, 0, 0, 0, 0, 0 } },
	{ "tern_lost_on", call_on_lost, { 0, 0, 0, 0, 0, 0, 0 } },
	{ "tern_end_on", call_on_end, { 0, 0, 0, 0, 0, 0, 0 } },
	{ "tern_hold", call_hold, { 0, 0, 0, 0, 0, 0, 0 } },
	{ "tern_release", call_hold, { 0, 0, 0, 0, 0, 0, 0 } },
	{ "tern_on", call_on, { 0, 0, 0, 0, 0, 0, 0 } },
	{ "tern_delivery_get", call_delivery, { 0, 0, 0, 0, 0, 0, 0 } },
	{ "tern_delivery_set",
	  call_set_delivery,
	  { 0, -EPERM, -EPERM, -EDEADLK, -EDEADLK, 0, -EDEADLK } },
	{ "tern_close", call_close, { 0, -EPERM, -EPERM, -EPERM, 0, 0, -EPERM } },
	/* tern(7) has these in a sentence. */
	{ "tern_request_data_array", call_request_data_array, { 0, -EPERM, -EPERM, 0, 0, 0, 0 } },
	{ "tern_commit_array", call_commit_array, { 0, -EPERM, -EPERM, 0, 0, 0, 0 } },
	{ "tern_reply_data_array",
	  call_reply_data_array,
	  { -EPERM, 0, -EPERM, -EPERM, -EPERM, -EPERM, -EPERM } },
	{ "tern_reply_commit_array",
	  call_reply_commit_array,
	  { -EPERM, 0, -EPERM, -EPERM, -EPERM, -EPERM, -EPERM } },
};
enum { ROWS = sizeof table / sizeof *table, ROWS_IN_A_SENTENCE = 4 };

static const char *code_name(int rc)
{
	switch (rc) {
	case 0:
		return "yes";
	case -EPERM:
		return "EPERM";
	case -EDEADLK:
		return "EDEADLK";
	case -EBUSY:
		return "EBUSY";
	default:
		return "?";
	}
}

static void check_place(enum place place)
{
	for (int i = 0; i < ROWS; i++)
		for (uint32_t ranks = 1; ranks <= 2; ranks++) {
			if (table[i].call == call_barrier && ranks == 2 &&
			    table[i].code[place] == 0)
				continue; /* it would wait for the other rank, which this thread
					     plays too */
			int rc = cell(table[i].call, place, ranks);
			if (!CHECK_IS(rc > 0 ? 0 : rc, table[i].code[place]))
				printf("    %s in the place '%s', %u ranks\n", table[i].name,
				       place_name[place], ranks);
		}
}

TEST(the_program_may_do_all_but_reply_and_keep)
{
	check_place(PROGRAM);
}

TEST(a_request_handler_replies_once_and_polls_for_replies)
{
	check_place(REQUEST);
}

TEST(a_reply_handler_sends_nothing_and_does_not_poll)
{
	check_place(REPLY);
}

TEST(a_deferred_function_is_like_the_program_but_does_not_close)
{
	check_place(DEFERRED);
}

TEST(under_a_hold_everything_is_legal_but_waiting)
{
	check_place(HOLD);
}

TEST(between_claim_and_commit_everything_is_as_in_the_program)
{
	check_place(CLAIM);
}

TEST(a_turn_is_like_a_hold_and_does_not_close)
{
	check_place(TURN);
}

/*
 * The place that a sentence sends its reader to: the same call must be legal there, or, where it
 * names a request, a request.
 */
static void check_advice(const struct row *row, enum place from)
{
	bool deferred = strstr(sentence, "tern_defer()") != NULL;
	enum place to = deferred ? DEFERRED : PROGRAM;
	const struct row *advised =
		strstr(sentence, "request instead") || strstr(sentence, "as a request") ? table
											: row;
	if (!deferred && advised == row && !strstr(sentence, "in the program"))
		return;
	if (!CHECK_IS(advised->code[to], 0))
		printf("    %s in the place '%s': %s\n", row->name, place_name[from], sentence);
}

TEST(where_a_sentence_sends_its_reader_the_call_is_legal)
{
	unsigned advised = 0;
	for (int i = 0; i < ROWS; i++)
		for (enum place place = REQUEST; place <= REPLY; place++) {
			if (table[i].code[place] != -EPERM)
				continue;
			cell(table[i].call, place, 2);
			CHECK(*sentence);
			check_advice(&table[i], place);
			advised++;
		}
	CHECK(advised > 20);
}

/* "yes [1]", "once [3]", "0 [4]" and the like all say that it is legal. */
static bool cell_says(const char *text, int rc)
{
	bool refused = text[0] == 'E';
	const char *name = code_name(rc);
	return refused ? strncmp(text, name, strlen(name)) == 0 : rc == 0;
}

static void check_line(const struct row *row, char *line)
{
	char *rest = NULL, *field = strtok_r(line, "\t\n", &rest);
	for (int place = 0; place < PLACES; place++) {
		field = strtok_r(NULL, "\t\n", &rest);
		bool before_the_first_message = row->call == call_on && field && field[0] != 'E';
		if (!CHECK(field &&
			   (before_the_first_message || cell_says(field, row->code[place]))))
			printf("    tern(7) says '%s' of %s in the place '%s'\n",
			       field ? field : "nothing", row->name, place_name[place]);
	}
}

static const struct row *row_of(const char *line)
{
	for (int i = 0; i < ROWS; i++) {
		size_t len = strlen(table[i].name);
		if (strncmp(line, table[i].name, len) == 0 && line[len] == '\t')
			return &table[i];
	}
	return NULL;
}

/* mdoc's " Ta " becomes a tab. */
static void tabs_for_columns(char *line)
{
	for (char *ta; (ta = strstr(line, " Ta ")) != NULL;) {
		*ta = '\t';
		memmove(ta + 1, ta + 4, strlen(ta + 4) + 1);
	}
}

/* Calls that are legal everywhere stand below the table, in a list of their own. */
static const struct row *everywhere_row(char *line)
{
	char *end = strstr(line, " ,");
	if (!end)
		end = strstr(line, " .");
	line[end ? (size_t)(end - line) : strcspn(line, "\n")] = '\0';
	for (int i = 0; i < ROWS; i++)
		if (strcmp(line, table[i].name) == 0)
			return &table[i];
	return NULL;
}

static void check_everywhere(const struct row *row)
{
	for (int place = 0; place < PLACES; place++)
		if (!CHECK(row->code[place] == 0))
			printf("    tern(7) says that %s may be called everywhere, not so in the "
			       "place '%s'\n",
			       row->name, place_name[place]);
}

TEST(the_table_of_tern_7_is_this_one)
{
	char line[400];
	unsigned found = 0;
	bool everywhere = false;
	FILE *page = fopen("man/tern.7", "r");
	if (!page)
		check_skip("man/tern.7 is not here: run it from the top of the source");
	while (fgets(line, sizeof line, page)) {
		const struct row *row = NULL;
		if (strncmp(line, ".Pp", 3) == 0)
			everywhere = false;
		else if (strncmp(line, "These may be called from every", 30) == 0)
			everywhere = true;
		else if (everywhere && strncmp(line, ".Fn ", 4) == 0 &&
			 (row = everywhere_row(line + 4)))
			check_everywhere(row);
		tabs_for_columns(line);
		if (strncmp(line, ".It ", 4) == 0 && (row = row_of(line + 4)))
			check_line(row, line + 4);
		found += row != NULL;
	}
	fclose(page);
	CHECK_IS(found, ROWS - ROWS_IN_A_SENTENCE);
}

TEST(the_table_for_readers)
{
	printf("    %-24s", "");
	for (int place = 0; place < PLACES; place++)
		printf("%-9s", place_name[place]);
	for (int i = 0; i < ROWS; i++) {
		printf("\n    %-24s", table[i].name);
		for (int place = 0; place < PLACES; place++)
			printf("%-9s", code_name(table[i].code[place]));
	}
	printf("\n");
}
