#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: TIMEOUT 300 LOCK launch
# What `tern run` promises: output, input, status, signals, and that nothing outlives it.
# SEED=n repeats the random part, ROUNDS=n makes it longer.
. tests/launch/run_frame.sh

# -- Output and input ---------------------------------------------------------

in_order() { # FILE: 8 ranks, 1000 lines each, every line whole and in its rank's order
	awk 'NF != 5 || length($5) != 200 || $4 != next_line[$2]++ { bad++ }
		$5 !~ "^" substr("abcdefgh", $2 + 1, 1) "+$" { bad++ }
		END { exit bad || NR != 8000 }' "$1"
}

sentence "lines of 8 ranks are never mixed"
run -n 8 "$lines" 1000 200
check_status 0
in_order "$out" || fail "standard output has a line that is not whole, or not in order"
in_order "$err" || {
	: >"$err"
	fail "standard error has a line that is not whole, or not in order"
}

sentence "lines are not mixed when both outputs are one file, one pipe, or the slow reader's"
RUN_TEST_MARK=$mark "$tern" run -n 4 "$lines" 1000 200 2>&1 | { sleep 0.3; cat; } >"$out"
[[ $(awk 'NF == 5 && length($5) == 200' "$out" | wc -l) == 8000 ]] || fail "a line is not whole"

sentence "every line carries its rank with --tag, and the tags are aligned"
run -n 11 --tag sh -c 'echo "one"; echo; printf two'
[[ $(grep -c '^\[..\] one$' "$out") == 11 && $(grep -c '^\[..\] $' "$out") == 11 ]] ||
	fail "tags are wrong"
printed '\[ 3\] one' && printed '\[10\] two' || fail "tags are not aligned"

sentence "a line without a newline is completed only when another rank's would stick to it"
run -n 1 printf abc
[[ $(od -An -c "$out" | tr -d ' ') == abc ]] || fail "one rank's output was changed"
run -n 2 sh -c \
	'[ $TERN_RANK = 0 ] || until grep -q abc0 "$0"; do sleep 0.02; done; printf "%s" "abc$TERN_RANK"' "$out"
check_out $'abc0\nabc1'

sentence "one rank's output arrives byte for byte"
head -c 3000000 /dev/urandom >"$folder/noise"
run -n 1 cat <"$folder/noise"
cmp -s "$out" "$folder/noise" || fail "the bytes differ"

sentence "a line of a megabyte comes in pieces that keep their order"
run -n 2 sh -c 'if [ $TERN_RANK = 0 ]; then seq 200000 | tr "\n" " "; echo; else seq 20000; fi'
cmp -s <(grep ' ' "$out" | tr -d '\n') <(seq 200000 | tr '\n' ' ') ||
	fail "the pieces do not make the line"
[[ $(grep -cv ' ' "$out") == 20000 ]] || fail "the other rank's lines are not all there"

sentence "standard output stays standard output, standard error stays standard error"
run -n 2 sh -c 'echo good; echo bad >&2'
check_out $'good\ngood'
[[ $(<"$err") == $'bad\nbad' ]] || fail "standard error is not what was written to it"

sentence "rank 0 gets the standard input, the others get none"
run -n 3 --tag cat <<<"text"
check_out "[0] text"

sentence "whoever feeds the standard input sees when rank 0 has gone"
mkfifo "$folder/in"
yes >"$folder/in" 2>/dev/null &
feeder=$!
RUN_TEST_MARK=$mark "$tern" run -n 2 sh -c '[ $TERN_RANK = 1 ] && sleep 30; exit 0' <"$folder/in" &
front=$!
until_true gone $feeder || fail "the feeder was not told"
kill -TERM "$front"
ended

sentence "a reader that does not read holds the ranks up, and not in memory"
mkfifo "$folder/fifo"
thousand=$(printf %0999d 7)
RUN_TEST_MARK=$mark "$tern" run -n 2 sh -c "yes $thousand | head -n 30000" >"$folder/fifo" \
	2>"$err" &
