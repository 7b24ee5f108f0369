/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of src/open/table.c, and one line more. */
#include "net/ofi/ofi.h"
#include "net/self/self.h"
#include "net/shm/shm.h"
#include "net/udp/udp.h"
#include "open/nets.h"
#include "toy.h"

const struct net_ops *const net_table[] = {
	&self_ops, &shm_ops, &udp_ops, &ofi_ops, /* as in the library */
	&toy_ops,                                /* one line */
	NULL,
};
