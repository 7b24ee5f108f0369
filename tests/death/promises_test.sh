#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: LABELS once
# What tern(7) promises of failures is tested: tests/death/promises.md names a test for each event
# of its table, and that test is there.
set -uo pipefail

command -v ctest >/dev/null || {
	echo "skipped: ctest is not here"
	exit 77
}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0
fail() {
	echo "    failed: $1"
	failed=$((failed + 1))
}

# The first column of the table of tern(7), and the rows of the table of tests/death/promises.md:
# EVENT|WHERE|TEST|WORDS.
sed -n '/^\.Ss What is told of failures/,/^\.El/p' man/tern.7 |
	sed -n 's/^\.It \([^.].*\) Ta .* Ta .* Ta .*/\1/p' |
	grep -v '^Em event' >"$folder/promised"
sed -n 's/^| \(.*\) |$/\1/p' tests/death/promises.md |
	sed 's/ | /|/g' | tail -n +2 >"$folder/rows"
ctest --test-dir "$TERN_BIN/.." -N | sed -n 's/^ *Test *#[0-9]*: //p' >"$folder/tests"

echo "both tables have the same events"
[[ $(wc -l <"$folder/promised") -ge 19 && $(wc -l <"$folder/rows") -ge 40 ]] ||
	fail "a table is too short: it was not read"
cut -d'|' -f1 "$folder/rows" | sort -u >"$folder/tested"
[[ -z $(sort -u "$folder/promised" | comm -3 - "$folder/tested") ]] ||
	fail "the events differ: $(sort -u "$folder/promised" | comm -3 - "$folder/tested" |
	head -3)"

echo "every test that is named is there, and has the words"
while IFS='|' read -r event where test words; do
	grep -qx -- "$test" "$folder/tests" || {
		fail "$event ($where): ctest knows no $test"
		continue
	}
	sources=("$test".[cs]*)
	[[ $test == *mpirun* || $test == *slurm* || $test == *mpiexec* ]] &&
		sources+=(tests/lib/launch_frame.sh)
	grep -qF -- "$words" "${sources[@]}" 2>/dev/null ||
		fail "$event ($where): $test has not: $words"
done <"$folder/rows"

((failed == 0)) || echo "$failed failed"
exit $((failed > 0))