front=$!
exec 9<"$folder/fifo"
keeper_is_there() { keeper=$(child_of "$front") && [[ $keeper ]]; }
until_true keeper_is_there
sleep 0.5
kib=$(awk '/VmRSS/ { print $2 }' "/proc/$keeper/status")
[[ $kib -lt 16000 || $TERN_BIN == *san* ]] || fail "the launcher holds $kib KiB"
[[ $(wc -c <&9) == 60000000 ]] || fail "bytes are missing"
exec 9<&-
ended
check_status 0

sentence "a launcher whose output nobody reads can be ended"
RUN_TEST_MARK=$mark "$tern" run -n 2 yes >"$folder/fifo" 2>"$err" &
front=$!
exec 9<"$folder/fifo"
sleep 0.2
kill -TERM "$front"
sleep 0.3
until_true ended_by_another || fail "it goes on"
exec 9<&-
check_nothing_left
ended

sentence "ranks whose reader has left end as they would without a launcher"
RUN_TEST_MARK=$mark timeout 300 "$tern" run -n 2 yes 2>"$err" | head -1 >"$out"
[[ ${PIPESTATUS[0]} == 141 ]] || fail "the status is not that of SIGPIPE"
check_nothing_left

sentence "output that cannot be written is an error"
if [[ -w /dev/full ]]; then
	RUN_TEST_MARK=$mark "$tern" run -n 2 echo text >/dev/full 2>"$err"
	[[ $? != 0 ]] || fail "the status is 0"
fi

sentence "it works with standard input, output and error closed, and without a terminal"
for closed in '<&-' '>&-' '2>&-' '<&- >&- 2>&-'; do
	eval "RUN_TEST_MARK=\$mark setsid -w \"\$tern\" run -n 2 sh -c 'echo x; echo y >&2; cat' \
		</dev/null >\"\$out\" 2>\"\$err\" $closed"
	status=$?
	check_status 0
done

# -- Status -------------------------------------------------------------------

sentence "it returns 0 when every rank returns 0, at whatever time"
run -n 4 sh -c 'sleep 0.$TERN_RANK'
check_status 0
[[ ! -s $err ]] || fail "it said something"

sentence "it returns the first failing rank's status and ends the others"
run -n 4 sh -c '[ $TERN_RANK = 2 ] && exit 5; [ $TERN_RANK = 3 ] && sleep 1000; sleep 1000 & wait'
check_status 5
check_err '^tern run: rank 2 \(pid [0-9]+\) ended with status 5; ending the others$'
[[ $(wc -l <"$err") == 1 ]] || fail "it said more than one sentence"
check_nothing_left

sentence "it names the rank and the signal that killed it"
run -n 3 sh -c '[ $TERN_RANK = 1 ] && kill -9 $$; sleep 1000'
check_status 137
check_err \
	'^tern run: rank 1 \(pid [0-9]+\) was killed by signal 9 \(Killed\); ending the others$'
check_nothing_left

sentence "a rank's last words come before the sentence about its end"
run -n 2 sh -c '[ $TERN_RANK = 1 ] && { printf "last words" >&2; exit 3; }; sleep 1000'
[[ $(<"$err") == "last words"$'\n'"tern run: rank 1"* ]] || fail "the order is another"

sentence "ranks get SIGTERM and a second to end well, then SIGKILL"
run -n 3 sh -c 'case $TERN_RANK in
	0) trap "echo ended well; exit 0" TERM; : >"$0/0"; sleep 1000 & wait ;;
	1) trap "" TERM; : >"$0/1"; while :; do sleep 0.02; done ;;
	*) until [ -e "$0/0" ] && [ -e "$0/1" ]; do sleep 0.02; done; exit 4 ;; esac' "$folder"
check_status 4
check_out "ended well"
check_nothing_left

sentence "with --survive the others go on, and the status is still the first failing rank's"
run -n 4 --survive sh -c 'said() { until grep -q "$1" "$0"; do sleep 0.02; done; }
	case $TERN_RANK in 1) exit 7 ;; 2) said "status 7"; exit 8 ;; esac; said "status 8"; echo on' "$err"
check_status 7
check_out $'on\non'
check_err 'rank 1 .* ended with status 7; the others go on$'
check_err 'rank 2 .* ended with status 8; the others go on$'

