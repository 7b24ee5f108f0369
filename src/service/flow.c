/* SPDX-License-Identifier: BSD-3-Clause */
#include "service/flow.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/setting.h"
#include "service/service.h"

static const struct service *const strategies[] = { &flow_credit, &flow_return, &flow_drop,   &flow_nack,
						    &flow_token,  &flow_permit, &flow_reserve };
enum { STRATEGIES = sizeof strategies / sizeof *strategies };

const char *flow_name(unsigned services)
{
	unsigned i = services >> FLOW_SHIFT;
	return i < STRATEGIES ? strategies[i]->name : "an unknown strategy";
}

/* Which of the strategies TERN_FLOW names; -EINVAL with a sentence. */
static int flow_read(void)
{
	const char *text = setting_text(SETTING_FLOW);
	for (int i = 0; i < STRATEGIES; i++)
		if (strcmp(strategies[i]->name, text) == 0)
			return i;
	return error_set(-EINVAL,
			 "TERN_FLOW is '%s'; there are credit, return, drop, nack, token, permit and reserve",
			 text);
}

int flow_judge(void)
{
	int i = flow_read();
	return i < 0 ? i : 0;
}

int flow_absent(void)
{
	return setting_given(SETTING_FLOW)
		       ? error_set(-EINVAL,
				   "TERN_FLOW is '%s', but TERN_SERVICE has no flow; add flow to it, or "
				   "unset one of them",
				   setting_text(SETTING_FLOW))
		       : 0;
}

int flow_choose(struct packet_net *n)
{
	if (!(n->services & PROVIDES_ROOM)) {
		n->flow = NULL;
		return flow_absent();
	}
	int i = flow_read();
	if (i < 0)
		return i;
	n->flow = strategies[i];
	n->services |= (unsigned)i << FLOW_SHIFT;
	return 0;
}

/* cost: base control */
