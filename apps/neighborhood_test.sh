#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The neighborhood stressmark.
. apps/test.sh

sentence "histograms, entropy and energy are those of the serial algorithm"
for ranks in 1 2 3 8; do
	shared neighborhood 2 $ranks --side 21 --bits 5
done
shared neighborhood 4 5 --side 4,9 --bits 1
shared neighborhood 2 2 --side 20 --bits 11

sentence "so they are over UDP with faults, and on simulated machines"
faults neighborhood 2 3 --side 8 --bits 3
simulated neighborhood 2 5 --side 8 --bits 3

sentence "wrong sizes are refused in one sentence"
refused neighborhood 2 "--bits is '16'; it must be a whole number from 1 to 15" --bits 16
finish
