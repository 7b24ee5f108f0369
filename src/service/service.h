/* SPDX-License-Identifier: BSD-3-Clause */
/* The services there are, each a file of its own. */
#ifndef TERN_SERVICE_SERVICE_H
#define TERN_SERVICE_SERVICE_H

#include "net/packet/service.h"

extern const struct service order_service, retry_service;
extern const struct service flow_credit, flow_return, flow_drop, flow_nack, flow_token, flow_permit,
	flow_reserve;

/* All of them, for a network that has no reason to leave one out. */
extern service_list service_all;

/* Whether TERN_SERVICE, and TERN_FLOW, is understood: 0, or -EINVAL with a sentence. */
int service_judge(void);
int flow_judge(void);

#endif
