# SPDX-License-Identifier: BSD-3-Clause
# Sourced by the tests of tern's commands, which set `command` before, and `keys` if they look at
# JSON.
set -uo pipefail

tern=$TERN_BIN/tern check=$TERN_BIN/json_check
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
out=$folder/out err=$folder/err
failed=0 status=0

sentence() { echo "$1"; }
fail() {
	echo "    failed: $1"
	head -5 "$err" | sed 's/^/    stderr: /'
	failed=$((failed + 1))
}
run() { # ARGUMENTS; variables may stand before the call
	timeout -k 5 "${patience:-500}" "$tern" "$command" "$@" >"$out" 2>"$err" </dev/null
	status=$?
}
check_status() { [[ $status == "$1" ]] || fail "the status is $status, not $1"; }
check_out() { grep -qE -- "$1" "$out" || fail "no line of the output matches: $1"; }
check_not_out() { grep -qE -- "$1" "$out" && fail "a line of the output matches: $1"; }
check_err() { grep -qE -- "$1" "$err" || fail "no line of standard error matches: $1"; }
check_quiet() { [[ ! -s $err ]] || fail "something stands on standard error"; }
check_records() { # HOW MANY
	local n
	n=$("$check" "${keys[@]}" <"$out" 2>>"$err") ||
		fail "this is not an array of records: $(head -c 200 "$out")"
	[[ $n == "$1" ]] || fail "there are $n records, not $1"
}
count_out() {
	[[ $(grep -cE -- "$2" "$out") == "$1" ]] ||
		fail "$(grep -cE -- "$2" "$out") lines match $2, not $1"
}
refused() { # PATTERN ARGUMENTS: a sentence that matches, nothing else, status 2
	local pattern=$1
	shift
	run "$@"
	check_status 2
	check_err "$pattern"
	[[ $(wc -l <"$err") == 1 ]] || fail "it takes $(wc -l <"$err") lines to say so"
	[[ ! -s $out ]] || fail "something stands on standard output"
}
finish() {
	((failed == 0)) || echo "$failed failed"
	exit $((failed > 0))
}
