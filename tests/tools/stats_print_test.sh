#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What ranks print of their statistics when they close, and what tools show of packets meanwhile.
set -uo pipefail
. tests/lib/watch_lib.sh
command=run
packets=(packets_sent packets_received packets_again packets_doubled packets_early packets_refused \
	packets_malformed
	packets_foreign packets_old packets_forged)
keys=(rank size sent handled "${packets[@]}" handlers peers)

objects() { # of three ranks that ran to their end, one a line
	check_status 0
	[[ $(grep -c '^{' "$err") == 3 ]] || fail "there are $(grep -c '^{' "$err") objects, not 3"
	while read -r line; do
		"$check" "${keys[@]}" <<<"$line" >/dev/null || fail "it is not one object: $line"
	done < <(grep '^{' "$err")
}

sentence "on shared memory a rank prints its figures, and no packets"
TERN_NET=shm TERN_STATS=1 run -n 3 "$TERN_BIN/ring"
check_status 0
check_err '^tern: rank 2 of 3$'
! grep -q packets "$err" || fail "there are packets"

sentence "as JSON it is an object a rank, and all packets are 0"
TERN_NET=shm TERN_STATS=2 run -n 3 "$TERN_BIN/ring"
objects
! grep -qE '"packets_[a-z]+": [1-9]' "$err" || fail "there are packets"

if [[ $("$tern" info) != *"udp            usable"* ]]; then
	((failed == 0)) || finish
	echo "skipped: this build has no UDP"
	exit 77
fi

sentence "over UDP there are packets, in both forms"
TERN_NET=udp TERN_STATS=1 run -n 3 "$TERN_BIN/ring"
check_status 0
[[ $(grep -cE '^tern:   packets: [1-9][0-9]* sent, [1-9][0-9]* received' "$err") == 3 ]] ||
	fail "not of each rank"
TERN_NET=udp TERN_STATS=2 run -n 3 "$TERN_BIN/ring"
objects
[[ $(grep -cE '"packets_sent": [1-9].*"packets_received": [1-9]' "$err") == 3 ]] ||
	fail "not of each rank"

sentence "top has a line for packets, and those that were sent again"
TERN_NET=udp TERN_FAULT=drop=0.3,seed=7 job_start 2 busy
ask_until '^packets/s: [1-9].* sent, [1-9].* received, [1-9].* sent again, 0 dropped$' top --once \
	--interval 0.5 "$job"

sentence "why says so, too"
ask_until '^  rank 0 .*; it sent [1-9][0-9]* packets? again$' why "$job"
ask why --json "$job"
"$check" job size ranks <"$out" >/dev/null 2>"$err" || fail "it is not JSON"
check_out '"packets_again": [1-9]'
job_end

sentence "what is damaged on the way is dropped, and both say so"
TERN_NET=udp TERN_FAULT=corrupt=0.3,seed=7 job_start 2 busy
ask_until '^packets/s: .* [1-9][0-9.k]* dropped$' top --once --interval 0.5 "$job"
ask why --json "$job"
check_out '"packets_forged": [1-9]'
ask_until '^  rank 1 .*; it dropped [1-9][0-9]* packets?: of strangers, damaged or old$' why "$job"
job_end

sentence "a job on shared memory has no such line"
TERN_NET=shm job_start 2 busy
ask_until '^ +1 +[0-9]+ +[1-9]' top --once --interval 0.3 "$job"
! grep -q packets "$out" || fail "it has"
finish
