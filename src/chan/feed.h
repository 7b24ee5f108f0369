/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What travels to a mirror: words, each of which is an item as in a ring, or one of these, in the
 * place of an item's kind.
 */
#ifndef TERN_CHAN_FEED_H
#define TERN_CHAN_FEED_H

#include <tern/tern.h>

enum {
	STREAM_DATA = 0,   /* above it: how many words of data follow */
	STREAM_OVER = 255, /* above it: the ring's state, 8 bits, and who made it so */
	STREAM_WHO_SHIFT = 16,
	STREAM_WORDS = TERN_PAYLOAD_MAX / 8, /* of a message */
};

#endif
