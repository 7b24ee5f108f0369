/* SPDX-License-Identifier: BSD-3-Clause */
/* What is built in the place of pmix.c where the header of PMIx is missing. */
#include <errno.h>

#include "base/error.h"
#include "boot/pmi/pmi.h"

static int lacking_load(void)
{
	return error_set(-ENOTSUP, "this Tern was built without PMIx: build it again where pmix.h "
				   "is found (Debian: libpmix-dev)");
}

const struct pmi_ops pmix_ops = {
	.name = "PMIx",
	.starters = "mpirun, prterun or srun --mpi=pmix",
	.sign = "PMIX_RANK",
	.count = "OMPI_COMM_WORLD_SIZE",
	.load = lacking_load,
	.number = "PMIX_RANK",
};
