/* SPDX-License-Identifier: BSD-3-Clause */
/* The network that reaches this rank only: a talk with oneself, in private memory. */
#ifndef TERN_NET_SELF_SELF_H
#define TERN_NET_SELF_SELF_H

#include "net/net.h"

extern const struct net_ops self_ops;

#endif
