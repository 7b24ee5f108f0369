/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The page is a template (page.html) with a mark where the events go that --json has. It needs no
 * flows, a third of their bytes: a send and its handler have the message's number.
 */
#include <string.h>

#include "tools/trace/show.h"

extern const char trace_page[];

#define MARK "/*TRACE*/"

void show_html(const struct merged *m, FILE *to)
{
	const char *mark = strstr(trace_page, MARK);
	fwrite(trace_page, 1, (size_t)(mark - trace_page), to);
	show_events(m, false, to);
	fputs(mark + strlen(MARK), to);
}
