#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: TIMEOUT 600 RUN_SERIAL LABELS slow
# Programs that know nothing of networks pass over UDP what they pass over shared memory.
set -uo pipefail

programs=(attach_test legal_test segment_test name_test match_test handles_test order_test flood_test
	session_test poll_in_send_test fail_test mem_mix_test msg_mix_test msg_flood_test mem_death_test msg_death_test)
programs+=(chain_test queue_test access_test internal_test spawn_test waits_test async_mix_test async_death_test spawn_job_test
	spawn_preempt_test)
programs+=("wake_test two_ranks_wake_each_other many_pairs_wake_each_other") # the rest is about rings in shared memory
programs+=(put_test message_test offer_test chan_flow_test) # of channels all but what takes many ranks, and long
programs+=("relay_test what_has_come_to_a_relay_is_passed_on_before_it_leaves
	when_the_sender_leaves_that_goes_through_relays_too when_all_readers_have_gone_puts_fail")
programs+=("chan_death_test what_a_sender_put_before_it_was_killed_is_got_and_then_it_is_named
	a_put_ends_when_the_receiver_is_killed opening_either_end_fails_when_the_other_rank_is_killed")
log=$(mktemp)
trap 'rm -f "$log"' EXIT
failed=0

if [[ $("$TERN_BIN/tern" info) != *"udp            usable"* ]]; then
	echo "this build has no UDP"
	exit 77
fi
for program in "${programs[@]}"; do
	if TERN_NET=udp timeout 120 "$TERN_BIN/"$program >"$log" 2>&1; then
		echo "ok   $program"
	else
		echo "FAIL $program, with status $?"
		grep -vE '^ok ' "$log" | head -20
		failed=1
	fi
done
for flow in return drop nack token permit reserve; do
	if TERN_NET=udp TERN_FLOW=$flow timeout 120 "$TERN_BIN/order_test" order_is_kept_between_threads order_is_kept_among_many >"$log" 2>&1; then
		echo "ok   order_test, with $flow"
	else
		echo "FAIL order_test, with $flow: status $?"
		grep -vE '^ok ' "$log" | head -20
		failed=1
	fi
done
exit $failed
