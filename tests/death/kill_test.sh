#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: MODES TIMEOUT 120 RUN_SERIAL
# Ranks that die under `tern run`, and what is left of a job that is killed.
# SEED=n repeats the random part, ROUNDS=n makes it longer.
set -uo pipefail

tern=$TERN_BIN/tern ranks=$TERN_BIN/fail_ranks
seed=${SEED:-$RANDOM} rounds=${ROUNDS:-12}
RANDOM=$seed
folder=$(mktemp -d)
out=$folder/out err=$folder/err
failed=0 status=0

# Whatever a job starts carries this in its environment.
mark=fail-test-$$-$seed
marked() { grep -lzs "^FAIL_TEST_MARK=$mark\$" /proc/[0-9]*/environ | grep -oE '[0-9]+'; }
trap 'kill -9 $(marked) 2>/dev/null; rm -rf "$folder"' EXIT

sentence() { echo "$1"; }
fail() {
	echo "    failed: $1"
	[[ -s $err ]] && sed 's/^/    stderr: /' "$err" | head -5
	failed=$((failed + 1))
}
says() { # COUNT PATTERN
	[[ $(grep -cE -- "$2" "$out") == "$1" ]] ||
		fail "not $1 but $(grep -cE -- "$2" "$out") lines match: $2"
}
nothing_left() {
	local try
	for try in {1..15000}; do
		[[ -z $(marked) ]] && return 0
		sleep 0.02
	done
	return 1
}

sentence "with --survive a put, a request, a wait and a barrier name the dead rank, and the others go on"
FAIL_TEST_MARK=$mark timeout -k 5 300 "$tern" run -n 4 --survive "$ranks" survive >"$out" 2>"$err"
status=$?
[[ $status == 137 ]] || fail "the status is $status, not that of the rank that was killed"
says 3 '^[023] heap: dead: .*rank 1 .*signal 9'
says 3 '^[023] wait: dead: .*rank 1 .*signal 9'
says 3 '^[023] request: dead: .*rank 1 '
says 6 '^[023] barrier: dead: .*rank 1 '
says 3 '^[023] others: fine'
grep -qE 'rank 1 .*killed by signal 9.*the others go on' "$err" ||
	fail "the launcher did not say so"
nothing_left || fail "something is left"

sentence "a rank that dies before it calls tern_open() is a dead rank like any other"
FAIL_TEST_MARK=$mark timeout -k 5 300 "$tern" run -n 3 --survive sh \
	-c "[ \$TERN_RANK = 1 ] && kill -9 \$\$; exec $ranks lose" >"$out" 2>"$err"
says 2 '^[02] wait: dead: rank 1 is dead: killed by signal 9'
nothing_left || fail "something is left"

sentence "without --survive the job ends with the rank that died"
FAIL_TEST_MARK=$mark timeout -k 5 300 "$tern" run -n 4 "$ranks" survive >"$out" 2>"$err"
status=$?
[[ $status == 137 ]] || fail "the status is $status"
nothing_left || fail "something is left"

sentence "nothing is left when ranks or the launcher are killed at random moments (seed $seed)"
for ((round = 0; round < rounds; round++)); do
	FAIL_TEST_MARK=$mark "$tern" run -n 6 "$ranks" talk >"$out" 2>"$err" &
	front=$!
	sleep "0.$(printf %03d $((RANDOM % 200)))"
	keeper=$(pgrep -P "$front")
	victims=($([[ $keeper ]] && pgrep -P "$keeper"))
	case $((RANDOM % 4)) in
	0) victim=$front what="the launcher" ;;
	1) victim=${keeper:-$front} what="the keeper" ;;
	*) victim=${victims[RANDOM % 6]:-$front} what="a rank" ;;
	esac
	kill -9 "$victim" 2>/dev/null
	wait "$front" 2>/dev/null
	status=$?
	[[ $status != 0 ]] || fail "$what was killed and the status is 0"
	nothing_left || {
		fail "round $round: $what was killed and these are left: $(marked | tr '\n' ' ')"
		kill -9 $(marked) 2>/dev/null
	}
done

[[ $failed == 0 ]] || echo "$failed checks failed (SEED=$seed)"
exit $((failed > 0))
