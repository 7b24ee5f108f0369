/* SPDX-License-Identifier: BSD-3-Clause */
/* cost: fault status */
/*
 * A rank of another machine from which nothing has ever come: it may compute, and then nothing is wrong; or something between the
 * machines lets nothing through, and whoever waits for it would wait for ever without a word. So who sleeps says so, once. Where nothing
 * is acknowledged the rank is asked first, since it may have had nothing to say.
 */
#include "base/clock.h"
#include "base/error.h"
#include "base/setting.h"
#include "boot/exchange.h"
#include "net/packet/packet.h"
#include "service/service.h"

void silence_open(struct packet_net *n)
{
	uint64_t seconds;
	n->patience = setting_number(SETTING_KEEPALIVE, &seconds) == 0 ? seconds * UINT64_C(1000000000) : 0;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

static void silence_tell(struct packet_net *n, const struct path *p)
{
	struct card_front card;
	bool known = boot_look(n->job, p->rank, &card, sizeof card);
	error_warn(
		"nothing has come from rank %u on %.*s for %u s, though rank %u has sent to it: it computes, or something "
		"between the two machines lets nothing through, such as a firewall or a wrong interface, see tern-net(7)",
		p->rank, known ? (int)sizeof card.terms.host : 20,
		known ? card.terms.host : "an unknown machine", (unsigned)(n->patience / 1000000000),
		n->net.site->rank);
	n->patience = 0;
}

/* When it wants to be asked again, ns. */
uint64_t silence_review(struct packet_net *n)
{
	uint64_t due = DUE_NEVER, now = clock_ns();
	for (uint32_t i = 0; n->patience && i < n->actives; i++) {
		struct path *p = n->path[n->active[i]];
		if (p->gone || p->heard || !p->spoken || job_here(n->job, p->rank))
			continue;
		uint64_t half = p->spoken + n->patience / 2, until = p->spoken + n->patience;
		if (n->confirms && now >= half)
			path_question(p);
		if (now >= until)
			silence_tell(n, p);
		else
			due = earlier(due, n->confirms && now < half ? half : until);
	}
	return due;
}
