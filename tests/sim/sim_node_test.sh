#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: TIMEOUT 180
# Nodes of a simulated machine: threads share a processor in virtual time, a communication processor
# handles messages while the program computes, and what the papers measured comes out of the costs
# that they give.
command=sim patience=60
. tests/lib/frame.sh
node=$TERN_BIN/sim_node

is() { # WANT OPTIONS -- WORDS: what the program prints, on one line
	local want=$1
	shift
	run -n 2 "$@"
	check_status 0
	check_quiet
	[[ $(sort "$out" | xargs) == "$want" ]] || fail "${*: -2}: $(sort "$out" | xargs), not $want"
}

sentence "page transfers of FLASH take the sum of their phases"
# 0.7 us command, 0.3 us preparation, 32 lines of 30 cycles, 0.4 us latency: 4096 / 11.00 = 372 MB/s
flash=(--profile flash --set poll=1ps --set interrupt=0)
is 11000 "${flash[@]}" --set gap_byte=0 "$node" page 4096
# 32 lines of 144 bytes through 400 MB/s instead: 4096 / 12.92 = 317 MB/s
is 12920 "${flash[@]}" "$node" page 4096
# 32 lines of 47 cycles, dirty in a cache: 4096 / 16.44 = 249 MB/s
is 16440 "${flash[@]}" --set line=47cycles "$node" page 4096

sentence "Fetch-and-Op of FLASH takes 88 cycles, two latencies and two packets of 16 bytes"
is 1760 --profile flash --set poll=1ps "$node" amo

sentence "tern logp finds the rows of table 4-12 in the simulation, at the thesis's mean distance"
logp() { # PROFILE SIZE: round trip, o_s, L, o_r, g in ns, of the message of that size
	TERN_NET=sim TERN_DELIVERY=poll TERN_SIM=$1,network=logp,poll=1ps \
		timeout 100 "$tern" logp --plain --quick --ranks 2 --count 128 --repeat 3 \
		--words 4 --words 2 --bytes 1024 >"$out" 2>"$err"
	sed -n "s/^$2 *//p" "$out" | sed 's/([^)]*)//g' | xargs
}
row() { # NAME SEND LATENCY RECEIVE GAP CHEAPER, of the thesis; then what was found
	local trip=$((2 * ($2 + $3 + $4) - $6)) # a reply may be cheaper to send
	[[ $7 == "$trip" ]] || fail "$1: a round trip of $7 ns, not $trip"
	near "$1: o_s" "$2" "$8"
	near "$1: L" "$3" "$9"
	near "$1: o_r" "$4" "${10}"
	((${11} >= $5 && ${11} <= $5 + $5 / 8)) || fail "$1: g is ${11} ns, not about $5"
}
near() { # WHAT WANT GOT: within the packets of flow control that Tern sends now and then
	(($3 <= $2 + $2 / 8 && $3 >= $2 - $2 / 8)) || fail "$1 is $3 ns, not about $2"
}
# 5 hops are 10 us. 8 words of 4 bytes take 14.4 us, the header among them; 1 KiB takes 460.8 us.
# shellcheck disable=SC2046 # words
row "nCUBE/2, 32 bytes" 13100 24400 15000 15000 0 $(logp ncube2,latency=10us,header=0 "4 words")
# shellcheck disable=SC2046
row "nCUBE/2, 1 KiB" 13100 470800 15000 460800 0 $(logp ncube2,latency=10us,header=0 "1024 bytes")
# 8.3 hops are 6.6 us, injection 1.7; a reply is sent in 1.3 us; 5 MB/s of 20 bytes are 4 us.
# shellcheck disable=SC2046
row "CM-5, 16 bytes" 1500 8300 1600 4000 200 \
	$(logp cm5,latency=6.6us,gap=2.3us,gap_byte=85ns,header=4 "2 words")

sentence "a communication processor handles messages while the program computes"
busy=(--set integer=1ns --set poll=1ps)
is "1760 computed 1000000" --profile flash "${busy[@]}" "$node" overlap
run -n 2 --profile flash "${busy[@]}" --set controller=none "$node" overlap
(($(grep -v computed "$out") > 1000000)) || fail "without one it took $(grep -v computed "$out") ns"

