/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a simulated machine is like: lines `key = value`, from a file or one of those that are built
 * in. One table has every key, its unit, its limits and its meaning; the man page, --help and the
 * sentences of errors are made from it.
 */
#ifndef TERN_NET_SIM_MACHINE_PROFILE_H
#define TERN_NET_SIM_MACHINE_PROFILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PROFILE_NAME = 32 };

/*
 * Every key: its unit, its limits, what it is unless said, and its meaning. The first is the cycle,
 * in which others may be given. Times are in ps.
 */
#define PROFILE_KEYS(KEY)                                                                          \
	KEY(cycle, UNIT_TIME, 1, 1000000000, "1ns", "a cycle of the processor's clock")            \
	KEY(send_request, UNIT_TIME, 0, UINT64_MAX, "100ns",                                       \
	    "what sending a request takes the processor")                                          \
	KEY(send_reply, UNIT_TIME, 0, UINT64_MAX, "100ns", "what sending a reply takes it")        \
	KEY(receive, UNIT_TIME, 0, UINT64_MAX, "100ns", "what receiving a packet takes it")        \
	KEY(send_word, UNIT_TIME, 0, UINT64_MAX, "0", "and for each word of 4 bytes that is sent") \
	KEY(receive_word, UNIT_TIME, 0, UINT64_MAX, "0", "and for each that is received")          \
	KEY(poll, UNIT_TIME, 1, UINT64_MAX, "50ns", "what looking in vain takes it")               \
	KEY(integer, UNIT_TIME, 0, UINT64_MAX, "1cycles",                                          \
	    "an integer operation of tern_sim_work()")                                             \
	KEY(floating, UNIT_TIME, 0, UINT64_MAX, "1cycles", "a floating-point operation")           \
	KEY(load, UNIT_TIME, 0, UINT64_MAX, "1cycles", "a load")                                   \
	KEY(store, UNIT_TIME, 0, UINT64_MAX, "1cycles", "a store")                                 \
	KEY(cpu, UNIT_NUMBER, 0, 1000000, "0",                                                     \
	    "percent of the program's own CPU time that passes; 0: declared work only")            \
	KEY(contexts, UNIT_NUMBER, 0, 4096, "0",                                                   \
	    "threads of a node that can have started; 0: TERN_CONTEXTS")                           \
	KEY(quantum, UNIT_TIME, 0, UINT64_MAX, "0",                                                \
	    "of declared work, after which another thread has its turn; 0: none")                  \
	KEY(thread_switch, UNIT_TIME, 0, UINT64_MAX, "0",                                          \
	    "what going on with another thread takes")                                             \
	KEY(memory, UNIT_NUMBER, 0, UINT64_MAX, "0", "bytes of a node's heap; 0: TERN_HEAP")       \
	KEY(command, UNIT_TIME, 0, UINT64_MAX, "0",                                                \
	    "controller: what handing a message over takes the processor")                         \
	KEY(command_block, UNIT_TIME, 0, UINT64_MAX, "0", "controller: the same of one with data") \
	KEY(interrupt, UNIT_TIME, 0, UINT64_MAX, "0",                                              \
	    "controller: what a message for a handler of the program takes the processor")         \
	KEY(prepare, UNIT_TIME, 0, UINT64_MAX, "0", "magic: before the first line of a block")     \
	KEY(line, UNIT_TIME, 0, UINT64_MAX, "0", "magic: of each line of it, at both ends")        \
	KEY(line_bytes, UNIT_NUMBER, 1, 65536, "128", "magic: bytes of a line")                    \
	KEY(queue, UNIT_NUMBER, 2, 65536, "16", "niu: flits that a transmission queue holds")      \
	KEY(thread_queues, UNIT_NUMBER, 0, 1, "1", "niu: 1: each thread has one; 0: one for all")  \
	KEY(descriptors, UNIT_NUMBER, 0, 1, "1",                                                   \
	    "niu: 1: two flits stand for a block's data in it; 0: the data")                       \
	KEY(latency, UNIT_TIME, 0, UINT64_MAX, "1us", "from the network's one end to the other")   \
	KEY(hop, UNIT_TIME, 0, UINT64_MAX, "0", "of each node or switch between the ends")         \
	KEY(gap, UNIT_TIME, 0, UINT64_MAX, "100ns", "between two packets of a node")               \
	KEY(gap_byte, UNIT_TIME, 0, UINT64_MAX, "0.1ns", "and for each byte")                      \
	KEY(header, UNIT_NUMBER, 0, 65536, "32",                                                   \
	    "bytes of a packet besides its arguments and data")                                    \
	KEY(width, UNIT_NUMBER, 0, 65536, "0", "nodes in a row of a grid; 0: as square as can be") \
	KEY(flit, UNIT_TIME, 1, 1000000000, "10ns", "mesh: in which a link carries one flit")      \
	KEY(flit_bytes, UNIT_NUMBER, 1, 4096, "8", "mesh: bytes of a flit")                        \
	KEY(channels, UNIT_NUMBER, 1, 16, "2", "mesh: virtual channels of a link")                 \
	KEY(channel_types, UNIT_NUMBER, 0, 1, "0",                                                 \
	    "mesh: 1: a quarter of them each for threads, RTS, CTS and data; 0: half for replies") \
	KEY(channel_flits, UNIT_NUMBER, 1, 65536, "4",                                             \
	    "mesh: flits that each of them has room for")                                          \
	KEY(wrap, UNIT_NUMBER, 0, 1, "0", "mesh: 1: rows and columns are circles")                 \
	KEY(whole, UNIT_NUMBER, 0, 1, "1",                                                         \
	    "mesh: 1: a worm that meets nobody moves as one, with the same result")                \
	KEY(jitter, UNIT_TIME, 0, 1000000000000, "0",                                              \
	    "a packet enters up to so much later, at random: order is lost")                       \
	KEY(drop, UNIT_NUMBER, 0, 500000, "0", "of a million packets that many are lost")          \
	KEY(corrupt, UNIT_NUMBER, 0, 500000, "0",                                                  \
	    "of a million packets that many arrive damaged, and are discarded there")              \
	KEY(crash_node, UNIT_NUMBER, 0, 65535, "0", "the node that ends at crash_at")              \
	KEY(crash_at, UNIT_TIME, 0, UINT64_MAX, "0", "when crash_node ends; 0: it does not")       \
	KEY(crash_mean, UNIT_TIME, 0, 100000000000000000, "0",                                     \
	    "each node ends at a random time from 0 to twice this; 0: none does")                  \
	KEY(tolerant, UNIT_NUMBER, 0, 1, "0",                                                      \
	    "1: the network sends them again, and later packets of the node wait; no mesh")        \
	KEY(order, UNIT_NUMBER, 0, 1, "1", "0: Tern must not rely on the order of packets")        \
	KEY(room, UNIT_NUMBER, 0, 1, "0",                                                          \
	    "1: Tern may rely on room for every packet at its receiver")                           \
	KEY(seed, UNIT_NUMBER, 0, UINT64_MAX, "1", "of what happens at random")

struct profile {
	char name[PROFILE_NAME];
	char network[PROFILE_NAME], controller[PROFILE_NAME];
#define KEY(name, kind, least, most, fallback, meaning) uint64_t name;
	PROFILE_KEYS(KEY)
#undef KEY
};

enum profile_unit { UNIT_NUMBER, UNIT_TIME };

struct profile_key {
	const char *name;
	enum profile_unit unit;
	size_t offset; /* of a uint64_t in struct profile */
	uint64_t least, most;
	const char *fallback, *meaning;
};
extern const struct profile_key profile_key[]; /* ends with a name of NULL */

/* Those that are built in. */
struct profile_text {
	const char *name, *meaning, *text;
};
extern const struct profile_text profile_text[]; /* ends with a name of NULL */

/*
 * A built-in name or the path of a file, and other values for its keys behind commas, as in
 * "cm5,latency=2us". -EINVAL, -ENOENT with a sentence.
 */
int profile_load(struct profile *p, const char *name);
/* One line, `where` being what sentences call it. -EINVAL with a sentence. */
int profile_set(struct profile *p, const char *line, const char *where);

#endif
