#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Every program notices a wrong value, and says which it is.
. apps/test.sh

# PROGRAM ARGUMENTS: its small sizes
spoiled() {
	local said="^$1, variant [a-z0-9_-]+: 1 wrong; the first, at rank 0: .*" n
	launch run -n 2 "$TERN_BIN/apps/$1" --json --repeat 2 --spoil "${@:2}"
	[[ $status == 1 ]] || fail "$1: the status is $status, not 1"
	n=$("$check" program variant wrong <"$out" 2>>"$err") || fail "$1: no JSON"
	[[ $(grep -c '"wrong": 2}' "$out") == "$n" ]] || fail "$1: not one wrong in each of 2 rounds"
	[[ $(grep -cE "$said\[[0-9]+\] is [^ ]+ and should be [^ ]+$" "$err") == "$n" ]] ||
		fail "$1: not a sentence for each of $n variants"
}
declare -A small=([banded]="--n 20" [bfs]="--scale 5" [bounce]="--bounces 5" [cg]="--rows 40"
	[closure]="--vertices 9" [fft]="--points 64" [gather]="--table 50 --words 60"
	[gups]="--table 50 --updates 60" [lu]="--size 12 --block 6"
	[matmul]="--rows 4 --inner 4 --columns 4" [neighborhood]="--side 8 --bits 3" [sort]="--keys 20"
	[sparse]="--rows 30 --span 9" [transpose]="--rows 6 --columns 6" [uts]="--root 3 --odds 100")

sentence "a value that counts as wrong is named: what it is, and what it should be"
for program in apps/*.c; do
	program=$(basename "$program" .c)
	spoiled "$program" ${small[$program]}
done

sentence "a right program says nothing"
launch run -n 3 "$TERN_BIN/apps/gups" --json --table 50 --updates 60
[[ $status == 0 && ! -s $err ]] || fail "a right program has status $status"
finish
