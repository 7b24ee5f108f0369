#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Unbalanced tree search.
. apps/test.sh

sentence "the ranks count the nodes, leaves and depths of the serial search"
for ranks in 1 2 3 8; do
	shared uts 3 $ranks
done
shared uts 6 5 --root 1,7 --odds 0 --work 0
shared uts 6 3 --seed 1,2 --children 9 --odds 100

sentence "so they do over UDP with faults, and on simulated machines"
faults uts 3 3
simulated uts 3 7

sentence "stealing makes ranks busy more evenly than dealing out does"
lean=(--root 2 --children 2 --odds 495 --seed 14 --work 400) # two trees for eight ranks
most() { sed -n 's/.*"most over mean": \([0-9.]*\).*/\1/p' "$out"; }
launch sim -n 8 --profile cluster "$TERN_BIN/apps/uts" --json --variant static "${lean[@]}"
dealt=$(most)
launch sim -n 8 --profile cluster "$TERN_BIN/apps/uts" --json --variant steal-half "${lean[@]}"
awk -v a="$dealt" -v b="$(most)" 'BEGIN { exit !(b < a) }' || fail "$dealt and $(most)"

sentence "a tree without end is refused"
refused uts 2 "--children 4 times --odds 250 is 1000 or more" --odds 250
finish
