/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/fault/plan.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

enum kind { RATE, MICROSECONDS, SEED };

static const struct word {
	const char *name;
	enum kind kind;
	size_t at;
} words[] = {
	{ "drop", RATE, offsetof(struct plan, drop) },
	{ "duplicate", RATE, offsetof(struct plan, duplicate) },
	{ "reorder", RATE, offsetof(struct plan, reorder) },
	{ "delay", RATE, offsetof(struct plan, delay) },
	{ "corrupt", RATE, offsetof(struct plan, corrupt) },
	{ "truncate", RATE, offsetof(struct plan, truncate) },
	{ "partition", RATE, offsetof(struct plan, partition) },
	{ "late", MICROSECONDS, offsetof(struct plan, late_ns) },
	{ "partition-time", MICROSECONDS, offsetof(struct plan, partition_ns) },
	{ "slow", MICROSECONDS, offsetof(struct plan, slow_ns) },
	{ "seed", SEED, offsetof(struct plan, seed) },
};
enum { WORDS = sizeof words / sizeof *words };

static const struct word *word_named(const char *text, size_t len)
{
	for (unsigned i = 0; i < WORDS; i++)
		if (strlen(words[i].name) == len && memcmp(words[i].name, text, len) == 0)
			return &words[i];
	return NULL;
}

static bool value_set(struct plan *p, const struct word *w, const char *text, char **end)
{
	void *to = (char *)p + w->at;
	errno = 0;
	if (w->kind == SEED) {
		*(uint64_t *)to = strtoull(text, end, 0);
		p->seeded = true;
		return *end != text && !errno;
	}
	double value = strtod(text, end);
	if (*end == text || !(value >= 0) || value > (w->kind == RATE ? 1 : 1e9))
		return false;
	if (w->kind == RATE)
		*(uint32_t *)to = value < 1 ? (uint32_t)(value * 4294967296.0) : UINT32_MAX;
	else
		*(uint64_t *)to = (uint64_t)(value * 1000);
	return true;
}

/* `text` is what was not understood, and whatever follows. */
static int plan_refuse(const struct word *w, const char *text)
{
	int len = (int)strcspn(text, ",");
	if (!w)
		return error_set(
			-EINVAL,
			"TERN_FAULT has '%.*s'; there are drop, duplicate, reorder, delay, corrupt, "
			"truncate and partition (of 0 to 1), late, partition-time and slow (in "
			"microseconds), and seed, each with = and a number, and commas between them",
			len, text);
	return error_set(-EINVAL, "TERN_FAULT has '%.*s'; %s is %s, as in %s", len, text, w->name,
			 w->kind == RATE           ? "the part of all packets, 0 to 1"
			 : w->kind == MICROSECONDS ? "a time in microseconds, 0 to 1e9"
						   : "a whole number",
			 w->kind == RATE           ? "drop=0.01,reorder=0.05"
			 : w->kind == MICROSECONDS ? "delay=0.1,late=500"
						   : "drop=0.01,seed=42");
}

int plan_read(struct plan *p, const char *text)
{
	*p = (struct plan){ .late_ns = 1000000, .partition_ns = 20000000 };
	while (*text) {
		size_t len = strcspn(text, "=,");
		const struct word *w = word_named(text, len);
		char *end = NULL;
		if (!w || text[len] != '=' || !value_set(p, w, text + len + 1, &end) ||
		    (*end && *end != ','))
			return plan_refuse(w, text);
		text = *end ? end + 1 : end;
	}
	return 0;
}

int plan_judge(const struct plan *p, bool checked)
{
	if (checked || (!p->corrupt && !p->truncate))
		return 0;
	return error_set(
		-EINVAL,
		"TERN_FAULT has %s, but TERN_PROTECT is none, so nobody would notice, and wrong data would "
		"be delivered: take TERN_PROTECT=auth",
		p->corrupt ? "corrupt" : "truncate");
}
