/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The network over libfabric: whatever fabric a cluster has, by way of the provider for it.
 * Providers of reliable datagrams lose nothing, and most keep order; room is always added, since
 * their own resource management may hold replies behind requests. A fabric is the cluster's own, so
 * datagrams are not protected unless TERN_PROTECT says so.
 */
#ifndef TERN_NET_OFI_OFI_H
#define TERN_NET_OFI_OFI_H

#include "net/packet/packet.h"

extern const struct net_ops ofi_ops;

/* In device.c, which tern-link has without the rest of the network. */
extern const struct net_device ofi_device;
bool ofi_usable(char *why, size_t len);

#endif
