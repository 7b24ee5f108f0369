/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What tern-link is told to start on its host: its ranks, the program, where, and with which
 * variables. It travels through the remote shell's input, because command lines can be read by
 * everybody on the machine: a struct order, and behind it words that end with a 0: the folder, ""
 * if it is not known; variables, NAME=VALUE; an empty one; and the program's words.
 */
#ifndef TERN_TOOLS_RUN_ORDER_H
#define TERN_TOOLS_RUN_ORDER_H

#include <stddef.h>

#include "tools/run/options.h"

/* The order for the o->share[host] ranks of a host, malloced; NULL if there is no memory. */
char *order_write(const struct run_options *o, uint32_t host, size_t *len);

/*
 * Follows an order as far as this process is concerned: the folder and the variables. The
 * options point into `text`, which is to live on; it ends with a 0. A negative code with a
 * sentence if it is no order, or cannot be followed here.
 */
int order_read(struct run_options *o, char *text, size_t len);

#endif
