#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: TIMEOUT 240
# A layer of the kind that a language's runtime needs is short, needs the installed interface alone,
# and keeps what such a runtime relies on.
set -uo pipefail

if [[ ! -x $TERN_BIN/runtime_layer_ranks ]]; then
	echo "skipped: the examples are not built"
	exit 77
fi
layer=(examples/runtime/am.c examples/runtime/runtime.c examples/runtime/runtime.h)
out=$(mktemp)
trap 'rm -f "$out"' EXIT
failed=0
fail() {
	echo "    $1"
	sed 's/^/    it said: /' "$out" | head -12
	failed=$((failed + 1))
}

echo "the layer has at most 600 lines"
lines=$(cat "${layer[@]}" | wc -l)
((lines <= 600)) || fail "it has $lines"

echo "it includes the public headers and its own"
grep -hE '^ *# *include' "${layer[@]}" examples/runtime/bench.c |
	grep -vE '<(tern/[a-z]+|[a-z]+)\.h>|"runtime\.h"' >"$out" && fail "it includes others"

echo "it uses no name that the manual does not have"
mapfile -t names < <(grep -ohE '\btern_[a-z0-9_]+\(' "${layer[@]}" | tr -d '(' | sort -u)
for name in "${names[@]}"; do
	[[ -s man/$name.3 ]] || fail "$name() has no page"
done

run() { # NETWORK DELIVERY RANKS [own | file]
	[[ $1 != udp || $(TERN_NET=udp "$TERN_BIN/tern" info 2>/dev/null) == *"udp            usable"* ]] || {
		echo "    skipped: udp is not usable here"
		return
	}
	# Freed memory is overwritten, so that the library cannot read a list that has gone.
	MALLOC_PERTURB_=165 TERN_NET=$1 TERN_DELIVERY=$2 timeout 300 "$TERN_BIN/tern" run -n "$3" \
		"$TERN_BIN/runtime_layer_ranks" ${4:+"$4"} >"$out" 2>&1 || fail "it ended with status $?"
	grep -qx "16 of 16" "$out" || fail "not all was tried"
}

for net in shm udp; do
	for ranks in 2 3 8; do
		echo "$ranks ranks on $net: messages, transfers, events, atomics and teams are right"
		run $net poll $ranks
	done
	echo "3 ranks on $net, delivery by thread: the same"
	run $net thread 3
	for memory in own file; do
		echo "3 ranks on $net, segments are memory of the program ($memory): the same"
		run $net poll 3 $memory
	done
done

echo "one rank ends the job with a status"
timeout 60 "$TERN_BIN/tern" run -n 3 "$TERN_BIN/runtime_layer_ranks" exit >"$out" 2>&1
status=$?
[[ $status == 7 ]] || fail "the status is $status"
[[ $(grep -c "is ended by signal $(kill -l TERM)" "$out") == 2 ]] || fail "the others had no last word"

echo "the benchmark has every row, beside Tern's own calls, as text and as JSON"
timeout 300 "$TERN_BIN/tern" run -n 2 "$TERN_BIN/runtime_bench" --rounds=3 >"$out" 2>&1 ||
	fail "it ended with status $?"
[[ $(grep -cE ' [0-9.]+ +[0-9.]+ +[0-9.]+$' "$out") == 16 ]] || fail "it has other rows"
timeout 300 "$TERN_BIN/tern" run -n 2 "$TERN_BIN/runtime_bench" --rounds=3 --json >"$out" 2>&1 ||
	fail "with --json it ended with status $?"
"$TERN_BIN/json_check" <"$out" >/dev/null || fail "it is no JSON"

[[ $failed == 0 ]] || echo "$failed failed"
exit $((failed > 0))
