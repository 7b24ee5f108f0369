/* SPDX-License-Identifier: BSD-3-Clause */
/* Whether libfabric can be used on this machine. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include <tern/tern.h>

#include "base/setting.h"
#include "net/ofi/fabric.h"
#include "net/ofi/ofi.h"

/* What TERN_NET names behind ofi/; "" if it names nothing, or another network. */
static const char *provider_asked(void)
{
	const char *named = strstr(setting_text(SETTING_NET), "ofi/");
	return named ? named + 4 : "";
}

bool ofi_usable(char *why, size_t len)
{
	const struct library *l = library_open();
	struct fi_info *info = NULL;
	int rc = l ? provider_find(l, provider_asked(), &info) : -ENOTSUP;
	if (rc) {
		snprintf(why, len, "%s", tern_strerror(rc));
		return false;
	}
	snprintf(why, len, "provider %s on %s", info->fabric_attr->prov_name,
		 info->domain_attr->name);
	l->freeinfo(info);
	return true;
}

/* Of the kinds of adapter that libfabric is made for. */
static const char *const devices[] = { "/sys/class/infiniband", "/sys/class/cxi", "/sys/class/hfi1",
				       NULL };

const struct net_device ofi_device = { "ofi", devices, ofi_usable };
