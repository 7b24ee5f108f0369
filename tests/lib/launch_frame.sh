# SPDX-License-Identifier: BSD-3-Clause
# Sourced by the tests of launchers that are not Tern's. They set `launcher`, a command that takes
# `-n N PROGRAM`, and call launch_suite for it: the same program, the same promises.
set -uo pipefail

bin=$TERN_BIN
PATH=$PATH:/usr/sbin:/sbin # where daemons are
folder=$(mktemp -d)
out=$folder/out err=$folder/err
failed=0 status=0
# yes: the launcher ends everybody soon after a rank has died, whatever it was told; man tern(7)
# says so
hasty=

# Whatever a job starts carries this in its environment.
mark=launch-test-$$-$RANDOM
marked() { grep -lzs "^LAUNCH_TEST_MARK=$mark\$" /proc/[0-9]*/environ | grep -oE '[0-9]+'; }
launch_clean() {
	kill -9 $(marked) 2>/dev/null
	rm -rf "$folder"
}
trap launch_clean EXIT

# Runs a program as if on the machine that its rank says.
spread=$folder/spread
cat >"$spread" <<'END'
#!/bin/sh
rank=${PMIX_RANK:-${PMI_RANK:-$SLURM_PROCID}}
TERN_MACHINE=machine$((rank % ${MACHINES:-3})) && export TERN_MACHINE
[ "$TERN_MACHINE" = machine1 ] && [ "$ODD" ] && export "$ODD"
exec "$@"
END
chmod +x "$spread"

skip() {
	echo "skipped: $1"
	exit 77
}
need() { # COMMAND PACKAGE
	command -v "$1" >/dev/null || skip "$1 is not here (Debian: $2)"
}
usable() { "$bin/tern" info | grep -E "^  $1 +usable" >/dev/null; } # PROTOCOL
# Whether ranks of several machines can be joined: their messages and links are protected by
# libsodium.
has_udp() { [[ $("$bin/tern" info) == *"udp            usable"* ]]; }
several=
has_udp && several=yes
sentence() { echo "$1"; }
fail() {
	echo "    failed: $1"
	[[ -s $err ]] && head -5 "$err" | sed 's/^/    stderr: /'
	failed=$((failed + 1))
}
launch() { # N PROGRAM...
	local n=$1
	shift
	LAUNCH_TEST_MARK=$mark timeout -k 5 300 "${launcher[@]}" -n "$n" "$@" >"$out" 2>"$err" \
		</dev/null
	status=$?
}
check_status() { [[ $status == "$1" ]] || fail "the status is $status, not $1"; }
says() { # COUNT PATTERN
	local n
	n=$(grep -cE -- "$2" "$out")
	[[ $n == "$1" ]] || fail "not $1 but $n lines match: $2"
}
# COMMAND...: waits until it succeeds, five minutes at most, because a machine may be busy
until_true() {
	local try
	for try in {1..15000}; do
		"$@" && return 0
		sleep 0.02
	done
	return 1
}
nothing_marked() { [[ -z $(marked) ]]; }
check_nothing_left() {
	until_true nothing_marked && return
	local pid left=
	for pid in $(marked); do
		left+=" $pid ($(tr -s '\0' ' ' 2>/dev/null <"/proc/$pid/cmdline"))"
	done
	fail "these are left:$left"
	kill -9 $(marked) 2>/dev/null
}
same_as_tern_run() { # N PROGRAM: the same lines, in whatever order
	launch "$@"
	check_status 0
	sort "$out" >"$folder/theirs"
	"$bin/tern" run -n "$@" 2>/dev/null | sort >"$folder/ours"
	cmp -s "$folder/theirs" "$folder/ours" || fail "$2 says something else than under tern run"
}