sentence "a communication processor of Rosing and Saltz does so for every handler"
run -n 2 --profile dual "${busy[@]}" "$node" overlap
(($(grep -v computed "$out") < 100000)) || fail "with it it took $(grep -v computed "$out") ns"
run -n 2 --profile ipsc860 "${busy[@]}" "$node" overlap
(($(grep -v computed "$out") > 1000000)) || fail "without it took $(grep -v computed "$out") ns"

sentence "threads share a processor round robin, and switching takes time"
run -n 2 --profile scmp "${busy[@]}" "$node" threads 4
read -r -a done < <(xargs <"$out")
for i in 1 2 3; do
	((done[i] - done[i - 1] == 200 + 8)) || fail "round robin: ${done[*]}"
done
((done[0] >= 17 * 200 + 17 * 8)) || fail "round robin: ${done[*]}"
run -n 2 --profile scmp "${busy[@]}" --set quantum=0 "$node" threads 4
read -r -a done < <(xargs <"$out")
for i in 1 2 3; do
	((done[i] - done[i - 1] >= 1000 + 8 && done[i] - done[i - 1] < 1000 + 16)) ||
		fail "one after another: ${done[*]}"
done
is 16 --profile scmp "$node" limit
is 4 --profile scmp --set contexts=4 "$node" limit

sentence "block sends suspend their thread on scmp-original, and on scmp when its queue is full"
run -n 2 --profile scmp-original "${busy[@]}" "$node" block 4096
original=$(<"$out")
run -n 2 --profile scmp "${busy[@]}" "$node" block 4096
((original >= 4 * 1028 * 2 - 32 && original < 4 * 1028 * 2 + 100)) || fail "original: $original"
# One of four leaves, and the queue has room for two, so the thread waits for the first.
(($(<"$out") >= 1028 * 2 && $(<"$out") < 1028 * 2 + 100)) || fail "new: $(<"$out")"

sentence "nothing leaves a queue behind a request to send, and a machine that stands for that says so"
run -n 2 --profile cluster "$node" behind 4096
check_status 0
run -n 2 --profile scmp "$node" behind 4096
check_status 1
grep -q 'stands still at .*: messages wait in their nodes for permission to leave' "$err" &&
	grep -q 'node 0 has asked node 1 whether it may send 4096 bytes, and 1 messages' "$err" ||
	fail "it says $(<"$err")"

sentence "so does one whose threads are all suspended, because nobody has received"
run -n 2 --profile cluster "$node" full 20
check_status 0
patience=60 run -n 2 --profile scmp "$node" full 20
check_status 1
grep -q 'stands still at .*: messages wait in their nodes for permission to leave' "$err" ||
	fail "it says $(<"$err")"

sentence "a thread message waits in the network for a context, and a machine that stands for it says so"
run -n 2 --profile scmp --set contexts=3 "$node" crowd 3
check_status 0
run -n 2 --profile scmp --set contexts=2 "$node" crowd 3
check_status 1
grep -q 'waits for a context of node 1, which has 2 threads' "$err" || fail "it says $(<"$err")"

sentence "no message travels that SCMP would not send"
is "0 2" --profile scmp "$node" ready 4096
is "2 4" --profile scmp "$node" send 4096    # CTS; RTS and data
is "1 2" --profile scmp "$node" request 4096 # a thread; data, and that they have come

sentence "a node crashes when the profile says, and the others learn of it at the same time each run"
crashed() {
	run -n 4 --survive "$@" "$node" crash
	check_status 0
	sort "$out" | xargs
}
for profile in cluster flash; do
	first=$(crashed --profile $profile --set crash_node=1 --set crash_at=200us)
	[[ $first =~ ^(-[0-9]+ at 20[0-9]{4} ?){3}$ ]] || fail "$profile: $first"
	for _ in 1 2; do
		again=$(crashed --profile $profile --set crash_node=1 --set crash_at=200us)
		[[ $again == "$first" ]] || fail "$profile: $again, before $first"
	done
done

sentence "damaged packets are sent again, by Tern"
run -n 4 --set corrupt=50000 "$TERN_BIN/ring"
check_status 0
timeout 100 "$tern" run -n 4 "$TERN_BIN/ring" | sort >"$folder/real"
sort "$out" | cmp -s - "$folder/real" || fail "ring prints something else"
finish
