/* SPDX-License-Identifier: BSD-3-Clause */
/* The layer itself. */
#include "msg/msg.h"

#include <errno.h>

#include "base/error.h"
#include "base/memory.h"

static void msg_register(struct endpoint *e)
{
	MSG_MESSAGES(LAYER_ON)
	role_set(MSG_RTS, ROLE_RTS);
	role_set(MSG_DATA, ROLE_DATA);
	role_set(MSG_FIN, ROLE_SEND);
	role_set(MSG_CANCEL, ROLE_SEND);
	role_set(MSG_BLOCK, ROLE_SEND);
	role_set(MSG_TELL, ROLE_CTS);
}

static int msg_open(struct endpoint *e, void *state)
{
	struct msg *m = state;
	uint32_t size = e->t->size;
	m->e = e;
	m->window = e->main                     ? 0
		    : size < CELLS / CELLS_EACH ? CELLS_EACH
						: CELLS / size; /* none: send_check() refuses */
	for (uint32_t r = 0; r < size; r++)
		m->peer[r] = (struct msg_peer){ .cells = m->window,
						.rts = RTS_ALL / size > RTS_LEAST ? RTS_ALL / size
										  : RTS_LEAST };
	m->sends = (struct pool_of){ .bytes = sizeof(struct sending), .most = TERN_SENDS_MAX };
	m->recvs = (struct pool_of){ .bytes = sizeof(struct receiving), .most = TERN_RECVS_MAX };
	m->arrivals = (struct pool_of){ .bytes = sizeof(struct arrival),
					.most = RTS_ALL + CELLS + CELLS_HELD };
	m->cells = (struct pool_of){ .bytes = sizeof(struct cell), .most = CELLS + CELLS_HELD };
	m->copies = (struct pool_of){ .bytes = sizeof(struct list_copy),
				      .most = TERN_SENDS_MAX + TERN_RECVS_MAX };
	msg_register(e);
	return 0;
}

static void msg_close(void *state)
{
	struct msg *m = state;
	layout_free_copies(&m->copies);
	pool_free(&m->sends);
	pool_free(&m->recvs);
	pool_free(&m->arrivals);
	memory_free(m->recv_table.bucket);
	memory_free(m->by_key.bucket);
	memory_free(m->by_id.bucket);
	pool_free(&m->cells);
}

struct wait msg_wait(const char *call, const char *way, uint32_t rank, tern_id id)
{
	return (struct wait){
		.call = call, .way = way, .whom = rank + 1, .has_id = true, .id = id
	};
}

int msg_refuse(const struct msg *m, const struct pool_of *p, const char *what)
{
	return p->made < p->most ? error_set(-ENOMEM, "starting a %s: no memory", what)
				 : error_set(-EAGAIN, "rank %u has %u %ss already: wait for one",
					     m->e->t->rank, p->used, what);
}

void msg_busy(struct msg *m)
{
	layer_work(m->e, LAYER_MSG, m->clear.first || m->pulls.first || m->flush || m->lost);
}

int msg_lost_error(struct msg *m, uint32_t rank)
{
	struct net *net = m->e->site.peer[rank].net;
	return layer_lost(m->e, rank) ? net->ops->check(net, rank) : 0;
}

/* Whom a receive waits for: the rank it names or is being filled by; 0 if it can still come. */
static int recv_lost_error(struct msg *m, const struct receiving *r)
{
	uint32_t from = r->state == TERN_STATE_IN_PROGRESS ? r->got.src : r->node.rank;
	if (from != TERN_RANK_ANY)
		return msg_lost_error(m, from);
	int error = 0;
	for (uint32_t rank = 0; rank < m->e->t->size; rank++) {
		if (rank == m->e->t->rank)
			continue;
		error = msg_lost_error(m, rank);
		if (!error)
			return 0;
	}
	return error; /* nobody is left; alone, one can still send to oneself */
}

/* Ends what needs a rank that has left; true if some of it must be looked at again. */
static bool msg_end_lost(struct msg *m)
{
	bool waits = false;
	for (struct sending *s = NULL; (s = record_next(&m->sends, s));) {
		if (!layer_lost(m->e, s->node.rank))
			continue;
		uint32_t rank = s->node.rank;
		int error = s->moving.pending || s->sending ? 0 : msg_lost_error(m, rank);
		if (error) {
			send_over(m, s, error);
			msg_lost_error(
				m, rank); /* the sentence again: a cancel may have said another */
		}
		waits |= !error;
	}
	for (struct receiving *r = NULL; (r = record_next(&m->recvs, r));) {
		int error = recv_lost_error(m, r);
		if (error && !r->pull.pending)
			recv_over(m, r, error);
		waits |= error && r->pull.pending;
	}
	arrivals_forget(m);
	return waits;
}

static unsigned msg_progress(void *state)
{
	struct msg *m = state;
	if (m->moving ||
	    held(m->e)) /* a look after a send comes back here; under a hold nothing may wait */
		return 0;
	m->moving = true;
	if (m->lost)
		m->lost = msg_end_lost(m);
	if (m->flush) {
		m->flush = false;
		send_flush(m);
	}
	unsigned done = flow_progress(m);
	m->moving = false;
	msg_busy(m);
	return done;
}

static void msg_lost(void *state, uint32_t rank)
{
	struct msg *m = state;
	(void)rank;
	m->lost = true;
	msg_busy(m);
}

static bool msg_needs_anyone(const void *state, const tern_op *op)
{
	const struct msg *m = state;
	for (const struct receiving *r = NULL; (r = record_next(&m->recvs, r));)
		if (r->op == op && r->node.rank == TERN_RANK_ANY && r->state == TERN_STATE_IN_USE)
			return true;
	return false;
}

static void msg_report(const void *state, int fd)
{
	const struct msg *m = state;
	if (m->sends.used || m->recvs.used || m->arrivals.used)
		msg_print(m, fd);
}

LAYER_FITS(struct msg, MSG_TELL, MSG_HANDLERS_END);
const struct layer msg_layer = { .bytes = sizeof(struct msg),
				 .bytes_a_rank = sizeof(struct msg_peer),
				 .open = msg_open,
				 .close = msg_close,
				 .progress = msg_progress,
				 .lost = msg_lost,
				 .needs_anyone = msg_needs_anyone,
				 .report = msg_report };
