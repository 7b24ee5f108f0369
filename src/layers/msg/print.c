/* SPDX-License-Identifier: BSD-3-Clause */
/* Sends and receives under way as a person reads them, for a job that is stuck. */
#include <stdio.h>

#include "msg/msg.h"

static const char *state_text(enum tern_state s)
{
	return s == TERN_STATE_IN_USE ? "in use" : "in progress";
}

static void rank_text(char *text, size_t len, uint32_t rank)
{
	if (rank == TERN_RANK_ANY)
		snprintf(text, len, "any rank");
	else
		snprintf(text, len, "rank %u", rank);
}

static void send_print(int fd, uint32_t here, const struct sending *s)
{
	const char *waits = s->state != TERN_STATE_IN_USE ? ""
			    : s->announced                ? ", no receive has matched it"
					   : ", its receiver has no room to hear of it";
	dprintf(fd, "rank %u: send    %#llx to rank %u, %zu bytes: %s%s\n", here,
		(unsigned long long)s->node.id, s->node.rank, s->layout.total, state_text(s->state),
		waits);
}

static void recv_print(int fd, uint32_t here, const struct receiving *r)
{
	char from[32];
	rank_text(from, sizeof from,
		  r->state == TERN_STATE_IN_PROGRESS ? r->got.src : r->node.rank);
	dprintf(fd, "rank %u: receive %#llx from %s, %zu bytes: %s", here,
		(unsigned long long)r->node.id, from, r->layout.total, state_text(r->state));
	if (r->masked)
		dprintf(fd, ", under mask %#llx", (unsigned long long)(r->mask & ~TERN_ID_TEAM));
	dprintf(fd, "\n");
}

static void arrival_print(int fd, uint32_t here, const struct arrival *a)
{
	dprintf(fd,
		"rank %u: arrived %#llx from rank %u, %zu bytes: %s, no receive has matched it\n",
		here, (unsigned long long)a->key.id, a->src, a->len,
		a->whole ? "buffered" : "RTS received");
}

void msg_print(const struct msg *m, int fd)
{
	uint32_t here = m->e->t->rank;
	dprintf(fd, "rank %u: %u sends, %u receives, %u arrivals\n", here, m->sends.used,
		m->recvs.used, m->arrivals.used);
	for (const struct sending *s = NULL; (s = record_next(&m->sends, s));)
		send_print(fd, here, s);
	for (const struct receiving *r = NULL; (r = record_next(&m->recvs, r));)
		recv_print(fd, here, r);
	for (const struct arrival *a = NULL; (a = record_next(&m->arrivals, a));)
		arrival_print(fd, here, a);
}
