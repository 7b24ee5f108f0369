/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening a network of datagrams on its wire: see stack.h. */
#include "service/stack.h"

#include "job/exchange.h"
#include "net/fault/fault.h"
#include "service/service.h"

/* Where there are faults, damage must be noticed. */
static int stack_protect(struct packet_net *n, const struct stack *s)
{
	int rc = fault_wrap(n->wire, s->site->rank, s->site->size);
	if (rc)
		return rc;
	rc = guard_new(&n->keys, s->job, s->site, fault_in(n->wire) ? GUARD_AUTH : s->mode,
		       s->card->key);
	n->guard = &guard_ops;
	return rc ? rc : fault_judge(n->wire, guard_mode(n->keys) != GUARD_NONE);
}

int stack_open(struct packet_net *n, const struct net_ops *ops, const struct stack *s)
{
	int rc = stack_protect(n, s);
	if (rc)
		return rc;
	n->copies = guard_mode(n->keys) == GUARD_ENCRYPT;
	n->service_table = service_all;
	n->terms.protects = (uint8_t)guard_mode(n->keys);
	terms_write(&n->terms, s->local, ops->name, s->provider);
	rc = packet_open(n, ops, s->site, s->job, s->local);
	if (rc)
		return rc;
	s->card->terms = n->terms;
	/* Last: from now on, others may send. */
	card_publish(s->job, s->site->rank, s->card, s->card_bytes);
	return 0;
}
