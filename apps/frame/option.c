/* SPDX-License-Identifier: BSD-3-Clause */
/* The options of a program: those of every program, and its own, whose values may be lists. */
#include "frame/app.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { OPTIONS_MOST = 12, VALUES_MOST = 16 };

/* What was given for each option of the program, and how many. */
static uint64_t values[OPTIONS_MOST][VALUES_MOST];
static unsigned counts[OPTIONS_MOST];

static void help_option(const char *name, const char *value, const char *what)
{
	printf("  --%s %s%*s%s\n", name, value,
	       (int)(17 - strlen(name) - strlen(value)) > 0
		       ? (int)(17 - strlen(name) - strlen(value))
		       : 1,
	       "", what);
}

static void help(void)
{
	char what[160];
	printf("usage: %s [OPTIONS]\n\n%s\n\n", app.name, app.what);
	for (const struct app_option *o = app.options; o->name; o++) {
		if (o->text)
			snprintf(what, sizeof what, "%s", o->what);
		else
			snprintf(what, sizeof what, "%s (%llu)", o->what,
				 (unsigned long long)*o->value);
		help_option(o->name, o->text ? "FILE" : "N", what);
	}
	puts("\nA number may be a list, such as 64,128: each is played.\n");
	help_option("variant", "LIST", "only these, of those below");
	help_option("repeat", "N", "rounds of each variant (5)");
	help_option("logp", "FILE", "predict times from what `tern logp --profile FILE` wrote");
	help_option("json", "", "an array on standard output, and nothing else");
	help_option("plain", "", "no progress, on a terminal too");
	help_option("progress", "", "progress, though standard error is no terminal");
	help_option("spoil", "", "count the first value as wrong, to see what is said then");
	help_option("help", "", "print this");
	puts("\nvariants:");
	for (const struct app_variant *v = app.variants; v->name; v++)
		printf("  %-19s %s\n", v->name, v->what);
	printf("\nexample:\n  tern run -n 4 %s --repeat 11\n", app.name);
}

static void read_values(struct app_job *j, const struct app_option *o, unsigned place,
			const char *text)
{
	const char *at = text;
	counts[place] = 0;
	for (;; at++) {
		char *end;
		errno = 0;
		unsigned long long v = strtoull(at, &end, 10);
		if (*at < '0' || *at > '9' || errno || (*end && *end != ',') || v < o->least ||
		    v > o->most)
			app_refuse(j,
				   "--%s is '%s'; it must be a whole number from %llu to %llu, "
				   "or a list of them",
				   o->name, text, (unsigned long long)o->least,
				   (unsigned long long)o->most);
		if (counts[place] == VALUES_MOST)
			app_refuse(j, "--%s has more than %d values", o->name, VALUES_MOST);
		values[place][counts[place]++] = v;
		at = end;
		if (!*at)
			return;
	}
}

/* Whether one of the words between commas is this one. */
static int list_has(const char *list, const char *word, size_t len)
{
	for (;; list++) {
		size_t n = strcspn(list, ",");
		if (n == len && strncmp(list, word, n) == 0)
			return 1;
		list += n;
		if (!*list)
			return 0;
	}
}

static void check_variants(struct app_job *j, const char *list)
{
	for (const char *at = list;; at++) {
		size_t n = strcspn(at, ",");
		const struct app_variant *v = app.variants;
		while (v->name && !(strlen(v->name) == n && strncmp(v->name, at, n) == 0))
			v++;
		if (!v->name)
			app_refuse(j, "--variant: there is no '%.*s'; --help lists the variants",
				   (int)n, at);
		at += n;
		if (!*at)
			return;
	}
}

int app_variant_wanted(const struct app_settings *s, unsigned variant)
{
	const char *name = app.variants[variant].name;
	return !s->variants || list_has(s->variants, name, strlen(name));
}

static int is_setting(const char *name)
{
	return strcmp(name, "variant") == 0 || strcmp(name, "logp") == 0 ||
	       strcmp(name, "repeat") == 0;
}

/* A setting of every program. */
static void take_setting(struct app_job *j, struct app_settings *s, const char *name,
			 const char *value)
{
	static const struct app_option repeat = { "repeat", NULL, NULL, 1, 1000, NULL };
	if (strcmp(name, "variant") == 0) {
		check_variants(j, s->variants = value);
	} else if (strcmp(name, "logp") == 0) {
		s->logp = value;
	} else {
		read_values(j, &repeat, OPTIONS_MOST - 1, value);
		if (counts[OPTIONS_MOST - 1] > 1)
			app_refuse(j, "--repeat takes one number");
		s->repeat = values[OPTIONS_MOST - 1][0];
	}
}

static int take_flag(struct app_settings *s, const char *name)
{
	int *flag = strcmp(name, "json") == 0       ? &s->json
		    : strcmp(name, "plain") == 0    ? &s->plain
		    : strcmp(name, "progress") == 0 ? &s->progress
		    : strcmp(name, "spoil") == 0    ? &s->spoil
						    : NULL;
	if (flag)
		*flag = 1;
	return flag != NULL;
}

static void take(struct app_job *j, struct app_settings *s, const char *name, const char *value)
{
	unsigned place = 0;
	const struct app_option *o = app.options;
	while (o->name && strcmp(o->name, name) != 0)
		o++, place++;
	if (!o->name && !is_setting(name))
		app_refuse(j, "there is no option '--%s'; --help lists them", name);
	if (!value)
		app_refuse(j, "--%s needs a value", name);
	if (o->name && o->text)
		*o->text = value;
	else if (o->name)
		read_values(j, o, place, value);
	else
		take_setting(j, s, name, value);
}

int app_options_read(struct app_job *j, int argc, char **argv, struct app_settings *s)
{
	static char name[64];
	for (int i = 1; i < argc; i++) {
		if (strncmp(argv[i], "--", 2) != 0)
			app_refuse(j, "'%s' is no option; --help lists them", argv[i]);
		char *equal = strchr(argv[i], '=');
		size_t n = equal ? (size_t)(equal - argv[i] - 2) : strlen(argv[i] + 2);
		snprintf(name, sizeof name, "%.*s", (int)n, argv[i] + 2);
		if (strcmp(name, "help") == 0) {
			if (j->rank == 0)
				help();
			return 1;
		}
		if (!equal && take_flag(s, name))
			continue;
		take(j, s, name, equal ? equal + 1 : i + 1 < argc ? argv[++i] : NULL);
	}
	return 0;
}

int app_options_set(uint64_t i)
{
	unsigned place = 0;
	for (const struct app_option *o = app.options; o->name; o++, place++) {
		if (!counts[place])
			continue;
		*o->value = values[place][i % counts[place]];
		i /= counts[place];
	}
	return i == 0;
}
