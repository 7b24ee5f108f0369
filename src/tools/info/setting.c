/* SPDX-License-Identifier: BSD-3-Clause */
#include "tools/info/setting.h"

#include <tern/tern.h>

#include "base/address.h"
#include "base/wrap.h"
#include "core/delivery.h"
#include "core/stats.h"
#include "net/fault/plan.h"
#include "net/guard/mode.h"
#include "open/reach.h"
#include "service/service.h"

static int faults_judge(void)
{
	struct plan plan;
	enum guard_mode mode = GUARD_AUTH; /* which auto is where there are faults */
	int rc = plan_read(&plan, setting_text(SETTING_FAULT));
	if (!rc && guard_mode_read(&mode) == 0)
		rc = plan_judge(&plan, mode != GUARD_NONE);
	return rc;
}

static int protect_judge(void)
{
	enum guard_mode mode;
	return guard_mode_read(&mode);
}

static int bind_judge(void)
{
	struct sockaddr_in6 address;
	return address_choose(&address, false);
}

static int stats_judge(void)
{
	uint64_t print;
	return stats_read(&print);
}

/* Those whose values are more than any number or any text: what reads them judges them. */
static int (*const judges[SETTING_COUNT])(void) = {
	[SETTING_DELIVERY] = delivery_judge,
	[SETTING_STATS] = stats_judge,
	[SETTING_NET] = reach_judge,
	[SETTING_UDP_BIND] = bind_judge,
	[SETTING_SERVICE] = service_judge,
	[SETTING_FLOW] = flow_judge,
	[SETTING_FAULT] = faults_judge,
	[SETTING_PROTECT] = protect_judge,
	[SETTING_UNREACHABLE] = unreachable_judge,
	[SETTING_WRAP] = wrap_judge,
};

static bool is_number(enum setting s)
{
	return !setting_is_text(s) && (setting_given(s) || *setting_table[s].fallback);
}

const char *info_setting_problem(enum setting s)
{
	uint64_t value;
	int rc = judges[s] ? judges[s]() : is_number(s) ? setting_number(s, &value) : 0;
	return rc ? tern_strerror(rc) : NULL;
}
