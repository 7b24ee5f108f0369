#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: TIMEOUT 300 LOCK launch LABELS once
# Programs under Open MPI's mpirun, which speaks PMIx.
. tests/launch_frame.sh
need mpirun.openmpi openmpi-bin
usable PMIx || skip "this Tern was built without PMIx (Debian: libpmix-dev)"

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
launcher=(mpirun.openmpi --oversubscribe)
survive=--enable-recovery
launch_suite mpirun

sentence "mpirun: TERN_ALONE=1 makes jobs of one"
TERN_ALONE=1 launch 2 "$bin/hello"
check_status 0
says 2 '^rank 0: rank 0 says 42$'

sentence "mpirun: a rank that says nothing to Tern does not stand in the way of the launcher"
launch 3 true
check_status 0

if ((EUID == 0)); then
	sentence "without PMIx's library a rank says what is missing, and that it is one of several"
	library=$(ldconfig -p | awk '/libpmix.so.2 /{ print $NF; exit }')
	PMIX_RANK=0 unshare --mount sh -c 'mount --bind /dev/null "$1" && exec "$0"' "$bin/hello" "$(readlink -f "$library")" \
		>"$out" 2>&1 && fail "the status is 0"
	says 1 '^hello: PMIX_RANK=0 says that mpirun.*cannot be loaded.*libpmix2.*TERN_ALONE=1'
fi

finish