sentence \
	"with --survive=survivors the dead do not count; with --survive=any one good rank is enough"
# Rank 1 is killed, and rank 2 returns $1 after it; the others return 0.
ranks='case $TERN_RANK in 1) kill -9 $$ ;; esac
while kill -0 "$(cat FILE)" 2>/dev/null; do sleep 0.02; done; [ $TERN_RANK != 2 ] || exit $1'
survivors() { # OPTION STATUS-OF-RANK-2
	rm -f "$folder/killed"
	run -n 4 $1 sh \
		-c "[ \$TERN_RANK = 1 ] && echo \$\$ >$folder/new && mv $folder/new $folder/killed
		until [ -e $folder/killed ]; do sleep 0.02; done; ${ranks/FILE/$folder/killed}" sh \
			"$2"
}
survivors --survive=survivors 0
check_status 0
check_err 'rank 1 .* was killed by signal 9 \(Killed\); the others go on$'
survivors --survive=survivors 3
check_status 3
survivors --survive=any 3
check_status 0
survivors --survive=first 3
check_status 137
for choice in survivors any; do
	run -n 2 --survive=$choice sh -c 'kill -9 $$'
	check_status 137
	run -n 2 --survive=$choice sh -c 'exit 9'
	check_status 9
	run -n 2 --survive=$choice ./no/such/program
	check_status 127
done

# -- Starting -----------------------------------------------------------------

sentence "-np is -n"
run -np 3 sh -c 'echo one'
check_status 0
count_printed one 3 || fail "there are not three"

sentence "--env sets variables for the ranks, with a value of its own or with this one"
HERE=here run -n 2 --env SAID='a = b' --env HERE --env EMPTY= sh \
	-c 'echo "$SAID, $HERE, ${EMPTY-unset}."'
check_status 0
count_printed 'a = b, here, \.' 2 || fail "they have others: $(<"$out")"
run -n 1 --env TERN_SPIN=77 "$tern" info
grep -q '^ *TERN_SPIN .*77' "$out" || fail "Tern does not see its own"

sentence "ranks find their number, the job's size and its memory in the environment"
run -n 3 --tag sh -c 'echo $TERN_RANK of $TERN_SIZE; readlink /proc/self/fd/$TERN_JOB_FD'
for rank in 0 1 2; do
	printed "\[$rank\] $rank of 3" && printed "\[$rank\] /memfd:tern.*" ||
		fail "rank $rank did not"
done

sentence "a program that cannot be started is named, with the reason"
run -n 4 no-such-program
check_status 127
check_err "^tern run: cannot start 'no-such-program': no program of that name is in PATH"
run -n 4 ./no/such/program
check_status 127
check_err "^tern run: cannot start './no/such/program': No such file or directory$"
run -n 4 /etc/passwd
check_status 126
check_err "^tern run: cannot start '/etc/passwd': Permission denied$"
[[ $(wc -l <"$err") == 1 ]] || fail "it said so more than once"
check_nothing_left

sentence "a mistake on the command line is explained, with status 2"
mistake 'how many ranks' true
mistake 'which program' -n 2
mistake '-n 0: .* 1 to 1024' -n 0 true
mistake '-n 1025: .* 1 to 1024' -n 1025 true
mistake '-n 2x: ' -n 2x true
mistake '-n -3: ' -n -3 true
mistake '-n needs a value' -n
mistake '--bind needs a value' -n 1 --bind
mistake "--bind socket: .*'core'.*'none'" -n 1 --bind socket true
mistake "did you mean --survive" -n 1 --survvie true
mistake "--survive=nobody: .*'first', 'survivors' or 'any'" -n 1 --survive=nobody true
mistake '-np needs a value' -np
mistake '-np p4: a whole number is needed' -np p4 true
mistake '--env NOT_SET_ANYWHERE: it is not set here; say --env NOT_SET_ANYWHERE=VALUE' -n 1 \
	--env NOT_SET_ANYWHERE true
