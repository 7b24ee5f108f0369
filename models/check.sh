#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
#
# Checks the Promela models with spin: that each property holds in every reachable
# state, and that each can fail, by leaving out one thing at a time.
# Usage: check.sh [-v]   (-v: after a failure, the steps that lead to it)
# Exit status: 0 all as it must be, 1 not, 77 skipped.
set -u

models=$(cd "$(dirname "$0")" && pwd)
verbose=${1:-}
for tool in spin gcc; do
	command -v $tool >/dev/null || {
		echo "skipped: $tool is not installed (apt-get install $tool)"
		exit 77
	}
done
work=$(mktemp -d) || exit 1
trap 'rm -rf "$work"' EXIT
trap 'exit 1' INT TERM

# search NAME OPTIMIZE MODEL FLAG...: builds and runs one search; its output is in $work/NAME/out
search() {
	local name=$1 optimize=$2 model=$3
	shift 3
	mkdir "$work/$name" && cd "$work/$name" || return 1
	{
		spin -a "$@" "$models/$model.pml" &&
			gcc -w "$optimize" -DSAFETY -DNOFAIR -DNOBOUNDCHECK -DSFH -DMEMLIM=900 -o pan pan.c &&
			./pan -n -m20000 -w22
	} >out 2>&1
}

states() {
	awk '/states, stored/ { print $1 }' out
}

# Whether the search went through every state; pan's exit status does not tell.
complete() {
	grep -q 'errors: 0' out && ! grep -Eq 'Search not completed|max search depth|reached -DMEMLIM' out
}

report() {
	echo "FAILED: $1"
	tail -n 25 out
	[ "$verbose" = -v ] && [ -e "$model.pml.trail" ] && spin "${flags[@]}" -t -p -g "$models/$model.pml"
	touch "$work/failed"
}

# holds "SENTENCE" MODEL FLAG...
holds() {
	local sentence=$1 model=$2 flags=("${@:3}")
	search "$BASHPID" -O1 "$model" "${flags[@]}"
	if complete; then
		echo "ok: $model: $sentence ($(states) states)"
	else
		report "$model ${flags[*]}: $sentence"
	fi
}

# breaks "SENTENCE" MODEL FLAG...: the search must end in a violation
breaks() {
	local sentence=$1 model=$2 flags=("${@:3}")
	search "$BASHPID" -O0 "$model" "${flags[@]}"
	if grep -Eq '^pan:[0-9]+: (assertion violated|invalid end state)' out; then
		echo "ok: $model: an error is found when $sentence ($(states) states)"
	else
		report "$model ${flags[*]}: no error was found although $sentence"
	fi
}

# Two at a time; 900 MiB each at most.
running=0
check() {
	if [ $running -ge 2 ]; then
		wait -n
	else
		running=$((running + 1))
	fi
	"$@" &
}

check holds "replies optional, 2 leaves of 1 message: every line is read before it is overwritten, nothing deadlocks" \
	ring -DN=3
check holds "the same with 3 leaves of 1 message" ring -DLEAVES=3 -DN=4 -DALWAYS_REPLY
check holds "the same with 2 leaves of 2 messages" ring -DK=3 -DN=5 -DALWAYS_REPLY
check breaks "requests are not gated" ring -DN=4 -DALWAYS_REPLY -DNO_GATE
check breaks "a blocked request does not serve" ring -DN=4 -DALWAYS_REPLY -DNO_SERVE
check breaks "a leaf is given back before its last message is handled" ring -DN=4 -DEARLY_CREDIT
check breaks "headers have no lap" ring -DN=4 -DNO_LAP
check breaks "the header is visible before the words" ring -DN=4 -DHEADER_FIRST
check breaks "the sender uses one leaf too many" ring -DN=4 -DOFF_BY_ONE

check holds "2 senders, 2 messages each: no wake-up is lost" sleep
check holds "3 senders: no wake-up is lost" sleep -DSENDERS=3 -DM=1 -DNO_SPURIOUS
check holds "a second ring is begun under way: it is polled" sleep -DM=1 -DCONNECT -DNO_SPURIOUS
check holds "the same where the knock may be skipped after a full fence" \
	sleep -DM=1 -DCONNECT -DCONNECT_SHORTCUT -DCONNECT_FENCE -DNO_SPURIOUS
check breaks "a second ring is announced by a knock that may be skipped" sleep -DM=1 -DCONNECT -DCONNECT_SHORTCUT
check breaks "membarrier is left out" sleep -DNO_BARRIER
check breaks "membarrier comes after the last look" sleep -DEARLY_LOOK
check breaks "the rings are not looked at again" sleep -DNO_RELOOK
check breaks "looking again stops at the first find" sleep -DRELOOK_FIRST
check breaks "knockers are taken before the bell is quieted" sleep -DBITS_FIRST
check breaks "ASLEEP is stored over RUNG" sleep -DNO_CAS
check breaks "the shortcut trusts the bell without the bit" sleep -DBLIND
check breaks "the bell is rung without the bit" sleep -DNO_KNOCKER
check holds "a sender is killed anywhere and the launcher always wakes: no wake-up is lost" \
	sleep -DKILL -DM=1 -DWAKE_ALWAYS
check holds "a sender is killed anywhere and knocks leave ASLEEP set: no wake-up is lost" \
	sleep -DKILL -DM=1 -DSTICKY
check breaks "a sender is killed between bell and futex_wake and the launcher trusts the bell" sleep -DKILL -DM=1

check holds "waiting for room by naps, one-way flood: all arrives" flood -DN0=5 -DN1=0
check holds "waiting for room by naps, both ways: all arrives" flood -DN1=1
check holds "room announced by a knock, one-way flood: all arrives" flood -DROOM_KNOCK -DN0=5 -DN1=0
check breaks "a blocked request sleeps and room is not announced" flood -DN1=0 -DSLEEP_BLOCKED
check breaks "a rank with a gated request sleeps and room is not announced" flood -DN0=4 -DN1=0 -DGATED_SLEEP
check breaks "room is announced but not looked at after membarrier" flood -DN1=0 -DROOM_KNOCK -DNO_FREED_LOOK
check breaks "membarrier is left out" flood -DN1=0 -DNO_BARRIER

check holds "3 ranks, 2 rounds: nobody leaves early, everybody leaves" barrier
check breaks "generation is not looked at after ASLEEP" barrier -DNO_RECHECK
check breaks "a sleeper is counted too late" barrier -DLATE_SLEEPERS
check breaks "bells are rung before generation is raised" barrier -DRING_FIRST
check breaks "generation is raised by a store that later loads may pass" barrier -DPLAIN_STORE

wait
[ ! -e "$work/failed" ]
