/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of networks. TERN_NET=auto looks for one from the left. */
#include "open/nets.h"

#include "net/ofi/ofi.h"
#include "net/self/self.h"
#include "net/shm/shm.h"
#include "net/sim/sim.h"
#include "net/udp/udp.h"

const struct net_ops *const net_table[] = {
	&self_ops, &shm_ops, &udp_ops, &ofi_ops, &sim_ops, NULL
};