launch_survivors() { # NAME
	sentence "$1: whichever rank dies, the others learn its name and go on"
	local plain=("${launcher[@]}") victim again
	launcher+=($survive)
	for victim in 0 1 3; do
		# Slurm's plugin for PMIx ends all ranks when it notices a death: early at times.
		for again in 1 2 3 4 5 6; do
			launch 4 "$bin/fail_ranks" survive $victim
			grep -q 'CANCELLED' "$err" || break
			[[ $(grep -c '^. others: fine' "$out") != 3 ]] || break
		done
		says 3 "^. heap: dead: rank $victim is dead"
		says 3 "^. wait: dead: rank $victim is dead"
		says 3 "^. request: dead: rank $victim "
		says 6 "^. barrier: dead: rank $victim "
		says 3 '^. others: fine'
	done
	launcher=("${plain[@]}")
	check_nothing_left
}
# WHAT ODD COMMON SETTING: one of those who differ says so; the launcher may end the others before
# they do
differ() {
	grep -qE \
		"rank ([14] on .* has $1 $2, and this rank $3|[023] on .* has $1 $3, and this rank $2), .*set .*$4 .*for all ranks" "$err" "$out" ||
		fail "nobody says that $1 is $2 in one place and $3 in others"
}
# VARIABLE=VALUE...: ranks of one machine that chose otherwise are named, and nobody waits
launch_odd() {
	ODD=$1 launch 5 "$spread" "$bin/launch_ranks" all 20
	((status)) || fail "the status is 0 with $1 on one machine"
	((status == 124)) && fail "nobody notices $1 on one machine"
	differ "${@:2}" "${1%%=*}"
}
# NAME: ranks that take themselves for being on three machines share no memory with others
launch_machines() {
	sentence \
		"$1: ranks on several machines reach each other, and learn who dies"
	local plain=("${launcher[@]}") victim again
	launch 7 "$spread" "$bin/launch_ranks" all 50
	check_status 0
	says 21 '^rank [0-6] of 7: all came$'
	launch 2 "$spread" "$bin/hello"
	check_status 0
	MACHINES=8 launch 24 "$spread" "$bin/launch_ranks" all 3
	check_status 0
	says 72 '^rank [0-9]+ of 24: all came$'
	launch_odd TERN_NET=udp 'the network' udp shm,udp
	[[ $survive && ! $hasty ]] || return
	launcher+=($survive)
	for victim in 0 2; do
		launch 5 "$spread" "$bin/fail_ranks" survive $victim
		says 4 "^. heap: dead: rank $victim is dead"
		says 4 "^. wait: dead: rank $victim is dead"
		says 4 "^. request: dead: rank $victim "
		says 8 "^. barrier: dead: rank $victim "
		says 4 '^. others: fine'
	done

	sentence "$1: so they do on many machines, of which one is lost whole"
	MACHINES=8 launch 24 "$spread" "$bin/fail_ranks" raze 8 3
	says 21 '^[0-9]+ lost 3: all$'
	says 21 '^[0-9]+ others: fine'

	sentence "$1: who is stopped does not keep others from learning who died"
	MACHINES=6 launch 6 "$spread" "$bin/fail_ranks" stop 1 5
	says 5 '^[0-4] told: fine'
	((status == 124)) && fail "some wait for one that is stopped"
	MACHINES=6 launch 6 "$spread" "$bin/fail_ranks" stop 1 4 5
	says 5 '^[0-4] told: fine'
	((status == 124)) && fail "some wait for two that are stopped"
	launch_links "$1"
	launcher=("${plain[@]}")
	check_nothing_left
}
begin() { # N PROGRAM...: in the background, with $front the launcher
	local n=$1
	shift
	: >"$out"
	LAUNCH_TEST_MARK=$mark "${launcher[@]}" -n "$n" "$@" >"$out" 2>"$err" </dev/null &
	front=$!
}
gone() { ! kill -0 "$1" 2>/dev/null; } # PID
ends() { # waits for what begin() has started
	until_true gone $front || fail "it does not end"
	kill -9 $front 2>/dev/null
	wait $front 2>/dev/null
	status=$?
}
wrote() { [[ $(grep -cE -- "$2" "$out") == "$1" ]]; } # COUNT PATTERN
links() { for pid in $(marked); do [[ $(cat "/proc/$pid/comm" 2>/dev/null) == tern-link ]] &&
	echo "$pid"; done; }