mistake '--env =x: a variable has a name' -n 1 --env =x true
mistake '--env TERN_RANK=3: tern run sets that variable' -n 1 --env TERN_RANK=3 true
mistake 'did you mean --hosts' -n 1 --hotss b true
mistake "no option '-x'.*program's name comes first" -n 1 -x true
"$tern" rnu 2>"$err"
status=$?
check_status 2
check_err "no command 'rnu'; did you mean 'tern run'"

sentence "options after the program's name are the program's, and -- ends ours"
run -n 1 echo -n --tag
check_out "--tag"
run -n 1 -- echo --survive
check_out "--survive"

sentence "help goes to standard output with status 0"
run --help
check_status 0
grep -q 'tern run -n 2 ./hello' "$out" || fail "it has no example"
cp "$out" "$folder/help"
"$tern" help run >"$out" 2>"$err" || fail "tern help run fails"
cmp -s "$out" "$folder/help" || fail "tern help run says something else"
"$tern" help >"$out" 2>"$err" || fail "tern help fails"
"$tern" --help | cmp -s - "$out" || fail "tern help says something else than tern --help"
for command in $(sed -n 's/^  \([a-z]*\) .*/\1/p' "$out"); do
	"$tern" help "$command" 2>"$err" | grep -q "^usage: tern $command" ||
		fail "tern help $command does not say how"
done
"$tern" help rnu >"$out" 2>"$err"
status=$?
check_status 2
check_err "no command 'rnu'; did you mean 'tern run'"
[[ $("$tern" --version) == "tern "[0-9]*.*.* ]] || fail "--version is wrong"
[[ $("$tern" version) == "$("$tern" --version)" ]] || fail "version is not --version"
"$tern" --help | grep -q perf || fail "tern --help does not list perf"

sentence "ranks are bound to a core each, or not, as asked"
first=$(awk '/Cpus_allowed_list/ { print $2 }' /proc/self/status)
run -n 1 --bind none grep Cpus_allowed_list /proc/self/status
[[ $(cut -f2 "$out") == "$first" ]] || fail "a rank was bound unasked"
run -n "$(nproc)" --bind core grep Cpus_allowed_list /proc/self/status
[[ $(sort -u "$out" | wc -l) == $(nproc) ]] || fail "two ranks have the same core"
grep -q '[-,]' "$out" && fail "a rank has more than one core"

sentence "a low soft limit on descriptors is raised for the launcher alone; a hard one is explained"
(ulimit -Sn 64 && run -n 100 sh -c 'ulimit -Sn')
[[ $(uniq -c "$out" | tr -s ' ') == " 100 64" ]] || fail "100 ranks did not start"
(ulimit -n 64 && run -n 100 true; exit $((status != 1))) || fail "it did not refuse"
check_err '100 ranks take [0-9]+ file descriptors.* limit is 64; raise it'

sentence "--help says what chooses the network"
run --help
check_status 0
grep -q 'TERN_NET .*tern-net(7)' "$out" || fail "it does not"

sentence "a setting that is no number is refused by name"
TERN_MEMORY=lots run -n 2 true
check_status 1
check_err '^tern run: TERN_MEMORY is .lots.'
TERN_KEEPALIVE=often run -n 2 true
check_status 1
check_err '^tern run: TERN_KEEPALIVE is .often.'

sentence "what the kernel refuses is said in the kernel's words, and not in Tern's for the code"
refused() { # ERRNO CALL WORDS
	RUN_TEST_MARK=$mark timeout -k 5 60 "$TERN_BIN/refuse" "$1" "$2" -- "$tern" run -n 2 true \
		>"$out" 2>"$err"
	status=$?
	[[ $status == 77 ]] && return # no seccomp here
	check_status 1
	check_err "^tern run: .*$3"
	grep -qE \
		'rules of the model|no room now|is not what this call takes|it is too late for that' "$err" &&
		fail "error $1 of $2 is said to be one of Tern's own"
}
for call in signalfd4 epoll_create1 epoll_ctl memfd_create ftruncate; do
	refused 1 $call 'Operation not permitted'
	refused 11 $call 'Resource temporarily unavailable'
	refused 16 $call 'Device or resource busy'
	refused 22 $call 'Invalid argument'
