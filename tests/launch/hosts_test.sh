#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: TIMEOUT 200 LOCK launch LABELS slow once
# `tern run --hosts`, through a real sshd that the test starts on this machine for itself.
. tests/lib/launch_frame.sh
need ssh openssh-client
need sshd openssh-server

tern=$bin/tern port=$((20000 + RANDOM % 10000)) daemon=
# Whatever the daemon starts carries the port in its environment.
marked() {
	grep -lzsE "^SSH_CONNECTION=.* $port\$|^LAUNCH_TEST_MARK=$mark\$" /proc/[0-9]*/environ |
		grep -oE '[0-9]+'
}
sshd_stop() {
	[[ $daemon ]] && kill "$daemon" && wait "$daemon" 2>/dev/null
	launch_clean
}
trap sshd_stop EXIT

sshd_start() {
	ssh-keygen -q -t ed25519 -N '' -f "$folder/host" &&
		ssh-keygen -q -t ed25519 -N '' -f "$folder/key" || return 1
	cp "$folder/key.pub" "$folder/authorized"
	((EUID)) || mkdir -p /run/sshd
	: >"$folder/sshd.log"
	"$(command -v sshd)" -D -e -f /dev/null -p "$port" -h "$folder/host" \
		-o ListenAddress=127.0.0.1 \
		-o AuthorizedKeysFile="$folder/authorized" -o StrictModes=no -o UsePAM=no \
		-o PidFile=none \
		-o PermitRootLogin=yes 2>"$folder/sshd.log" &
	daemon=$!
	until_true grep -q listening "$folder/sshd.log"
}
sshd_start || skip "sshd does not start: $(tail -n 1 "$folder/sshd.log")"
shell="ssh -F none -o BatchMode=yes -o StrictHostKeyChecking=no -o LogLevel=ERROR"
shell+=" -o UserKnownHostsFile=$folder/known -i $folder/key -p $port"
launcher=("$tern" run --hosts 127.0.0.1 --ssh "$shell")

sentence "the examples do on another host what they do on this one"
same_as_tern_run 4 "$bin/hello"
same_as_tern_run 3 "$bin/ring"
launch 4 "$bin/launch_ranks" all 50
check_status 0
says 12 '^rank [0-3] of 4: all came$'

sentence "ranks on two hosts share nothing and talk all the same, in one session after another"
if has_udp; then
	"$tern" run --hosts 127.0.0.1,localhost --ssh "$shell" -n 5 "$bin/launch_ranks" all 50 \
		>"$out" 2>"$err"
	status=$?
	check_status 0
	says 15 '^rank [0-4] of 5: all came$'
else
	echo "    skipped: this build has no UDP"
fi

sentence "lines of 8 ranks come whole and in order, on both outputs"
launch 8 "$bin/run_lines" 500 200
check_status 0
for file in "$out" "$err"; do
	[[ $(awk 'NF == 5 && length($5) == 200 && $4 == n[$2]++' "$file" | wc -l) == 4000 ]] ||
		fail "a line is not whole, or not in order"
done

sentence "every line carries its rank with --tag"
launch 11 --tag sh -c 'echo one'
[[ $(grep -c '^\[..\] one$' "$out") == 11 ]] || fail "tags are wrong: $(head -1 "$out")"

sentence "rank 0 gets the input byte for byte, and its end"
head -c 3000000 /dev/urandom >"$folder/noise"
"${launcher[@]}" -n 2 sh -c '[ "$TERN_RANK" = 0 ] && exec cat; cat >&2' <"$folder/noise" 2>"$err" |
	cmp -s - "$folder/noise" || fail "the bytes differ"
[[ -s $err ]] && fail "rank 1 got input"

sentence "the folder, PATH and TERN_* variables are those of this host, and nothing else is"
(cd "$folder" && TERN_SPIN=77 OTHER=1 "${launcher[@]}" -n 1 sh \
	-c 'pwd; echo "spin $TERN_SPIN, other $OTHER"') >"$out" 2>"$err"
says 1 "^$(cd "$folder" && pwd)$"
says 1 '^spin 77, other $'

sentence "other variables, and numbers of ranks, travel when they are asked for"
OTHER=1 "$tern" run --hosts 127.0.0.1:2,localhost:1 --ssh "$shell" --env OTHER --env "SAID=it's" \
	sh -c 'echo "rank $TERN_RANK, other $OTHER, $SAID"' >"$out" 2>"$err"
status=$?
check_status 0
says 3 "^rank [012], other 1, it's\$"

sentence "the exit status is that of the rank that failed first, and the rank is named"
launch 3 sh -c '[ "$TERN_RANK" = 1 ] && exit 7; sleep 100'
check_status 7
grep -qE 'rank 1 .*ended with status 7; ending the others' "$err" || fail "it was not named"
launch 3 sh -c '[ "$TERN_RANK" = 2 ] && kill -9 $$; sleep 100'
check_status 137
launch 4 --survive "$bin/fail_ranks" survive 0
check_status 137
says 3 '^. others: fine'
launch 2 /no/such/program
check_status 127
check_nothing_left

