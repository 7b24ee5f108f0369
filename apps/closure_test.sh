#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The transitive closure stressmark.
. apps/test.sh

sentence "distances are those of the serial algorithm, on any grid of ranks"
for ranks in 1 2 3 6 8; do
	shared closure 3 $ranks --vertices 41
done
shared closure 9 4 --vertices 1,2,5
shared closure 6 2 --vertices 20 --density 0,100

sentence "so they are over UDP with faults, and on simulated machines"
faults closure 3 4 --vertices 14
simulated closure 3 6 --vertices 14

sentence "wrong sizes are refused in one sentence"
refused closure 2 "--density is '101'; it must be" --density 101
finish
