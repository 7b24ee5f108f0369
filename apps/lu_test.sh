#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The LU factorisation stressmark.
. apps/test.sh

sentence "factors are those of the serial algorithm, on any grid of ranks"
for ranks in 1 2 3 6 8; do
	shared lu 3 $ranks --size 42 --block 6
done
shared lu 6 4 --size 8 --block 1,8

sentence "so they are over UDP with faults, and on simulated machines"
faults lu 3 4 --size 20 --block 4
simulated lu 3 6 --size 20 --block 4

sentence "wrong sizes are refused in one sentence"
refused lu 2 "--block 7 does not divide --size 512" --block 7
finish
