#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: TIMEOUT 180
# tern sim: the same program gives the same virtual times each time, on any number of cores; times
# are those that the profile says; a wrong profile is refused with its line.
command=sim patience=60
. tests/lib/frame.sh
ranks=$TERN_BIN/sim_ranks
one=$(taskset -pc $$ | sed 's/.*: *//; s/[-,].*//')

traffic() { # SEED OPTIONS: the lines of all ranks, in their order
	run -n 8 "${@:2}" "$ranks" traffic "$1"
	check_status 0
	check_quiet
	sort "$out"
}
exchange() { # BYTES OPTIONS: the times of both ranks
	run -n 2 "${@:2}" "$TERN_BIN/sim_node" exchange "$1"
	check_status 0
	check_quiet
	sort "$out"
}
same() { # WHAT FUNCTION ARGUMENTS
	local first
	first=$("${@:2}")
	[[ $(wc -l <<<"$first") == 8 ]] || fail "$1: not every rank has said its times"
	[[ $("${@:2}") == "$first" ]] || fail "$1: the second run differs"
	for _ in 1 2; do
		[[ $(on_one_core "${@:2}") == "$first" ]] || fail "$1: a run on one core differs"
	done
}
on_one_core() (
	taskset -pc "$one" $BASHPID >/dev/null
	"$@"
)

sentence "a run gives the same times each time, on one core and on all"
for seed in 1 2; do
	same "seed $seed" traffic $seed
done
for network in logp torus hypercube fattree mesh; do
	same "$network" traffic 1 --set network=$network --set hop=30ns
done
for profile in flash scmp scmp-original; do
	same "$profile" traffic 1 --profile $profile
done
same "a torus of flits" traffic 1 --set network=mesh --set wrap=1 --set channels=4
[[ $(traffic 1) != "$(traffic 2)" ]] || fail "other traffic has the same times"

sentence "so do two ranks, which have a core each where there are two"
for bytes in 8 8192 16384 1000000; do
	same "$bytes bytes" exchange $bytes
done
for profile in cm5 flash scmp; do
	same "$profile" exchange 16384 --profile $profile
done
same "lost packets" exchange 100000 --set drop=20000

sentence "what a rank takes before the clock has come to it changes no time"
# Where a crash is planned, though it never comes, no rank does so.
for pattern in 'alltoall 5' 'random 100' 'halo 30'; do
	for options in '' '--set network=logp --set poll=1ps' '--set network=torus --set hop=30ns' \
		'--set drop=20000' '--profile cm5' '--set corrupt=20000 --set latency=10us'; do
		read -ra options <<<"$options"
		# shellcheck disable=SC2086 # two words
		run -n 16 "${options[@]}" "$ranks" $pattern
		check_out '^rank 0: '
		first=$(<"$out")
		# shellcheck disable=SC2086
		run -n 16 "${options[@]}" --set crash_at=1000s "$ranks" $pattern
		[[ $(<"$out") == "$first" ]] || fail "$pattern ${options[*]}: other times"
	done
done

sentence "it saves switches: messages that come together are handled in one turn"
run -n 16 --speed "$ranks" halo 50
check_out 'packets handled, 0[.][0-5][0-9]* switches each'

sentence "packets that are lost and that overtake each other are those that the seed says"
for set in drop=20000 jitter=5us; do
	same "$set" traffic 1 --set $set --set seed=3
	[[ $(traffic 1 --set $set --set seed=3) != "$(traffic 1 --set $set --set seed=4)" ]] ||
		fail "$set: another seed gives the same times"
done

sentence "signals, waits for a word and locks work as on a real machine"
run -n 4 "$TERN_BIN/mill"
check_status 0
check_out '^4 sacks, 46 in all, 13 in the heaviest$'

sentence "a request and its reply take what the profile says"
plain=(--set network=logp --set latency=1us --set gap=0 --set gap_byte=0 --set poll=1ps
	--set send_request=10ns --set send_reply=20ns --set receive=300ns)
run -n 2 "${plain[@]}" "$ranks" trip
[[ $(<"$out") == 2630 ]] || fail "it took $(<"$out") ns, not 10 + 1000 + 300 + 20 + 1000 + 300"
run -n 2 "${plain[@]}" --set poll=80ns "$ranks" trip
(($(<"$out") >= 2630 && $(<"$out") <= 2790)) || fail "with looks of 80 ns it took $(<"$out") ns"
run -n 2 "${plain[@]}" --set send_word=1ns --set receive_word=1ns "$ranks" trip
[[ $(<"$out") == 2638 ]] || fail "with two words each way it took $(<"$out") ns"

sentence "nobody rests longer than until what it waits for: data in rendezvous take their messages"
rts=$((10 + 1000 + 300)) cts=$((20 + 1000 + 300))
data=$((10 + 1000 + 300 + 300)) # two messages, which are received one after the other
[[ $(exchange 16384 "${plain[@]}" | sort -u | xargs) == \
	"rank 0: $((rts + cts + data)) rank 1: $((rts + cts + data))" ]] ||
	fail "16 KiB took $(exchange 16384 "${plain[@]}" | sort -u | xargs)"

