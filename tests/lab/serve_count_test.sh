#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: LABELS perf once LOCK launch TIMEOUT 300
# What calls on shared memory take in a job of two machines, exactly, beside a job of one: with the
# thread that serves memory and without it. Two machines are two hosts that `tern run` reaches by a
# shell of this one; their ranks share no memory.
. tests/lib/launch_frame.sh
has_udp || skip "this build has no UDP"

# Instructions of a scope that keeps the thread out, with what it does to the calls around it.
scope=37

cat >"$folder/shell" <<'END'
#!/bin/sh
shift
exec sh -c "$*"
END
chmod +x "$folder/shell"
launcher=("$bin/tern" run)
launch 2 "$bin/serve_count_ranks"
check_status 0
grep -q '^skipped' "$out" && skip "$(head -1 "$out")"
cp "$out" "$folder/one"
launcher=("$bin/tern" run --ssh "$folder/shell" --hosts a:2,b:1)
for serve in 0 1; do
	TERN_SERVE=$serve launch 3 "$bin/serve_count_ranks"
	check_status 0
	says 1 "^serves $serve\$"
	cp "$out" "$folder/two$serve"
done
count() { awk -v name="$2" '$1 == name { print $2 }' "$folder/$1"; }
printf '%-10s %9s %9s %9s\n' call one two served
while read -r name _; do
	printf '%-10s %9s %9s %9s\n' "$name" "$(count one "$name")" "$(count two0 "$name")" \
		"$(count two1 "$name")"
done <"$folder/two1"

[[ $(count one exact) == 1 ]] || skip "the counts are for gcc 12 at -O2"
at_most() { # NAME MORE THAN: in a job of two machines with the thread, than in another
	local served=$(count two1 "$1") other=$(count "$3" "$1")
	[[ $served && $other ]] && ((served <= other + $2)) ||
		fail "$1 takes $served instructions where a thread serves, $other in '$3'"
}
sentence "a put, a get, an atomic and a send take what they take in a job of one machine"
for name in put get amo payload request8; do
	at_most $name 0 one
done
sentence "what polls or waits takes one scope more than without the thread"
for name in poll_none poll_one wait; do
	at_most $name $scope two0
done
# 32 requests are shown only: on a busy machine their receiver sleeps and has to be woken.
at_most wait $scope one
finish
