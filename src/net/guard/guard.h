/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Protection of datagrams. Every rank makes a key pair when it opens and publishes one half on its
 * card. Two ranks derive from their pairs, and from the job's key, two keys that nobody else has,
 * one for each direction. So whoever does not have the job's key cannot speak in it at all, and no
 * rank can speak as another: the rank in a datagram only says which key to try. What was sent in
 * another session has another key.
 *
 * Without protection (GUARD_NONE) the same keys give each direction its session, a number that only
 * the two can know, but that whoever reads the wire can copy. If the wire says who sent a datagram,
 * that must be the rank in it.
 *
 *     0        1          2        4         8            16                       end - 16
 *    | version | services | rank   | session | counter    | what services wrote ... | tag |
 *
 * The counter is never used twice; a receiver remembers the last 1,024, so a datagram is taken
 * once. On a wire that promised to lose nothing, a datagram is only taken if its counter is the
 * next one: what comes behind a gap is dropped, and so is all that follows, see silence_missed().
 * The tag is Poly1305 over everything before it, under a key for this datagram alone: the counter's
 * 32 bytes of the pair's ChaCha20 stream, which is made for 64 datagrams at a time. Of a datagram
 * of at most 128 bytes, it is SipHash-2-4 with 128 bits, under a key of the pair's for such: made
 * for short messages, it takes half the time. With TERN_PROTECT=encrypt, the datagram is that
 * cipher's AEAD, with the counter as nonce and the header as additional data.
 */
#ifndef TERN_NET_GUARD_GUARD_H
#define TERN_NET_GUARD_GUARD_H

#include "net/packet/packet.h"

extern const struct guard_ops guard_ops;

/*
 * Makes this session's key pair; `public_key` is what the card begins with. `mode` is for when
 * TERN_PROTECT does not say. Freed by guard_ops.close.
 */
int guard_new(void **keys, struct job *job, const struct site *site, enum guard_mode mode,
	      unsigned char public_key[32]);
enum guard_mode guard_mode(const void *keys);

#endif
