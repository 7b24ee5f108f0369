/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * With TERN_CHECK, each call on a team begins with an exchange: every member tells the others what
 * it calls, in words. Where two differ, the call fails at every member, and its sentence has both.
 * The exchange is the first thing in every call, so it meets that of the others whatever they call.
 */
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "coll/run.h"

enum { WORDS = 160 };

#define SAME_CALLS \
	"all members of a team make the same calls in the same order, with arguments that agree"

/* The call without "()", and without "_start": a handle makes no difference to the others. */
static int name_length(const char *name)
{
	const char *end = strstr(name, "_start()");
	return (int)(end ? (size_t)(end - name) : strcspn(name, "("));
}

/* From the words of all members, in their order. */
static void words_compare(struct run *r)
{
	const char *first = r->step[r->at].from;
	const uint32_t *rank = r->team->all.rank;
	for (uint32_t i = 1; i < r->team->all.n; i++) {
		const char *other = first + i * WORDS;
		if (strncmp(first, other, WORDS) == 0)
			continue;
		r->error = error_set(-EINVAL, "rank %u calls %.*s, rank %u %.*s: " SAME_CALLS,
				     rank[0], WORDS - 1, first, rank[i], WORDS - 1, other);
		return;
	}
}

void run_agree(struct run *r, const char *format, ...)
{
	tern_team *team = r->team;
	if (!team->maker.checked)
		return;
	char *mine = run_scratch(r, (team->all.n + 1) * WORDS), *all = mine + WORDS;
	if (!mine)
		return;
	va_list args;
	va_start(args, format);
	memset(mine, 0, WORDS); /* all of it is compared */
	int length = name_length(r->name);
	snprintf(mine, WORDS, "%.*s", length, r->name);
	vsnprintf(mine + length, (size_t)(WORDS - length), format, args);
	va_end(args);
	steps_allgather(r, mine, all, WORDS);
	step_call(r, words_compare, NULL, all, 0);
	team->ahead = 0; /* all have met, also where the calls before did not match */
}

/* -- Lengths that differ from member to member ------------------------------------------------- */

#define NO_PART UINT64_MAX

static uint64_t bytes_of(uint64_t length)
{
	return length == NO_PART ? 0 : length;
}

static const char *length_words(uint64_t length, char words[32])
{
	snprintf(words, 32, "%llu bytes", (unsigned long long)length);
	return length == NO_PART ? "no part" : words;
}

static void difference_tell(const struct run *r, uint32_t from, uint64_t sends, uint32_t to,
			    uint64_t expects)
{
	char out[32], in[32];
	int length = name_length(r->name);
	snprintf(r->step[r->at].to, WORDS,
		 "rank %u calls %.*s with %s for rank %u, rank %u %.*s with %s from rank %u", from,
		 length, r->name, length_words(sends, out), to, to, length, r->name,
		 length_words(expects, in), from);
}

/* The first one between this member and another. A part without bytes must be expected, too. */
static void difference_find(struct run *r)
{
	const struct varied *v = &r->varied;
	const uint32_t *rank = r->team->all.rank, me = rank[r->team->all.me];
	char *words = memset(r->step[r->at].to, 0, WORDS);
	for (uint32_t i = 0; i < r->team->all.n && !*words; i++) {
		struct lengths mine = v->mine[i], said = v->said[i];
		bool one_sided = (mine.sends == NO_PART) != (said.sends == NO_PART);
		if (bytes_of(said.sends) != bytes_of(mine.expects))
			difference_tell(r, rank[i], said.sends, me, mine.expects);
		else if (bytes_of(mine.sends) != bytes_of(said.expects) || one_sided)
			difference_tell(r, me, mine.sends, rank[i], said.expects);
	}
}

/* The first one that a member has found fails the call at all. */
static void differences_read(struct run *r)
{
	const char *words = r->step[r->at].from;
	for (uint32_t i = 0; i < r->team->all.n && !r->error; i++, words += WORDS)
		if (*words)
			r->error = error_set(-EINVAL, "%.*s: " SAME_CALLS, WORDS - 1, words);
}

void run_agree_lengths(struct run *r)
{
	struct varied *v = &r->varied;
	uint32_t n = r->team->all.n;
	char *mine = run_scratch(r, (n + 1) * WORDS);
	if (!mine)
		return;
	for (uint32_t i = 0; i < n; i++)
		if (!v->named[i])
			v->mine[i] = (struct lengths){ NO_PART, NO_PART, 0 };
	steps_alltoall(r, v->mine, v->said, sizeof *v->mine);
	step_call(r, difference_find, mine, NULL, 0);
	steps_allgather(r, mine, mine + WORDS, WORDS);
	step_call(r, differences_read, NULL, mine + WORDS, 0);
}

/* -- Calls on two teams, in another order ------------------------------------------------------ */

/* Whether nothing but members that have not made it keeps the call from its end. */
static bool call_whole(const tern_team *team, uint64_t call)
{
	return !team->gone && !team_fails(team, call);
}

/*
 * The sender waits in a call that this rank has not made. If this one waits for another call, it
 * answers with that; and whoever hears this, and has not made that call either, knows that neither
 * ever will. Both teams fail, at all of their members.
 */
void on_waits(tern *t, const tern_msg *m)
{
	struct coll *c = coll_of(t);
	const struct run *r = c->waits;
	tern_team *team = team_find(c, tern_msg_word(m, 0));
	uint64_t call = tern_msg_word(m, 1);
	uint32_t src = tern_msg_src(m);
	char mine[PULSE_TEXT];
	size_t len;
	const char *theirs = tern_msg_data(m, &len);
	c->handled++;
	/* Teams that are made by one call have one id, and no member in common. */
	if (!theirs || len != sizeof mine || !r || !team || team == r->team || team->calls > call ||
	    team_member(team, src) == team->all.n || threads_run(c->e) || !call_whole(team, call) ||
	    !call_whole(r->team, r->call))
		return;
	const uint64_t words[] = { r->team->id, r->call, team->id, call };
	run_words(r, mine, sizeof mine);
	if (tern_msg_count(m) == 2) {
		layer_reply(c->e, COLL_WAITS, mine, sizeof mine, 4, words);
		return;
	}
	if (tern_msg_word(m, 2) != r->team->id || tern_msg_word(m, 3) != r->call)
		return; /* it has come to its end since */
	bool first = t->rank < src;
	struct failure why = { t->rank, -EINVAL, "" };
	snprintf(why.words, sizeof why.words,
		 "rank %u calls %.*s, rank %u %.*s: all ranks make their calls on the teams that "
		 "they have in common in the same order",
		 first ? t->rank : src, PULSE_TEXT - 1, first ? mine : theirs,
		 first ? src : t->rank, PULSE_TEXT - 1, first ? theirs : mine);
	team_fail_as(team, call, &why);
	team_fail_tell(team, call);
	team_fail_as(r->team, r->call, &why);
	team_fail_tell(r->team, r->call);
}
