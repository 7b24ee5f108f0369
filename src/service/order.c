/* SPDX-License-Identifier: BSD-3-Clause */
/* The service that keeps order: see order.h. */
#include <string.h>

#include "base/memory.h"
#include "base/threshold.h"
#include "service/order.h"

static void order_open(struct path *p)
{
	order_of(p)->next = order_of(p)->expected = (uint32_t)wrap_first(32, 0);
}

static void early_free(struct order *o, struct early *e)
{
	if (!e->bytes)
		return;
	memory_free(e->bytes);
	e->bytes = NULL;
	o->kept--;
}

static void order_close(struct path *p)
{
	for (unsigned i = 0; order_of(p)->kept; i++)
		early_free(order_of(p), &order_of(p)->held[i]);
}

static void order_down(struct path *p, struct packet *k)
{
	if (!k->again)
		k->flight.order = order_of(p)->next++;
	header_put(k, &k->flight.order, sizeof k->flight.order);
}

/* Passes up those which are the next, as far as they are taken. */
static void order_release(struct path *p, unsigned level)
{
	struct order *o = order_of(p);
	struct early *e;
	while ((e = &o->held[o->expected % ORDER_HELD])->here) {
		struct arrival a = { .at = e->bytes, .len = e->len };
		if (!service_up(p, &a, level))
			return;
		e->here = false;
		if (o->kept > ORDER_KEPT)
			early_free(o, e);
		o->holds--;
		o->expected++;
	}
}

/*
 * A copy of one that came early. What is behind it in the batch is worth more than this packet is
 * worth waiting for.
 */
static bool order_hold(struct path *p, const struct arrival *a, uint32_t number)
{
	struct early *e = &order_of(p)->held[number % ORDER_HELD];
	if (e->here)
		return true; /* it has come already */
	if (!e->bytes) { /* room for any: pages that a short one does not write take no memory */
		e->bytes = memory_new(1, DATAGRAM_MAX);
		if (!e->bytes)
			return false;
		order_of(p)->kept++;
	}
	e->here = true;
	if (a->len)
		memcpy(e->bytes, a->at, a->len);
	e->len = a->len;
	order_of(p)->holds++;
	packet_count(p->net, PULSE_PACKETS_EARLY, 1);
	return true;
}

static bool order_up(struct path *p, struct arrival *a, unsigned level)
{
	uint32_t number;
	if (!header_take(a, &number, sizeof number))
		return true;
	uint32_t ahead = number - order_of(p)->expected;
	if (ahead >= UINT32_MAX / 2)
		return true; /* long past */
	if (ahead >= ORDER_HELD)
		return false;
	if (ahead)
		return order_hold(p, a, number);
	if (!service_up(p, a, level))
		return false;
	order_of(p)->expected++;
	if (order_of(p)->holds)
		order_release(p, level);
	return true;
}

/* One that was refused above, though it was the next, is offered again. */
static uint64_t order_tick(struct path *p, uint64_t now)
{
	if (!order_of(p)->holds)
		return DUE_NEVER;
	order_release(p, p->net->flow ? 2 : 1);
	return order_of(p)->held[order_of(p)->expected % ORDER_HELD].here ? now : DUE_NEVER;
}

const struct service order_service = {
	.name = "order",
	.kind = SERVICE_ORDER,
	.bytes = sizeof(struct order),
	.open = order_open,
	.close = order_close,
	.down = order_down,
	.up = order_up,
	.tick = order_tick,
};
