#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: TIMEOUT 180
# lab/scmp.sh: the tables of SCMP's stressmarks, and what they say of small problems.
set -uo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0
fail() {
	echo "    failed: $1"
	failed=$((failed + 1))
}
table() { BUILD=${TERN_BIN%/bin} lab/scmp.sh --quick --data "$folder/data" "$@" 2>"$folder/err"; }
cell() { awk -F'|' -v row="$1" -v column="$2" '$2 $3 ~ row { print $column + 0 }' "$folder/table"; }

echo "what is sent beforehand beats what is asked for, where nodes wait for each other"
table --nodes 1,8 --plot "$folder/plot.svg" improvement >"$folder/table" || fail "the status is $?"
[[ $(wc -l <"$folder/table") == 7 ]] || fail "the table has $(wc -l <"$folder/table") lines"
for least in neighborhood:4 matrix:1 closure:2 ready:2 rendezvous:4; do
	gain=$(cell "${least%:*}" 5)
	awk -v a="$gain" -v b="${least#*:}" 'BEGIN { exit !(a > b) }' || fail "${least%:*}: $gain %"
done
awk -v a="$(cell rendezvous 4)" 'BEGIN { exit !(a == 0) }' || fail "one node has no one to wait for"

echo "the picture has a panel for each stressmark"
grep -q 'LU</text>' "$folder/plot.svg" && grep -q '</svg>' "$folder/plot.svg" || fail "no picture"

echo "what was run is kept, and not run again"
runs=$(wc -l <"$folder/data")
table --nodes 1,8 speedup >"$folder/table" || fail "the status is $?"
[[ $(wc -l <"$folder/data") == "$runs" ]] || fail "$(wc -l <"$folder/data") runs, and $runs before"
[[ $(grep -c '^| LU ' "$folder/table") == 3 ]] || fail "LU has $(grep -c '^| LU ' "$folder/table") rows"

echo "each change of the machine is switched off alone"
table --at 4 changes >"$folder/table" || fail "the status is $?"
[[ $(grep -c '^| ' "$folder/table") == 10 ]] || fail "$(grep -c '^| ' "$folder/table") rows"

echo "a request thread ends sooner where the queue has room for a block and the word that it has come"
neighborhood() { # FLITS STYLE: ns on 16 nodes
	timeout 60 "$TERN_BIN/tern" sim -n 16 --profile scmp --set "queue=$1" \
		"$TERN_BIN/apps/neighborhood" --naive 1 --side 64 --variant "$2" --repeat 1 --json |
		sed -nE 's/.*"seconds": ([0-9.e-]+),.*/\1/p' | awk '{ printf "%.0f", $1 * 1e9 }'
}
narrow=$(neighborhood 8 active) wide=$(neighborhood 16 active) wider=$(neighborhood 32 active)
((narrow * 95 > wide * 100)) || fail "$wide ns with 16 flits, $narrow with 8"
((wider * 98 < wide * 100 && wide * 98 < wider * 100)) || fail "$wider ns with 32 flits, $wide with 16"

echo "a mistake is refused"
BUILD=${TERN_BIN%/bin} lab/scmp.sh --swift 2>"$folder/err" && fail "--swift is taken"
grep -q 'there is no --swift' "$folder/err" || fail "it says $(<"$folder/err")"
((failed == 0)) || echo "$failed failed"
exit $((failed > 0))