links_are() { [[ $(links | wc -w) == "$1" ]]; }
ports() { # ADDRESS:PORT of whatever links listen at
	local pid socket at
	for pid in $(links); do
		for socket in $(ls -l "/proc/$pid/fd" 2>/dev/null | grep -oE 'socket:\[[0-9]+' |
			tr -dc '0-9\n'); do
			awk -v i="$socket" '$10 == i && $4 == "0A" { print $2 }' /proc/net/tcp
		done
	done | sort -u | while IFS=: read -r at socket; do
		printf '%d.%d.%d.%d:%d\n' "0x${at:6:2}" "0x${at:4:2}" "0x${at:2:2}" "0x${at:0:2}" \
			"0x$socket"
	done
}
launch_links() { # NAME: of ranks on three machines
	sentence "$1: a link that is killed is started again, and who dies meanwhile is known"
	begin 6 "$spread" "$bin/fail_ranks" lose
	until_true wrote 6 ready || fail "it does not begin"
	until_true links_are 3 || fail "there are $(links | wc -w) links, not 3"
	kill -9 $(links) "$(pids fail_ranks | tail -1)"
	until_true wrote 5 'wait: dead: rank [0-5] is dead' || fail "not everybody knows who died"
	ends
	check_nothing_left
}
launch_strangers() { # NAME: of ranks on three machines
	[[ $several ]] || return
	local plain=("${launcher[@]}") strangers
	launcher+=($survive)
	sentence "$1: strangers who fill the ports of all machines make nobody dead"
	TERN_KEEPALIVE=6 begin 6 "$spread" "$bin/fail_ranks" lose
	until_true wrote 6 ready || fail "it does not begin"
	"$bin/stranger" 60 $(ports) >"$folder/strangers" 2>&1 &
	strangers=$!
	sleep 3
	kill -9 $(links | head -1) # while the ports are full: its machine is to be reached anew
	sleep 8
	kill -0 $strangers || fail "no strangers come: $(cat "$folder/strangers")"
	wrote 0 'dead' || fail "strangers made a rank dead: $(grep dead "$out" | head -1)"
	kill -9 "$(pids fail_ranks | head -1)"
	until_true wrote 5 'wait: dead: rank [0-5] is dead' || fail "not everybody knows who died"
	[[ $(grep -oE 'dead: rank [0-5]' "$out" | sort -u | wc -l) == 1 ]] ||
		fail "a rank that lives was called dead"
	kill $strangers
	ends
	launcher=("${plain[@]}")
	check_nothing_left
}
# COMMAND
pids() { for pid in $(marked); do [[ $(cat "/proc/$pid/comm" 2>/dev/null) == "$1" ]] &&
	echo "$pid"; done; }
