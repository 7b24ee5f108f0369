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

# What is searched for: states that must not be, or also endless ways past what must come, if every
# process that can take a step takes one at some time.
declare -A build=([states]='-DSAFETY -DNOFAIR' [cycles]='-DNFAIR=3') \
	run=([states]='' [cycles]='-a -f')
kind=states

# What is not optimized is compiled by the quicker compiler.
quick=gcc
command -v clang >/dev/null && quick=clang

# search OPTIMIZE MODEL FLAG...: builds and runs one search in a new folder; its output is `out`
search() {
	local optimize=$1 model=$2
	shift 2
	cd "$(mktemp -d "$work/XXXXXX")" || return 1
	{
		spin -a "$@" "$models/$model.pml" &&
			"$([ "$optimize" = -O0 ] && echo "$quick" || echo gcc)" -w "$optimize" \
			${build[$kind]} -DNOBOUNDCHECK -DSFH -DMEMLIM=900 -o pan pan.c &&
			./pan ${run[$kind]} -n -m200000 -w22
	} >out 2>&1
}

states() {
	awk '/states, stored/ { print $1 }' out
}

# Whether the search went through every state; pan's exit status does not tell.
complete() {
	grep -q 'errors: 0' out &&
		! grep -Eq 'Search not completed|max search depth|reached -DMEMLIM' out
}

report() {
	echo "FAILED: $1"
	tail -n 25 out
	[ "$verbose" = -v ] && [ -e "$model.pml.trail" ] &&
		spin "${flags[@]}" -t -p -g "$models/$model.pml"
	touch "$work/failed"
}

# holds "SENTENCE" MODEL FLAG...
holds() {
	local sentence=$1 model=$2 flags=("${@:3}")
	search "$optimize" "$model" "${flags[@]}"
	if complete; then
		echo "ok: $model: $sentence ($(states) states)"
	else
		report "$model ${flags[*]}: $sentence"
	fi
}

