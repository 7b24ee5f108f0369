/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * MPI in the same process, if there is one. It uses the launcher's process manager too, and some
 * managers can be closed once only, for everybody in the process.
 */
#ifndef TERN_BOOT_PMI_MPI_H
#define TERN_BOOT_PMI_MPI_H

#include <stdbool.h>

enum mpi_use {
	MPI_USE_NONE, /* the process has no MPI, as far as can be seen */
	MPI_USE_NOT_YET,
	MPI_USE_ACTIVE, /* between MPI_Init() and MPI_Finalize() */
	MPI_USE_OVER,
};

enum mpi_use mpi_use(void);

/* Whether it speaks PMI-1 on the descriptor of PMI_FD now: all do but Open MPI. */
bool mpi_speaks_pmi1(void);

#endif
