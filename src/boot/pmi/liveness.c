/* SPDX-License-Identifier: BSD-3-Clause */
/* Finds the processes of ranks on this node by the variables that they were given. */
#include "boot/pmi/liveness.h"

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

void rank_list_add(struct rank_list *n, uint32_t rank)
{
	if (n->len < sizeof n->text - 32)
		n->len += (size_t)snprintf(n->text + n->len, sizeof n->text - n->len,
					   n->count ? ", %u" : "%u", rank);
	else if (n->text[n->len - 1] != '.')
		n->len += (size_t)snprintf(n->text + n->len, sizeof n->text - n->len, ", ...");
	n->count++;
}

const char *rank_list_text(const struct rank_list *n, const char *behind)
{
	static _Thread_local char text[sizeof n->text + 16];
	snprintf(text, sizeof text, "rank%s %s%s", n->count == 1 ? "" : "s", n->text, behind);
	return text;
}

/* -- Processes ------------------------------------------------------------------------------ */

/* The number that stands there and nothing else; UINT32_MAX: none. */
static uint32_t whole_number(const char *text)
{
	char *end;
	unsigned long n = strtoul(text, &end, 10);
	return *text && !*end && n < UINT32_MAX ? (uint32_t)n : UINT32_MAX;
}

/* Which rank of this job a process is, by what it was started with. */
static uint32_t process_rank(const struct liveness *l, pid_t pid)
{
	char value[128];
	for (int i = 0; i < 2; i++)
		if (l->pmi->mark[i] &&
		    (!process_variable(pid, l->pmi->mark[i], value, sizeof value) ||
		     strcmp(value, l->mark[i]) != 0))
			return UINT32_MAX;
	if (!process_variable(pid, l->pmi->number, value, sizeof value))
		return UINT32_MAX;
	return whole_number(value);
}

static void liveness_find_processes(const struct liveness *l, bool *there)
{
	const struct dirent *e;
	DIR *d = opendir("/proc");
	while (d && (e = readdir(d))) {
		uint32_t pid = whole_number(e->d_name);
		uint32_t rank = pid == UINT32_MAX ? pid : process_rank(l, (pid_t)pid);
		if (rank < l->size)
			there[rank] = true;
	}
	if (d)
		closedir(d);
}

static bool liveness_expect(struct liveness *l, bool (*neighbours)(char *list, size_t len))
{
	char *list = malloc(LIST_MAX), *at = NULL;
	bool good = list && neighbours(list, LIST_MAX);
	for (char *word = good ? strtok_r(list, ",", &at) : NULL; word;
	     word = strtok_r(NULL, ",", &at)) {
		uint32_t rank = whole_number(word);
		good &= rank < l->size;
		if (rank < l->size)
			l->expected[rank] = true;
	}
	free(list);
	return good;
}

/* Ourselves we must see, and the launcher: whoever sees that sees whatever it started. */
bool liveness_open(struct liveness *l, const struct pmi_ops *pmi,
		   bool (*neighbours)(char *list, size_t len), uint32_t rank, uint32_t size)
{
	*l = (struct liveness){ .pmi = pmi, .size = size, .since = clock_ns() };
	l->expected = calloc(size, sizeof *l->expected);
	l->missed = calloc(size, sizeof *l->missed);
	if (!l->expected || !l->missed || !neighbours)
		return false;
	for (int i = 0; i < 2; i++)
		if (pmi->mark[i] &&
		    !process_variable(getpid(), pmi->mark[i], l->mark[i], sizeof l->mark[i]))
			return false;
	return process_rank(l, getpid()) == rank && process_launcher(pmi->number).pid &&
	       liveness_expect(l, neighbours);
}

/* Whether a rank has appeared that was not there before. */
static bool liveness_note(struct liveness *l, const bool *there)
{
	bool news = false;
	for (uint32_t i = 0; i < l->size; i++) {
		news |= there[i] && l->missed[i];
		l->missed[i] = there[i]                   ? 0
			       : l->missed[i] < UINT8_MAX ? l->missed[i] + 1
							  : UINT8_MAX;
	}
	return news;
}

int liveness_check(struct liveness *l)
{
	bool *there = calloc(l->size, sizeof *there);
	struct rank_list gone = { .count = 0 };
	if (!there)
		return 0;
	liveness_find_processes(l, there);
	if (liveness_note(l, there))
		l->since = clock_ns();
	free(there);
	if (clock_ns() - l->since < STEADY_S * UINT64_C(1000000000))
		return 0;
	for (uint32_t i = 0; i < l->size; i++)
		if (l->expected[i] && l->missed[i] >= MISSED)
			rank_list_add(&gone, i);
	return gone.count
		       ? error_set(-EOWNERDEAD, "%s ended before joining the others in tern_open()",
				   rank_list_text(&gone, ""))
		       : 0;
}

void liveness_close(struct liveness *l)
{
	free(l->expected);
	free(l->missed);
}
