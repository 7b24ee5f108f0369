#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: TIMEOUT 240
# Jobs that are traced, and what tern trace makes of it: counts, JSON, the summary, mistakes.
command=trace patience=300
. tests/lib/frame.sh

traced() { # RANKS PROGRAM ARGUMENTS
	rm -f "$folder"/t.*
	TERN_TRACE=$folder/t timeout 300 "$tern" run -n "$@" >"$out" 2>"$err" </dev/null ||
		fail "$2 on $1 ranks ended with $?"
}
broken() { # PATTERN ARGUMENTS: a file that is no good, or not there
	local pattern=$1
	shift
	run "$@"
	check_status 1
	check_err "$pattern"
	[[ $(wc -l <"$err") == 1 ]] || fail "it takes $(wc -l <"$err") lines to say so"
}

for ranks in 2 4; do
	sentence "hello on $ranks ranks: every message leads from its send to its handler"
	traced $ranks "$TERN_BIN/hello"
	run "$folder/t"
	check_status 0
	n=$((2 * ranks))
	check_out \
		"^$n messages: $n from send to handler, 0 never seen to be handled, 0 never seen to be sent$"
	for ((r = 0; r < ranks; r++)); do
		check_out "^ +$r +2 +2 +[01] +1 "
	done
	check_out "^handler 0 \(on_greeting\) +$ranks "
	check_out "^handler 1 \(on_answer\) +$ranks "
	[[ -s $err ]] && fail "it complains"

	sentence "ring on $ranks ranks: each step of the letter is a message of its size"
	traced $ranks "$TERN_BIN/ring"
	run --json "$folder/t"
	check_status 0
	"$TERN_BIN/json_check" traceEvents otherData <"$out" >/dev/null 2>>"$err" ||
		fail "this is not well-formed JSON"
	count_out $((2 * ranks)) \
		'"ph": "X", "name": "send handler 0 \(on_letter\)", "cat": "send request"'
	count_out $((2 * ranks)) '"ph": "X", "name": "handler 0 \(on_letter\)", "cat": "request"'
	count_out $((2 * ranks)) '"ph": "s", "name": "message"'
	count_out $((2 * ranks)) '"ph": "f", "name": "message"'
	count_out "$ranks" '"cat": "barrier"'
	count_out "$ranks" '"ph": "M", "name": "process_name"'
	[[ $(grep '"cat": "send' "$out" | grep -oE '"bytes": [0-9]+' | sort -u | wc -l) == \
		$((2 * ranks)) ]] ||
		fail "the sizes are wrong"
	[[ $(grep '"ph": "s"' "$out" | grep -oE '"id": [0-9]+' | sort) == \
		"$(grep '"ph": "f"' "$out" | grep -oE '"id": [0-9]+' | sort)" ]] ||
		fail "an arrow has one end"
	awk -F'"ts": |, "id": ' \
		'/"ph": "s"/ { sent = $2 } /"ph": "f"/ && $2 < sent { bad = 1 } END { exit bad }' \
		"$out" ||
		fail "something arrives before it was sent"
done

sentence "messages of the layers are messages too, and files can be named in any order"
traced 4 "$TERN_BIN/pingpong"
run "$folder/t.3" "$folder/t.0" "$folder/t.2" "$folder/t.1"
check_status 0
check_out \
	'^[0-9]+ messages: [0-9]+ from send to handler, 0 never seen to be handled, 0 never seen to be sent$'
check_out '^msg [0-9]+ '

sentence "with some ranks missing the rest is shown and said"
run --json "$folder/t.0" "$folder/t.3"
check_status 0
check_err '^2 of 4 ranks are here$'
"$TERN_BIN/json_check" traceEvents <"$out" >/dev/null 2>>"$err" ||
	fail "this is not JSON"

