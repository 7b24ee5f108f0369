/* SPDX-License-Identifier: BSD-3-Clause */
/* What the commands' readers of options have in common. */
#ifndef TERN_TOOLS_COMMON_OPTION_H
#define TERN_TOOLS_COMMON_OPTION_H

#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>

/* Says what is wrong, on standard error, after the command's name; false. */
__attribute__((format(printf, 2, 3))) bool option_refuse(const char *command, const char *format, ...);
/* A whole number from `least` to `most`; otherwise false, and refused. */
bool option_number(const char *command, const char *option, const char *text, uint64_t least, uint64_t most,
		   uint64_t *value);

/*
 * Reads the options one after another: `read` gets each letter, ':' where a value is missing and '?' for what is unknown,
 * with the word it stands for. False, with the status to end with, after --help or when something was refused.
 */
bool options_walk(int argc, char **argv, const struct option *options, const char *help,
		  bool (*read)(void *wishes, int letter, const char *word), void *wishes, int *status);

#endif
