#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Bucket sort.
. apps/test.sh

sentence "the buckets of all ranks are the sorted keys"
for ranks in 1 2 3 8; do
	shared sort 3 $ranks --keys 1001
done
shared sort 6 5 --keys 1,2

sentence "so they are over UDP with faults, and on simulated machines"
faults sort 3 3 --keys 300
simulated sort 3 7 --keys 60

sentence "wrong sizes are refused in one sentence"
refused sort 2 "--keys is 'many'; it must be" --keys many
refused sort 8 "take .* MiB for each rank" --keys 268435456
finish
