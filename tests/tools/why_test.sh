#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What `tern why` says of jobs that are stuck.
set -uo pipefail
. tests/lib/watch_lib.sh

sentence "two ranks that receive from each other are a circle, and the message is named"
job_start 2 circle
ask_until '^in short: a circle: rank 0 waits for rank 1, which waits for rank 0, and none' why \
	"$job"
check_status 0
check_out '^  rank 0 .* has waited [0-9]+ m?s in tern_recv 0x7 from rank 1'
check_out '^  rank 1 .* in tern_recv 0x7 from rank 0'

sentence "--json has the circle"
ask why --json "$job"
check_status 0
"$check" job size handled why cycle ranks <"$out" >/dev/null 2>"$err" || fail "it is not JSON"
check_out '"cycle": \[0, 1\]'
check_out '"waits_in": "tern_recv 0x7 from rank 1"'

sentence "a job is found by the pid of a rank as well"
rank=$(grep -oE '"pid": [0-9]+' "$out" | head -1 | grep -oE '[0-9]+')
ask why "$rank"
check_status 0
check_out "^job of $job: 2 ranks"

sentence "without a pid it takes the only job there is, or names them all"
ask why
if [[ $status == 0 ]]; then
	check_out "^job of $job: "
else
	check_err "[0-9]+ jobs are running; say which, by its launcher's pid:.* $job \(stuck_ranks\)"
fi
job_end

sentence "a circle of three is one, too"
job_start 3 circle
ask_until \
	'^in short: a circle: rank 0 waits for rank 1, which waits for rank 2, which waits for rank 0' why "$job"
job_end

sentence "whoever has not come to a barrier is named"
job_start 4 barrier
ask_until '^in short: ranks 0, 1, 2 wait for rank 3, which computes and does not poll' why "$job"
check_out '^  rank 1 .* in tern_barrier.*; not there: rank 3'
job_end

sentence "who is in which call of which team is told, and who has not come"
job_start 4 team
ask_until '^in short: ranks 0, 1 wait for rank [23], which computes and does not poll' why "$job"
check_out '^  rank 0 .* in tern_team_allreduce\(\) of team 2, call 0, asleep; not there: ranks 2, 3$'
check_out '^  rank 1 .* in tern_team_allreduce\(\) of team 2, call 0, asleep; not there: ranks 2, 3$'
ask why --json "$job"
check_out '"waits_in": "tern_team_allreduce\(\) of team 2, call 0"'
check_out '"waits_for": \[2, 3\]'
job_end
TERN_NET=udp job_start 4 team
ask_until '^in short: ranks? .* waits? for rank [23], which computes and does not poll' why "$job"
check_out '^  rank [01] .* in tern_team_allreduce\(\) of team 2, call 0.*; not there: ranks? [23]'
job_end

sentence "of a call with a handle, too"
job_start 4 started
ask_until '^in short: ranks 0, 1 wait for rank [23], which computes and does not poll' why "$job"
check_out '^  rank 0 .* in tern_op_wait: tern_team_barrier_start\(\) of team 2, call 0.*; not there: ranks 2, 3$'
job_end

sentence "ranks that are in calls of different teams wait for each other"
job_start 2 overlap
ask_until '^in short: a circle: rank 0 waits for rank 1, which waits for rank 0' why "$job"
check_out '^  rank 0 .* in tern_team_barrier\(\) of team 3, call 0.*; not there: rank 1$'
check_out '^  rank 1 .* in tern_team_barrier\(\) of team 2, call 1.*; not there: rank 0$'
job_end

sentence "a member that waits elsewhere, for nobody in particular, is named with its call"
job_start 3 astray
ask_until '^in short: ranks 0, 1 wait for rank 2, which itself waits in tern_recv 0x9 from any rank' \
	why "$job"
job_end

sentence "a rank that computes while another waits for room is named, with what waits for it"
job_start 2 room
ask_until '^in short: rank 0 waits for rank 1, which computes and does not poll' why "$job"
check_out '^  rank 0 .* in a request to rank 1: ring full; at least [0-9]+ messages'
check_out \
	'^  rank 1 .*; at least [1-9][0-9]+ messages wait to be handled by it, the last for handler [a-z]+ [0-9]+ \([a-z_]+\)'
job_end

sentence "with statistics on, the number is exact: a small ring and a large one, of 2 and 126 lines a leaf"
TERN_STATS=1 job_start 2 room
ask_until 'rank 1 .*; [0-9]+ messages wait to be handled by it' why "$job"
waiting=$(sed -nE 's/.* rank 1 .*; ([0-9]+) messages wait.*/\1/p' "$out")
((waiting >= 3 * 126 && waiting <= 4 * (2 + 126))) || fail "there are $waiting"
job_end

sentence "and of payloads that lie in the ring, 14 a leaf"
TERN_STATS=1 job_start 2 carried
ask_until 'rank 1 .*; [0-9]+ messages wait to be handled by it' why "$job"
waiting=$(sed -nE 's/.* rank 1 .*; ([0-9]+) messages wait.*/\1/p' "$out")
((waiting >= 3 * 13 && waiting <= 4 * (2 + 14))) || fail "there are $waiting"
job_end

sentence "a worker that waits is shown below its rank, and whom it waits for is named"
job_start 2 worker
ask_until '^in short: rank 0 waits for rank 1, which computes and does not poll' why "$job"
check_out '^  rank 0 .* has waited [0-9]+ m?s in tern_wait'
check_out '^    worker 1 of rank 0 has waited [0-9]+ m?s in a request to rank 1: ring full; at least'
ask why --json "$job"
check_out '"workers": \[\{"state": "[a-z]+", "waits_in": "a request to rank 1: ring full"'
job_end