done

sentence "faults where no packets are sent get one warning a job, and what to do"
TERN_FAULT=drop=0.1 run -n 3 "$TERN_BIN/run_start"
[[ $(grep -c TERN_FAULT "$err") == 1 ]] || fail "there are $(grep -c TERN_FAULT "$err") warnings"
check_err 'TERN_FAULT is set, but shared memory.*TERN_NET=udp'

sentence "a job of 256 ranks starts and ends"
run -n 256 sh -c 'echo $TERN_RANK'
check_status 0
[[ $(sort -n "$out" | uniq | wc -l) == 256 ]] || fail "some ranks are missing"

# -- Signals ------------------------------------------------------------------

heed='for s in HUP INT QUIT USR1 USR2 TERM CONT; do trap "echo $s" $s; done
	echo ready; while :; do sleep 0.02; done'

sentence "signals are passed on to every rank"
start -n 2 sh -c "$heed"
until_true count_printed ready 2 || fail "the ranks did not start"
for signal in USR1 USR2 CONT HUP; do
	kill -$signal "$front"
	until_true count_printed $signal 2 || fail "SIG$signal did not arrive"
done
kill -KILL "$front"
ended
check_nothing_left

sentence "the launcher ends as the ranks do when it is interrupted"
for signal in INT TERM QUIT; do
	start -n 2 sh -c 'trap "exit 42" INT TERM QUIT; echo ready; while :; do sleep 0.02; done'
	until_true count_printed ready 2
	env kill -s $signal "$front"
	ended
	check_status 42
done
start -n 2 sleep 1000
sleep 0.1
kill -TERM "$front"
ended
check_status 143
check_nothing_left

sentence "a second SIGTERM kills a job that ignores the first; two at once are one"
start -n 2 sh \
	-c 'trap "" TERM; (while :; do sleep 0.5; done) & echo ready; while :; do sleep 0.5; done'
until_true count_printed ready 2
kill -STOP "$front" # so that it sees both at once, however long this shell takes to send them
until_true in_state T "$front"
kill -TERM "$front"
kill -TERM "$front"
kill -CONT "$front"
sleep 0.3
kill -0 "$front" 2>/dev/null || fail "the first ended it"
until_true ended_by_another
ended
check_status 137
check_nothing_left

sentence "SIGTSTP stops the launcher and the ranks, SIGCONT continues them"
start -n 2 sleep 1000
sleeping() { all="$front $(child_of "$(child_of "$front")")" && [[ $(wc -w <<<"$all") == 3 ]]; }
until_true sleeping || fail "the ranks did not start"
for signal in TSTP CONT; do
	kill -$signal "$front"
	for who in $all; do
		[[ $signal == TSTP ]] && state=T || state=S
		until_true in_state $state "$who" || fail "not on SIG$signal"
	done
done
kill -TERM "$front"
ended
check_status 143


at_terminal() { RUN_TEST_MARK=$mark timeout 300 script -qec "$1" /dev/null; }
# A terminal's lines have another end. A shell that traces its commands (-x) writes them there, too.
seen() { (($(grep -c "$1" "$out") >= $2)); }
terminal_check() { # [HOSTS]
	local hosts=${1:-}
	: >"$out"
	{ until_true seen 'ready[^;]*$' 2; printf '\003'; until_true seen '^status' 1; } |
		at_terminal "trap : INT; $tern run $hosts -n 2 --survive sh -c '$ranks'; echo status \$?" \
		>"$out" 2>&1
	[[ $(grep -c 'interrupted[^;]*$' "$out") == 2 ]] || fail "it said: $(<"$out")"
	grep -q 'status 9' "$out" || fail "the status was not passed on"
	: >"$out"
	{ echo typed; until_true seen '0\] typed' 1; } |
		at_terminal "$tern run $hosts -n 2 --tag head -1" >"$out" 2>&1
	grep -q '\[0\] typed' "$out" || fail "it said: $(<"$out")"
}
ranks='trap "echo interrupted; sleep 0.3; exit 9" INT; echo ready; while :; do sleep 0.02; done'
if command -v script >/dev/null && script -qec true /dev/null >/dev/null 2>&1; then
	sentence "Ctrl-C at a terminal reaches the ranks once, and rank 0 reads from the terminal"
	terminal_check
	sentence "so they do on other hosts"
	terminal_check "--hosts a,b --ssh $folder/quiet"
