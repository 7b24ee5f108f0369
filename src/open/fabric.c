/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the machine has. Apart from nets.c, whose table has every network: tern-link asks this for
 * its machine, and opens none.
 */
#include <dirent.h>
#include <string.h>

#include "base/setting.h"
#include "net/ofi/ofi.h"
#include "open/nets.h"

/* A class is there when its module is, with or without a device. */
static bool folder_has_any(const char *path)
{
	DIR *d = opendir(path);
	const struct dirent *e = NULL;
	while (d && (e = readdir(d)) && e->d_name[0] == '.')
		;
	if (d)
		closedir(d);
	return e;
}

/* Asked first, because usable() may take long. */
static bool device_here(const struct net_device *d)
{
	for (const char *const *folder = d->folders; *folder; folder++)
		if (folder_has_any(*folder))
			return true;
	return false;
}

/*
 * A rank that was told which network to use has it in any case: others follow it, if they may
 * choose.
 */
bool nets_fabric_here(void)
{
	char why[300];
	const struct net_device *fabric = &ofi_device;
	const char *text = setting_text(SETTING_NET);
	if (strcmp(text, "auto") != 0)
		return strstr(text, fabric->network);
	return device_here(fabric) && fabric->usable(why, sizeof why);
}
