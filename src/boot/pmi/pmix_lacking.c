/* SPDX-License-Identifier: BSD-3-Clause */
/* What is built in the place of pmix.c where the header of PMIx is missing. */
#include <errno.h>
#include <stdio.h>

#include "base/error.h"
#include "boot/pmi/pmi.h"

static const char lacking[] =
	"this Tern was built without PMIx: build it again where pmix.h is found "
	"(Debian: libpmix-dev)";

static bool lacking_usable(char *why, size_t len)
{
	snprintf(why, len, "%s", lacking);
	return false;
}

static int lacking_open(uint32_t *rank, uint32_t *size)
{
	(void)rank, (void)size;
	return error_set(-ENOTSUP, "%s", lacking);
}

const struct pmi_ops pmix_ops = {
	.name = "PMIx",
	.starters = "mpirun, prterun or srun --mpi=pmix",
	.sign = "PMIX_RANK",
	.count = "OMPI_COMM_WORLD_SIZE",
	.usable = lacking_usable,
	.open = lacking_open,
	.number = "PMIX_RANK",
};
