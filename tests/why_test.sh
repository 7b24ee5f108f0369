#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: RUN_SERIAL
# What `tern why` says of jobs that are stuck.
set -uo pipefail
. tests/watch_lib.sh

sentence "two ranks that receive from each other are a circle, and the message is named"
job_start 2 circle
ask_until '^in short: a circle: rank 0 waits for rank 1, which waits for rank 0, and none' why "$job"
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
	check_err "[0-9]+ jobs are running; say which, by its launcher's pid:.* $job( |\$)"
fi
job_end

sentence "a circle of three is one, too"
job_start 3 circle
ask_until '^in short: a circle: rank 0 waits for rank 1, which waits for rank 2, which waits for rank 0' why "$job"
job_end

sentence "whoever has not come to a barrier is named"
job_start 4 barrier
ask_until '^in short: ranks 0, 1, 2 wait for rank 3, which computes and does not poll' why "$job"
check_out '^  rank 1 .* in tern_barrier.*; not there: rank 3'
job_end

sentence "a rank that computes while another waits for room is named, with what waits for it"
job_start 2 room
ask_until '^in short: rank 0 waits for rank 1, which computes and does not poll' why "$job"
check_out '^  rank 0 .* in a request to rank 1: ring full; at least [0-9]+ messages'
check_out '^  rank 1 .*; at least [1-9][0-9]+ messages wait to be handled by it'
job_end

sentence "with statistics on, that is known exactly: three leaves of 127 lines at least, and some of a fourth"
TERN_STATS=1 job_start 2 room
ask_until 'rank 1 .*; [0-9]+ messages wait to be handled by it' why "$job"
waiting=$(sed -nE 's/.* rank 1 .*; ([0-9]+) messages wait.*/\1/p' "$out")
((waiting >= 381 && waiting <= 508)) || fail "there are $waiting"
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