start() { # ARGUMENTS: starts, with $front its process; input from $input
	: >"$out"
	set -m
	"${launcher[@]}" "$@" >"$out" 2>"$err" <"${input:-/dev/null}" &
	front=$!
	set +m
}
printed_by() { [[ $(grep -cx "$2" "$out") == "$1" ]]; } # RANKS LINE
job_runs() { job=$(pgrep -f -- "-p $port -n 2 yes rank$") && pgrep -f '^yes rank$' >/dev/null; }
gone() { ! kill -0 "$1" 2>/dev/null; }
# The next SIGINT; a launcher that a busy machine has not let see the one before takes both for one,
# so there may be more.
ended_by_another() {
	kill -INT $front 2>/dev/null
	sleep 1
	gone $front
}

sentence "signals reach the ranks, also when nobody reads their input and output"
start -n 2 sh -c 'trap "echo got it; exit 0" USR1; echo ready; while :; do sleep 0.1; done'
until_true printed_by 2 ready && sleep 2
kill -USR1 $front
wait $front
status=$?
check_status 0
says 2 '^got it$'
LAUNCH_TEST_MARK=$mark "${launcher[@]}" -n 2 yes rank <"$folder/noise" 2>"$err" | sleep 1000 &
reader=$!
until_true job_runs && sleep 0.7
kill -TERM $job
until_true eval '! pgrep -f "^yes rank$" >/dev/null' || fail "the ranks do not get SIGTERM"
kill $reader
check_nothing_left

sentence "whoever is killed, nothing is left on the other host"
for victim in front keeper ssh tern-link; do
	start -n 3 sh -c 'echo ready; sleep 1000 & sleep 1000'
	until_true printed_by 3 ready || fail "it does not begin"
	keeper=$(pgrep -P $front)
	case $victim in
	front) pid=$front ;;
	keeper) pid=$keeper ;;
	ssh) pid=$(pgrep -P "$keeper") ;;
	tern-link) pid=$(marked | while read -r p; do
		grep -qz "^[^ ]*/tern-link\$" "/proc/$p/cmdline" 2>/dev/null && echo "$p"; done | tail -1) ;;
	esac
	kill -9 $pid
	wait $front 2>/dev/null
	status=$?
	((status)) || fail "the $victim was killed and the status is 0"
	check_nothing_left
done

sentence "a second interrupt ends the job at once"
start -n 2 sh -c 'trap "" INT TERM; echo ready; while :; do sleep 0.1; done'
until_true printed_by 2 ready
kill -INT $front
sleep 2
gone $front && fail "the first ended it"
until_true ended_by_another || fail "it goes on"
wait $front
check_nothing_left

sentence "many hosts are as good as few, and one that is lost is named on all others"
many_hosts() {
	# These are all this one, through a shell that only says which one it is.
	printf '#!/bin/sh\nMANY_HOST=$1; shift; export MANY_HOST; exec sh -c "$*"\n' >"$folder/many"
	chmod +x "$folder/many"
	launcher=("$tern" run --hosts "$(seq -s , -f h%g 16)" --ssh "$folder/many")
	launch 24 "$bin/launch_ranks" all 3
	check_status 0
	says 72 '^rank [0-9]+ of 24: all came$'
	LAUNCH_TEST_MARK=$mark start -n 32 --survive "$bin/fail_ranks" lose
	ready() { [[ $(grep -c ready "$out") == 32 ]]; }
	until_true ready || fail "it does not begin"
	kill -9 $(grep -lzs '^MANY_HOST=h5$' $(marked | sed 's,.*,/proc/&/environ,') |
		grep -oE '[0-9]+')
	wait $front
	status=$?
	((status)) || fail "a host was lost and the status is 0"
	says 30 'wait: dead: rank (8|9) is '
	check_nothing_left
}
if has_udp; then
	many_hosts
else
	echo "    skipped: this build has no UDP"
fi

sentence "what comes before the card of who sent it is not lost, also where nothing is sent again"
printf '#!/bin/sh\nhost=$1; shift\n[ $host = h2 ] || exec sh -c "$*"\nsh -c "$*" | (sleep 2; cat)\n' >"$folder/late"
chmod +x "$folder/late"
launcher=("$tern" run --hosts h1,h2 --ssh "$folder/late")
for net in udp ofi/tcp; do
	[[ $(TERN_NET=$net "$tern" info 2>/dev/null) == *"${net%%/*}            usable"* ]] ||
		continue
	TERN_NET=$net launch 4 "$bin/launch_ranks" all 3
	check_status 0
	says 12 '^rank [0-9]+ of 4: all came$'
done

refused() { # PATTERN ARGUMENTS
	local pattern=$1
	shift
	timeout 300 "$tern" run "$@" >"$out" 2>"$err" </dev/null && fail "the status is 0"
	grep -qE -- "$pattern" "$err" || fail "nothing matches: $pattern"
}
sentence "what cannot be done is refused in words"
refused "'' is no host" --hosts a,,b -n 4 true
refused 'a is named twice' --hosts a,a -n 4 true
refused 'host 127.0.0.1: .* tern-link did not answer: the host cannot be reached' --hosts 127.0.0.1 \
	--ssh "${shell/-p $port/-p 1}" -n 2 true
refused "cannot start 'no-such-shell'" --hosts a --ssh no-such-shell -n 2 true

finish
