#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: TIMEOUT 900 LOCK net LABELS slow
# net_job_test.sh [NETWORK...]: programs that know nothing of networks pass over others what they
# pass over shared memory.
set -uo pipefail
. tests/lib/sample.sh

# Of these the kernel's copy, which no network has, is left out.
mem_mix="mem_mix_test whatever_is_put_and_got_by_messages_every_byte_is_where_it_belongs
	ranks_that_sleep_are_woken_for_transfers_by_message"
litmus="litmus_test no_outcome_is_seen_that_the_memory_model_forbids"
# Those that poll a number of times and then look need a network that connects at once, as UDP does.
udp=(attach_test legal_test segment_test name_test match_test handles_test order_test flood_test
	session_test poll_in_send_test fail_test "$mem_mix" "$litmus" msg_mix_test msg_flood_test \
		mem_death_test msg_death_test
	chain_test queue_test access_test internal_test spawn_test waits_test async_mix_test \
		async_death_test spawn_job_test
	spawn_preempt_test
	# the rest is about rings in shared memory
	"wake_test two_ranks_wake_each_other many_pairs_wake_each_other"
	# of channels all but what takes many ranks, and long
	put_test message_test offer_test chan_flow_test
	"list_test when_the_sender_leaves_all_get_what_it_put_and_then_its_name
		when_all_readers_have_gone_puts_fail"
	"chan_death_test what_a_sender_put_before_it_was_killed_is_got_and_then_it_is_named
		a_put_ends_when_the_receiver_is_killed
		opening_either_end_fails_when_the_other_rank_is_killed")
ofi_shm=(name_test "$mem_mix" "$litmus" "flood_test two_processes_flood_each_other"
	"order_test order_is_kept_between_processes"
	"fail_test a_dead_rank_is_named_by_whoever_needs_it_and_the_others_go_on
		a_function_is_told_of_a_killed_rank_and_the_wait_under_way_goes_on_without_it")
# A rank that is killed within the shm provider leaves locks in shared memory that others wait for.
ofi_tcp=("${ofi_shm[@]}" "fail_test whenever_ranks_are_killed_the_calls_of_the_others_end")
log=$(mktemp)
trap 'rm -f "$log"' EXIT
failed=0 ran=0

on() { # NETWORK PROGRAM...
	local net=$1
	shift
	if [[ $(TERN_NET=$net "$TERN_BIN/tern" info 2>/dev/null) != \
		*"${net%%/*}            usable"* ]]; then
		echo "skip $net: it is not usable here"
		return
	fi
	ran=1
	for program; do
		sampled "$net" "$program" || continue
		# shellcheck disable=SC2086 # a program and the tests of it
		if TERN_NET=$net timeout 300 "$TERN_BIN"/$program >"$log" 2>&1; then
			echo "ok   $net: $program"
		else
			echo "FAIL $net: $program, with status $?"
			grep -vE '^ok ' "$log" | head -20
			failed=1
		fi
	done
}

for net in "${@:-udp ofi/tcp ofi/shm}"; do
	for one in $net; do
		programs=${one/\//_}[@]
		on "$one" "${!programs}"
	done
done
# The shm provider's files of ranks that were killed.
for file in /dev/shm/[0-9]*:[0-9]*:[0-9]*; do
	pid=${file##*/}
	kill -0 "${pid%%:*}" 2>/dev/null || rm -f "$file"
done
((ran)) || exit 77
exit $failed
