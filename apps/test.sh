# SPDX-License-Identifier: BSD-3-Clause
# Sourced by the tests of the programs. A program is played on shared memory, over UDP with faults
# and on a simulated machine; every variant must give the serial result in every round.
set -uo pipefail

tern=$TERN_BIN/tern check=$TERN_BIN/json_check
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
out=$folder/out err=$folder/err
failed=0

sentence() { echo "$1"; }
fail() {
	echo "    failed: $1"
	head -5 "$err" | sed 's/^/    stderr: /'
	failed=$((failed + 1))
}
launch() { # COMMAND...: of `tern`
	timeout -k 5 120 "$tern" "$@" >"$out" 2>"$err" </dev/null
	status=$?
}
right() { # RECORDS WHAT: status 0, so many records, and none has mistakes
	local n
	[[ $status == 0 ]] || fail "$2: the status is $status"
	n=$("$check" program variant ranks seconds wrong <"$out" 2>>"$err") || fail "$2: no JSON"
	[[ $n == "$1" ]] || fail "$2: $n records instead of $1"
	[[ $(grep -c '"wrong": 0}' "$out") == "$1" ]] || fail "$2: something is wrong"
}
# PROGRAM RECORDS RANKS ARGUMENTS
shared() {
	launch run -n "$3" "$TERN_BIN/apps/$1" --json --repeat 2 "${@:4}"
	right "$2" "$1 on $3 ranks ${*:4}"
}
faults() {
	if [[ $(TERN_NET=udp "$tern" info 2>/dev/null) != *"udp            usable"* ]]; then
		echo "    skipped: udp is not usable here"
		return
	fi
	TERN_NET=udp TERN_FAULT=drop=0.01,duplicate=0.02,reorder=0.05,seed=${seed:-7} \
		launch run -n "$3" "$TERN_BIN/apps/$1" --json --repeat 1 "${@:4}"
	right "$2" "$1 over udp with faults, on $3 ranks ${*:4}"
}
simulated() { # of the machine $profile
	launch sim -n "$3" --profile "${profile:-cm5}" "$TERN_BIN/apps/$1" --json --repeat 1 "${@:4}"
	right "$2" "$1 on $3 simulated nodes ${*:4}"
}
refused() { # PROGRAM RANKS PATTERN ARGUMENTS: in one sentence, status 2
	launch run -n "$2" "$TERN_BIN/apps/$1" "${@:4}"
	[[ $status == 2 ]] || fail "$1 ${*:4}: the status is $status, not 2"
	grep -qE "^$1: .*$3" "$err" || fail "$1 ${*:4}: no sentence matches $3"
	[[ $(grep -vc '^tern run: ' "$err") == 1 ]] || fail "$1 ${*:4}: it takes several lines"
	[[ ! -s $out ]] || fail "$1 ${*:4}: it printed something"
}
too_large() { # PROGRAM RANKS ARGUMENTS: more than this machine has, refused in one sentence
	if (($(awk '/^MemTotal/ { print $2 }' /proc/meminfo) < 30 << 20)); then
		refused "$1" "$2" "take .* MiB for each rank" "${@:3}"
	else
		echo "    skipped: this machine has the memory for $1 ${*:3}"
	fi
}
finish() {
	((failed == 0)) || echo "$failed failed"
	exit $((failed > 0))
}
