/* SPDX-License-Identifier: BSD-3-Clause */
/* Asks MPI, whichever it is: these two functions may be called at any time, by any thread. */
#include "boot/pmi/mpi.h"

#include <dlfcn.h>
#include <string.h>

static bool mpi_says(const char *name, bool *known)
{
	int (*ask)(int *flag);
	int flag = 0;
	void *found = dlsym(RTLD_DEFAULT, name);
	*known = found;
	memcpy(&ask, &found, sizeof ask);
	return found && ask(&flag) == 0 && flag;
}

enum mpi_use mpi_use(void)
{
	bool known, begun = mpi_says("MPI_Initialized", &known);
	if (!known)
		return MPI_USE_NONE;
	if (!begun)
		return MPI_USE_NOT_YET;
	return mpi_says("MPI_Finalized", &known) ? MPI_USE_OVER : MPI_USE_ACTIVE;
}

bool mpi_speaks_pmi1(void)
{
	return mpi_use() == MPI_USE_ACTIVE && !dlsym(RTLD_DEFAULT, "ompi_mpi_comm_world");
}
