#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: TIMEOUT 900 LABELS slow once
# More seeds than crossings_test.sh; and a rank dies at each event of each call of a team of four.
. tests/seeds/crossings/frame.sh
first=${TEST_SEED:-1000}
{
	seeds "$first" 60 "${one_machine[@]}"
	seeds $((first + 400)) 8 "${profiles[@]}"
	seeds $((first + 600)) 15 "${two_machines[@]}"
} | play_all || failed=1
export RANKS=4
{
	deaths 5 1 0
	pairs 5 150
} | play_all || failed=1
exit ${failed:-0}
