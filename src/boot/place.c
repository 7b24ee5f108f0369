/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/place.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/error.h"
#include "base/setting.h"

/*
 * A number that the kernel makes when it starts, so it differs between machines and between boots.
 */
static int boot_number_read(char *text, size_t room)
{
	static const char path[] = "/proc/sys/kernel/random/boot_id";
	FILE *f = fopen(path, "re");
	bool good = f && fgets(text, (int)room, f);
	if (f)
		fclose(f);
	if (!good)
		return error_set(-ENOTSUP,
				 "%s cannot be read: mount /proc, or start the job with `tern run`",
				 path);
	text[strcspn(text, "\n")] = '\0';
	return 0;
}

static unsigned long long namespace_of(const char *path)
{
	struct stat st;
	return stat(path, &st) == 0 ? (unsigned long long)st.st_ino : 0;
}

int place_here(struct place *p)
{
	char boot[48];
	const char *said = setting_text(SETTING_MACHINE);
	*p = (struct place){ .machine = "" }; /* to the last byte: it is compared and sent */
	int rc = boot_number_read(boot, sizeof boot);
	if (rc)
		return rc;
	snprintf(p->machine, sizeof p->machine, "%s %llx %llx", boot,
		 namespace_of("/proc/self/ns/pid"), namespace_of("/proc/self/ns/net"));
	if (*said)
		snprintf(p->machine, sizeof p->machine, "said %s", said);
	gethostname(p->host, sizeof p->host - 1);
	return 0;
}

bool place_same(const struct place *a, const struct place *b)
{
	return strncmp(a->machine, b->machine, sizeof a->machine) == 0;
}
