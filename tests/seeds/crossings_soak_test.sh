#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: TIMEOUT 14400 LABELS soak once
# Hours of crossings_all_test.sh, with seeds that nobody has seen: SOAK_SEEDS on each network. A
# failure names its seed.
. tests/seeds/crossings/frame.sh
first=${TEST_SEED:-$((RANDOM * 32768 + RANDOM))} many=${SOAK_SEEDS:-2000}
echo "seeds from $first on"
{
	seeds "$first" "$many" "${one_machine[@]}"
	seeds $((first + 20000)) $((many / 4)) "${profiles[@]}"
	seeds $((first + 40000)) $((many / 4)) "${two_machines[@]}"
} | play_all || exit 1
export RANKS=4
for ((seed = first; seed < first + many / 200; seed++)); do
	{
		deaths "$seed" 1 0
		pairs "$seed" 500
	} | play_all || exit 1
done