# breaks "SENTENCE" MODEL FLAG...: the search must end in a violation
breaks() {
	local sentence=$1 model=$2 flags=("${@:3}")
	search -O0 "$model" "${flags[@]}"
	if grep -Eq '^pan:[0-9]+: (assertion violated|invalid end state|acceptance cycle)' out; then
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

optimize=-O1
check holds "replies optional, 2 leaves of 1 message: lines are read before they are overwritten" \
	ring -DN=3
check holds "the same with 3 leaves of 1 message" ring -DLEAVES=3 -DN=4 -DALWAYS_REPLY
check holds "the same with 2 leaves of 2 messages" ring -DK=3 -DN=5 -DALWAYS_REPLY
check holds "the same until the lap number has wrapped: a look finds what is new and nothing else" \
	ring -DN=5 -DALWAYS_REPLY
check holds "messages of one or two lines, 2 leaves of 1: a reply of two lines has room, too" ring \
	-DTWO_LINES -DK=3 -DN=3 -DALWAYS_REPLY
check holds "the same with 2 leaves of 1 or 2: both lines lie in a leaf, with its turn" ring \
	-DTWO_LINES -DK=4 -DN=3 -DALWAYS_REPLY
check breaks "the second line is written after the first line's header" ring -DTWO_LINES -DK=3 \
	-DN=3 -DALWAYS_REPLY -DSECOND_LATE
check breaks "a message of two lines begins where only one has room" ring -DTWO_LINES -DK=4 -DN=4 \
	-DALWAYS_REPLY -DLATE_TWO
check breaks "requests are not gated" ring -DN=4 -DALWAYS_REPLY -DNO_GATE
check breaks "a blocked request does not serve" ring -DN=4 -DALWAYS_REPLY -DNO_SERVE
check breaks "a leaf is given back before its last message is handled" ring -DN=4 -DEARLY_CREDIT
check breaks "headers have no lap" ring -DN=4 -DNO_LAP
check breaks "the header is visible before the words" ring -DN=4 -DHEADER_FIRST
check breaks "the sender uses one leaf too many" ring -DN=4 -DOFF_BY_ONE
check breaks "leaves are not cleared when the lap number wraps: a look finds what is old" ring \
	-DN=5 -DALWAYS_REPLY -DNO_CLEAR
check holds "a poll that drains the first inlet found, and no other, comes to all, replies first" \
	ring -DN=5 -DALWAYS_REPLY -DFIRST_FOUND
check breaks "the same where leaves are not cleared: an empty inlet hides the other" ring -DN=5 \
	-DALWAYS_REPLY -DFIRST_FOUND -DNO_CLEAR
check breaks "requests that wait for room hide replies" ring -DN=4 -DALWAYS_REPLY -DGATE_HIDES

check holds "rings grow at any turn or never, 2 leaves of 1 message, then of 2: each comes once" \
	ring -DGROW -DN=7 -DN1=0 -DALWAYS_REPLY
check holds "the same with 3 leaves" ring -DGROW -DLEAVES=3 -DN=8 -DN1=0 -DALWAYS_REPLY
check holds "the same both ways: a reply never waits" ring -DGROW -DN=3 -DN1=1 -DALWAYS_REPLY
check holds "the same with messages of one or two lines" ring -DGROW -DTWO_LINES -DK=3 -DK2=4 \
	-DN=4 -DN1=0 -DALWAYS_REPLY
check breaks "a ring grows into memory that is not zero" ring -DGROW -DN=7 -DN1=0 -DALWAYS_REPLY \
	-DGROW_DIRTY
check breaks "the receiver goes on in the larger ring before the small one is empty" ring -DGROW \
	-DN=7 -DN1=0 -DALWAYS_REPLY -DGROW_AHEAD
check breaks "leaves are counted from 0 in the larger ring" ring -DGROW -DN=7 -DN1=0 -DALWAYS_REPLY \
	-DGROW_RENUMBER
check breaks "leaves of the larger ring are given back to the small one" ring -DGROW -DN=7 -DN1=0 \
	-DALWAYS_REPLY -DGROW_OLD_COUNT

check holds "payloads behind messages: what they leave in a leaf is taken for no header later" carry
check holds "the same with 3 leaves" carry -DLEAVES=3 -DK=5
check breaks "the lines of a payload are not cleared" carry -DNO_CLEAR
check breaks "only the first of them is" carry -DCLEAR_ONE
check breaks "they are cleared when the leaf has been given back" carry -DCLEAR_LATE
check breaks "a leaf is not cleared when the lap number wraps" carry -DNO_WRAP

check holds "2 senders, 2 messages each: no wake-up is lost" sleep
check holds "3 senders: no wake-up is lost" sleep -DSENDERS=3 -DM=1 -DNO_SPURIOUS
check holds "a second ring is begun under way: it is polled" sleep -DM=1 -DCONNECT -DNO_SPURIOUS
check holds "the same where the knock may be skipped after a full fence" \
	sleep -DM=1 -DCONNECT -DCONNECT_SHORTCUT -DCONNECT_FENCE -DNO_SPURIOUS
check breaks "a second ring is announced by a knock that may be skipped" sleep -DM=1 -DCONNECT \
	-DCONNECT_SHORTCUT
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
check breaks "a sender is killed between bell and futex_wake and the launcher trusts the bell" \
	sleep -DKILL -DM=1

check holds "waiting for room by naps, one-way flood: all arrives" flood -DN0=5 -DN1=0
check holds "waiting for room by naps, both ways: all arrives" flood -DN1=1
check holds "room announced by a knock, one-way flood: all arrives" flood -DROOM_KNOCK -DN0=5 -DN1=0
check holds "a reply is 3 messages, of which polls send 2, and the gate counts them: all arrives" \
	flood -DN0=2 -DN1=0 -DLONG=3
check holds "the same both ways, with 2 messages" flood -DN0=1 -DN1=1 -DLONG=2
check holds "programs send in the reply class, too: all arrives, behind long replies" \
	flood -DN0=1 -DN1=0 -DLONG=2 -DTO_ALL=1
check holds "programs flood each other in the reply class: all arrives" \
	flood -DN0=0 -DN1=0 -DTO_ALL=4
check breaks "the gate does not count the rest of a long reply" flood -DN0=2 -DN1=0 -DLONG=3 \
	-DNO_OWING
check breaks "a rank sleeps that has not sent the rest of a long reply" flood -DN0=3 -DN1=0 \
	-DLONG=3 -DOWING_SLEEP
check breaks "the program's messages go past a long reply" flood -DN0=1 -DN1=0 -DLONG=3 \
	-DTO_ALL=1 -DNO_ORDER
check breaks "a blocked request sleeps and room is not announced" flood -DN1=0 -DSLEEP_BLOCKED
check breaks "a rank with a gated request sleeps and room is not announced" flood -DN0=4 -DN1=0 \
	-DGATED_SLEEP
check breaks "room is announced but not looked at after membarrier" flood -DN1=0 -DROOM_KNOCK \
	-DNO_FREED_LOOK
check breaks "membarrier is left out" flood -DN1=0 -DNO_BARRIER
check holds "one block a rank, one-way flood: all arrives" flood -DBLOCKS=1 -DN0=4 -DN1=0
check holds "one block a rank, both ways: all arrives" flood -DBLOCKS=1 -DN0=2 -DN1=1
check breaks "a reply waits for a block of the requests' class" flood -DBLOCKS=1 -DREPLY_BLOCK \
	-DN0=1 -DN1=1

check holds "items that are answered, full rings: each is handled once, in order, and all are" post
check holds "the same, and sources are told to wait" post -DN=4
check holds "handlers post to a third rank, around the circle: the same" post -DR=3 -DN=2
check holds "the same with items that go on 3 times" post -DR=3 -DN=1 -DHOPS=3
check breaks "a handler's post waits for room" post -DHANDLER_WAITS
check breaks "polls do not send what is queued" post -DNO_QUEUE
check breaks "a waiting rank keeps its open buffer" post -DNO_FLUSH
check breaks "a full buffer goes past the queue" post -DPAST_QUEUE
check breaks "the program's full buffer goes past the queue" post -DQUICK_PAST
check breaks "sources are not told to go on" post -DN=5 -DNO_SHORT
check breaks "a rank that is told to wait does not serve" post -DN=5 -DPACE_ALL

check holds "3 ranks, 2 rounds: nobody leaves early, everybody leaves" barrier
check breaks "generation is not looked at after ASLEEP" barrier -DNO_RECHECK
check breaks "a sleeper is counted too late" barrier -DLATE_SLEEPERS
check breaks "bells are rung before generation is raised" barrier -DRING_FIRST
check breaks "generation is raised by a store that later loads may pass" barrier -DPLAIN_STORE

check holds "4 members, any but one die at any step: those who end have one team, and end" survivors
check holds "the same with 5 members" survivors -DRANKS=5
check holds "3 members that may give up each other, too" survivors -DRANKS=3 -DGIVE_UP
check breaks "who has given up a member still tells its view" survivors -DRANKS=3 -DGIVE_UP -DSPEAKS
check breaks "a leader makes its view anew of what it knows" survivors -DREMAKE
check breaks "a living leader is taken for dead" survivors -DGUESS
check breaks "only the first leader that lives is heard" survivors -DONE_ROUND
check breaks "nobody hears of a leader's death" survivors -DBLIND

check holds "members leave when their part is done, and are late: no call fails" leave
check holds "one may leave too early, or die: no call waits for ever" leave -DEARLY -DDEATH
check holds "the same where each member needs the one before it alone" leave -DEARLY -DDEATH -DCHAIN
check holds "the same where the first call makes a team" leave -DEARLY -DDEATH -DMAKE
check breaks "a call fails as soon as a member has left" leave -DFAIL_ON_LEAVE
check breaks "nobody minds that a member has left" leave -DEARLY -DNO_LACK
check breaks "a failure is not told" leave -DEARLY -DCHAIN -DNO_TELL
check breaks "it is not told that a team could not be made" leave -DDEATH -DMAKE -DNO_TELL

optimize=-O0 # these are smaller: searched before gcc would be done
check holds \
	"4 packets over a wire that loses, doubles and reorders: each is passed up once, in order" \
	retry
check holds "the same with 5 packets and a window of 2" retry -DN=5 -DWINDOW=2
check holds "the same with acknowledgements of some of what has come" retry -DPARTIAL
check holds "without order, one packet at a time: the same" retry -DNO_ORDER -DWINDOW=1
check breaks "what has come is not noted" retry -DNO_NOTE -DNO_ORDER -DWINDOW=1
check breaks "a packet that was refused above is noted" retry -DNOTE_REFUSED
check breaks "the sender forgets what lies below a gap" retry -DFORGET_ABOVE
check breaks "packets are passed up as they come" retry -DNO_ORDER
check breaks "nothing limits what is sent" retry -DNO_CREDIT
check breaks "nobody says that places were emptied" retry -DNO_GRANT
check breaks "the count of an acknowledgement is not looked at" retry -DNO_COUNT
check breaks "the count of a late acknowledgement is believed" retry -DTAKE_LATE
check breaks "numbers are compared as if they did not wrap" retry -DNO_WRAP
check holds "a send that no receive takes, 2 RTSs, 1 cell: those behind it arrive, once, in order" \
	rendezvous -DN1=3
check holds "the same with room for 2 and 2 cells" \
	rendezvous -DN1=2 -DREQUESTS=2 -DREPLIES=2 -DCELLS_EACH=2
check holds "sends are taken back while they may be matched: received or taken back, not both" \
	rendezvous -DCANCELLING -DN0=3 -DN1=1 -DRTS_EACH=1
check holds "sends wait in the queue, deferred functions send: they arrive in order" \
	rendezvous -DQUEUEING -DN1=2 -DDEFER
check holds "deferred functions wait for their sends: nothing deadlocks" \
	rendezvous -DQUEUEING -DN1=2 -DRTS_EACH=1 -DDEFER -DDEFER_WAIT
check holds "both sides copy, or the receiver reads all: both last until the copies are over" \
	rendezvous -DSHARED -DN0=3 -DN1=1
check holds "the same, 2 sends each" rendezvous -DSHARED -DN0=2 -DN1=2
check breaks "a send is over with its FIN, and its receiver reads" rendezvous -DSHARED -DN0=2 \
	-DN1=1 -DFIN_ONLY
check breaks "a receive is over with the FIN, and still reads" rendezvous -DSHARED -DN0=2 -DN1=1 \
	-DFIN_ENDS
check breaks "a READ that comes before its CTS is not noted" rendezvous -DSHARED -DN0=2 -DN1=1 \
	-DLATE_READ
check breaks "a receiver says TAKEN or READ before it reads" rendezvous -DSHARED -DN0=2 -DN1=1 \
	-DEARLY_TAKEN
check breaks "requests are not gated" rendezvous -DQUEUEING -DN1=2 -DNO_GATE
check breaks "requests and replies share a ring" rendezvous -DONE_RING
check breaks "a blocked request does not serve" rendezvous -DN1=2 -DNO_SERVE
check breaks "an RTS without a receive stays in the ring" rendezvous -DHOLD_RING
check breaks "a small message goes past the queue" rendezvous -DQUEUEING -DN1=2 -DRTS_EACH=1 \
	-DPAST_QUEUE
check breaks "a send leaves the queue and then waits for room" rendezvous -DQUEUEING -DN1=1 \
	-DOFF_QUEUE
check breaks "progress waits for room, and a deferred function in it for its send" \
	rendezvous -DQUEUEING -DN1=2 -DDEFER -DDEFER_WAIT -DWAITING
check breaks "an RTS that was taken back is still counted" rendezvous -DCANCELLING -DN0=2 -DN1=0 \
	-DNO_UNCOUNT
check breaks "the cell of a message that was taken back is not given back" \
	rendezvous -DCANCELLING -DN0=2 -DN1=0 -DNO_CELL_BACK
check breaks "a cell is given back before a receive takes the message" rendezvous -DN1=1 \
	-DEARLY_CELL
check breaks "a send is over as soon as it was asked for" rendezvous -DCANCELLING -DN0=2 -DN1=0 \
	-DBLIND_CANCEL
check breaks "a receive forgets its TELL when there is no room" rendezvous -DN1=1 -DDROP_TELL

declare -A reached=([mapped]='' ["x by message"]=-DX_FAR=1 ["y by message"]=-DY_FAR=1 ["by message"]='-DX_FAR=1 -DY_FAR=1')
for how in "${!reached[@]}"; do
	read -ra far <<<"${reached[$how]}"
	check holds "two puts, $how: who sees the second sees the first" memory -DTEST=MP "${far[@]}"
	check holds "put, fence, get at both sides, $how: one sees the other" memory -DTEST=SB "${far[@]}"
	check holds "two readers of two puts, $how: they agree about the order" memory -DTEST=IRIW "${far[@]}"
done
check holds "a put and a request: the handler finds the data" memory -DTEST=REQUEST
check holds "the same with a put by message" memory -DTEST=REQUEST -DX_FAR=1
check holds "the same with a split-phase put and a fence" memory -DTEST=STARTED
check holds "who was told by a rank that saw a put sees it" memory -DTEST=WRC
check holds "the same with a put by message" memory -DTEST=WRC -DX_FAR=1
check holds "both ranks reply in polls: a round trip is a fence" memory -DTEST=TRIP
check holds "a machine that reorders stores, puts that release: who sees the second sees the first" memory -DTEST=MP -DWEAK
check holds "the same with a request" memory -DTEST=REQUEST -DWEAK
check breaks "such a machine has puts that do not release" memory -DTEST=MP -DWEAK -DNO_RELEASE
check breaks "such a machine has messages that do not release" memory -DTEST=REQUEST -DWEAK -DNO_RELEASE
check breaks "the owner answers a put before it stores" memory -DTEST=REQUEST -DX_FAR=1 -DEARLY_ANSWER
check breaks "an answer over a network overtakes the store" memory -DTEST=REQUEST -DX_FAR=1 -DNO_DRAIN
check breaks "an answer over a network brings a value from the store buffer" memory -DTEST=IRIW -DX_FAR=1 -DNO_DRAIN
check breaks "a request follows a split-phase put without a fence" memory -DTEST=STARTED -DNO_FENCE
check breaks "a blocking put is taken for a fence" memory -DTEST=SB -DNO_FENCE
check breaks "a round trip is taken for a fence, and a progress thread replies" memory -DTEST=TRIP -DAGENT

check holds "10 words through a ring of 8, 2 ends: got in order, once, as they were put" channel
check holds "the same with longer lines" channel -DW=3 -DN=14
check holds "2 readers: no word is overwritten before both have it" channel -DREADERS=2 -DN=6 \
	-DENDS=1 -DW=1
check breaks "a line is opened when it is come to" channel -DLATE_OPEN
check breaks "a leaf is given back when it is entered" channel -DEARLY_BACK
check breaks "the writer enters one leaf too many" channel -DOFF_BY_ONE
check breaks "a count may be seen before its words" channel -DPLAIN_COUNT
check breaks "a mark may be seen before the count" channel -DPLAIN_MARK
check breaks "a leaf's number may be seen before its lines are open" channel -DPLAIN_NUMBER
check breaks "the count is not looked at again after the mark" channel -DNO_RECOUNT
check breaks "a leaf is entered whatever its number" channel -DANY_NUMBER
check breaks "words that were put one by one are got in pairs" channel -DPAIRS

kind=cycles
optimize=-O1
check holds "handlers hold, 1 message: program and thread never both own the endpoint, it is handled" \
	ownership
check holds "the same with 2 messages and handlers that do not hold" ownership -DM=2 -DNO_HOLDS
check breaks "membarrier is left out" ownership -DNO_BARRIER
check breaks "the program looks at the alert before it adds to the guard" ownership -DLOOK_FIRST
check breaks "the rings are not looked at again" ownership -DM=2 -DNO_HOLDS -DNO_RELOOK
check breaks "PENDING is never set" ownership -DNO_PENDING
check breaks "PENDING is not set for a program that came by" ownership -DIDLE_WATCH
check breaks "ownership is given back and who sleeps for it not woken" ownership -DNO_WAKE
check breaks "program and thread write the same into the bell" ownership -DNO_HOLDS -DSAME_SLEEP
check breaks "a program is taken for asleep because of the bell" ownership -DM=2 -DNO_HOLDS \
	-DPARK_BY_BELL
check breaks "ownership is given back with no bit in the alert" ownership -DNO_REGAIN
check breaks "the guard is not written again" ownership -DNO_REWRITE
check breaks "the guard is not written again when CLAIM is gone at the first look" ownership \
	-DREGAIN_LATE
check breaks "SLEEPER does not count as a wish for ownership" ownership -DGUARD_ONLY

check holds \
	"2 messages: the handler never polls inside, they are handled whatever the program does" \
	interrupt
check breaks "who releases looks at the alert before it subtracts" interrupt -DLOOK_FIRST
check breaks "the handler does not look at the guard" interrupt -DNO_GUARD
check breaks "the rings are not looked at again" interrupt -DNO_RELOOK
check breaks "PENDING is never set" interrupt -DNO_PENDING
check breaks "CALL is stored over RUNG" interrupt -DNO_CAS
check breaks "the timer is started again for a program that came by, and nothing handled" \
	interrupt -DIDLE_TIMER
check breaks "CALL stays under a guard" interrupt -DKEEP_CALL
check breaks "who polled because of PENDING does not start the timer" interrupt -DNO_RESTART
check breaks "the timer is believed in after it was started" interrupt -DLATE_TIMER

wait
[ ! -e "$work/failed" ]
