/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One of the launcher's own outputs, written without ever blocking the launcher
 * and so that a line belongs to one rank.
 */
#ifndef TERN_TOOLS_RUN_OUTLET_H
#define TERN_TOOLS_RUN_OUTLET_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define OUTLET_NOBODY UINT32_MAX         /* no rank: no line is begun */
#define OUTLET_LAUNCHER (UINT32_MAX - 1) /* writes without a tag */

struct outlet {
	int fd;
	bool careful;   /* the descriptor may block: write only what poll() promises to take */
	int tag_digits; /* 0: no tags */
	uint32_t begun; /* the rank whose line has no newline yet, or OUTLET_NOBODY */
	char *text;     /* what is still to be written: text[at .. len) */
	size_t at, len, room;
	int error; /* errno of the write that failed: from then on, text is dropped */
};

void outlet_open(struct outlet *o, int fd, int tag_digits);
void outlet_close(struct outlet *o);

/* Takes text of `rank`, as many lines as it has. Another rank's unfinished line is finished first. */
void outlet_put(struct outlet *o, uint32_t rank, const char *text, size_t len);

/* Writes what can be written now; false when something is left. */
bool outlet_flush(struct outlet *o);

static inline size_t outlet_backlog(const struct outlet *o)
{
	return o->len - o->at;
}

#endif
