/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads LogP parameters from a file that `tern logp --profile` wrote. */
#include "frame/app.h"

#include <stdio.h>
#include <string.h>

/* Those of messages of two words; nanoseconds. */
static const struct {
	const char *key;
	size_t at;
} keys[] = {
	{ "words.2.o_s", offsetof(struct app_logp, overhead_send) },
	{ "words.2.L", offsetof(struct app_logp, latency) },
	{ "words.2.o_r", offsetof(struct app_logp, overhead_receive) },
	{ "words.2.g", offsetof(struct app_logp, gap) },
	{ "G", offsetof(struct app_logp, byte) },
};

enum { KEYS = sizeof keys / sizeof *keys, ALL_FOUND = (1 << KEYS) - 1 };

static unsigned take_line(const char *line, struct app_logp *logp)
{
	char key[64];
	double value;
	if (sscanf(line, " %63[^ =] = %lf", key, &value) != 2)
		return 0;
	for (unsigned i = 0; i < KEYS; i++)
		if (strcmp(key, keys[i].key) == 0) {
			*(double *)((char *)logp + keys[i].at) = value * 1e-9;
			return 1u << i;
		}
	return 0;
}

const char *app_logp_read(const char *path, struct app_logp *logp)
{
	char line[256];
	unsigned found = 0;
	FILE *from = fopen(path, "r");
	if (!from)
		return "it cannot be read";
	while (fgets(line, sizeof line, from))
		found |= take_line(line, logp);
	fclose(from);
	return found == ALL_FOUND ? NULL : "it lacks words.2.o_s, L, o_r or g, or G";
}
