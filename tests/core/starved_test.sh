#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: TIMEOUT 600 MODES
# Whoever waits returns when what it waits for has happened, while other ranks flood it: on each
# network.
set -uo pipefail
failed=0

flood() { # NETWORK RANKS SINGLE_COPY BYTES
	if TERN_NET=$1 TERN_SINGLE_COPY=$3 timeout 300 "$TERN_BIN/tern" run -n "$2" \
		"$TERN_BIN/starved" "$4"; then
		echo "ok   $*"
	else
		echo "FAIL $*"
		failed=1
	fi
}

flood shm 3 1 256
flood shm 5 0 8 # where messages move the bytes, a share takes a round trip
if [[ $("$TERN_BIN/tern" info) == *"udp            usable"* ]]; then
	flood udp 3 1 8
else
	echo "skipped: udp is not usable here"
fi
exit $failed
