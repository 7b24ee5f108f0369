/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/common/option.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

bool option_refuse(const char *command, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	fprintf(stderr, "tern %s: ", command);
	vfprintf(stderr, format, args);
	fputc('\n', stderr);
	va_end(args);
	return false;
}

bool option_number(const char *command, const char *option, const char *text, uint64_t least, uint64_t most,
		   uint64_t *value)
{
	char *end;
	errno = 0;
	unsigned long long n = strtoull(text, &end, 10);
	if (*text < '0' || *text > '9' || *end || errno || n < least || n > most)
		return option_refuse(command, "%s %s: a whole number is needed, %llu to %llu", option, text,
				     (unsigned long long)least, (unsigned long long)most);
	*value = n;
	return true;
}

bool options_walk(int argc, char **argv, const struct option *options, const char *help,
		  bool (*read)(void *wishes, int letter, const char *word), void *wishes, int *status)
{
	*status = 2;
	optind = 0; /* glibc: forget whatever was parsed before */
	for (;;) {
		const char *word = argv[optind ? optind : 1];
		int letter = getopt_long(argc, argv, "+:h", options, NULL);
		if (letter == 'h') {
			fputs(help, stdout);
			*status = 0;
			return false;
		}
		if (letter < 0)
			return true;
		if (!read(wishes, letter, word))
			return false;
	}
}
