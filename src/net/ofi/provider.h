/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which provider of libfabric's carries the messages: the one that is named, or the best that there
 * is.
 */
#ifndef TERN_NET_OFI_PROVIDER_H
#define TERN_NET_OFI_PROVIDER_H

#include "net/ofi/library.h"

/*
 * `name` is PROVIDER or PROVIDER/DOMAIN, as in tcp, tcp/lo, shm; empty: whichever; `also`
 * are further capabilities that it must have. Freed with library->freeinfo.
 * -EINVAL with a sentence that lists what there is.
 */
int provider_find(const struct library *l, const char *name, uint64_t also, struct fi_info **out);

#endif
