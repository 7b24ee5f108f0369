/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A rank may send before its card has come to us: the launcher carries cards, and may be slower
 * than the network. Who sent it cannot be known then. Where things are sent again that is a loss
 * like any other; on a wire that is reliable nobody would, so it is kept until the card is there.
 *
 * What a rank sends is taken in the order in which it came: while something of it is kept, all that
 * follows is kept, too, and all of it is taken in at once.
 */
#include <string.h>

#include "base/memory.h"
#include "net/packet/packet.h"

/*
 * More than the credits of several ranks. What exceeds it is dropped; if it came from a rank, the
 * gap shows in what that rank sends later, see silence_missed().
 */
#define UNMET_MOST ((size_t)256 << 20)

struct unmet {
	struct unmet *next;
	uint32_t rank, from;
	size_t len;
	unsigned char bytes[];
};

bool unmet_keeps(const struct packet_net *n, uint32_t rank)
{
	for (const struct unmet *u = n->unmets; u; u = u->next)
		if (u->rank == rank)
			return true;
	return false;
}

void unmet_keep(struct packet_net *n, uint32_t rank, const struct datagram *d)
{
	bool fits = n->confirms && n->unmet_bytes + d->len <= UNMET_MOST;
	struct unmet *u = fits ? memory_new(1, sizeof *u + d->len) : NULL;
	if (!u) {
		packet_count(n, PULSE_PACKETS_FOREIGN, 1);
		return;
	}
	u->rank = rank;
	u->from = d->from;
	u->len = d->len;
	memcpy(u->bytes, d->bytes, d->len);
	n->unmet_bytes += d->len;
	struct unmet **at = &n->unmets;
	while (*at)
		at = &(*at)->next;
	*at = u;
}

static bool unmet_ready(struct packet_net *n)
{
	for (const struct unmet *u = n->unmets; u; u = u->next)
		if (n->guard->open(n, u->rank))
			return true;
	return false;
}

/* All are offered again in their order: who still has no card is kept again. */
void unmet_review(struct packet_net *n)
{
	struct unmet *all = unmet_ready(n) ? n->unmets : NULL, *u;
	if (!all)
		return;
	n->unmets = NULL;
	n->unmet_bytes = 0;
	while ((u = all)) {
		all = u->next;
		post_take(n,
			  &(struct datagram){ .bytes = u->bytes, .len = u->len, .from = u->from });
		memory_free(u);
	}
}

void unmet_forget(struct packet_net *n, uint32_t rank)
{
	struct unmet **at = &n->unmets, *u;
	while ((u = *at))
		if (u->rank == rank) {
			*at = u->next;
			n->unmet_bytes -= u->len;
			memory_free(u);
		} else {
			at = &u->next;
		}
}

void unmet_close(struct packet_net *n)
{
	while (n->unmets)
		unmet_forget(n, n->unmets->rank);
}