sentence "round trips are the sums of the components that the papers give"
trip() { # NS RANKS PROFILE: to the last rank, without words, seen at once
	run -n "$2" --profile "$3" --set poll=1ps "$ranks" trip 0
	check_status 0
	[[ $(<"$out") == "$1" ]] || fail "$3: $(<"$out") ns instead of $1"
}
trip $((2 * (13100 + 13 * 450 + 15000))) 2 ncube2
trip $((2 * (13100 + 13 * 450 + 15000) + 2 * 2200)) 4 ncube2
trip $((2 * (13100 + 13 * 450 + 15000) + 4 * 2200)) 8 ncube2
trip $((1500 + 1300 + 2 * 1600 + 2 * (600 + 800))) 2 cm5
trip $((1500 + 1300 + 2 * 1600 + 2 * (600 + 3 * 800))) 16 cm5
# MAGIC hands a message for a handler of the program over to the processor, at both ends.
trip $((10 * (15 + 19 + 30 + 12 + 4 * 12) + 2 * (400 + 40))) 2 flash

sentence "declared work takes what the profile says"
run -n 1 --set cycle=10ns --set integer=1cycles --set floating=1ns --set load=2ns \
	--set store=3us "$ranks" work
[[ $(<"$out") == $((10000 + 100 + 20 + 3000)) ]] || fail "it took $(<"$out") ns"

sentence "measured CPU time takes what the profile says, and none unless it does"
for percent in 0 100 300; do
	run -n 2 --set cpu=$percent "$ranks" burn 20
	check_status 0
	took=$(<"$out") least=$((20000000 * percent / 100))
	((took >= least && took <= 2 * least)) || fail "20 ms at $percent % took $took ns"
done

sentence "the examples run, and print what they print elsewhere"
for example in hello ring histogram halo; do
	run -n 4 "$TERN_BIN/$example"
	check_status 0
	check_quiet
	timeout 300 "$tern" run -n 4 "$TERN_BIN/$example" 2>/dev/null | sort >"$folder/real"
	sort "$out" | cmp -s - "$folder/real" || fail "$example prints something else"
done

sentence "all members of a reduction get the same bits, NaNs and zeros among them"
run -n 5 "$TERN_BIN/coll_bits_test" members_have_the_same_bits_at_the_ranks_of_a_launcher
check_status 0

sentence "ranks that wait for what nobody sends are told so, with the time"
run -n 2 "$ranks" stuck
[[ $status != 0 ]] || fail "it ended well"
check_err 'the simulated machine stands still at [0-9.]* us: every rank waits for a message'

sentence "delivery by thread, and by interrupt, is refused"
for how in "env TERN_DELIVERY=thread $ranks fan" "$ranks thread" "$ranks change"; do
	read -ra words <<<"$how"
	patience=20 run -n 2 -- "${words[@]}"
	check_status 1
	check_err 'sim_ranks: delivery by thread was asked for at rank [01], which is simulated: .*use TERN_DELIVERY=poll'
done
run -n 2 -- env TERN_DELIVERY=interrupt "$ranks" fan
check_status 1
check_err 'network sim raises no signal; use TERN_DELIVERY=poll$'

sentence "packets that block each other are told so, with what each holds and waits for"
ring=(--set network=mesh --set width=8 --set wrap=1 --set flit=100ns)
run -n 8 "${ring[@]}" --set channels=1 "$ranks" traffic 1
[[ $status != 0 ]] || fail "it ended well"
check_err 'stands still at [0-9.]* us: packets block each other'
check_err 'packet from node 7 to node 1 holds .* right of node 7 .channel 0.'
check_err 'waits for the link right of node 0 .channel 0., which the packet from node 0 to node 2'
run -n 8 "${ring[@]}" --set channels=2 "$ranks" traffic 1
check_status 0
check_quiet

sentence "a mistake is refused in one sentence"
printf '# a machine\nnetwork = logp\n\nlatency = long\n' >"$folder/wrong.conf"
refused 'wrong.conf:4: latency is .long.; it must be a time.*ps, ns, us, ms, s or cycles' \
	-n 2 --profile "$folder/wrong.conf" "$ranks"
refused 'network is .ring.; it can be logp, crossbar' -n 2 --set network=ring "$ranks"
refused 'a hypercube has 1, 2, 4, 8, ... nodes, not 6' -n 6 --set network=hypercube "$ranks"
refused '6 nodes make no full rows of width = 4' -n 6 --set network=mesh --set width=4 "$ranks"
refused 'seed is .x.; it must be a whole number from 0 to' -n 2 --set seed=x "$ranks"
refused 'no key .speed.; .tern sim --keys. lists them' -n 2 --set speed=1 "$ranks"
refused 'no file that can be read' -n 2 --profile /nowhere "$ranks"
refused 'how many nodes' "$ranks"
refused 'which program' -n 2

sentence "profiles and keys are listed"
run --profiles
check_out '^cluster '
check_out '^ncube2 '
run --keys
check_out '^latency '
finish
