/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/run/hostfile.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

enum { FILE_MOST = 1 << 20 }; /* bytes: a thousand hosts take a tenth of it */

/* One line, cut apart: `name` and, if there is one, `slots=N`, which is written behind the name as --hosts has it. */
static int line_take(FILE *to, const char *path, unsigned line, char *text)
{
	static const char space[] = " \t\r";
	text[strcspn(text, "#")] = '\0';
	char *rest, *name = strtok_r(text, space, &rest), *slots = name ? strtok_r(NULL, space, &rest) : NULL;
	if (!name)
		return 0;
	if (strchr(name, ',') || (slots && strncmp(slots, "slots=", 6) != 0) ||
	    (slots && strtok_r(NULL, space, &rest)))
		return error_set(-EINVAL,
				 "%s, line %u: a host stands here by itself, as NAME, NAME:4 or NAME slots=4",
				 path, line);
	if (ftell(to) > 0)
		fputc(',', to);
	if (slots && strchr(name, ':') && *name != '[')
		fprintf(to, "[%s]:%s", name, slots + 6);
	else
		fprintf(to, "%s%s%s", name, slots ? ":" : "", slots ? slots + 6 : "");
	return 0;
}

int hostfile_take(const char *path, char *text, size_t len, char **list)
{
	size_t room;
	unsigned line = 1;
	int rc = 0;
	char *made = NULL;
	FILE *to = open_memstream(&made, &room);
	if (!to)
		return error_set(-ENOMEM, "%s: no memory", path);
	if (strlen(text) != len)
		rc = error_set(-EINVAL, "%s: this is no text", path);
	for (char *at; !rc && (at = strsep(&text, "\n")); line++)
		rc = line_take(to, path, line, at);
	if (!rc && ftell(to) <= 0)
		rc = error_set(-EINVAL, "%s: no host is in it", path);
	if (fclose(to) != 0 && !rc)
		rc = error_set(-ENOMEM, "%s: no memory", path);
	if (rc)
		free(made);
	else
		*list = made;
	return rc;
}

int hostfile_read(const char *path, char **list)
{
	FILE *f = fopen(path, "r");
	char *text = f ? malloc(FILE_MOST + 1) : NULL;
	size_t len = text ? fread(text, 1, FILE_MOST, f) : 0;
	int rc = 0;
	if (!f)
		rc = error_set(-EINVAL, "--hostfile %s: %s", path, strerror(errno));
	else if (!text)
		rc = error_set(-ENOMEM, "--hostfile %s: no memory", path);
	else if (ferror(f))
		rc = error_set(-EINVAL, "--hostfile %s: it cannot be read", path);
	else if (len == FILE_MOST)
		rc = error_set(-EINVAL, "--hostfile %s: it is too long for a list of hosts", path);
	if (!rc) {
		text[len] = '\0';
		rc = hostfile_take(path, text, len, list);
	}
	free(text);
	if (f)
		fclose(f);
	return rc;
}
