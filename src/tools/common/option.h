/* SPDX-License-Identifier: BSD-3-Clause */
/* The reader of options that all subcommands have. */
#ifndef TERN_TOOLS_COMMON_OPTION_H
#define TERN_TOOLS_COMMON_OPTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <unistd.h> /* optind: after options_read(), the first word that is not an option */

enum { CHOICES_MOST = 24 };

/* An option. One of the pointers says what it is; none: --help. */
struct choice {
	const char *name; /* with its dashes: one before a letter, or before -np */
	bool *flag;       /* it takes no value */
	const char **text;
	uint64_t *number;                    /* a whole number from `least` to `most` */
	uint32_t *small;                     /* the same */
	bool (*read)(void *to, char *value); /* takes its value apart; false: it has been refused */
	bool (*each)(void *to, char *word);  /* the same for each word between commas */
	void *to;
	uint64_t least, most;
	bool optional; /* the value may be missing, and is then NULL */
};

/* A subcommand's options. */
struct options {
	const char *command, *help;
	const struct choice *choice; /* the last has no name */
	bool program; /* a program comes behind the options, with options of its own */
};

/*
 * Reads the options one after another, and moves other words behind them. False, with the status to
 * end with, after --help or when something was refused, which has been explained.
 */
bool options_read(const struct options *o, int argc, char **argv, int *status);

/* Refuses what is not one of the `n` names, with the nearest of them; false. */
bool option_unnamed(const char *option, const char *what, const char *word,
		    const char *const *names, size_t n);
/* Refuses a word that is not an option, and suggests one; false. */
bool option_unknown(const struct options *o, const char *word);
/* Says what is wrong, on standard error, after the name of the command being read; false. */
__attribute__((format(printf, 1, 2))) bool option_refuse(const char *format, ...);
/* A whole number from `least` to `most`; otherwise false, and refused. */
bool option_number(const char *option, const char *text, uint64_t least, uint64_t most,
		   uint64_t *value);

#endif
