/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/net.h"

#include "net/ofi/ofi.h"
#include "net/self/self.h"
#include "net/shm/shm.h"
#include "net/udp/udp.h"

const struct net_ops *const net_table[] = { &self_ops, &shm_ops, &udp_ops, &ofi_ops, NULL };
