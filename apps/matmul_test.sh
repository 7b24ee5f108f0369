#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Matrix multiply, and what the frame does for every program: options, lists, tables, JSON, errors.
. apps/test.sh

sentence "every variant gives the product, whether or not the ranks divide the columns"
small=(--rows 20 --inner 33 --columns 14)
for ranks in 1 2 3 5 8; do
	shared matmul 3 $ranks "${small[@]}"
done
shared matmul 3 5 --rows 1 --inner 1 --columns 1
shared matmul 3 2 --rows 1500 --inner 5 --columns 3

sentence "so does it over UDP with faults, and on simulated machines"
faults matmul 3 3 "${small[@]}"
simulated matmul 3 7 "${small[@]}"

sentence "lists of sizes are played in every combination"
shared matmul 12 2 --rows 4,8 --columns 3,5 --inner 7
shared matmul 2 2 --rows 4,8 --variant prefetch --flops 4000

sentence "a table has a row for each variant, and a prediction where LogP parameters are given"
printf 'words.2.%s = 100 90 110\n' o_s L o_r g >"$folder/logp"
echo 'G = 0.5' >>"$folder/logp"
launch run -n 2 "$TERN_BIN/apps/matmul" "${small[@]}" --logp "$folder/logp" --progress
[[ $status == 0 ]] || fail "the status is $status"
[[ $(grep -cE '^(blocking|prefetch|message) +[0-9.]+ [num]?s .* us +[0-9]+ +0 ' "$out") == 3 ]] ||
	fail "the table is another: $(<"$out")"
grep -q '^matmul: message, round 5 of 5$' "$err" || fail "there is no progress"

sentence "TERN_STATS=1 tells messages and bytes of each layer"
TERN_STATS=1 launch run -n 2 "$TERN_BIN/apps/matmul" "${small[@]}" --variant message --json
asked='"user messages": 132, "user bytes": [1-9]'
grep -q "$asked" "$out" || fail "2 ranks ask for 33 columns and are answered: $(<"$out")"

sentence "wrong input is refused in one sentence"
refused matmul 3 "--rows is '0'; it must be a whole number from 1 to 65536" --rows 0
refused matmul 3 "--rows is '7x'; it must be" --rows 7x
refused matmul 1 "--rows is '7,,8'; it must be" --rows 7,,8
refused matmul 2 "no option '--row'" --row 3
refused matmul 2 "'rows' is no option" rows
refused matmul 2 "--rows needs a value" --rows
refused matmul 2 "no 'fast'; --help lists" --variant blocking,fast
refused matmul 2 "--flops 10 is less than one outer product" --flops 10
refused matmul 2 "take .* MiB for each rank, .* more than the machine has" \
	--rows 65536 --inner 1048576
refused matmul 2 "--logp /nowhere: it cannot be read" --logp /nowhere
echo 'G = 1' >"$folder/logp"
refused matmul 2 "--logp .*: it lacks words.2.o_s" --logp "$folder/logp"

sentence "--help names every option and variant"
launch run -n 2 "$TERN_BIN/apps/matmul" --help
[[ $status == 0 ]] || fail "the status is $status"
for word in --rows --json --logp --repeat prefetch; do
	grep -qE "^  $word " "$out" || fail "--help does not have $word"
done
finish
