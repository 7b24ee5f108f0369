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

enum { WORDS = 128 };

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
		r->error = error_set(-EINVAL,
				     "rank %u calls %.*s, rank %u %.*s: all members of a team make "
				     "the same calls in the same order, with arguments that agree",
				     rank[0], WORDS - 1, first, rank[i], WORDS - 1, other);
		return;
	}
}

void run_agree(struct run *r, const char *format, ...)
{
	tern_team *team = r->team;
	if (!team->checked)
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
