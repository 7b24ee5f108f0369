#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: TIMEOUT 600 LOCK net LABELS slow by-interrupt
# Over UDP a progress thread, or interrupts, deliver what polls deliver, with and without faults.
set -uo pipefail
. tests/lib/sample.sh

chosen=(delivery_test progress_test interrupt_test) # these choose the way of delivery themselves
programs=(lost_test attach_test legal_test match_test handles_test session_test fail_test \
	access_test chain_test)
faulty=(async_death_test spawn_job_test msg_mix_test)
log=$(mktemp)
trap 'rm -f "$log"' EXIT
failed=0

if [[ $("$TERN_BIN/tern" info) != *"udp            usable"* ]]; then
	echo "this build has no UDP"
	exit 77
fi
try() { # WORDS PROGRAM
	sampled "${1%seed=*}" "$2" || return
	# shellcheck disable=SC2086 # words are settings
	if env TERN_NET=udp TERN_SIGNAL=40 $1 timeout 300 "$TERN_BIN/$2" >"$log" 2>&1; then
		echo "ok   $2 $1"
	else
		echo "FAIL $2 $1, with status $?"
		grep -vE '^ok ' "$log" | head -20
		failed=1
	fi
}
for program in "${chosen[@]}"; do
	try "" $program
done
for way in thread interrupt; do
	for program in "${programs[@]}"; do
		try TERN_DELIVERY=$way $program
	done
done
for way in poll thread interrupt; do
	for program in "${faulty[@]}"; do
		try "TERN_DELIVERY=$way TERN_FAULT=drop=0.05,reorder=0.1,seed=$RANDOM" $program
	done
done
try "TERN_FAULT=drop=0.05,reorder=0.1,seed=$RANDOM" async_mix_test
exit $failed
