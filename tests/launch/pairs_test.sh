#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: LABELS slow once TIMEOUT 900 RUN_SERIAL
# A job in which every rank has said a few words to every other takes no more memory than promised.
# Counted is what the machine has less of meanwhile, page tables and the kernel's part included.
set -uo pipefail
failed=0
out=$(mktemp)
trap 'rm -f "$out"' EXIT

available() { awk '/^MemAvailable/ { print $2 }' /proc/meminfo; }

# What else runs here takes and gives memory, too: the least of some runs counts.
takes_at_most() { # RANKS MIB RUNS
	local least='' before after parts sum
	for ((i = 0; i < $3; i++)); do
		before=$(available)
		nice -n 10 timeout 600 "$TERN_BIN/tern" run -n "$1" "$TERN_BIN/pairs_ranks" 3 >"$out" || {
			echo "FAIL $1 ranks ended with status $?"
			failed=1
			return
		}
		after=$(awk '/^available/ { print $2 }' "$out")
		((least = !i || before - after < least ? before - after : least))
		((least <= $2 * 1024)) && break
	done
	parts=$(awk '/KiB/ && !/available/ { printf " %s %d", $1, $2 / 1024 }' "$out")
	sum=$(awk '/KiB/ && !/available/ { s += $2 } END { print s }' "$out")
	((least = least < sum ? sum : least))
	echo "    $1 ranks take $((least / 1024)) MiB of $2:$parts"
	((least <= $2 * 1024)) || {
		echo "FAIL $1 ranks take more than $2 MiB"
		failed=1
	}
}

takes_at_most 64 64 5
takes_at_most 256 512 3
if (($(available) > 8 << 20)); then
	takes_at_most 1024 4096 2
else
	echo "skipped: 1024 ranks need 8 GiB"
fi
exit $failed
