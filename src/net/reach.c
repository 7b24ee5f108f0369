/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/reach.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/setting.h"
#include "net/ofi/ofi.h"

enum { AGREE_NAP_NS = 1000000 };

/* Of job_head.fabric; 0: it is not known yet. */
enum { FABRIC_SOME = 1, FABRIC_ALL };

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

/* Whether the machine has a device of those that libfabric is made for; to ask libfabric itself takes long. */
static bool device_here(void)
{
	static const char *const classes[] = { "/sys/class/infiniband", "/sys/class/cxi", "/sys/class/hfi1" };
	for (unsigned i = 0; i < sizeof classes / sizeof *classes; i++)
		if (folder_has_any(classes[i]))
			return true;
	return false;
}

/* A rank that was told which network to use has it in any case: others follow it, if they may choose. */
bool reach_fabric_here(void)
{
	char why[300];
	const char *text = setting_text(SETTING_NET);
	if (strcmp(text, "auto") != 0)
		return strstr(text, "ofi");
	return device_here() && ofi_ops.usable(why, sizeof why);
}

void reach_agreed(struct job_head *head, bool fabric)
{
	atomic_store(&head->fabric, fabric ? FABRIC_ALL : FABRIC_SOME);
}

static const char *far_auto(struct job_head *head, const struct world *w)
{
	if (head->machines == 1)
		return "";
	if (!reach_fabric_here())
		return "udp";
	while (!atomic_load(&head->fabric))
		w->nap(AGREE_NAP_NS);
	return atomic_load(&head->fabric) == FABRIC_ALL ? "ofi" : "udp";
}

int reach_judge(void)
{
	const char *text = setting_text(SETTING_NET);
	const char *far = strncmp(text, "shm,", 4) == 0 ? text + 4 : text;
	if (strcmp(text, "auto") == 0 || strcmp(text, "shm") == 0 || strcmp(far, "udp") == 0 ||
	    strcmp(far, "ofi") == 0 || strncmp(far, "ofi/", 4) == 0)
		return 0;
	return error_set(
		-EINVAL,
		"TERN_NET is '%s'; it can be auto, shm, udp, ofi, ofi/PROVIDER or ofi/PROVIDER/DOMAIN, or shm "
		"and one of these with a comma between",
		text);
}

int reach_find(struct reach *r, struct job_head *head, const struct world *w)
{
	const char *text = setting_text(SETTING_NET);
	size_t near = strcspn(text, ",");
	int rc = reach_judge();
	if (rc)
		return rc;
	*r = (struct reach){ .near = "shm" };
	if (strcmp(text, "auto") == 0)
		snprintf(r->far, sizeof r->far, "%s", far_auto(head, w));
	else if (near != 3 || memcmp(text, "shm", near) != 0)
		*r = (struct reach){ .near = "" };
	if (!*r->near)
		snprintf(r->far, sizeof r->far, "%s", text);
	else if (text[near])
		snprintf(r->far, sizeof r->far, "%s", text + near + 1);
	if (head->machines > 1 && !*r->far)
		return error_set(
			-EINVAL,
			"TERN_NET is 'shm', which reaches the ranks of one machine, and the job has %u "
			"machines: leave it alone, or say shm,udp",
			head->machines);
	return 0;
}

/* cost: base setup */
