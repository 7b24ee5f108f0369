#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A rank that crashes leaves a core file of what is its own, and the job's memory does not grow over
# it.
set -uo pipefail
. tests/lib/frame.sh

pattern=$(</proc/sys/kernel/core_pattern)
if [[ $pattern == *[!a-zA-Z0-9._%]* || $pattern == *%[!pPt]* ]]; then
	echo "core files are not written to the working directory: core_pattern is '$pattern'"
	exit 77
fi
if ! ulimit -c unlimited; then
	echo "core files are not allowed here"
	exit 77
fi

crash() { # ARGUMENTS of tern run: leaves the core file's size in $size, in MiB
	rm -f "$folder"/core*
	(cd "$folder" && "$tern" run --survive "$@" "$TERN_BIN/core_ranks" crash) >"$out" 2>"$err"
	size=$(find "$folder" -name 'core*' -printf '%s\n' | sort -n | tail -1)
	if [[ ! $size ]]; then
		echo "the kernel has written no core file"
		exit 77
	fi
	size=$((size >> 20))
}

sentence "the core file of one of 8 ranks has at most 64 MiB, and what the rank used is in it"
crash -n 8
((size <= 64)) || fail "it has $size MiB"
((size >= 8)) || fail "it has $size MiB"
sentence "and the job's memory has not grown meanwhile"
count_out 7 '^grown 0$'

sentence "with TERN_CORE=all the memory of all ranks is in it"
TERN_CORE=all TERN_HEAP=32M crash -n 2
((size >= 64)) || fail "it has $size MiB"
finish
