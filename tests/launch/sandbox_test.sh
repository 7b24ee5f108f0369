#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: TIMEOUT 240 LABELS once
# A job does what it should, if more slowly, in a sandbox that refuses what the library can do
# without.
set -uo pipefail

if [[ ! -x $TERN_BIN/runtime_layer_ranks ]]; then
	echo "skipped: the examples are not built"
	exit 77
fi
out=$(mktemp)
trap 'rm -f "$out"' EXIT
failed=0

without() { # CALL NETWORK DELIVERY
	TERN_NET=$2 TERN_DELIVERY=$3 timeout 120 "$TERN_BIN/refuse" 1 "$1" -- \
		"$TERN_BIN/tern" run -n 3 "$TERN_BIN/runtime_layer_ranks" file >"$out" 2>&1
	local status=$?
	if [[ $status == 77 ]]; then
		echo "skipped: the kernel takes no filter of system calls"
		exit 77
	fi
	[[ $status == 0 ]] && grep -qx "16 of 16" "$out" && return
	echo "    over $2, delivery by $3, status $status"
	sed 's/^/    it said: /' "$out" | head -12
	failed=$((failed + 1))
}

nets=(shm)
[[ $(TERN_NET=udp "$TERN_BIN/tern" info 2>/dev/null) == *"udp            usable"* ]] && nets+=(udp)
for call in process_vm_readv process_vm_writev membarrier futex_waitv pidfd_open pidfd_getfd prctl \
	sched_getaffinity sched_setaffinity mlock madvise; do
	echo "without $call() messages, memory, atomics, teams and threads are right"
	for net in "${nets[@]}"; do
		without $call "$net" poll
	done
done
echo "without membarrier(), delivery by thread is right"
without membarrier shm thread

[[ $failed == 0 ]] || echo "$failed failed"
exit $((failed > 0))
