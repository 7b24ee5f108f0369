#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: TIMEOUT 900 LABELS script
# wrap.sh DELIVERY: programs of other tests pass while the numbers wrap that their messages, packets
# and names have. It is run in builds with TERN_WRAP_START; docs/design.md, Numbers that wrap, lists
# the numbers.
set -uo pipefail

way=$1
lap="tern run -n 8 $TERN_BIN/lap_test 2000"
flows=(when_packets_may_return_to_their_sender when_packets_may_be_dropped \
	when_packets_may_be_refused with_tokens
	with_permission_for_each_transfer with_reservations)
flows=("${flows[@]/#/what_is_sent_over_udp_arrives_}")
layers=(msg_mix_test mem_mix_test chan_flow_test async_mix_test spawn_job_test session_test)
# Providers take long to connect ranks.
few=("${lap/8/4}" "order_test order_is_kept_between_processes" \
	"flood_test two_processes_flood_each_other" msg_mix_test)

shm=("$lap" order_test flood_test "${layers[@]}" typed_mix_test)
udp=("$lap" order_test flood_test "${layers[@]}" far_test flow_test \
	"net_traffic_test ${flows[*]}
	what_is_sent_in_packets_arrives_when_packets_are_lost")
ofi=("${few[@]}")
[[ $way == poll ]] && shm+=(outgoing_test) # it counts polls
log=$(mktemp)
trap 'rm -f "$log"' EXIT
failed=0

on() { # NETWORK PROGRAM...
	local net=$1
	shift
	if [[ $(TERN_NET=$net "$TERN_BIN/tern" info 2>/dev/null) != \
		*"${net%%/*}            usable"* ]]; then
		echo "skip $net: it is not usable here"
		return
	fi
	for program; do
		distance=$((1 + RANDOM % 200)) # of numbers from their wrap
		# shellcheck disable=SC2086 # a program and the tests of it
		if TERN_WRAP=$distance TERN_NET=$net TERN_DELIVERY=$way TERN_SIGNAL=40 timeout 400 \
			"$TERN_BIN"/$program >"$log" 2>&1; then
			echo "ok   TERN_WRAP=$distance $net: $program"
		else
			echo "FAIL TERN_WRAP=$distance $net: $program, with status $?"
			grep -vE '^ok ' "$log" | head -20
			failed=1
		fi
	done
}

on shm "${shm[@]}"
on udp "${udp[@]}"
if [[ $way != interrupt ]]; then # which providers cannot raise
	on ofi/tcp "${ofi[@]}"
	on ofi/shm "${ofi[@]}"
fi
exit $failed
