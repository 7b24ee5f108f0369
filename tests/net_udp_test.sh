#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: TIMEOUT 400 RUN_SERIAL LABELS slow
# Programs that know nothing of networks pass over UDP what they pass over shared memory.
set -uo pipefail

programs=(attach_test legal_test segment_test name_test match_test handles_test order_test flood_test
	session_test poll_in_send_test fail_test mem_mix_test msg_mix_test msg_flood_test mem_death_test msg_death_test)
programs+=("wake_test two_ranks_wake_each_other many_pairs_wake_each_other") # the rest is about rings in shared memory
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
exit $failed
