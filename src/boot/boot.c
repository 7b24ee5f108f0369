/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/boot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/setting.h"

/* Variables by which other launchers tell a process how many ranks there are. */
static const struct {
	const char *variable, *launcher;
} others[] = {
	{ "OMPI_COMM_WORLD_SIZE", "Open MPI's mpirun" },
	{ "PMI_SIZE", "MPICH's mpiexec" },
	{ "MPI_LOCALNRANKS", "MPICH's mpiexec" },
	{ "SLURM_STEP_NUM_TASKS", "Slurm's srun" },
};

static int boot_alone(struct boot *b)
{
	uint64_t alone;
	int rc = setting_number(SETTING_ALONE, &alone);
	if (rc)
		return rc;
	*b = (struct boot){ .rank = 0, .size = 1, .fd = -1 };
	for (unsigned i = 0; !alone && i < sizeof others / sizeof *others; i++) {
		const char *value = getenv(others[i].variable);
		if (value && atoi(value) > 1)
			return error_set(
				-ENOTSUP,
				"%s=%s says that %s started this process as one of several, but this Tern starts "
				"ranks with `tern run` only; use that, or set TERN_ALONE=1 for jobs of one rank",
				others[i].variable, value, others[i].launcher);
	}
	return 0;
}

static int boot_number(enum setting s, uint64_t most, uint64_t *value)
{
	int rc = setting_number(s, value);
	if (!rc && *value > most)
		rc = error_set(-EINVAL, "%s=%s is out of range", setting_table[s].name, setting_text(s));
	return rc;
}

int boot_find(struct boot *b)
{
	uint64_t rank, size, fd;
	if (!setting_given(SETTING_JOB_FD))
		return boot_alone(b);
	int rc = boot_number(SETTING_RANK, UINT32_MAX, &rank);
	if (!rc)
		rc = boot_number(SETTING_SIZE, UINT32_MAX, &size);
	if (!rc)
		rc = boot_number(SETTING_JOB_FD, INT32_MAX, &fd);
	if (rc)
		return rc;
	*b = (struct boot){ .rank = (uint32_t)rank, .size = (uint32_t)size, .fd = (int)fd };
	/* Programs that this rank starts are not ranks and should not hold the job's memory. */
	fcntl(b->fd, F_SETFD, FD_CLOEXEC);
	return 0;
}
