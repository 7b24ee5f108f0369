/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every length, in bytes, from which on the core moves data in another way; a layer has such a
 * table of its own (threshold.h). Tests play programs with each of them, and with one byte less and
 * one more: a way that is in no table is not crossed with the others.
 */
#ifndef TERN_BASE_THRESHOLD_H
#define TERN_BASE_THRESHOLD_H

#include <tern/tern.h>

/* X(name, bytes, what happens up to there, or from there on) */
#define CORE_THRESHOLDS(X)                                             \
	X(LINE_BYTES, TERN_LINE_WORDS * 8, "words of one line")        \
	X(WORDS_BYTES, TERN_WORDS_MAX * 8, "words of a message")       \
	X(PAYLOAD_BYTES, TERN_PAYLOAD_MAX, "payload of a short block") \
	X(PACKET_MOST, 16 << 10, "a packet of the simulated network")  \
	X(REQUEST_BYTES, TERN_REQUEST_MAX, "payload of a message")     \
	X(DATAGRAM_MAX, 60 << 10, "a datagram of any wire")

#define THRESHOLD_NAME(name, bytes, what) name = (bytes),
enum core_threshold { CORE_THRESHOLDS(THRESHOLD_NAME) };

#endif
