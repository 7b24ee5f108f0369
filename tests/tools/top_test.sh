#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: RUN_SERIAL
# What `tern top` shows, as a table and on a terminal.
set -uo pipefail
. tests/lib/watch_lib.sh

sentence "a job that counts has rates for ranks and handlers"
TERN_STATS=1 job_start 2 busy
rate='[1-9][0-9.]*[kM]?'
ask_until "^ +0 +[0-9]+ +$rate +$rate +$rate +[0-9]+ +[0-9]+ % +0 " top --once --interval 0.3 "$job"
check_status 0
check_out "^job of $job: 2 ranks on "
check_out "^user 0 \(note\) +$rate +$rate +[0-9]+ +[1-9][0-9]*$"

sentence "without --once it goes on until the job ends"
"$tern" top --interval 0.2 "$job" >"$out" 2>"$err" &
top=$!
for ((i = 0; i < 3000 && $(grep -c '^job of' "$out") < 2; i++)); do sleep 0.1; done
finished=$(kill -0 $top 2>/dev/null && echo no)
job_end
wait $top
status=$?
[[ $finished == no ]] || fail "it ended before the job"
check_status 0
[[ $(grep -c '^job of' "$out") -ge 2 ]] || fail "there are fewer than two tables"

sentence "a job that does not count shows who handles how much, and who waits for whom"
job_start 2 circle
ask_until '^ +1 .* (asleep|waiting) [0-9]+ m?s in tern_recv 0x7 from rank 0' top --once \
	--interval 0.2 "$job"
check_out 'TERN_STATS=1 would count'
job_end
job_start 2 room
ask_until '^ +1 .* >[1-9][0-9]* .* computing$' top --once --interval 0.2 "$job"
check_out '^ +0 .* waiting .* in a request to rank 1: ring full'
ask top --once --sort queue --interval 0.2 "$job"
[[ $(grep -m1 -E '^ +[01] ' "$out") =~ ^\ +1\  ]] || fail "--sort queue: rank 1 is not the first"
ask top --once --sort rank --interval 0.2 "$job"
[[ $(grep -m1 -E '^ +[01] ' "$out") =~ ^\ +0\  ]] || fail "--sort rank: rank 0 is not the first"
job_end

sentence "mistakes are refused with a sentence"
ask top --interval soon
check_status 2
check_err '--interval soon: it is a number of seconds'
ask top --sort speed
check_status 2
check_err '--sort speed: the columns are rank, handled'
ask top --onec
check_status 2
check_err "'--onec'.*--once"
ask top $stranger
check_status 1
check_err "process $stranger is neither"
ask top --help
check_status 0
check_out '^usage: tern top'

# a server for each: one that ends is in the way of the next
screen() { tmux -L "tern-$$-$screens" -f /dev/null "$@"; }
screens=0
screenless() { # WHY
	((failed == 0)) || finish
	echo "skipped: the screen is tested in tmux, $1"
	exit 77
}
command -v tmux >/dev/null || screenless "which is not installed"
# a root without pseudo-terminals, for instance
screen new-session -d 'sleep 1000' 2>"$err" || screenless "which says: $(<"$err")"
screen kill-server
screens=1
screen_until() { # PATTERN
	local i
	for ((i = 0; i < 3000; i++)); do
		screen capture-pane -p >"$out" 2>"$err" || break # the session is gone
		grep -qE -- "$1" "$out" && return
		sleep 0.1
	done
	fail "the screen does not show: $1"
}
trap 'screen kill-server 2>/dev/null; watch_end' EXIT

sentence "on a terminal the figures change in place, and it ends with the job"
TERN_STATS=1 job_start 2 busy
screen new-session -d -x 140 -y 30 \
	"env TERM=screen '$tern' top --interval 0.2 $job; echo status \$?; sleep 1000"
screen_until '^job of '"$job"
screen_until "^user 0 \(note\) +$rate"
sleep 1 # some tables more
screen_until '^ +1 '
[[ $(grep -c '^job of' "$out") == 1 ]] || fail "tables stand below each other"
job_end
screen_until '^status 0'

sentence "what has no room on the terminal is left out"
screen kill-server
screens=2
TERN_STATS=1 job_start 4 busy
screen new-session -d -x 70 -y 5 \
	"env TERM=screen '$tern' top --interval 0.2 $job; echo status \$?; sleep 1000"
screen_until '^ +1 .* [0-9]+ %'
check_out "^job of $job"
! grep -qE '^ +2 ' "$out" || fail "there is a third rank"
job_end
screen_until '^status 0'
finish
