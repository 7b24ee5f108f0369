/* SPDX-License-Identifier: BSD-3-Clause */
/* Reads the limits and the use of the memory cgroups above this process. */
#include "base/cgroup.h"

#include <stdbool.h>
#include <stdio.h>
#include <string.h>

#include "base/file.h"

/* Version 1 says that there is no limit with a number near 2^63. */
#define UNLIMITED (UINT64_C(1) << 60)

static const struct {
	const char *limit, *usage;
	/* Lines of memory.stat: what the kernel gives back before anybody is killed. */
	const char *cache[2];
} names[] = {
	[1] = { "memory.limit_in_bytes",
		"memory.usage_in_bytes",
		{ "total_inactive_file ", "total_active_file " } },
	[2] = { "memory.max", "memory.current", { "inactive_file ", "active_file " } },
};

static bool file_read(const char *folder, const char *name, char *text, size_t room)
{
	char path[CGROUP_PATH + 32];
	return snprintf(path, sizeof path, "%s/%s", folder, name) < (int)sizeof path &&
	       file_text(path, text, room);
}

/* `otherwise` if it does not begin with a number: "max". */
static uint64_t number_at(const char *text, uint64_t otherwise)
{
	uint64_t n = 0;
	if (*text < '0' || *text > '9')
		return otherwise;
	for (; *text >= '0' && *text <= '9'; text++)
		n = n > UINT64_MAX / 16 ? n : n * 10 + (uint64_t)(*text - '0');
	return n;
}

static uint64_t file_number(const char *folder, const char *name, uint64_t otherwise)
{
	char text[64];
	return file_read(folder, name, text, sizeof text) ? number_at(text, otherwise) : otherwise;
}

static uint64_t line_number(const char *text, const char *line)
{
	size_t len = strlen(line);
	for (const char *at = text; at; at = strchr(at, '\n')) {
		at += *at == '\n';
		if (strncmp(at, line, len) == 0)
			return number_at(at + len, 0);
	}
	return 0;
}

static uint64_t level_room(const struct cgroup *c, unsigned level)
{
	const char *folder = c->path[level];
	char stat[4096];
	uint64_t limit = file_number(folder, names[c->version].limit, UINT64_MAX);
	uint64_t used = file_number(folder, names[c->version].usage, 0), cache = 0;
	if (limit >= UNLIMITED)
		return UINT64_MAX;
	if (file_read(folder, "memory.stat", stat, sizeof stat))
		for (int i = 0; i < 2; i++)
			cache += line_number(stat, names[c->version].cache[i]);
	used = used > cache ? used - cache : 0;
	return limit > used ? limit - used : 0;
}

/* The level that has the least left; *room is that, UINT64_MAX without a limit. */
static unsigned level_least(const struct cgroup *c, uint64_t *room)
{
	unsigned level = 0;
	*room = UINT64_MAX;
	for (unsigned i = 0; i < c->levels; i++) {
		uint64_t left = level_room(c, i);
		level = left < *room ? i : level;
		*room = left < *room ? left : *room;
	}
	return level;
}

uint64_t cgroup_room(const struct cgroup *c)
{
	uint64_t room;
	level_least(c, &room);
	return room;
}

void cgroup_tell(const struct cgroup *c, char text[CGROUP_TEXT])
{
	uint64_t room;
	const char *folder = c->path[level_least(c, &room)];
	uint64_t limit = file_number(folder, names[c->version].limit, 0);
	snprintf(text, CGROUP_TEXT,
		 "the memory cgroup %s, whose limit (%s) is %llu KiB, has %llu KiB left", folder,
		 names[c->version].limit, (unsigned long long)limit >> 10,
		 (unsigned long long)room >> 10);
}

/* -- Finding them ----------------------------------------------------------------------------- */

/*
 * "4:memory:/a/b" or "0::/a/b": the path, without the slash that it may end with; false in another
 * line.
 */
static bool line_path(char *line, int version, char **path)
{
	const char *begin = version == 2 ? "0::" : ":memory:";
	char *at = strstr(line, begin);
	if (!at || (version == 2 && at != line))
		return false;
	*path = at + strlen(begin);
	(*path)[strcspn(*path, "\n")] = '\0';
	if (strcmp(*path, "/") == 0)
		**path = '\0';
	return true;
}

static void level_add(struct cgroup *c, const char *folder)
{
	if (c->levels == CGROUP_LEVELS || strlen(folder) >= CGROUP_PATH ||
	    file_number(folder, names[c->version].limit, UINT64_MAX) >= UNLIMITED)
		return;
	strcpy(c->path[c->levels++], folder);
}

/*
 * From the innermost outwards. In a container the path may be one that only its host has: then the
 * root counts.
 */
static void levels_find(struct cgroup *c, const char *root, char *path)
{
	char folder[2 * CGROUP_PATH];
	for (;;) {
		int len = snprintf(folder, sizeof folder, "%s%s", root, path);
		if (len > 0 && (size_t)len < sizeof folder)
			level_add(c, folder);
		char *last = strrchr(path, '/');
		if (!last)
			return;
		*last = '\0';
	}
}

void cgroup_find_in(struct cgroup *c, const char *file, const char *mount)
{
	char line[CGROUP_PATH + 32], root[CGROUP_PATH], *path;
	*c = (struct cgroup){ .version = 2 };
	for (int version = 1; version <= 2 && !c->levels; version++) {
		FILE *f = fopen(file, "re");
		if (!f)
			return;
		c->version = version;
		snprintf(root, sizeof root, "%s%s", mount, version == 1 ? "/memory" : "");
		while (fgets(line, sizeof line, f))
			if (line_path(line, version, &path))
				levels_find(c, root, path);
		fclose(f);
	}
}

void cgroup_find(struct cgroup *c)
{
	cgroup_find_in(c, "/proc/self/cgroup", "/sys/fs/cgroup");
}
