/* SPDX-License-Identifier: BSD-3-Clause */
/* Asks the environment who has started this process, and joins that job. */
#include "boot/boot.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tern/tern.h>

#include "base/error.h"
#include "base/setting.h"
#include "boot/join.h"
#include "boot/pmi/mpi.h"

/* Variables that say how many ranks there are, of launchers whose process manager is not there. */
static const struct {
	const char *variable, *launcher;
} others[] = {
	{ "OMPI_COMM_WORLD_SIZE", "Open MPI's mpirun" },
	{ "PMI_SIZE", "an mpiexec" },
	{ "MPI_LOCALNRANKS", "MPICH's mpiexec" },
	{ "MV2_COMM_WORLD_SIZE", "MVAPICH's mpirun" },
	{ "FLUX_JOB_SIZE", "Flux" },
	{ "JSM_NAMESPACE_SIZE", "IBM's jsrun" },
};

/* 0 if it does not say. */
static int ranks_said(const char *variable)
{
	const char *value = getenv(variable);
	return value ? atoi(value) : 0;
}

static int boot_refuse(const char *variable, const char *launcher, int rc, const char *why)
{
	return error_set(
		rc,
		"%s=%s says that %s started this process as one of several, but it cannot join "
		"them: "
		"%s. Or use `tern run`, or set TERN_ALONE=1 for jobs of one rank",
		variable, getenv(variable), launcher, why);
}

static int boot_join(const struct pmi_ops *pmi, struct boot *b, bool (*fabric)(void))
{
	char why[400];
	int rc = join_through(pmi, b, fabric);
	if (!rc || rc == -EOWNERDEAD || rc == -ETIMEDOUT)
		return rc; /* which says nothing of the launcher */
	snprintf(why, sizeof why, "%s", tern_strerror(rc));
	return boot_refuse(pmi->sign, pmi->starters, rc, why);
}

static bool same_text(const char *a, const char *b)
{
	return a && b && strcmp(a, b) == 0;
}

/*
 * Slurm lets one client in a process begin on PMI_FD, and MPI would hang if that was us. Its own
 * library takes another way. mpiexec.hydra, which may run in a step of Slurm's, sets
 * MPI_LOCALNRANKS, and lets anybody begin.
 */
static const struct pmi_ops *boot_beside_mpi(const struct pmi_ops *pmi)
{
	bool slurm = same_text(getenv("PMI_RANK"), getenv("SLURM_PROCID")) &&
		     getenv(pmi_slurm_ops.sign) && !getenv("MPI_LOCALNRANKS");
	return pmi == &pmi1_ops && slurm && mpi_use() == MPI_USE_NOT_YET ? &pmi_slurm_ops : pmi;
}

/*
 * A launcher may have been started by another one, whose variables are still there: the one
 * that has several ranks is meant.
 */
static int boot_launched(struct boot *b, bool (*fabric)(void))
{
	bool signs = false;
	for (int i = 0; i < PMI_PROTOCOLS; i++) {
		const struct pmi_ops *pmi = pmi_table[i];
		if (!getenv(pmi->sign) || (pmi->outermost && signs))
			continue;
		signs = true;
		if (ranks_said(pmi->count) == 1)
			continue;
		int rc = boot_join(boot_beside_mpi(pmi), b, fabric);
		if (rc || b->size > 1)
			return rc;
		if (ranks_said(pmi->count) > 1)
			return boot_refuse(
				pmi->count, pmi->starters, -ENOTSUP,
				"its process manager knows of one rank only; "
				"start the program directly from the launcher, under Slurm with "
				"srun --mpi=pmix");
	}
	for (unsigned i = 0; !signs && i < sizeof others / sizeof *others; i++)
		if (ranks_said(others[i].variable) > 1)
			return boot_refuse(others[i].variable, others[i].launcher, -ENOTSUP,
					   "it offers neither PMIx (PMIX_RANK) nor PMI-1 (PMI_FD); "
					   "start the program with a launcher that does");
	return 0;
}

static int boot_unlaunched(struct boot *b, bool (*fabric)(void))
{
	uint64_t alone;
	int rc = setting_number(SETTING_ALONE, &alone);
	*b = (struct boot){ .rank = 0, .size = 1, .fd = -1 };
	return rc || alone ? rc : boot_launched(b, fabric);
}

static int boot_number(enum setting s, uint64_t most, uint64_t *value)
{
	int rc = setting_number(s, value);
	if (!rc && *value > most)
		rc = error_set(-EINVAL, "%s=%s is out of range", setting_table[s].name,
			       setting_text(s));
	return rc;
}

int boot_find(struct boot *b, const tern_options *o, bool (*fabric)(void))
{
	uint64_t rank, size, fd;
	if (o && (o->allgather || o->rank || o->size))
		return join_gathered(o, b, fabric);
	if (!setting_given(SETTING_JOB_FD))
		return boot_unlaunched(b, fabric);
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