sentence "calls on teams have their own names, and waits those of the calls that wait"
traced 3 "$TERN_BIN/tally"
run --json "$folder/t"
check_status 0
count_out 3 '"ph": "X", "name": "tern_team_all", "cat": "call"'
count_out 6 '"ph": "X", "name": "tern_team_allreduce", "cat": "call"'
count_out 3 '"ph": "X", "name": "tern_team_free", "cat": "call"'
check_out '"name": "wait: operation \(tern_team_[a-z]+\)", "cat": "wait"'
run "$folder/t"
for rank in 0 1 2; do
	check_out "^ +$rank +[0-9]+ +[0-9]+ +[0-9]+ +0 +4 "
done
traced 4 "$TERN_BIN/pipeline"
run --json "$folder/t"
check_out '"name": "wait: operation \((opening a channel|tern_chan_[a-z]+)\)", "cat": "wait"'

sentence "light threads are there from their beginning to their end, side by side"
traced 2 "$TERN_BIN/quicksort"
threads=$(sed -nE 's/^rank [0-9]+: ([0-9]+) threads$/\1/p' "$out" | awk '{ n += $1 } END { print n }')
run --json "$folder/t"
check_status 0
count_out "$threads" '"ph": "X", "name": "thread [0-9]+", "cat": "thread"'
check_out '"args": \{"name": "rank 0, light threads 1"\}'
grep '"cat": "thread"' "$out" | sed -E 's/.*"tid": ([0-9]+), "ts": ([0-9.]+), "dur": ([0-9.]+).*/\1 \2 \3/' |
	sort -k1,1n -k2,2n | awk '$1 == lane && $2 < end - 0.0005 { bad = 1 }
		{ lane = $1; end = $2 + $3 } END { exit bad || NR == 0 }' ||
	fail "threads of one lane overlap"

sentence "the trace of a rank that is killed can be read up to its last flush"
rm -f "$folder"/t.*
TERN_TRACE=$folder/t "$tern" run -n 2 sh \
	-c "if [ \$TERN_RANK = 1 ]; then exec sleep 1000; fi; exec $TERN_BIN/hello" >"$out" 2>&1 &
job=$!
for ((i = 0; i < 3000; i++)); do # until rank 0 sleeps, which is when it writes
	[[ -s $folder/t.0 && $(stat -c %s "$folder/t.0") -gt 128 ]] && break
	sleep 0.1
done
kill -TERM $job
wait $job
: >"$err"
run "$folder/t"
check_status 0
check_out '^rank 0 did not close: its trace ends with the last flush$'
check_out '^1 messages: 0 from send to handler, 1 never seen to be handled'
check_out 'wait: flag .* whose end is not recorded$'

sentence "what cannot be read is refused with its name and the reason"
broken "there is neither $folder/none nor $folder/none.0" "$folder/none"
echo '#!/bin/sh' >"$folder/foreign"
broken "$folder/foreign is not a trace" "$folder/foreign"
head -c 100 "$folder/t.0" >"$folder/short"
broken "$folder/short is truncated: it has 100 bytes of a head of 128" "$folder/short"
broken "both of rank 0" "$folder/t.0" "$folder/t.0"
cp "$folder/t.0" "$folder/old"
traced 2 "$TERN_BIN/hello"
broken "is of another job" "$folder/old" "$folder/t.1"
broken "cannot be written" --html "$folder/no/such/folder" "$folder/t"
echo kept >"$folder/kept"
ln -s "$folder/kept" "$folder/link"
broken "$folder/link cannot be written: it is a symbolic link; remove it" --html "$folder/link" \
	"$folder/t"
run --html "$folder/made" "$folder/t"
[[ $(stat -c %a "$folder/made") == 600 ]] || fail "others may read the page"
[[ $(<"$folder/kept") == kept ]] || fail "the file behind the link was written"
refused "no file was named"
refused "'--jsn'.*--json" --jsn "$folder/t"
run --help
check_status 0
check_out '^usage: tern trace'

sentence "a file that cannot be made keeps the job from opening, with a sentence"
TERN_TRACE=$folder/no/such timeout 300 "$tern" run -n 2 "$TERN_BIN/hello" >"$out" 2>"$err"
check_err "hello: TERN_TRACE: $folder/no/such.[01] cannot be written: No such file"

finish
