#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: TIMEOUT 120 LABELS once
# Programs that follow from seeds, on every network, beside a plain model of what each call must
# give; docs/testing.md says more. TEST_SEED=n begins with another seed.
. tests/seeds/crossings/frame.sh
first=${TEST_SEED:-1}
{
	seeds "$first" 14 "${one_machine[@]}"
	seeds $((first + 100)) 2 "${profiles[@]}"
	seeds $((first + 200)) 3 "${two_machines[@]}"
	echo "shm 99"
	echo "sim:cluster 199"
} | play_all || failed=1
export RANKS=4
{
	deaths 5 41 0
	pairs 5 12
} | play_all || failed=1
exit ${failed:-0}
