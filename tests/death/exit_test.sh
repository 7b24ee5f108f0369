#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: TIMEOUT 200
# tern_exit() ends the whole job with its status, and nobody complains of dead ranks.
. tests/death/end_frame.sh

# STATUS [LINE]: the status, all that is on stderr, and what the rank had written before
ended() {
	[[ $status == "$1" ]] || fail "the status is $status, not $1"
	[[ $(cat "$err") == "${2-}" ]] || fail "stderr should be: ${2-nothing}"
	grep -qx 'rank . has its answer' "$out" || fail "what the rank wrote is lost"
}
said() { echo "tern: rank ${2:-1} ends the job with status $1"; }

for delivery in poll thread interrupt; do
	export TERN_DELIVERY=$delivery
	for place in program handler light deferred; do
		echo "$delivery: in the $place"
		run -n 4 "$bin/exit_ranks" "$place" 5
		ended 5 "$(said 5)"
	done
	if [[ $delivery != poll ]]; then
		echo "$delivery: in a handler while the rank computes"
		run -n 4 "$bin/exit_ranks" asked 5
		# What an interrupt finds in stdio's buffer it must not touch.
		[[ $delivery == interrupt ]] && echo 'rank 1 has its answer' >>"$out"
		ended 5 "$(said 5)"
	fi
	echo "$delivery: status 0 is a success, of which nothing is said"
	run -n 4 "$bin/exit_ranks" program 0
	ended 0
	run -n 4 "$bin/exit_ranks" program 255 3
	ended 255 "$(said 255 3)"
done
unset TERN_DELIVERY

echo "while the others compute, send, or catch SIGTERM"
for others in compute flood; do
	run -n 4 "$bin/exit_ranks" $others 6
	ended 6 "$(said 6)"
done
run -n 4 "$bin/exit_ranks" cleanup 6
ended 6 "$(said 6)"
[[ $(grep -c 'cleaned up' "$out") -ge 3 ]] || fail "not all others got SIGTERM"

echo "on UDP"
if has_udp; then
	TERN_NET=udp run -n 4 "$bin/exit_ranks" program 5
	ended 5 "$(said 5)"
	TERN_NET=udp run -n 4 "$bin/exit_ranks" flood 0
	ended 0
fi

# A sentence, and every rank ends
watched() {
	[[ $status == 70 ]] || fail "the status is $status, not 70"
	[[ $(cat "$err") == "tern: rank 1: handler 3 (on_stuck), of a message from rank 1, runs for "*\
"; the job ends (TERN_WATCHDOG)" ]] || fail "the sentence does not name handler and rank"
}
echo "the watchdog ends the job of a handler that does not return"
for delivery in poll thread; do
	TERN_DELIVERY=$delivery TERN_WATCHDOG=100 run -n 4 "$bin/exit_ranks" stuck 5
	watched
done
TERN_WATCHDOG=100 run --survive -n 4 "$bin/exit_ranks" stuck 5
watched

overdue() { # THE REST OF THE SENTENCE
	[[ $(grep -v "^tern run: rank .* killed" "$err") == "tern run: rank 1: handler 3 (on_stuck), of a \
message from rank 1, has run for "[1-9]*" s$1" ]] || fail "the sentence does not name handler and rank"
}
echo "the launcher ends the job of a handler that lasts longer than TERN_HANDLER_LIMIT"
TERN_HANDLER_LIMIT=1 run -n 4 "$bin/exit_ranks" stuck 5
[[ $status == 70 ]] || fail "the status is $status, not 70"
overdue "; the job ends (TERN_HANDLER_LIMIT)"

echo "a handler that has replied is seen, too, and only told of where the job is not to end"
TERN_WATCHDOG_END=0 TERN_HANDLER_LIMIT=1 run -n 4 "$bin/exit_ranks" slow 5
[[ $status == 5 ]] || fail "the status is $status, not 5"
grep -qx "tern run: rank 1: a handler that has replied has run for [1-9] s" "$err" ||
	fail "it is not told of"

echo "handlers that return are not, however many there are, nor is one that is stopped"
for how in busy stopped; do
	TERN_HANDLER_LIMIT=1 run -n 4 "$bin/exit_ranks" $how 5
	ended 5 "$(said 5)"
done

echo "two at once: the status is that of one of them"
run -n 4 "$bin/exit_ranks" both 7
[[ $status == 7 ]] || fail "the status is $status, not 7"

echo "--survive does not keep the others"
run --survive -n 3 "$bin/exit_ranks" program 5
ended 5 "$(said 5)"
run --survive=any -n 3 "$bin/exit_ranks" program 5
ended 5 "$(said 5)"
run --survive -n 3 "$bin/exit_ranks" abort
ended 1 "tern: rank 1 ends the job: the disk is full"

echo "a status out of range, and a child of fork(), are refused"
run -n 2 "$bin/exit_ranks" refused 5
ended 5 "$(said 5)"
run -n 2 "$bin/exit_ranks" child 5
ended 5 "$(said 5)"

echo "a rank below a shell, which would go on"
run -n 3 sh -c "$bin/exit_ranks program 5; sleep 400"
ended 5 "$(said 5)"

echo "a job of one"
"$bin/exit_ranks" program 5 0 >"$out" 2>"$err"
status=$?
ended 5 "$(said 5 0)"

echo "on several hosts"
if has_udp; then
	for who in 0 1 4; do
		for place in program handler; do
			run --hosts a,b,c --ssh "$folder/shell" -n 5 "$bin/exit_ranks" $place 5 $who
			ended 5 "$(said 5 $who)"
		done
		run --hosts a,b,c --ssh "$folder/shell" -n 5 "$bin/exit_ranks" program 0 $who
		ended 0
		run --hosts a,b,c --ssh "$folder/shell" -n 5 "$bin/exit_ranks" compute 5 $who
		ended 5 "$(said 5 $who)"
	done
	run --hosts a,b,c --ssh "$folder/shell" -n 5 "$bin/exit_ranks" cleanup 5
	ended 5 "$(said 5)"
	[[ $(grep -c 'cleaned up' "$out") -ge 4 ]] || fail "not all others got SIGTERM"
	run --hosts a,b,c --ssh "$folder/shell" -n 5 "$bin/exit_ranks" abort
	ended 1 "tern: rank 1 ends the job: the disk is full"
	TERN_WATCHDOG=100 run --hosts a,b,c --ssh "$folder/shell" -n 5 "$bin/exit_ranks" stuck 5
	watched
	run --survive --hosts a,b,c --ssh "$folder/shell" -n 5 "$bin/exit_ranks" program 0
	ended 0
	echo "no rank is named that the launcher has ended because another one failed"
	run --hosts a,b,c --ssh "$folder/shell" -n 3 sh -c \
		'[ "$TERN_RANK" = 1 ] && exit 3; exec sleep 100'
	[[ $status == 3 ]] || fail "the status is $status, not 3"
	grep -qvE '^tern run: (rank 1|host b) .*ended with status 3' "$err" && fail "others are named"
else
	run --hosts a --ssh "$folder/shell" -n 5 "$bin/exit_ranks" program 5
	ended 5 "$(said 5)"
fi
exit $failed
