/* SPDX-License-Identifier: BSD-3-Clause */
/* Frees what a command keeps until its process ends. */
#ifndef TERN_TESTS_TOOLS_FREE_H
#define TERN_TESTS_TOOLS_FREE_H

#include "tools/run/hosts.h"
#include "tools/trace/merge.h"

/* Also if it could not be opened. */
static inline void hosts_close(struct hosts *h)
{
	for (uint32_t i = 0; h->host && i < h->count; i++)
		wire_close(&h->host[i].wire);
	free(h->text);
	free(h->shell_text);
	free(h->host);
	free(h->shell);
	free(h->quoted);
}

static inline void track_free(struct track *t)
{
	free(t->record);
	free(t->name);
}

static inline void merge_free(struct merged *m)
{
	free(m->offset);
	free(m->first_span);
	free(m->span);
	free(m->message);
	free(m->call);
}

#endif
