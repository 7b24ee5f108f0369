/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a network of packets has to offer: it carries datagrams to ranks, some of which may be
 * lost, doubled, or come late. Everything else (rings, services, protection) stands on this, so a
 * further network of packets is a wire and nothing more; and faults are in any wire.
 */
#ifndef TERN_NET_PACKET_WIRE_H
#define TERN_NET_PACKET_WIRE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/uio.h>

#include "base/threshold.h"

struct wire;
struct block;

/*
 * What a packet carries: a request or a part of one; if not, a reply; if neither, what the network
 * itself has to say.
 */
enum packet_class { CLASS_REQUEST, CLASS_REPLY, CLASS_CONTROL, CLASSES }; /* from STREAM_REQUESTS */

struct outgoing {
	uint32_t rank;
	const struct iovec *part;
	int parts;
	/*
	 * Not on the wire: for one that gives each class a channel of its own, or simulates the
	 * processor that sends.
	 */
	enum packet_class class;
	uint64_t context; /* the light thread that sent it, as tern_thread_self(); 0: the program */
	const unsigned char *record; /* the first record in it (net/packet/record.h); or NULL */
};

static inline size_t outgoing_bytes(const struct outgoing *o)
{
	size_t bytes = 0;
	for (int i = 0; i < o->parts; i++)
		bytes += o->part[i].iov_len;
	return bytes;
}

/* Copies what it carries to `to`; how many bytes. */
static inline size_t outgoing_copy(unsigned char *to, const struct outgoing *o)
{
	size_t len = 0;
	for (int i = 0; i < o->parts; i++) {
		memcpy(to + len, o->part[i].iov_base, o->part[i].iov_len);
		len += o->part[i].iov_len;
	}
	return len;
}

/*
 * Payloads that are used where they came to lie. Each is a block, whose line lies over what was
 * before it in the datagram; the bytes stay until all of them are free.
 */
enum { PINNED_MOST = 8 };
struct pinned {
	unsigned n;
	struct block *block[PINNED_MOST];
};

struct datagram {
	unsigned char *bytes;
	size_t len;
	struct pinned *pinned; /* NULL: nothing can stay */
	/* The sender's rank, plus 1, where the wire itself knows it; 0: it does not. */
	uint32_t from;
};

/* Datagrams to a rank that could not be sent. */
struct failure {
	int error;            /* of the last one, an errno; 0: all were sent */
	uint64_t first, last; /* when, ns */
	char where[96];       /* where they were to go, in words */
};

enum { WIRE_NAPS = -2 };
struct wire_ops {
	/*
	 * Bytes that a datagram to `rank` may have now, at most DATAGRAM_MAX; 0: it cannot be sent
	 * to yet.
	 */
	size_t (*most)(struct wire *w, uint32_t rank);
	/*
	 * Something of up to `had` bytes was lost on the way to `rank`; `dark` if nothing comes
	 * through at all. How many bytes may be sent from now on. NULL: the way never changes.
	 */
	size_t (*narrow)(struct wire *w, uint32_t rank, size_t had, bool dark);
	/*
	 * Whether it takes a datagram to `rank` now, and does not lose it; NULL: it takes any, and
	 * may lose it.
	 */
	bool (*room)(struct wire *w, uint32_t rank);
	/*
	 * Sends, in this order; what it was given it copies. What it cannot carry now it loses, as
	 * any packet may be lost.
	 */
	void (*send)(struct wire *w, const struct outgoing *o, unsigned n);
	/*
	 * What has arrived, up to `n`. The bytes may be changed, and are there until the next call,
	 * but for what stays.
	 */
	unsigned (*receive)(struct wire *w, struct datagram *d, unsigned n);
	/*
	 * A descriptor to poll; -1: do not sleep, data may be pending; WIRE_NAPS: there is none,
	 * and due() says when to look again.
	 */
	int (*descriptor)(struct wire *w);
	/* When it must be called though nothing is: ns; UINT64_MAX. */
	uint64_t (*due)(struct wire *w);
	/* What it failed to send to `rank` so far; NULL: it never fails. */
	void (*failed)(struct wire *w, uint32_t rank, struct failure *f);
	void (*close)(struct wire *w);
};

static inline void failure_note(struct failure *f, int error, uint64_t now)
{
	f->error = error;
	f->last = now;
	if (!f->first)
		f->first = now;
}

struct wire {
	const struct wire_ops *ops;
	unsigned provides; /* enum provides */
	unsigned messages; /* that a packet may carry; 0: as many as there is room for */
	bool overtakes;    /* packets may come in another order than they were sent in */
	bool calls;        /* its descriptor raises a signal when asked to, fcntl(2), O_ASYNC */
	const unsigned char *pinnable; /* where what stays lies; NULL: nothing does */
	size_t pinnable_len;
};

#endif
