/* SPDX-License-Identifier: BSD-3-Clause */
/* The networks of this build, and those that an endpoint has. */
#ifndef TERN_OPEN_NETS_H
#define TERN_OPEN_NETS_H

#include "core/endpoint.h"

/* Every network; the last entry is NULL. Adding one is a folder and a line in nets.c. */
extern const struct net_ops *const net_table[];

/* Opens the networks that TERN_NET names, in the order of their span: 0, or a code with a sentence. */
int nets_open(struct endpoint *e, struct group *g);
void nets_close(struct endpoint *e);

#endif
