#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What the tests of `tern run` share: jobs that are started and leave nothing behind, and what is
# said of them.
set -uo pipefail


tern=$TERN_BIN/tern lines=$TERN_BIN/run_lines
seed=${SEED:-$RANDOM} rounds=${ROUNDS:-12}
RANDOM=$seed
folder=$(mktemp -d)
out=$folder/out err=$folder/err
failed=0 front=0 status=0

# Whatever a job starts carries this in its environment, wherever it goes and whoever adopts it.
mark=run-test-$$-$seed
marked() { grep -lzs "^RUN_TEST_MARK=$mark\$" /proc/[0-9]*/environ | grep -oE '[0-9]+'; }
trap 'kill -9 $(marked) 2>/dev/null; rm -rf "$folder"' EXIT

run() { # ARGUMENTS: runs to the end; $out, $err and $status say how it went
	RUN_TEST_MARK=$mark timeout -k 5 300 "$tern" run "$@" >"$out" 2>"$err"
	status=$?
}
start() { # ARGUMENTS: starts, with $front its process
	: >"$out"
	set -m # a group of its own, and SIGINT not ignored
	RUN_TEST_MARK=$mark "$tern" run "$@" >"$out" 2>"$err" </dev/null &
	front=$!
	set +m
}
gone() { ! kill -0 "$1" 2>/dev/null; }
# The next SIGTERM; a launcher that a busy machine has not let see the one before takes both for
# one, so there may be more.
ended_by_another() {
	kill -TERM "$front" 2>/dev/null
	sleep 0.3
	gone "$front"
}
ended() { # takes in the job that was started
	until_true gone "$front" || {
		fail "it does not end"
		kill -9 "$front"
	}
	wait "$front" 2>/dev/null
	status=$?
}

sentence() { echo "$1"; }
fail() {
	echo "    failed: $1"
	[[ -s $err ]] && sed 's/^/    stderr: /' "$err" | head -5
	failed=$((failed + 1))
}
check_status() { [[ $status == "$1" ]] || fail "the status is $status, not $1"; }
check_out() { [[ $(<"$out") == "$1" ]] || fail "the output is: $(head -c 500 "$out")"; }
check_err() { grep -qE -- "$1" "$err" || fail "no line of standard error matches: $1"; }
# COMMAND...: waits until it succeeds; five minutes at most, because the machine may be busy
until_true() {
	local try
	for try in {1..15000}; do
		"$@" && return 0
		sleep 0.02
	done
	return 1
}
nothing_marked() { [[ -z $(marked) ]]; }
check_nothing_left() {
	until_true nothing_marked && return
	local pid left=
	for pid in $(marked); do
		left+=" $pid ($(tr -s '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline"))"
	done
	fail "these are left:$left"
	kill -9 $(marked) 2>/dev/null
}
printed() { grep -qxE -- "$1" "$out"; }
count_printed() { [[ $(grep -cxE -- "$1" "$out") == "$2" ]]; }
state_of() { sed 's/.*) //' "/proc/$1/stat" | cut -c1; }
in_state() { [[ $(state_of "$2") == "$1" ]]; }
child_of() { # PID: its children (procps may not be there)
	cat /proc/[0-9]*/stat 2>/dev/null |
		awk -v parent="$1" '{ pid = $1; sub(/.*\) /, "") } $2 == parent { print pid }'
}
mistake() { # PATTERN ARGUMENTS...
	local pattern=$1
	shift
	run "$@"
	check_status 2
	check_err "^tern run: .*$pattern"
	[[ ! -s $out ]] || fail "it wrote to standard output"
}

# What stands for ssh: HOST COMMAND.
cat >"$folder/quiet" <<'END'
#!/bin/sh
shift
exec sh -c "$*"
END
chmod +x "$folder/quiet"
