#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: TIMEOUT 300 LOCK launch LABELS once
# Programs under MPICH's mpiexec, which speaks PMI-1.
. tests/launch_frame.sh
need mpiexec.hydra mpich

launcher=(mpiexec.hydra)
survive= # its -disable-auto-cleanup does not do what it says
launch_suite mpiexec

finish
