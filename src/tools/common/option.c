/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads a subcommand's options from its table of choices, by getopt_long(). */
#include "tools/common/option.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"

static const char *command; /* whose options are read */

bool option_refuse(const char *format, ...)
{
	va_list args;
	va_start(args, format);
	fprintf(stderr, "tern %s: ", command);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	return false;
}

bool option_number(const char *option, const char *text, uint64_t least, uint64_t most,
		   uint64_t *value)
{
	char *end;
	errno = 0;
	unsigned long long n = strtoull(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno || n < least || n > most)
		return option_refuse("%s %s: a whole number is needed, %llu to %llu", option, text,
				     (unsigned long long)least, (unsigned long long)most);
	*value = n;
	return true;
}

bool option_unnamed(const char *option, const char *what, const char *word,
		    const char *const *names, size_t n)
{
	return option_refuse(
		"%s %s: there is no such %s; did you mean %s? `tern %s --list` names them all",
		option, word, what, nearest_name(word, names, n), command);
}

static bool choice_takes_value(const struct choice *c)
{
	return c->text || c->number || c->small || c->read || c->each;
}

static bool choice_each(const struct choice *c, char *text)
{
	char *word;
	while ((word = strsep(&text, ",")) != NULL)
		if (!c->each(c->to, word))
			return false;
	return true;
}

bool option_unknown(const struct options *o, const char *word)
{
	const char *names[CHOICES_MOST];
	int n = 0;
	for (const struct choice *c = o->choice; c->name; c++)
		if (!c->hidden && n < CHOICES_MOST)
			names[n++] = c->name;
	return option_refuse(
		"there is no option '%s', or it is not used so; did you mean %s? `tern %s "
		"--help` lists them%s",
		word, nearest_name(word, names, n), command,
		o->program ? ". If it belongs to the program, the program's name comes "
			     "first"
			   : "");
}

static bool choice_read(const struct choice *c)
{
	uint64_t number;
	if (c->flag)
		*c->flag = true;
	else if (c->text)
		*c->text = optarg;
	else if (c->number)
		return option_number(c->name, optarg, c->least, c->most, c->number);
	else if (c->small && !option_number(c->name, optarg, c->least, c->most, &number))
		return false;
	else if (c->small)
		*c->small = (uint32_t)number;
	else
		return c->each ? choice_each(c, optarg) : c->read(c->to, optarg);
	return true;
}

/* What getopt_long() wants: the long options, whose values are their places, and the short ones. */
static void choices_list(const struct options *o, struct option *list, char *shorts)
{
	int n = 0;
	shorts += sprintf(shorts, "%s:h", o->program ? "+" : "");
	for (int i = 0; o->choice[i].name && n < CHOICES_MOST - 1; i++) {
		const struct choice *c = &o->choice[i];
		if (c->name[1] != '-')
			shorts += sprintf(shorts, "%c:", c->name[1]);
		else
			list[n++] =
				(struct option){ c->name + 2,
						 c->optional             ? optional_argument
						 : choice_takes_value(c) ? required_argument
									 : no_argument,
						 NULL, strcmp(c->name, "--help") ? 256 + i : 'h' };
	}
	list[n] = (struct option){ 0 };
}

static const struct choice *choice_of(const struct options *o, int letter)
{
	if (letter >= 256)
		return &o->choice[letter - 256];
	for (const struct choice *c = o->choice; c->name; c++)
		if (c->name[1] == letter && letter != '-')
			return c;
	return NULL;
}

static bool option_read(const struct options *o, int letter, const char *word)
{
	const struct choice *c = choice_of(o, letter);
	if (c)
		return choice_read(c);
	if (letter == ':')
		return option_refuse("%s needs a value after it; `tern %s --help` shows which",
				     word, o->command);
	return option_unknown(o, word);
}

bool options_read(const struct options *o, int argc, char **argv, int *status)
{
	struct option list[CHOICES_MOST];
	char shorts[2 * CHOICES_MOST];
	choices_list(o, list, shorts);
	command = o->command;
	*status = 2;
	optind = 0; /* glibc: forget whatever was parsed before */
	for (;;) {
		const char *word = argv[optind ? optind : 1];
		int letter = getopt_long(argc, argv, shorts, list, NULL);
		if (letter == 'h') {
			fputs(o->help, stdout);
			*status = 0;
			return false;
		}
		if (letter < 0)
			return true;
		if (!o->program) /* other words may have been moved behind it */
			word = *argv[optind - 1] == '-' || !argv[optind] ? argv[optind - 1]
									 : argv[optind];
		if (!option_read(o, letter, word))
			return false;
	}
}
