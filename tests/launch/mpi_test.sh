#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: TIMEOUT 300 LOCK launch LABELS once
# MPI and Tern in one program, under the launchers of Open MPI and MPICH: whichever comes first and
# whichever leaves last, neither takes the launcher's process manager from the other.
. tests/lib/launch_frame.sh

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
lib=$TERN_BIN/../lib
compile() { # MPI SOURCE PROGRAM
	"mpicc.$1" -Wall -Wextra -O1 -g "$2" -o "$3" -Iinclude -L"$lib" -ltern \
		-Wl,-rpath,"$lib" -pthread >"$err" 2>&1 || fail "$2 does not compile with $1"
}
beside() { # ORDER [RANKS]
	local n=${2:-3}
	launch "$n" "$folder/ranks" "$1"
	check_status 0
	says "$n" "^rank [0-9]+ of [0-9]+: $1 is done\$"
}
# NAME: `launcher` and the program in $folder/ranks are of one MPI
mpi_suite() {
	local order
	for order in O OC IOCF IOFC OICF OIFC OCIF IOCOCF OICOFC TOCF TOFC; do
		sentence "$1: $order"
		beside $order
	done
	sentence "$1: tern_open() after MPI_Finalize() is refused with a sentence"
	beside IFOX
	says 3 '^refused: .*MPI_Finalize\(\) was called.*call tern_open\(\) before it'
	for order in IACF IAFC IACACF ISCF ISFC IACSCACF TACSCF; do
		sentence "$1, with an allgather of the program's: $order"
		beside $order 4
	done
	sentence "$1: both jobs, one after the other"
	beside IOCACSCF 4
	[[ $several ]] || return
	sentence "$1: on several machines"
	launch 5 "$spread" "$folder/ranks" IOFC
	check_status 0
	launch 5 "$spread" "$folder/ranks" IACSCF
	check_status 0
}
mpi_example() { # MPI
	sentence "$1: the example"
	compile "$1" examples/mpi/beside_mpi.c "$folder/example"
	launch 4 "$folder/example"
	check_status 0
	says 1 '^40000 numbers of 4 ranks were counted$'
}

ran=
if command -v mpicc.openmpi >/dev/null && usable PMIx; then
	compile openmpi tests/launch/mpi/beside_ranks.c "$folder/ranks"
	launcher=(mpirun.openmpi --oversubscribe)
	mpi_suite "Open MPI"
	mpi_example openmpi
	ran=yes
else
	echo "Open MPI: skipped, mpicc.openmpi or PMIx is not here (Debian: libopenmpi-dev, libpmix-dev)"
fi
if command -v mpicc.mpich >/dev/null; then
	compile mpich tests/launch/mpi/beside_ranks.c "$folder/ranks"
	launcher=(mpiexec.hydra)
	mpi_suite MPICH
	mpi_example mpich
	ran=yes
else
	echo "MPICH: skipped, mpicc.mpich is not here (Debian: libmpich-dev)"
fi
[[ $ran ]] || skip "there is no MPI"
finish
