#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The pipelined banded triangular solve in five versions.
. apps/test.sh

sentence "every version gives the serial solution, whether or not the ranks divide the rows"
for ranks in 1 2 3; do
	shared banded 5 $ranks --n 50
done
shared banded 5 5 --n 3 --m 2
shared banded 4 8 --n 30 --variant send,message,channel,fetch
shared banded 5 2 --n 5 --m 1024

sentence "so it does over UDP with faults, and on simulated machines"
faults banded 4 3 --n 40 --variant send,message,channel,fetch
simulated banded 4 7 --n 40

sentence "what a simulated machine does not have is skipped, and said"
launch sim -n 2 --profile cluster "$TERN_BIN/apps/banded" --n 10 --variant interrupt
grep -qE '^interrupt +skipped: ' "$out" || fail "it is not"

sentence "wrong sizes are refused in one sentence"
refused banded 2 "--m is '2000'; it must be a whole number from 0 to 1024" --m 2000
finish
