/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The line table of the debug information names, for each instruction, the line it was made
 * from; of inlined code the line in the function that was inlined. The narrowest annotation
 * around that line says what the instruction is for.
 */
#include "lab/cost/site.h"

#include <dwarf.h>
#include <elfutils/libdwfl.h>
#include <search.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct cost_map {
	Dwfl *dwfl;
	Dwfl_Module *self;
	void *sites; /* those asked for so far, a tree by address */
};

static char *no_path;
static const Dwfl_Callbacks callbacks = {
	.find_elf = dwfl_linux_proc_find_elf,
	.find_debuginfo = dwfl_standard_find_debuginfo,
	.debuginfo_path = &no_path,
};

void map_close(struct cost_map *m)
{
	if (!m)
		return;
	dwfl_end(m->dwfl);
	tdestroy(m->sites, free);
	free(m);
}

static bool map_load(struct cost_map *m)
{
	m->dwfl = dwfl_begin(&callbacks);
	if (!m->dwfl || dwfl_linux_proc_report(m->dwfl, getpid()) ||
	    dwfl_report_end(m->dwfl, NULL, NULL))
		return false;
	m->self = dwfl_addrmodule(m->dwfl, (Dwarf_Addr)(uintptr_t)map_load);
	return m->self != NULL;
}

/* -- Lines -------------------------------------------------------------------------------- */

/* gcc writes an index of addresses (.debug_aranges), which libdw goes by; clang does not. */
static const char *line_search(struct cost_map *m, uintptr_t at, int *number)
{
	Dwarf_Die *unit = NULL;
	Dwarf_Addr bias;
	while ((unit = dwfl_module_nextcu(m->self, unit, &bias)) != NULL) {
		Dwarf_Line *line = dwarf_haspc(unit, at - bias) == 1
					   ? dwarf_getsrc_die(unit, at - bias)
					   : NULL;
		if (line && dwarf_lineno(line, number) == 0)
			return dwarf_linesrc(line, NULL, NULL);
	}
	return NULL;
}

/* The file, and in *number the line, of an instruction of this program; NULL if there is none. */
static const char *line_of(struct cost_map *m, uintptr_t at, int *number)
{
	if (dwfl_addrmodule(m->dwfl, at) != m->self)
		return NULL;
	Dwfl_Line *line = dwfl_module_getsrc(m->self, at);
	return line ? dwfl_lineinfo(line, NULL, number, NULL, NULL, NULL)
		    : line_search(m, at, number);
}

struct cost_map *map_open(char *why, size_t len)
{
	struct cost_map *m = calloc(1, sizeof *m);
	if (!m || !map_load(m)) {
		snprintf(why, len, "this program's own file cannot be read: %s", dwfl_errmsg(-1));
		map_close(m);
		return NULL;
	}
	int number;
	if (!line_of(m, (uintptr_t)map_load, &number)) {
		snprintf(why, len,
			 "this command was built without debug information, which says what each "
			 "instruction is for; build it with -g, as the default build does");
		map_close(m);
		return NULL;
	}
	return m;
}

/* -- Annotations ----------------------------------------------------------------------------- */

static bool path_ends(const char *path, const char *end)
{
	size_t a = strlen(path), b = strlen(end);
	return a >= b && strcmp(path + a - b, end) == 0 && (a == b || path[a - b - 1] == '/');
}

static const struct cost_mark *mark_of(const char *path, unsigned line)
{
	const struct cost_mark *best = NULL;
	for (size_t i = 0; i < cost_marks_count; i++) {
		const struct cost_mark *k = &cost_marks[i];
		bool narrower = !best || k->last - k->first < best->last - best->first;
		if (line >= k->first && line <= k->last && narrower && path_ends(path, k->file))
			best = k;
	}
	return best;
}

static void site_annotate(struct cost_site *s, const char *path)
{
	const struct cost_mark *best = mark_of(path, s->line);
	s->file = best ? best->file : path;
	s->feature = best ? best->feature : COST_UNKNOWN;
	s->step = best ? best->step : COST_CONTROL;
}

/* -- Protocols ------------------------------------------------------------------------------- */

static const char *call_file(Dwarf_Die *unit, Dwarf_Die *scope)
{
	Dwarf_Attribute attribute;
	Dwarf_Files *files;
	Dwarf_Word index = 0;
	size_t n;
	if (dwarf_formudata(dwarf_attr(scope, DW_AT_call_file, &attribute), &index) ||
	    dwarf_getsrcfiles(unit, &files, &n) || index >= n)
		return NULL;
	return dwarf_filesrc(files, index, NULL, NULL);
}

static enum cost_feature protocol_line(const char *path, unsigned line)
{
	bool protocol = path && (strstr(path, "src/layers/sequence/") || strstr(path, "src/flow/"));
	const struct cost_mark *k = protocol ? mark_of(path, line) : NULL;
	return k ? k->feature : COST_UNKNOWN;
}

/* The innermost line of a protocol from which the instruction was put in line. */
static enum cost_feature protocol_call(struct cost_map *m, uintptr_t at)
{
	Dwarf_Addr bias;
	Dwarf_Die *unit = dwfl_module_addrdie(m->self, at, &bias), *inner = NULL, *scopes = NULL;
	/* The first one is where it lies; those around it are where that was put in line. */
	int n = unit ? dwarf_getscopes(unit, at - bias, &inner) : 0;
	n = n > 0 ? dwarf_getscopes_die(&inner[0], &scopes) : 0;
	enum cost_feature found = COST_UNKNOWN;
	for (int i = 0; i < n && found == COST_UNKNOWN; i++) {
		Dwarf_Attribute attribute;
		Dwarf_Word line = 0;
		if (dwarf_tag(&scopes[i]) == DW_TAG_inlined_subroutine &&
		    !dwarf_formudata(dwarf_attr(&scopes[i], DW_AT_call_line, &attribute), &line))
			found = protocol_line(call_file(unit, &scopes[i]), (unsigned)line);
	}
	free(inner);
	free(scopes);
	return found;
}

static struct cost_site site_find(struct cost_map *m, uintptr_t at)
{
	struct cost_site s = { .at = at,
			       .file = "",
			       .library = true,
			       .feature = COST_UNKNOWN,
			       .protocol = COST_UNKNOWN };
	int number = 0;
	const char *path = line_of(m, at, &number);
	if (!path)
		return s; /* the C library, or a stub that leads there */
	s.library = false;
	s.line = (unsigned)number;
	site_annotate(&s, path);
	s.protocol = protocol_line(path, s.line);
	if (s.protocol == COST_UNKNOWN)
		s.protocol = protocol_call(m, at);
	return s;
}

/* -- The sites asked for so far --------------------------------------------------------------- */

static int site_compare(const void *a, const void *b)
{
	uintptr_t x = ((const struct cost_site *)a)->at, y = ((const struct cost_site *)b)->at;
	return (x > y) - (x < y);
}

const struct cost_site *map_site(struct cost_map *m, uintptr_t at)
{
	const struct cost_site key = { .at = at };
	struct cost_site **found = tfind(&key, &m->sites, site_compare);
	if (found)
		return *found;
	struct cost_site *s = malloc(sizeof *s);
	if (!s)
		abort(); /* some megabytes in all */
	*s = site_find(m, at);
	found = tsearch(s, &m->sites, site_compare);
	if (!found)
		abort();
	return *found;
}
