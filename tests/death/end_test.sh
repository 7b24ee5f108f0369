#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: TIMEOUT 200
# A process that the launcher ends has a last word, and the launcher ends it with the signal that
# was chosen.
. tests/death/end_frame.sh

ended() { # STATUS LINES SIGNAL
	[[ $status == "$1" ]] || fail "the status is $status, not $1"
	[[ $(wc -l <"$out") == "$2" ]] || fail "there are not $2 lines"
	[[ $2 == 0 ]] || ! grep -vqE "^rank [0-9]: signal ${3-}, arg, 0$" "$out" || fail "wrong lines"
}
term=$(kill -l TERM) usr1=$(kill -l USR1)

for delivery in poll thread interrupt; do
	for how in wait poll leave; do
		echo "$delivery: ranks that $how"
		TERN_SIGNAL=40 TERN_DELIVERY=$delivery run -n 4 "$bin/end_ranks" $how
		ended 3 3 "$term"
	done
done
echo "by the signal that was chosen, by name and by number"
run --signal USR1 -n 3 "$bin/end_ranks" wait
ended 3 2 "$usr1"
run --signal "$usr1" -n 3 "$bin/end_ranks" wait
ended 3 2 "$usr1"
run --signal SIGUSR1 -n 3 sh -c 'trap "echo got it; exit 0" USR1
	[ $TERN_RANK = 1 ] && { sleep 0.3; exit 3; }
	while :; do sleep 0.05; done'
[[ $status == 3 && $(grep -c 'got it' "$out") == 2 ]] || fail "a shell was not sent USR1"

echo "a rank that does not poll, took the function back, or has closed is ended without it"
for how in compute none closed; do
	run -n 3 "$bin/end_ranks" $how
	ended 3 0
done

echo "whoever ends the launcher with SIGTERM ends ranks with the signal, too"
"$tern" run --signal USR1 -n 2 sh -c 'trap "echo got it; exit 0" USR1; echo up
	while :; do sleep 0.05; done' >"$out" 2>"$err" &
launcher=$!
until [[ $(grep -c up "$out") == 2 ]]; do sleep 0.05; done
kill "$launcher"
wait "$launcher"
[[ $(grep -c 'got it' "$out") == 2 ]] || fail "they were not sent USR1"

echo "on several hosts"
if has_udp; then
	run --signal USR1 --hosts a,b --ssh "$folder/shell" -n 4 "$bin/end_ranks" wait
	ended 3 3 "$usr1"
fi

echo "no signal, or one that ends nothing, is refused"
for wrong in '' nonsense 0 1000 19; do
	run --signal "$wrong" -n 1 true
	[[ $status == 2 ]] && grep -q -- '--signal' "$err" || fail "'$wrong' is taken"
done
exit $failed
