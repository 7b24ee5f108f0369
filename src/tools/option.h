/* SPDX-License-Identifier: BSD-3-Clause */
/* What the commands' readers of options have in common. */
#ifndef TERN_TOOLS_OPTION_H
#define TERN_TOOLS_OPTION_H

#include <stdbool.h>
#include <stdint.h>

/* Says what is wrong, on standard error, after the command's name; false. */
__attribute__((format(printf, 2, 3))) bool option_refuse(const char *command, const char *format, ...);
/* A whole number from `least` to `most`; otherwise false, and refused. */
bool option_number(const char *command, const char *option, const char *text, uint64_t least, uint64_t most,
		   uint64_t *value);

#endif
