/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The profiles that are built in. Figures are those of the papers that docs/sim.md names; what a
 * paper does not give is said there.
 */
#include "net/sim/machine/profile.h"

/* Both SCMPs: they differ in nothing but their network interface. */
#define SCMP                                                                           \
	"network = mesh\n"                                                             \
	"controller = niu\n"                                                           \
	"cycle = 2ns\n"                                                                \
	"contexts = 16\n"                                                              \
	"quantum = 100cycles\n"                                                        \
	"thread_switch = 4cycles\n"                                                    \
	"memory = 8388608\n"                                                           \
	"command = 1cycles # an instruction for the head, and one for two registers\n" \
	"command_block = 2cycles\n"                                                    \
	"send_word = 0.5cycles\n"                                                      \
	"send_request = 1cycles\n"                                                     \
	"send_reply = 1cycles\n"                                                       \
	"receive = 1cycles\n"                                                          \
	"interrupt = 4cycles\n"                                                        \
	"poll = 1cycles\n"                                                             \
	"flit = 1cycles\n"                                                             \
	"flit_bytes = 4\n"                                                             \
	"channels = 4 # one for each type of message\n"                                \
	"channel_types = 1\n"                                                          \
	"room = 1 # a NIU takes every flit that has arrived\n"                         \
	"channel_flits = 4\n"                                                          \
	"header = 8 # two flits\n"

/* Both CM-5s: they differ in what their network promises. */
#define CM5                                                                 \
	"network = fattree\n"                                               \
	"cycle = 30.3ns\n"                                                  \
	"send_request = 1.5us\n"                                            \
	"send_reply = 1.3us\n"                                              \
	"receive = 1.6us\n"                                                 \
	"poll = 0.7us\n"                                                    \
	"latency = 0\n"                                                     \
	"hop = 0.8us # the table has 8 cycles beside that, which is less\n" \
	"gap = 0\n"                                                         \
	"gap_byte = 30ns # injection and one hop take 1.4 us\n"             \
	"header = 20\n"

/* The processor and network of both iPSC/860s. */
#define IPSC860                 \
	"network = hypercube\n" \
	"cycle = 25ns\n"        \
	"poll = 1us\n"          \
	"latency = 25us\n"      \
	"gap = 0\n"             \
	"gap_byte = 357ns # 2.8 MB/s\n"

const struct profile_text profile_text[] = {
	{ "cluster", "a cluster of today: about 1 us between processes, 25 GB/s a node",
	  "network = crossbar\n"
	  "send_request = 150ns\n"
	  "send_reply = 150ns\n"
	  "receive = 150ns\n"
	  "poll = 30ns\n"
	  "latency = 700ns\n"
	  "gap = 50ns\n"
	  "gap_byte = 0.04ns\n" },
	{ "ncube2", "nCUBE/2 with Active Messages (von Eicken, table 4-1)",
	  "network = hypercube\n"
	  "cycle = 50ns\n"
	  "send_request = 13.1us\n"
	  "send_reply = 13.1us\n"
	  "receive = 15us\n"
	  "poll = 1ns # an interrupt announces messages\n"
	  "latency = 0\n"
	  "hop = 2.2us\n"
	  "gap = 0\n"
	  "gap_byte = 0.45us\n"
	  "header = 13 # three words and a byte that ends the message\n" },
	{ "cm5", "CM-5 with CMAM (von Eicken, table 4-7)", CM5 },
	{ "cm5-cr", "the same with compressionless routing: order, room, fault tolerance",
	  CM5 "room = 1\n"
	      "tolerant = 1\n" },
	{ "ipsc860", "iPSC/860 with typed messages (Rosing and Saltz)",
	  IPSC860 "send_request = 25us # half of the software's 50 us\n"
		  "send_reply = 25us\n"
		  "receive = 25us\n" },
	{ "dual", "iPSC/860 with the communication processor that Rosing and Saltz propose",
	  IPSC860
	  "controller = dual\n"
	  "command = 4cycles # assumed, as are the next six: a few writes to a buffer or a port\n"
	  "command_block = 8cycles\n"
	  "send_request = 4cycles\n"
	  "send_reply = 4cycles\n"
	  "send_word = 1cycles\n"
	  "receive = 20cycles # a look into both buffers, and the call of a procedure\n"
	  "receive_word = 1cycles\n" },
	{ "paragon", "Paragon, a mesh of flits, with typed messages (Rosing and Saltz)",
	  "network = mesh\n"
	  "cycle = 20ns\n"
	  "send_request = 25us # half of the software's 50 us\n"
	  "send_reply = 25us\n"
	  "receive = 25us\n"
	  "poll = 1us\n"
	  "flit = 40ns # 200 MB/s, about 100 ns to a neighbour\n"
	  "flit_bytes = 8\n"
	  "channels = 1\n" },
	{ "flash", "FLASH with MAGIC (Heinlein et al.)",
	  "network = crossbar\n"
	  "cycle = 10ns\n"
	  "controller = magic\n"
	  "command = 12cycles # of 88 cycles in all, less 15, 19, 30 and 12\n"
	  "command_block = 0.7us\n"
	  "prepare = 0.3us\n"
	  "line = 30cycles # 47 where it is dirty in a cache\n"
	  "line_bytes = 128\n"
	  "send_request = 15cycles\n"
	  "send_reply = 37cycles # with the receipt 19, and 30 for the memory line\n"
	  "receive = 12cycles\n"
	  "interrupt = 12cycles\n"
	  "poll = 1cycles\n"
	  "latency = 400ns\n"
	  "gap = 0\n"
	  "gap_byte = 2.5ns # 400 MB/s\n"
	  "header = 16\n" },
	{ "scmp", "SCMP with send and receive tables (Lewis)", SCMP },
	{ "scmp-original", "SCMP with Active Messages (Lewis)",
	  SCMP "thread_queues = 0\n"
	       "descriptors = 0\n" },
	{ NULL, NULL, NULL },
};
