/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every length, in bytes, from which on the library moves data in another way. They stand in one
 * table because tests play programs with each of them, and with one byte less and one more: a way
 * that is not in the table is not crossed with the others.
 */
#ifndef TERN_BASE_THRESHOLD_H
#define TERN_BASE_THRESHOLD_H

#include <tern/chan.h>
#include <tern/spawn.h>
#include <tern/tern.h>

/* X(name, bytes, what happens up to there, or from there on) */
#define THRESHOLDS(X)                                                                     \
	/* Messages of every layer: */                                                    \
	X(LINE_BYTES, TERN_LINE_WORDS * 8, "words of one line")                           \
	X(WORDS_BYTES, TERN_WORDS_MAX * 8, "words of a message")                          \
	X(SHORT_ROOM, 2048, "an early packet is kept in a small place")                   \
	X(PAYLOAD_BYTES, TERN_PAYLOAD_MAX, "payload of any message")                      \
	X(PACKET_MOST, 16 << 10, "a packet of the simulated network")                     \
	X(REQUEST_BYTES, TERN_REQUEST_MAX, "payload of a request")                        \
	X(DATAGRAM_MAX, 60 << 10, "a datagram of any wire")                               \
	/* Send and receive: */                                                           \
	X(WORDS_MOST, 32, "a message in the words of one line")                           \
	X(EIGHT_MOST, 48, "a message in eight words")                                     \
	X(CELL_BYTES, 248, "a cell for a message that no receive has taken")              \
	X(PULL_MOST, 32 << 10, "a rendezvous that the receiver reads alone")              \
	X(PULL_SLICE, 128 << 10, "of a rendezvous, read in one poll")                     \
	/* Memory: */                                                                     \
	X(WORD_MOST, 8, "copied as a word")                                               \
	X(WIDE_LEAST, 64, "copied in wide registers")                                     \
	X(WIDE_MOST, 1024, "copied in wide registers without a loop")                     \
	X(WIDE_LONG, 4096, "copied in wide registers at all")                             \
	X(LONG_RUN, 4096, "runs that are packed in rows")                                 \
	X(ASK_WORTH, 16 << 10, "the kernel is asked whether pages are there")             \
	X(START_IN_ONE_GO, 64 << 10, "a split-phase copy in the call itself")             \
	X(BOUNCE_BYTES, 64 << 10, "a bounce buffer")                                      \
	X(IN_ONE_GO, 256 << 10, "a blocking copy without a look at messages")             \
	/* Collectives: */                                                                \
	X(CELL_LINE, 48, "data beside their number in one line")                          \
	X(CELL_SHORT, CELL_LINE + 512, "data in the cell")                                \
	X(FAR_FEW, 4 << 10, "between machines: as few messages in a row as there can be") \
	X(MOVING_FEW, 4 << 10, "the same, of gathering and scattering")                   \
	X(REDUCE_SHORT, 8 << 10, "the root combines alone")                               \
	X(PIECE_LEAST, 8 << 10, "in one piece")                                           \
	X(LEVELS_FEW, 16 << 10, "two levels: as few messages in a row as there can be")   \
	X(SLICED_LEAST, 32 << 10, "sliced, in one piece")                                 \
	X(DIRECT_LEAST, 32 << 10, "the kernel moves it")                                  \
	X(DIRECT_FEW, 64 << 10, "the kernel moves it between few members")                \
	X(CELL_LONG, 64 << 10, "a place of the desk")                                     \
	X(DIRECT_TURN, 256 << 10, "moved by the kernel in one turn")                      \
	/* Typed messages, channels, threads: */                                          \
	X(SMALL_CELL, 512, "a small cell of the spill")                                   \
	X(LONG_BYTES, 64 << 10, "a typed message in one piece")                           \
	X(CHAN_LINE_BYTES, TERN_CHAN_FULL, "words of a channel's line")                   \
	X(CHAN_LEAF_BYTES, TERN_CHAN_LEAF, "a leaf of a channel")                         \
	X(SPAWN_BYTES, TERN_SPAWN_DATA_MAX, "data of a new thread")

#define THRESHOLD_NAME(name, bytes, what) name = (bytes),
enum threshold { THRESHOLDS(THRESHOLD_NAME) };
#undef THRESHOLD_NAME

#endif
