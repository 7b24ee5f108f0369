/* SPDX-License-Identifier: BSD-3-Clause */
/* Flow: a message is sent only if its receiver has a place for it. */
#ifndef TERN_SERVICE_FLOW_H
#define TERN_SERVICE_FLOW_H

#include <stdint.h>

/* What a receiver grants: leaves of its rings that are free again, and payloads that may be begun, since ever. */
struct grant {
	uint32_t freed[2], allowed[2];
};

struct flow {
	struct grant said; /* what the peer was told last */
};

#endif
