/* SPDX-License-Identifier: BSD-3-Clause */
/* What is built in the place of pmix.c where the header of PMIx is missing. */
#include <stdio.h>

#include "boot/pmi/pmi.h"

static bool lacking_usable(char *why, size_t len)
{
	snprintf(why, len,
		 "this Tern was built without PMIx: build it again where pmix.h is found "
		 "(Debian: libpmix-dev)");
	return false;
}

const struct pmi_ops pmix_ops = {
	.name = "PMIx",
	.starters = "mpirun, prterun or srun --mpi=pmix",
	.sign = "PMIX_RANK",
	.count = "OMPI_COMM_WORLD_SIZE",
	.usable = lacking_usable,
	.number = "PMIX_RANK",
};
