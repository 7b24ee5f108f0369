/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/guard/mode.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/setting.h"

int guard_mode_read(enum guard_mode *mode)
{
	static const char *const names[] = { "none", "auth", "encrypt" };
	const char *text = setting_text(SETTING_PROTECT);
	if (strcmp(text, "auto") == 0)
		return 0;
	for (unsigned i = 0; i < sizeof names / sizeof *names; i++)
		if (strcmp(text, names[i]) == 0) {
			*mode = (enum guard_mode)i;
			return 0;
		}
	return error_set(-EINVAL, "TERN_PROTECT is '%s'; it can be auto, none, auth or encrypt",
			 text);
}

/* cost: protection control */