fi

sentence "what nohup ignores stays ignored"
(trap '' HUP; exec env RUN_TEST_MARK="$mark" "$tern" run -n 2 sh -c 'sleep 0.5; echo done' >"$out" \
	2>"$err") &
front=$!
sleep 0.2
kill -HUP "$front"
ended
check_status 0
check_out $'done\ndone'

# -- Nothing is left ----------------------------------------------------------

sentence "what a rank leaves behind is ended with the job, and does not hold it up"
run -n 2 sh -c \
	'setsid sleep 1000 & (setsid sh -c "sleep 1000; :" &) ; (trap "" TERM; sleep 1000; :) & exit 0'
check_status 0
check_nothing_left

# A rank with a child, a daemon, one that ignores SIGTERM, and one that keeps forking.
brood='echo $$; (setsid sh -c "sleep 1000; :" &); (trap "" TERM HUP INT; sleep 1000; :) &
	while :; do sleep 0.01 & wait $!; done'

sentence "nothing is left when the launcher, the keeper, a rank or the group is killed (seed $seed)"
for ((round = 0; round < rounds; round++)); do
	start -n 4 sh -c "$brood"
	sleep "0.$(printf %03d $((RANDOM % (round % 3 ? 20 : 150))))"
	keeper=$(child_of "$front")
	mapfile -t ranks <"$out"
	case $((round % 4)) in
	0) what="the launcher" victim=$front ;;
	1) what="the keeper" victim=${keeper:-$front} ;;
	2) what="a rank" victim=${ranks[RANDOM % 4]:-$front} ;;
	3) what="the group" victim=-$front ;;
	esac
	kill -9 -- "$victim" 2>/dev/null
	ended
	[[ $status == 137 || $what == "a rank" && $status -gt 0 ]] ||
		fail "$what: the status is $status"
	before=$failed
	check_nothing_left
	[[ $failed == "$before" ]] || echo "    after kill -9 of $what, round $round"
done

sentence "no rank is left when the launcher and the keeper are killed together"
start -n 3 sleep 1000
sleep 0.2
kill -9 "$front" "$(child_of "$front")"
ended
check_nothing_left

space=(unshare --fork --pid --mount-proc --kill-child)
if "${space[@]}" true 2>/dev/null; then
	sentence "in a name space of processes not even what ranks have started is left then"
	: >"$out"
	RUN_TEST_MARK=$mark "${space[@]}" "$tern" run -n 3 sh -c "$brood" >"$out" 2>"$err" \
		</dev/null &
	space_is=$!
	until_true count_printed '[0-9]+' 3 || fail "it does not begin"
	front=$(child_of $space_is)
	kill -9 "$front" "$(child_of "$front")"
	wait $space_is 2>/dev/null
	check_nothing_left
fi

sentence "the keeper is not found by the command's name"
start -n 2 sh -c "$brood"
keeper_is_called() { keeper_is_there && [[ $(<"/proc/$keeper/comm") == keeper ]]; }
until_true keeper_is_called || fail "it is called $(<"/proc/$keeper/comm")"
[[ $(tr '\0' ' ' <"/proc/$keeper/cmdline") == *"keeper of $front"* ]] ||
	fail "its command line is another"
kill -9 "$keeper"
ended
check_err '^tern run: the keeper of the job \(pid [0-9]+\) was killed by signal 9'
check_nothing_left

# -- Start-up -----------------------------------------------------------------

for ranks in 2 64; do
	RUN_TEST_BEGAN=$(date +%s%N) run -n $ranks "$TERN_BIN/run_start"
	check_status 0
	echo "for the record: $ranks ranks reached their first round trip in $(<"$out") us"
done

[[ $failed == 0 ]] || echo "$failed checks failed (SEED=$seed)"
exit $((failed > 0))
