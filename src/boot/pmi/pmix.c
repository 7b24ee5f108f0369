/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * PMIx: Open MPI's mpirun, PRRTE's prterun, srun --mpi=pmix.
 *
 * The library is loaded when a process finds PMIX_RANK, and not linked: one libtern
 * serves machines with and without it, and a program under `tern run` does not carry
 * the threads and the megabytes of something it does not use. Types and prototypes
 * are those of its header.
 */
#include "boot/pmi/pmi.h"

#include <dlfcn.h>
#include <errno.h>
#include <pmix.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* Of PMIx 3, 4 and 5; first the functions, as pmi_load() has them. */
static struct {
	__typeof__(PMIx_Init) *init;
	__typeof__(PMIx_Initialized) *initialized;
	__typeof__(PMIx_Finalize) *finalize;
	__typeof__(PMIx_Put) *put;
	__typeof__(PMIx_Commit) *commit;
	__typeof__(PMIx_Fence) *fence;
	__typeof__(PMIx_Get) *get;
	__typeof__(PMIx_Abort) *abort;
	__typeof__(PMIx_Error_string) *error_string;
	void *library;
	pmix_proc_t self;
} pmix;

static int pmix_load(void)
{
	static const char *const names[] = { "PMIx_Init", "PMIx_Initialized", "PMIx_Finalize",
					     "PMIx_Put",  "PMIx_Commit",      "PMIx_Fence",
					     "PMIx_Get",  "PMIx_Abort",       "PMIx_Error_string",
					     NULL };
	return pmi_load(&pmix.library, "libpmix.so.2", RTLD_NOW | RTLD_LOCAL, names, &pmix,
			"install PMIx 3 or newer (Debian: libpmix2)");
}

static int pmix_refused(const char *what, pmix_status_t status)
{
	return error_set(-EPROTO, "%s: PMIx said: %s", what, pmix.error_string(status));
}

/*
 * The values that we ask for own a string at most; the macros that free them need newer libraries.
 */
static void pmix_value_delete(pmix_value_t *v)
{
	if (v->type == PMIX_STRING)
		free(v->data.string);
	free(v);
}

static int pmix_job_size(uint32_t *size)
{
	pmix_proc_t job = pmix.self;
	pmix_value_t *v;
	job.rank = PMIX_RANK_WILDCARD;
	pmix_status_t status = pmix.get(&job, PMIX_JOB_SIZE, NULL, 0, &v);
	if (status != PMIX_SUCCESS)
		return pmix_refused("asking how many ranks the job has", status);
	int rc = v->type == PMIX_UINT32
			 ? 0
			 : error_set(-EPROTO, "PMIx did not say the number of ranks in 32 bits");
	if (!rc)
		*size = v->data.uint32;
	pmix_value_delete(v);
	return rc;
}

static int pmix_open(uint32_t *rank, uint32_t *size)
{
	pmix_status_t status = pmix.init(&pmix.self, NULL, 0);
	if (status != PMIX_SUCCESS)
		return error_set(-EPROTO,
				 "PMIx said: %s; start the program directly from the launcher",
				 pmix.error_string(status));
	*rank = pmix.self.rank;
	int rc = pmix_job_size(size);
	if (rc)
		pmix.finalize(NULL, 0);
	return rc;
}

static int pmix_put(const char *key, const char *value)
{
	pmix_value_t v = { .type = PMIX_STRING };
	v.data.string = (char *)(uintptr_t)value; /* only read */
	pmix_status_t status = pmix.put(PMIX_GLOBAL, key, &v);
	if (status == PMIX_SUCCESS)
		status = pmix.commit();
	return status == PMIX_SUCCESS
		       ? 0
		       : pmix_refused("telling the other ranks where this one is", status);
}

static int pmix_fence(void)
{
	pmix_info_t collect = { .key = PMIX_COLLECT_DATA, .value = { .type = PMIX_BOOL } };
	collect.value.data.flag = true;
	pmix_status_t status = pmix.fence(NULL, 0, &collect, 1);
	if (status == PMIX_ERR_PARTIAL_SUCCESS)
		return 0; /* a rank has died: what it has put is there, or pmix_get() names it */
	return status == PMIX_SUCCESS ? 0
				      : pmix_refused("waiting for the other ranks to join", status);
}

