#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: TIMEOUT 600 LOCK net LABELS slow
# Typed messages over UDP are what they are over shared memory, also where datagrams are lost and
# come out of order.
set -uo pipefail

# Those that do not ask when exactly something arrives, and do not look into shared memory.
buffers=(a_message_lands_in_a_buffer_that_was_set_aside_and_nothing_around_it_changes
	types_have_queues_of_their_own
	every_type_may_have_buffers_and_each_finds_its_own
	a_type_that_is_opened_after_a_refused_send_is_found
	a_wait_for_a_message_blames_a_rank_that_died
	a_send_to_a_rank_that_has_left_says_so)
mix=(one_process_sends_and_every_message_is_received_once_and_in_order
	more_processes_than_cores_send_and_every_message_is_received_once_and_in_order
	the_same_with_every_check_that_there_is
	under_a_flood_the_spill_takes_what_it_has_room_for_and_no_more
	ranks_that_wait_for_each_other_are_woken_and_sessions_begin_anew)
death=(buffers_that_a_killed_sender_had_taken_come_back
	a_send_to_a_rank_that_is_killed_ends_with_an_error_that_names_it)
log=$(mktemp)
trap 'rm -f "$log"' EXIT
failed=0

if [[ $("$TERN_BIN/tern" info) != *"udp            usable"* ]]; then
	echo "this build has no UDP"
	exit 77
fi

try() { # FAULTS PROGRAM TEST...
	if TERN_NET=udp TERN_FAULT=$1 timeout 200 "$TERN_BIN/$2" "${@:3}" >"$log" 2>&1; then
		echo "ok   $2 ${1:+with $1}"
	else
		echo "FAIL $2 ${1:+with $1}, with status $?"
		grep -vE '^ok ' "$log" | head -20
		failed=1
	fi
}

for faults in "" drop=0.05,reorder=0.1,seed=$((RANDOM + 1)); do
	try "$faults" buffers_test "${buffers[@]}"
	try "$faults" typed_mix_test "${mix[@]}"
	try "$faults" typed_death_test "${death[@]}"
done
exit $failed
