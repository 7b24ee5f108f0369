/* SPDX-License-Identifier: BSD-3-Clause */
/* What tests of jobs over UDP share: their two handlers, and a look at a rank's network. */
#ifndef TERN_TESTS_UDP_RANKS_H
#define TERN_TESTS_UDP_RANKS_H

#include "lib/far.h"
#include "lib/ranks.h"
#include "net/packet/packet.h"
#include "service/service.h"
#include "tern/stats.h"

enum { TELL = 0, KNOW };

static inline struct packet_net *net_of(tern *t)
{
	return packet_of(t->own->net[1]);
}

static inline tern_stats_net_data stats_of(tern *t)
{
	tern_stats_net_data d = { .size = sizeof d };
	CHECK_IS(tern_stats_net(t, &d), 0);
	return d;
}

static _Atomic uint64_t told;

static inline void tell(tern *t, const tern_msg *m)
{
	(void)m;
	tern_signal(t, &told, 1);
}

static _Atomic uint64_t known;

static inline void know(tern *t, const tern_msg *m)
{
	(void)m;
	tern_signal(t, &known, 1);
}

static inline void poll_both(tern *t[2])
{
	tern_poll(t[0]);
	tern_poll(t[1]);
}

#endif