/* PMIX_ERR_TYPE_MISMATCH: it is no text of that length. */
static pmix_status_t pmix_text(uint32_t rank, const char *key, pmix_info_t *how, char *text,
			       size_t len)
{
	pmix_proc_t whose = pmix.self;
	pmix_value_t *v;
	whose.rank = rank;
	pmix_status_t status = pmix.get(&whose, key, how, how ? 1 : 0, &v);
	if (status != PMIX_SUCCESS)
		return status;
	if (v->type == PMIX_STRING && strlen(v->data.string) < len)
		strcpy(text, v->data.string);
	else
		status = PMIX_ERR_TYPE_MISMATCH;
	pmix_value_delete(v);
	return status;
}

static int pmix_get(uint32_t rank, const char *key, char *value, size_t len)
{
	pmix_info_t now = { .key = PMIX_IMMEDIATE, .value = { .type = PMIX_BOOL } };
	char what[64];
	snprintf(what, sizeof what, "asking where rank %u is", rank);
	now.value.data.flag = true;
	pmix_status_t status = pmix_text(rank, key, &now, value, len);
	if (status == PMIX_ERR_NOT_FOUND)
		return -ENODATA;
	if (status == PMIX_ERR_TYPE_MISMATCH)
		return error_set(-EPROTO, "%s: PMIx answered something else", what);
	return status == PMIX_SUCCESS ? 0 : pmix_refused(what, status);
}

static bool pmix_neighbours(char *list, size_t len)
{
	return pmix_text(PMIX_RANK_WILDCARD, PMIX_LOCAL_PEERS, NULL, list, len) == PMIX_SUCCESS;
}

/*
 * Open MPI's mpirun says how many ranks are here, and not which: that helps if it is all of them.
 * What Slurm's variables say may be of a step in which mpirun runs.
 */
static bool pmix_started(char *list, size_t len)
{
	const char *all = getenv("OMPI_COMM_WORLD_SIZE"),
		   *here = getenv("OMPI_COMM_WORLD_LOCAL_SIZE");
	if (!all || !here || strcmp(all, here) != 0)
		return false;
	size_t at = 0, ranks = strtoul(all, NULL, 10);
	for (size_t r = 0; r < ranks && at < len; r++)
		at += (size_t)snprintf(list + at, len - at, r ? ",%zu" : "%zu", r);
	return at < len;
}

static void pmix_close(void)
{
	pmix.finalize(NULL, 0);
}

/* Slurm kills the tasks of an aborted step, and srun returns 137 if no task returns more than 0. */
static bool pmix_kills(int status)
{
	return !status && strncmp(pmix.self.nspace, "slurm.", 6) == 0;
}

static bool pmix_open_already(void)
{
	return pmix_load() == 0 && pmix.initialized();
}

static int pmix_abort(int status)
{
	if (pmix_kills(status) || !pmix.initialized())
		return 0; /* ranks end by themselves */
	pmix_status_t said = pmix.abort(status, "a rank has called tern_exit()", NULL, 0);
	return said == PMIX_SUCCESS ? 0 : pmix_refused("ending the job", said);
}

const struct pmi_ops pmix_ops = {
	.name = "PMIx",
	.starters = "mpirun, prterun or srun --mpi=pmix",
	.sign = "PMIX_RANK",
	.count = "OMPI_COMM_WORLD_SIZE",
	.parallel = true,
	.counts = true,
	.load = pmix_load,
	.open = pmix_open,
	.put = pmix_put,
	.fence = pmix_fence,
	.get = pmix_get,
	.close = pmix_close,
	.abort = pmix_abort,
	.open_already = pmix_open_already,
	.mark = { "PMIX_NAMESPACE" },
	.number = "PMIX_RANK",
	.neighbours = pmix_neighbours,
	.started = pmix_started,
};
