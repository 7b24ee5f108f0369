#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The conjugate gradient stressmark.
. apps/test.sh

sentence "the solution is found, on any grid of ranks"
for ranks in 1 2 3 6 8; do
	shared cg 3 $ranks --rows 400
done
shared cg 9 4 --rows 1,3,5 --offsets 2
shared cg 3 2 --rows 20 --offsets 0

sentence "so it is over UDP with faults, and on simulated machines"
faults cg 3 4 --rows 100 --offsets 1
simulated cg 3 6 --rows 100 --offsets 1

sentence "an iteration too few is found out"
launch run -n 2 "$TERN_BIN/apps/cg" --rows 400 --iterations 3 --repeat 1
[[ $status == 1 ]] || fail "the status is $status"

sentence "wrong sizes are refused in one sentence"
refused cg 2 "--rows is '0'; it must be" --rows 0
finish
