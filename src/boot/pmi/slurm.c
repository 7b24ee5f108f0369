/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PMI-1 through Slurm's own library: a plain `srun`, where neither PMIx nor PMI-2 was asked
 * for. Its interface is as old as PMI-1 and small, so no header is needed; it is loaded
 * when it is needed, as PMIx is.
 */
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "boot/pmi/pmi.h"

/* First the functions, as pmi_load() has them. */
static struct {
	int (*init)(int *spawned);
	int (*initialized)(int *flag);
	int (*finalize)(void);
	int (*get_rank)(int *rank);
	int (*get_size)(int *size);
	int (*my_name)(char *table, int len);
	int (*put)(const char *table, const char *key, const char *value);
	int (*commit)(const char *table);
	int (*barrier)(void);
	int (*get)(const char *table, const char *key, char *value, int len);
	void *library;
	char table[256];
} slurm;

/* Global: its plugins look there for what they need of it. */
static int slurm_load(void)
{
	static const char *const names[] = { "PMI_Init",
					     "PMI_Initialized",
					     "PMI_Finalize",
					     "PMI_Get_rank",
					     "PMI_Get_size",
					     "PMI_KVS_Get_my_name",
					     "PMI_KVS_Put",
					     "PMI_KVS_Commit",
					     "PMI_Barrier",
					     "PMI_KVS_Get",
					     NULL };
	return pmi_load(&slurm.library, "libpmi.so.0", RTLD_NOW | RTLD_GLOBAL, names, &slurm,
			"install it (Debian: libpmi0), or use srun --mpi=pmix or --mpi=pmi2");
}

static int slurm_answer(const char *what, int code)
{
	return code == 0 ? 0
			 : error_set(-EPROTO,
				     "%s: Slurm's PMI-1 failed with %d; use srun --mpi=pmix or "
				     "--mpi=pmi2",
				     what, code);
}

static int slurm_open(uint32_t *rank, uint32_t *size)
{
	int spawned, r, n;
	int rc = slurm_answer("joining the job of srun", slurm.init(&spawned));
	if (!rc)
		rc = slurm_answer("asking for the rank", slurm.get_rank(&r));
	if (!rc)
		rc = slurm_answer("asking for the number of ranks", slurm.get_size(&n));
	if (!rc)
		rc = slurm_answer("asking for the job's table",
				  slurm.my_name(slurm.table, sizeof slurm.table));
	if (rc)
		return rc;
	*rank = (uint32_t)r;
	*size = (uint32_t)n;
	return 0;
}

static int slurm_put(const char *key, const char *value)
{
	int rc = slurm_answer("telling the other ranks where this one is",
			      slurm.put(slurm.table, key, value));
	return rc ? rc
		  : slurm_answer("telling the other ranks where this one is",
				 slurm.commit(slurm.table));
}

static int slurm_fence(void)
{
	return slurm_answer("waiting for the other ranks to join", slurm.barrier());
}

static int slurm_get(uint32_t rank, const char *key, char *value, size_t len)
{
	char what[64];
	snprintf(what, sizeof what, "asking where rank %u is", rank);
	return slurm_answer(what, slurm.get(slurm.table, key, value, (int)len));
}

/* Also for its PMI-2, which has no other way to say so. */
bool pmi_slurm_neighbours(char *list, size_t len)
{
	const char *tasks = getenv("SLURM_GTIDS");
	if (!tasks || strlen(tasks) >= len)
		return false;
	strcpy(list, tasks);
	return true;
}

/* MPI may have closed it. */
static void slurm_close(void)
{
	int flag = 0;
	if (slurm.initialized(&flag) == 0 && flag)
		slurm.finalize();
}

const struct pmi_ops pmi_slurm_ops = {
	.name = "Slurm's PMI-1",
	.starters = "srun",
	.sign = "SLURM_STEP_NUM_TASKS",
	.count = "SLURM_STEP_NUM_TASKS",
	.outermost = true,
	.load = slurm_load,
	.open = slurm_open,
	.put = slurm_put,
	.fence = slurm_fence,
	.get = slurm_get,
	.close = slurm_close,
	.mark = { "SLURM_JOB_ID", "SLURM_STEP_ID" },
	.number = "SLURM_PROCID",
	.neighbours = pmi_slurm_neighbours,
	.started = pmi_slurm_neighbours,
};
