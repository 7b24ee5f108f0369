#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: TIMEOUT 60 LABELS once
# What scripts/test.sh counts as a failure, on a small project of its own.
set -uo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0

# A test fails at its first run, saying SENTENCE, and passes from then on.
mkdir "$folder/scripts"
cp scripts/test.sh "$folder/scripts/"
cat >"$folder/CMakePresets.json" <<'END'
{ "version": 3,
  "configurePresets": [ { "name": "dev", "binaryDir": "build", "generator": "Unix Makefiles" } ] }
END
cat >"$folder/first.sh" <<'END'
[[ -e $1.ran ]] && exit 0
touch "$1.ran"
echo "$2"
exit 1
END
try() { # STATUS LAST_LINE SENTENCE: of one test that passes and one that says SENTENCE first
	rm -rf "$folder/build" "$folder/odd.ran"
	cat >"$folder/CMakeLists.txt" <<END
cmake_minimum_required(VERSION 3.22)
project(small NONE)
enable_testing()
add_custom_target(tests)
add_test(NAME even COMMAND true)
add_test(NAME odd COMMAND bash $folder/first.sh $folder/odd "$3")
END
	(cd "$folder" && JOBS=1 scripts/test.sh dev) >"$folder/out" 2>&1 </dev/null
	local status=$?
	if [[ $status != "$1" || $(tail -1 "$folder/out") != "$2" ]]; then
		echo "    failed: after '$3' the status is $status, and the last line is:" \
			"$(tail -1 "$folder/out")"
		failed=$((failed + 1))
	fi
}

echo "a test that fails beside others and passes alone has passed, and is named"
try 0 "2 passed, 0 failed, 0 skipped" "the peer did not come"
grep -qx 'Failed beside others, passed alone: odd (dev)' "$folder/out" || {
	echo "    failed: it is not named"
	failed=$((failed + 1))
}
echo "what a sanitizer found has failed, though it does not come again"
try 1 "1 passed, 1 failed, 0 skipped" "x.c:1:2: runtime error: signed integer overflow"
try 1 "1 passed, 1 failed, 0 skipped" "WARNING: ThreadSanitizer: data race"
echo "so has a crash"
try 1 "1 passed, 1 failed, 0 skipped" "rank 1 was killed by signal 11"
echo "so has a test that fails alone, too"
sed -i 's/^touch.*//' "$folder/first.sh"
try 1 "1 passed, 1 failed, 0 skipped" "the peer did not come"
exit $((failed > 0))
