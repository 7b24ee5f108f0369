/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of services. A network hands it to net/packet, which knows none of them. */
#include "service/service.h"

service_list service_all = { &flow_credit,   &flow_return, &flow_drop,    &flow_nack,
			     &flow_token,    &flow_permit, &flow_reserve, &order_service,
			     &retry_service, NULL };

int service_judge(void)
{
	return services_judge();
}

int flow_judge(void)
{
	return strategies_judge(service_all);
}

/* cost: base control */
