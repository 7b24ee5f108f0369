/* SPDX-License-Identifier: BSD-3-Clause */
/* The networks of this build. */
#ifndef TERN_OPEN_NETS_H
#define TERN_OPEN_NETS_H

#include "net/net.h"

/* Every network; the last entry is NULL. Adding one is a folder and a line in nets.c. */
extern const struct net_ops *const net_table[];

#endif
