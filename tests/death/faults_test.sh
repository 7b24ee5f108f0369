#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: TIMEOUT 900 LOCK launch LABELS slow once
# What happens to a rank, over each network and under each launcher: the others are told what the
# table in tern(7) says, or are told nothing, and go on. Rows that need a cable to be pulled, or a
# launcher to be killed, are elsewhere: tests/death/promises_test.sh.
. tests/lib/launch_frame.sh
. tests/lib/sample.sh

ranks=$bin/fault_ranks n=4
export TERN_GRACE=100 TERN_KEEPALIVE=30 TERN_JOIN=60 # milliseconds, and seconds

# These hosts are all this one, through a shell that only says which one it is.
printf '#!/bin/sh\nshift; exec sh -c "$*"\n' >"$folder/shell"
chmod +x "$folder/shell"

told() { # CALL COUNT: dead or left, as $word says, and the rank is named
	local seen
	seen=$(grep -cE "^[023] $1: $word: .*rank 1 " "$out")
	[[ $seen == "$2" ]] || fail "$where: $event: not $2 but $seen were told by $1"
}
others_go_on() { # COUNT
	local seen
	seen=$(grep -cE '^[0-3] others: fine' "$out")
	[[ $seen == "$1" ]] || fail "$where: $event: not $1 but $seen go on"
	((status == 124)) && fail "$where: $event: somebody waits for ever"
}
dead() { # EVENT [MICROSECONDS]
	event=$* word=dead
	launch $n "$ranks" "$@"
	for call in barrier request wait any; do told $call 3; done
	others_go_on 3
}
left() { # EVENT
	event=$* word=left
	launch $n "$ranks" "$@"
	for call in barrier request; do told $call 3; done
	others_go_on 3
}
# mpirun may hang when a rank is killed while it connects, and then passes nothing on: ranks write
# to a file.
cat >"$folder/saying" <<'END'
#!/bin/sh
said=$1 && shift
"$@" >>"$said" 2>&1
echo ended >>"$said"
END
chmod +x "$folder/saying"
ranks_ended() { [[ $(grep -c '^ended$' "$folder/said") == "$n" ]]; }
# MICROSECONDS: tern_open() of the others says so, or, if the rank had joined, their calls do
dead_joining() {
	event="join $1"
	: >"$folder/said"
	LAUNCH_TEST_MARK=$mark "${launcher[@]}" -n $n "$folder/saying" "$folder/said" "$ranks" \
		join "$1" >"$out" 2>"$err" </dev/null &
	local front=$! seen
	until_true ranks_ended || fail "$where: $event: somebody waits for ever"
	kill -9 $front 2>/dev/null
	wait $front 2>/dev/null
	# mpirun that loses a rank while it connects may turn another one away, which says so.
	local turned='tern_open: .*cannot join them: PMIx said'
	local named='tern_open: .*(rank 1 |ranks (0, )?1[, ].*ended before joining)'
	seen=$(grep -cE "^[023] wait: dead: .*rank 1 |$named|$turned" "$folder/said")
	[[ $seen == 3 ]] || fail "$where: $event: not 3 but $seen were told"
	check_nothing_left
}
nobody_told() {
	event=stop
	launch $n "$ranks" stop
	check_status 0
	others_go_on 4
	[[ $(grep -cE '^[0-3] barrier: fine' "$out") == 4 ]] ||
		fail "$where: a rank that was stopped was taken for dead"
}
launcher_killed() {
	LAUNCH_TEST_MARK=$mark "${launcher[@]}" -n $n "$bin/launch_ranks" wait >"$out" 2>"$err" \
		</dev/null &
	local front=$!
	until_true grep -q 'rank 3 waits' "$out" || fail "$where: it does not begin"
	kill -9 $front
	wait $front 2>/dev/null
	check_nothing_left
}
column() { # WHERE
	where="$1, $TERN_NET"
	sampled "$where" || return
	sentence "$where: a rank that dies, fails, ends, closes, dies in its close, or is stopped"
	dead die
	dead fail
	dead end
	left close
	for delay in 0 100 1000; do
		dead leave $delay
		[[ $(grep -c '^[023] close: fine' "$out") == 3 ]] ||
			fail "$where: leave: not all could close"
	done
	nobody_told
	check_nothing_left
}
own_column() { # WHERE: with a launcher of Tern's, ranks wait for nobody when they open
	column "$1"
	sampled "$where, open" || return
	sentence "$where: a rank that dies before or while it opens, and a launcher that is killed"
	dead early
	for delay in 0 200 2000 20000; do dead join $delay; done
	launcher_killed
}
networks=(udp)
[[ $("$bin/tern" info) == *"udp            usable"* ]] || networks=()
[[ $("$bin/tern" info) == *"ofi            usable"* ]] && networks+=(ofi/tcp)

for TERN_NET in shm "${networks[@]}"; do
	export TERN_NET
	launcher=("$bin/tern" run --survive)
	own_column "tern run"
done
for TERN_NET in "${networks[@]/#/shm,}"; do
	launcher=("$bin/tern" run --hosts a,b --ssh "$folder/shell" --survive)
	own_column "tern run --hosts"
done
if command -v mpirun.openmpi >/dev/null && usable PMIx; then
	export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
	for TERN_NET in shm "${networks[@]}"; do
		launcher=(mpirun.openmpi --oversubscribe --enable-recovery)
		column mpirun
		sampled "$where, join" || continue
		sentence "$where: a rank that dies while it joins"
		for delay in 1000 30000 60000 100000; do dead_joining $delay; done
	done
else
	echo "    skipped: no mpirun that speaks PMIx (Debian: openmpi-bin)"
fi
finish
