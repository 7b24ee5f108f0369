/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/roll.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/process.h"

enum {
	STEADY_S = 5, /* in which no process has appeared: the launcher has started all */
	MISSED =
		4, /* looks that have not found a process: one may come while it changes programs */
	LIST_MAX = 16 << 10,
};

/* -- Names ---------------------------------------------------------------------------------- */

void names_add(struct names *n, uint32_t rank)
{
	if (n->len < sizeof n->text - 32)
		n->len += (size_t)snprintf(n->text + n->len, sizeof n->text - n->len,
					   n->count ? ", %u" : "%u", rank);
	else if (n->len < sizeof n->text - 16)
		n->len += (size_t)snprintf(n->text + n->len, sizeof n->text - n->len, ", ...");
	n->count++;
}

const char *names_text(const struct names *n, const char *behind)
{
	static _Thread_local char text[sizeof n->text + 16];
	snprintf(text, sizeof text, "rank%s %s%s", n->count == 1 ? "" : "s", n->text, behind);
	return text;
}

/* -- Processes ------------------------------------------------------------------------------ */

/* The number that stands there and nothing else; UINT32_MAX: none. */
static uint32_t number_in(const char *text)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);
	return *text && !*end && n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

/* Which rank of this job a process is, by what it was started with. */
static uint32_t rank_of(const struct roll *r, pid_t pid)
{
	char value[128];
	for (int i = 0; i < 2; i++)
		if (r->pmi->mark[i] &&
		    (!process_variable(pid, r->pmi->mark[i], value, sizeof value) ||
		     strcmp(value, r->mark[i]) != 0))
			return UINT32_MAX;
	if (!process_variable(pid, r->pmi->number, value, sizeof value))
		return UINT32_MAX;
	return number_in(value);
}

static void roll_call(const struct roll *r, bool *there)
{
	const struct dirent *e;
	DIR *d = opendir("/proc");
	while (d && (e = readdir(d))) {
		uint32_t pid = number_in(e->d_name);
		uint32_t rank = pid == UINT32_MAX ? pid : rank_of(r, (pid_t)pid);
		if (rank < r->size)
			there[rank] = true;
	}
	if (d)
		closedir(d);
}

static bool roll_expect(struct roll *r, bool (*neighbours)(char *list, size_t len))
{
	char *list = malloc(LIST_MAX), *at = NULL;
	bool good = list && neighbours(list, LIST_MAX);
	for (char *word = good ? strtok_r(list, ",", &at) : NULL; word;
	     word = strtok_r(NULL, ",", &at)) {
		uint32_t rank = number_in(word);
		good &= rank < r->size;
		if (rank < r->size)
			r->expected[rank] = true;
	}
	free(list);
	return good;
}

/* Ourselves we must see, and the launcher: whoever sees that sees whatever it started. */
bool roll_open(struct roll *r, const struct pmi_ops *pmi,
	       bool (*neighbours)(char *list, size_t len), uint32_t rank, uint32_t size)
{
	*r = (struct roll){ .pmi = pmi, .size = size, .since = clock_ns() };
	r->expected = calloc(size, sizeof *r->expected);
	r->missed = calloc(size, sizeof *r->missed);
	if (!r->expected || !r->missed || !neighbours)
		return false;
	for (int i = 0; i < 2; i++)
		if (pmi->mark[i] &&
		    !process_variable(getpid(), pmi->mark[i], r->mark[i], sizeof r->mark[i]))
			return false;
	return rank_of(r, getpid()) == rank && process_launcher(pmi->number).pid &&
	       roll_expect(r, neighbours);
}

/* Whether a rank has appeared that was not there before. */
static bool roll_note(struct roll *r, const bool *there)
{
	bool news = false;
	for (uint32_t i = 0; i < r->size; i++) {
		news |= there[i] && r->missed[i];
		r->missed[i] = there[i]                   ? 0
			       : r->missed[i] < UINT8_MAX ? r->missed[i] + 1
							  : UINT8_MAX;
	}
	return news;
}

int roll_look(struct roll *r)
{
	bool *there = calloc(r->size, sizeof *there);
	struct names gone = { .count = 0 };
	if (!there)
		return 0;
	roll_call(r, there);
	if (roll_note(r, there))
		r->since = clock_ns();
	free(there);
	if (clock_ns() - r->since < STEADY_S * UINT64_C(1000000000))
		return 0;
	for (uint32_t i = 0; i < r->size; i++)
		if (r->expected[i] && r->missed[i] >= MISSED)
			names_add(&gone, i);
	return gone.count
		       ? error_set(-EOWNERDEAD, "%s ended before joining the others in tern_open()",
				   names_text(&gone, ""))
		       : 0;
}

void roll_close(struct roll *r)
{
	free(r->expected);
	free(r->missed);
}
