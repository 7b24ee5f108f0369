#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: TIMEOUT 900 MODES
# No handler runs before what it needs has been handed out: on each network.
set -uo pipefail
failed=0

judge() { # STATUS WHAT...
	if (($1 == 0)); then
		echo "ok   ${*:2}"
	else
		echo "FAIL ${*:2}"
		failed=1
	fi
}

# A parameter server: one of its workers kills itself, and the sum of what came from the others is
# right.
server() { # NETWORK TIMES
	local i good=0 printed
	for ((i = 0; i < $2; i++)); do
		printed=$(TERN_NET=$1 timeout 300 "$TERN_BIN/tern" run --survive -n 4 \
			"$TERN_BIN/ps_handler_before_alloc_all" 2>&1)
		[[ $printed =~ sum\ [0-9]+,\ 0\ wrong ]] && ((good++))
	done
	judge $(($2 - good)) "$1: the server, $good of $2 times"
}

on() { # NETWORK
	for n in 2 4; do
		TERN_NET=$1 timeout 300 "$TERN_BIN/tern" run -n $n "$TERN_BIN/handout"
		judge $? "$1: $n ranks"
	done
	server "$1" 5
}

on shm
if [[ $("$TERN_BIN/tern" info) == *"udp            usable"* ]]; then
	on udp
else
	echo "skipped: udp is not usable here"
fi
exit $failed
