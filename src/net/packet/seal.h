/* SPDX-License-Identifier: BSD-3-Clause */
/* Who may speak, and how that is known: what a guard (net/guard) does for a network. */
#ifndef TERN_NET_PACKET_SEAL_H
#define TERN_NET_PACKET_SEAL_H

#include "net/packet/landing.h"
#include "net/packet/record.h"

struct packet_net;

/*
 * A datagram begins with DATAGRAM_HEAD bytes of the guard's,
 * and may end with PACKET_TAG of them.
 */
enum { DATAGRAM_HEAD = 16 };
enum seal { SEAL_BROKEN, SEAL_UNMET, SEAL_GOOD };
struct guard_ops {
	bool (*open)(struct packet_net *n,
		     uint32_t rank); /* makes keys; false if its card is not there yet */
	/* Fills the bytes from k->at, and adds to the last part. */
	void (*seal)(struct packet_net *n, struct packet *k);
	/*
	 * Takes off what seal() put on. SEAL_BROKEN if it is to be dropped. That has been counted
	 * if it is not of this job or session, not of the rank it claims, or has come before; or it
	 * comes behind a gap on a wire that promised none, and silence_missed() knows. SEAL_UNMET
	 * if that rank's card is not there yet, so that nobody can tell.
	 */
	enum seal (*unseal)(struct packet_net *n, struct datagram *d, uint32_t *rank,
			    struct arrival *a);
	void (*close)(struct packet_net *n);
};

#endif
