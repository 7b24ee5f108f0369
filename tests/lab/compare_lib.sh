# SPDX-License-Identifier: BSD-3-Clause
# Sourced by the tests of `make compare`.
set -uo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
out=$folder/out err=$folder/err failed=0 status=0

fail() {
	echo "    failed: $1"
	head -5 "$err" | sed 's/^/    stderr: /'
	failed=$((failed + 1))
}
# A build folder of its own, with this build's Tern: nobody's kept figures are overwritten.
mkdir "$folder/build"
ln -s "$(cd "$TERN_BIN" && pwd)" "$folder/build/bin"
ln -s "$(cd "$TERN_BIN/../lib" && pwd)" "$folder/build/lib"
run() { # ARGUMENTS; variables may stand before the call
	lab/compare/run.sh --build "$folder/build" --patience 300 "$@" >"$out" 2>"$err" </dev/null
	status=$?
}
check_status() { [[ $status == "$1" ]] || fail "the status is $status, not $1"; }
check_out() { grep -qE -- "$1" "$out" || fail "no line of the output matches: $1"; }
check_not_out() { ! grep -qE -- "$1" "$out" || fail "a line of the output matches: $1"; }
count() { # HOW MANY, PATTERN, FILE
	[[ $(grep -cE -- "$2" "$3") == "$1" ]] ||
		fail "$(grep -cE -- "$2" "$3") lines match $2, not $1"
}
refused() { # PATTERN ARGUMENTS
	local pattern=$1
	shift
	run "$@"
	check_status 2
	grep -qE -- "$pattern" "$err" || fail "standard error does not match: $pattern"
	[[ $(wc -l <"$err") == 1 && ! -s $out ]] || fail "it says more than one sentence"
}
figure='[0-9.]+ (ns|us|ms|M/s|GB/s)'
csv=$folder/build/compare/compare.csv samples=$folder/build/compare/samples.csv
finish() {
	((failed == 0)) || echo "$failed failed"
	exit $((failed > 0))
}
