/* SPDX-License-Identifier: BSD-3-Clause */
/* The profiles that are built in. */
#include "net/sim/profile.h"

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
	{ NULL, NULL, NULL },
};
