/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads a subcommand's options from its table of choices. */
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
		if (n < CHOICES_MOST)
			names[n++] = c->name;
	return option_refuse(
		"there is no option '%s', or it is not used so; did you mean %s? `tern %s "
		"--help` lists them%s",
		word, nearest_name(word, names, n), command,
		o->program ? ". If it belongs to the program, the program's name comes "
			     "first"
			   : "");
}

static bool choice_read(const struct choice *c, char *value)
{
	uint64_t number;
	if (c->flag)
		*c->flag = true;
	else if (c->text)
		*c->text = value;
	else if (c->number)
		return option_number(c->name, value, c->least, c->most, c->number);
	else if (c->small && !option_number(c->name, value, c->least, c->most, &number))
		return false;
	else if (c->small)
		*c->small = (uint32_t)number;
	else
		return c->each ? choice_each(c, value) : c->read(c->to, value);
	return true;
}

/* The choice that a word is: `--name`, `--name=value`, `-n` or `-nvalue`; its value, or NULL. */
static const struct choice *choice_of(const struct options *o, char *word, char **value)
{
	for (const struct choice *c = o->choice; c->name; c++) {
		size_t len = strlen(c->name);
		if (strncmp(word, c->name, len) != 0)
			continue;
		*value = !word[len] ? NULL : c->name[1] == '-' ? word + len + 1 : word + len;
		if (!word[len] ||
		    (choice_takes_value(c) && (c->name[1] != '-' || word[len] == '=')))
			return c;
	}
	return NULL;
}

/* One option, whose value may be the word at *next. */
static bool option_read(const struct choice *c, char *value, char **argv, int *next)
{
	if (choice_takes_value(c) && !c->optional && !value) {
		value = argv[*next];
		if (!value)
			return option_refuse(
				"%s needs a value after it; `tern %s --help` shows which", c->name,
				command);
		++*next;
	}
	return choice_read(c, value);
}

static bool is_option(const char *word)
{
	return *word == '-' && word[1];
}

bool options_read(const struct options *o, int argc, char **argv, int *status)
{
	int next = 1, words = 0;
	command = o->command;
	*status = 2;
	while (next < argc && (!o->program || is_option(argv[next]))) {
		char *word = argv[next++], *value = NULL;
		if (strcmp(word, "--") == 0)
			break;
		if (!is_option(word)) {
			argv[1 + words++] = word;
			continue;
		}
		const struct choice *c = choice_of(o, word, &value);
		if (strcmp(word, "-h") == 0 || strcmp(word, "--help") == 0) {
			fputs(o->help, stdout);
			*status = 0;
			return false;
		}
		if (!c)
			return option_unknown(o, word);
		if (!option_read(c, value, argv, &next))
			return false;
	}
	optind = next - words;
	memmove(argv + optind, argv + 1, (size_t)words * sizeof *argv);
	return true;
}
