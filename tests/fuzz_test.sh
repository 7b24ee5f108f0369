#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: TIMEOUT 300 LABELS slow once
# libFuzzer on everything that reads bytes from outside, from the kept corpus on; RUNS=n makes it longer,
# and KEEP=1 adds what it finds to tests/corpus.
set -uo pipefail

runs=${RUNS:-20000}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0
if ! echo 'int LLVMFuzzerTestOneInput(const char *p, long n) { return p && n < 0; }' >"$folder/probe.c" ||
	! clang -fsanitize=fuzzer "$folder/probe.c" -o "$folder/probe" 2>/dev/null; then
	echo "skipped: clang has no libFuzzer here (packages clang and libclang-rt-14-dev)"
	exit 77
fi
base="src/base/error.c src/base/setting.c src/base/nearest.c src/base/kernel.c src/base/world.c src/base/cpu.c"
packet="$(ls src/net/packet/*.c src/service/*.c) src/ring/lane.c src/ring/inlet.c src/net/talk.c src/net/circle.c
	src/net/shm/job.c"
for target in packet plan; do
	sources=$base
	[[ $target == packet ]] && sources+=" $packet"
	[[ $target == plan ]] && sources+=" src/net/fault/plan.c"
	# shellcheck disable=SC2086
	clang -g -O1 -D_GNU_SOURCE -DFUZZ -std=c11 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined \
		-Iinclude -Isrc -Itests "tests/fuzz_${target}_test.c" $sources -lpthread -o "$folder/$target" ||
		{ echo "FAIL $target does not compile"; failed=1; continue; }
	corpus=tests/corpus/$target
	[[ ${KEEP:-} ]] || { cp -r "$corpus" "$folder/corpus_$target" && corpus=$folder/corpus_$target; }
	if "$folder/$target" -runs="$runs" -max_len=4096 -artifact_prefix="$folder/" "$corpus" >"$folder/log" 2>&1; then
		echo "ok   $target: $(grep -oE 'cov: [0-9]+' "$folder/log" | tail -1), $runs runs"
	else
		echo "FAIL $target"
		tail -30 "$folder/log"
		failed=1
	fi
done
exit $failed
