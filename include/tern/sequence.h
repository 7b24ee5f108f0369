/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Sequences of packets: a block of any size, and a stream without end.
 *
 * A network that orders messages, has room for them and loses none needs no more than the data
 * (plain). On one that does not, the protocol provides what is missing itself (full): a block is
 * asked for before it is sent, its packets carry offsets, and its end is acknowledged; the packets
 * of a stream are numbered, kept until they are acknowledged, and put into order where they arrive.
 * So both work on a network without any service, where nothing else of Tern's does. Conventions are
 * those of <tern/tern.h>.
 */
#ifndef TERN_SEQUENCE_H
#define TERN_SEQUENCE_H

#include <tern/tern.h>

TERN_BEGIN_

enum {
	TERN_SEQUENCES_MAX = 64, /* numbers of kinds of sequences, and of streams */
	TERN_STREAM_WORDS = 4,   /* in a packet of a stream */
	TERN_STREAM_WINDOW = 64, /* packets of a stream that can be under way */
};

enum tern_way {
	TERN_WAY_AUTO, /* plain where the network to that rank provides everything, else full */
	TERN_WAY_FULL,
	TERN_WAY_PLAIN, /* on a network that provides less, data may be lost or confused */
};

/*
 * What a receiver does with a sequence. `accept` gives memory for `len` bytes, or NULL: its sender
 * then asks again later. `end` is called once, when all of it lies there; the memory is the
 * program's again. Both run in handlers, and may not send.
 */
typedef void *tern_sequence_accept(tern *t, uint32_t src, unsigned id, size_t len, void *arg);
typedef void tern_sequence_end(tern *t, uint32_t src, unsigned id, void *data, size_t len,
			       void *arg);

/*
 * -ERANGE for an `id` of TERN_SEQUENCES_MAX or more, -EINVAL without functions, -EEXIST for one
 * that is taken.
 */
int tern_sequence_on(tern *t, unsigned id, tern_sequence_accept *accept, tern_sequence_end *end,
		     void *arg);

/*
 * Sends `len` bytes to whoever rank `dst` has registered for `id`, and returns when `data` is free:
 * in full, when all of it has arrived and `end` was called; plain, when it has been sent and was
 * accepted. While the receiver does not accept it the call waits and serves. -ENXIO: nobody is
 * registered. -EOWNERDEAD, -ESHUTDOWN: that rank is gone. From a handler: -EPERM.
 */
int tern_sequence_send(tern *t, uint32_t dst, unsigned id, const void *data, size_t len,
		       enum tern_way way);

/*
 * A stream: `fn` is called for each packet, in the order they were put, with the words it has. In a
 * handler; may not send.
 */
typedef struct tern_stream tern_stream;
typedef void tern_stream_packet(tern *t, uint32_t src, unsigned id, unsigned n,
				const uint64_t *words, void *arg);

/*
 * Before the first packet comes: those that nobody is registered for are dropped. Errors as
 * tern_sequence_on(), and -ENOMEM.
 */
int tern_stream_on(tern *t, unsigned id, tern_stream_packet *fn, void *arg);

/*
 * Opens the sending end of stream `id` to rank `dst`; there is one for each of them: -EEXIST.
 * `group` packets are acknowledged at once, at most TERN_STREAM_WINDOW / 2; 0 and 1: each by
 * itself.
 */
int tern_stream_open(tern *t, uint32_t dst, unsigned id, enum tern_way way, unsigned group,
		     tern_stream **out);

/*
 * Sends a packet of up to TERN_STREAM_WORDS words; waits while TERN_STREAM_WINDOW are under way. A
 * packet that is not acknowledged in time is sent again by any poll or wait of this endpoint.
 */
int tern_stream_put(tern_stream *s, unsigned n, const uint64_t *words);

/*
 * Waits until everything that was put has been acknowledged; plain, there is nothing to wait for.
 * An acknowledgement says that a packet has come and that its turn has: its function may not have
 * returned yet, but it does before any message that is sent after the flush is handled there.
 * Memory that the function writes, and that is then read with a get, needs such a message between
 * the two.
 */
int tern_stream_flush(tern_stream *s);

/*
 * Flushes and closes it, also if the flush fails, and returns what that does. It may be opened
 * again.
 */
int tern_stream_close(tern_stream *s);

TERN_END_

#endif
