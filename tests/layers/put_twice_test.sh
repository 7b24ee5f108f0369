#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: TIMEOUT 600 MODES
# A word that is put by one rank, answered by another, and never goes back: each width, on each
# network.
set -uo pipefail
failed=0

token() { # NETWORK WIDTH ROUNDS [split]
	if TERN_NET=$1 timeout 300 "$TERN_BIN/tern" run -n 2 "$TERN_BIN/put_twice" "${@:2}"; then
		echo "ok   $*"
	else
		echo "FAIL $*"
		failed=1
	fi
}

for split in "" split; do
	token shm 1 255 $split
	token shm 2 65535 $split
	token shm 4 400000 $split
	token shm 8 400000 $split
done
if [[ $("$TERN_BIN/tern" info) == *"udp            usable"* ]]; then
	for split in "" split; do
		token udp 1 255 $split
		token udp 2 2000 $split
		token udp 4 2000 $split
		token udp 8 2000 $split
	done
else
	echo "skipped: udp is not usable here"
fi
exit $failed
