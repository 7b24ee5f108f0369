/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of networks. TERN_NET=auto looks for one from the left. */
#include "open/nets.h"

#include "core/layer.h"
#include "net/ofi/ofi.h"
#include "net/self/self.h"
#include "net/shm/shm.h"
#include "net/sim/machine/controller.h"
#include "net/sim/sim.h"
#include "net/udp/udp.h"

_Static_assert((unsigned)HANDLER_THREADS == TERN_HANDLER_MAX + LAYER_SPAWN * LAYER_HANDLERS &&
		       (unsigned)HANDLER_THREADS_END == HANDLER_THREADS + LAYER_HANDLERS,
	       "a simulated network interface knows which messages create threads");

const struct net_ops *const net_table[] = {
	&self_ops, &shm_ops, &udp_ops, &ofi_ops, &sim_ops, NULL
};
