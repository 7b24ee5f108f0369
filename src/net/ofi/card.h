/* SPDX-License-Identifier: BSD-3-Clause */
/* What a rank tells the others of itself, so that they can send to it and know it. */
#ifndef TERN_NET_OFI_CARD_H
#define TERN_NET_OFI_CARD_H

#include "net/shm/job.h"

enum { OFI_ADDRESS_MOST = 192, OFI_PROVIDER_MOST = 20 };

struct ofi_card {
	unsigned char key[32];            /* the guard's, and first */
	char provider[OFI_PROVIDER_MOST]; /* ranks must have the same */
	uint32_t len;
	unsigned char address[OFI_ADDRESS_MOST]; /* as the provider has it */
};

_Static_assert(sizeof(struct ofi_card) <= JOB_CARD_BYTES, "a card fits where cards are kept");

#endif
