#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# fuzz.sh PROGRAM SECONDS: libFuzzer on one target, from its kept corpus on; KEEP=1 adds to
# tests/fuzz/corpus what it finds, as few files as reach the same. What made it fail stays in the
# folder of its program.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit 1

program=$1 seconds=$2
name=${program##*/fuzz_}
kept=$PWD/tests/fuzz/corpus/$name
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
mkdir "$folder/corpus"
options=(-max_len=4096 -timeout=20 -rss_limit_mb=4096 -close_fd_mask=3 -print_final_stats=1
	-artifact_prefix="$(dirname "$program")/$name-")
export ASAN_OPTIONS=detect_leaks=1:allocator_may_return_null=1 TERN_UDP_BIND=127.0.0.1

if ! "$program" "${options[@]}" -max_total_time="$seconds" "$folder/corpus" "$kept" >"$folder/log" \
	2>&1; then
	tail -60 "$folder/log"
	echo "FAIL $name"
	exit 1
fi
# A target that ends its process ends the fuzzing with it, and its status may be 0.
if ! grep -q '^Done [0-9]* runs' "$folder/log"; then
	tail -60 "$folder/log"
	echo "FAIL $name: the target ended its process before the $seconds seconds were over"
	exit 1
fi
awk -v name="$name" '/cov:/ { for (i = 1; i < NF; i++) if ($i == "cov:") cov = $(i + 1) }
	/number_of_executed_units/ { runs = $2 }
	END { print "ok   " name ": " runs " runs, " cov " places reached" }' "$folder/log"
if [[ ${KEEP:-} ]]; then
	mkdir "$folder/fewer"
	"$program" "${options[@]}" -merge=1 "$folder/fewer" "$kept" "$folder/corpus" \
		>"$folder/log" 2>&1 || exit 1
	# those with names stay
	find "$kept" -type f -regextype posix-extended -regex '.*/[0-9a-f]{40}' -delete
	cp "$folder"/fewer/* "$kept"
fi