sentence "a hold is named"
job_start 2 hold
ask_until '^in short: rank 0 waits for rank 1, which holds its handlers back' why "$job"
check_out '^  rank 1 .*; under 1 hold, '
job_end

sentence "a job that is not stuck makes progress"
job_start 2 busy
ask_until '^in short: the job makes progress' why "$job"
job_end

sentence "a rank that puts long data, and so defers its handlers, is under no hold of the program"
job_start 2 puts
ask_until '^  rank 1 .* in tern_wait' why "$job"
for ((i = 0; i < 8; i++)); do
	ask why "$job"
	check_status 0
	check_not_out 'hold'
done
job_end

sentence "ranks that have closed or died are named, and are not said to wait"
job_run --survive -n 3 "$TERN_BIN/stuck_ranks" left
ask_until '^in short: no rank has an endpoint open: ranks 0, 1 are not open; rank 2 is dead\.$' \
	why "$job"
check_out '^  rank 0 .* not open$'
check_out '^  rank 2 .* dead$'
job_end

sentence "where the others wait, the dead are named beside them"
job_run --survive -n 3 "$TERN_BIN/stuck_ranks" lost
ask_until '^in short: every open rank waits, .*; rank 2 is dead\.$' why "$job"
job_end

said_until() { # PATTERN: the job writes it to standard error
	local i
	for ((i = 0; i < 240; i++)); do
		grep -qE -- "$1" "$folder/job" && return
		sleep 0.25
	done
	cp "$folder/job" "$out"
	fail "the job has not written: $1"
}

sentence "with TERN_STUCK a rank writes itself in which call it waits for whom"
TERN_STUCK=1 job_start 2 circle
said_until '^tern: rank 0 has waited for [0-9]+ s in tern_recv 0x7 from rank 1; '
said_until '^rank 0: receive 0x7 from rank 1'
job_end
sentence "and over a network how far messages with each rank are"
TERN_NET=udp TERN_STUCK=1 job_start 2 room
said_until '^tern: rank 0 with rank 1: requests: [0-9]+ written, [0-9]+ sent, [0-9]+ acknowledged; '
job_end
sentence "and who has not come to a barrier"
TERN_STUCK=1 job_start 4 barrier
said_until '^tern: rank 0 has waited for [0-9]+ s in tern_barrier; not there: rank ([12], )*3; '
job_end
TERN_STUCK=1 job_start 3 meeting
said_until '^tern: rank 0 has waited for [0-9]+ s in tern_team_survivors\(\) from rank 2; '
job_end
TERN_STUCK=1 job_run --survive -n 3 "$TERN_BIN/stuck_ranks" lost
said_until '^tern: rank 0 has waited for [0-9]+ s in tern_wait; '
grep -qE 'sends|queue' "$folder/job" && fail "tables with nothing in them are written"
job_end

# No rank handles 10,000 messages in a session of these two.
never_wrong() { # ask until the job is over, at most 15 times; a number of seven digits has wrapped
	local i
	for ((i = 0; i < 15; i++)); do
		kill -0 "$job" 2>/dev/null || break
		ask why "$job"
		[[ $status == 0 ]] || continue # it has just ended
		grep -qE '[0-9]{7} messages' "$out" && fail "a count has wrapped"
		grep -q 'every rank waits' "$out" && fail "ranks that have left are said to wait"
		ask top --once --interval 0.2 "$job"
		[[ $status == 2 ]] && fail "top refuses its options"
		[[ $status == 0 ]] || continue
		grep -qE '[0-9]G ' "$out" && fail "a rate has wrapped"
	done
	job_end
}

if [[ $("$tern" info) == *"udp            usable"* ]]; then
	sentence "on two machines, a rank of the other one is said to be there, and not to be missing"
	printf '#!/bin/sh\nshift; exec sh -c "$*"\n' >"$folder/shell" # both are this one
	chmod +x "$folder/shell"
	job_run --hosts a,b --ssh "$folder/shell" -n 2 sh -c \
		'echo "rank $TERN_RANK is $$"; exec "$0" circle' "$TERN_BIN/stuck_ranks"
	said_until '^rank 0 is' && said_until '^rank 1 is'
	for rank in 0 1; do
		ask_until "^in short: rank $rank waits for rank $((1 - rank)), which is on another machine: " \
			why "$(sed -n "s/^rank $rank is //p" "$folder/job")"
		check_out "^  rank $((1 - rank)) .* on another machine$"
	done
	job_end
	job_run --hosts a,b --ssh "$folder/shell" --survive -n 3 sh -c \
		'echo "rank $TERN_RANK is $$"; exec "$0" lost' "$TERN_BIN/stuck_ranks"
	said_until '^rank 0 is'
	ask_until '^in short: every open rank waits, .*; rank 2 is dead; rank 1 is on another machine\.' \
		why "$(sed -n "s/^rank 0 is //p" "$folder/job")"
	job_end
fi

sentence "sessions that end and begin again are counted as they are, by tern top too"
TERN_STATS=1 job_run -n 2 "$TERN_BIN/reopen_ranks"
never_wrong

sentence \
	"a session that ends while ranks are looked at, one of them by a death, is counted as it is"
job_run --survive -n 3 "$TERN_BIN/onceclose_ranks"
never_wrong

sentence "what is no job is refused with a sentence"
ask why $stranger
check_status 1
check_err "process $stranger is neither the launcher nor a rank"
ask why none
check_status 2
check_err "'none' is not one process"
ask why --jsn
check_status 2
check_err "'--jsn'.*--json"
ask why --help
check_status 0
check_out '^usage: tern why'
finish
