#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The neighborhood stressmark.
. apps/test.sh

sentence "histograms, entropy and energy are those of the serial algorithm"
for ranks in 1 2 3 8; do
	shared neighborhood 3 $ranks --side 21 --bits 5
done
shared neighborhood 6 5 --side 4,9 --bits 1
shared neighborhood 3 2 --side 20 --bits 11

sentence "so they are over UDP with faults, and on simulated machines"
faults neighborhood 3 3 --side 8 --bits 3
simulated neighborhood 3 5 --side 8 --bits 3

sentence "wrong sizes are refused in one sentence"
refused neighborhood 2 "--bits is '16'; it must be a whole number from 1 to 15" --bits 16
sentence "a node whose controller handles messages has a clock that does not go back"
launch sim -n 16 --profile scmp --trace "$folder/trace" "$TERN_BIN/apps/neighborhood" --json \
	--repeat 1 --variant active --side 64
right 1 "neighborhood on 16 nodes with a trace"
"$tern" trace "$folder/trace" >"$out" 2>"$err" || fail "tern trace fails"

sentence "every rank may begin with the same one"
shared neighborhood 3 5 --side 40 --bits 5 --naive 1

finish