launch_early() { # NAME: a rank that dies before it joins, or while it does
	[[ $survive && ! $hasty ]] || return
	sentence "$1: a rank that dies before it joins is named by tern_open() of the others"
	local plain=("${launcher[@]}")
	launcher+=($survive)
	launch 3 sh -c \
		"[ \${PMIX_RANK:-\${PMI_RANK:-\$SLURM_PROCID}} = 1 ] && kill -9 \$\$; exec $bin/launch_ranks wait"
	((status == 124)) && fail "the others wait for ever"
	[[ $(grep -c 'launch_ranks: wait: rank 1 ended before joining the others' "$err") == 2 ]] ||
		fail "not both name it"
	launch 3 ${several:+"$spread"} sh -c \
		"[ \${PMIX_RANK:-\${PMI_RANK:-\$SLURM_PROCID}} = 0 ] && exit 0; exec $bin/launch_ranks wait"
	((status == 124)) && fail "the others wait for ever on several machines"
	[[ $(grep -c 'launch_ranks: wait: rank 0 ended before joining the others' "$err") == 2 ]] ||
		fail "not both name rank 0"

	sentence "$1: one that lives and does not join is not waited for longer than TERN_JOIN says"
	TERN_JOIN=2 launch 3 sh -c \
		"[ \${PMIX_RANK:-\${PMI_RANK:-\$SLURM_PROCID}} = 1 ] && exec sleep 5; exec $bin/launch_ranks wait"
	((status == 124)) && fail "the others wait for ever"
	[[ $(grep -cE \
		'wait: (rank 1|some rank) has not called tern_open\(\).* within 2 s \(TERN_JOIN\)' \
		"$err") == 2 ]] ||
		fail "not both say that it does not come"
	launcher=("${plain[@]}")
	check_nothing_left
}
exit_says() { # COUNT LINE: these lines on standard error speak of the end, and none of a death
	[[ $(grep -cx -- "tern: $2" "$err") == "$1" ]] || fail "not $1 lines say: $2"
	grep -E 'goes on|is dead|has ended' "$out" "$err" && fail "somebody saw a rank die"
}
launch_exit() { # NAME: a rank ends the job
	sentence "$1: tern_exit() ends the job with its status, and tern_abort() with a sentence"
	local where
	for where in "" ${several:+"$spread"}; do
		launch 4 $where "$bin/exit_ranks" program 0
		check_status 0
		exit_says 0 'rank .*'
		launch 4 $where "$bin/exit_ranks" handler 5
		check_status 5
		exit_says 1 'rank 1 ends the job with status 5'
		launch 4 $where "$bin/exit_ranks" flood 5 2
		check_status 5
		exit_says 1 'rank 2 ends the job with status 5'
		launch 4 $where "$bin/exit_ranks" abort 0 3
		check_status 1
		exit_says 1 'rank 3 ends the job: the disk is full'
		# Others that compute have to be killed, which some launchers return instead.
		launch 4 $where "$bin/exit_ranks" compute 5
		((status == 124 || status == 0)) && fail "the status is $status"
		exit_says 1 'rank 1 ends the job with status 5'
		check_nothing_left
	done
}
launch_killed() { # NAME: whatever started the ranks is killed
	sentence "$1: ranks whose launcher was killed end, on one machine and on several"
	local where
	for where in "" ${several:+"$spread"}; do
		begin 4 $where "$bin/launch_ranks" wait
		until_true grep -q 'rank 3 waits' "$out" || fail "it does not begin"
		kill -9 $front
		wait $front 2>/dev/null
		check_nothing_left
	done
}
# NAME; `survive` holds the option that lets others go on when a rank dies, if there is one
launch_suite() {
	sentence "$1: the examples do what they do under tern run"
	same_as_tern_run 4 "$bin/hello"
	same_as_tern_run 3 "$bin/ring"
	same_as_tern_run 1 "$bin/hello"
	launch 3 "$bin/fetch_add"
	check_status 0
	says 1 ' of 3 has ticket 2$'
	says 3 ' has sum 6$'

	sentence "$1: all ranks reach all, in session after session"
	launch 8 "$bin/launch_ranks" all 50
	check_status 0
	says 24 '^rank [0-7] of 8: all came$'

	sentence "$1: the exit status of a rank is the launcher's"
	launch 4 "$bin/launch_ranks" status 0
	check_status 0
	launch 4 "$bin/launch_ranks" status 7
	check_status 7

	sentence "$1: ranks that return without tern_close() have done nothing wrong"
	launch 3 "$bin/launch_ranks" end
	check_status 0

	[[ $survive ]] && launch_survivors "$1"
	if [[ $several ]]; then
		launch_machines "$1"
	else
		echo "$1: several machines are skipped: built without UDP (Debian: libsodium-dev)"
	fi
	launch_early "$1"
	launch_exit "$1"
	launch_killed "$1"

	sentence "$1: several jobs at once do not mix"
	local i jobs=()
	for i in 1 2 3 4; do
		LAUNCH_TEST_MARK=$mark timeout -k 5 300 "${launcher[@]}" -n "$i" \
			"$bin/launch_ranks" all 20 \
			>"$folder/job$i" 2>"$err" </dev/null &
		jobs+=($!)
	done
	for i in 1 2 3 4; do
		wait "${jobs[i - 1]}" || fail "job $i failed"
		[[ $(grep -c "^rank . of $i: all came$" "$folder/job$i") == $((3 * i)) ]] ||
			fail "job $i: $(head -3 "$folder/job$i")"
	done

	sentence "$1: nothing is left of a job whose launcher or rank was told to end"
	begin 4 "$bin/launch_ranks" wait
	until_true grep -q 'rank 3 waits' "$out" || fail "it does not begin"
	kill -TERM $front
	wait $front 2>/dev/null
	check_nothing_left
	launch 4 "$bin/fail_ranks" survive 2
	((status)) || fail "a rank was killed and the status is 0"
	check_nothing_left
}
finish() {
	check_nothing_left
	((failed == 0)) || echo "$failed failed"
	exit $((failed > 0))
}
