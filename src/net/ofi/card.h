/* SPDX-License-Identifier: BSD-3-Clause */
/* What a rank tells the others of itself, so that they can send to it and know it. */
#ifndef TERN_NET_OFI_CARD_H
#define TERN_NET_OFI_CARD_H

#include "job/job.h"
#include "net/packet/terms.h"

enum { OFI_ADDRESS_MOST = 192 };

struct ofi_card {
	struct card_front front; /* it names the provider: ranks must have the same */
	uint32_t len;
	unsigned char address[OFI_ADDRESS_MOST]; /* as the provider has it */
};

_Static_assert(sizeof(struct ofi_card) <= JOB_CARD_BYTES, "a card fits where cards are kept");

#endif
