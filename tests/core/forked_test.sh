#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: TIMEOUT 600 MODES
# A forked child cannot use its parent's endpoint, and its parent loses nothing: on each network.
set -uo pipefail
failed=0

on() { # NETWORK
	local printed
	if TERN_NET=$1 timeout 200 "$TERN_BIN/tern" run -n 2 "$TERN_BIN/forked"; then
		echo "ok   $1: every call"
	else
		echo "FAIL $1: every call"
		failed=1
	fi
	printed=$(TERN_NET=$1 timeout 200 "$TERN_BIN/tern" run -n 2 "$TERN_BIN/forkbar")
	if [[ $(grep -c 'got 100 of 200, barrier 0 success' <<<"$printed") == 2 ]]; then
		echo "ok   $1: what the parents sent, and no more"
	else
		echo "FAIL $1: $printed"
		failed=1
	fi
}

on shm
if [[ $("$TERN_BIN/tern" info) == *"udp            usable"* ]]; then
	on udp
else
	echo "skipped: udp is not usable here"
fi
exit $failed
