#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# A job whose memory cgroup is full gets an error from a call, and is not killed.
set -uo pipefail
if grep -qa __asan_init "$TERN_BIN/core_ranks"; then
	echo "skipped: a sanitizer takes memory of the cgroup that Tern does not count"
	exit 77
fi
. tests/lib/frame.sh

group=
for root in /sys/fs/cgroup /sys/fs/cgroup/memory; do
	if [[ $root == */memory ]]; then
		limit=memory.limit_in_bytes above=$(sed -n 's/^[0-9]*:memory://p' /proc/self/cgroup)
	else
		limit=memory.max above=$(sed -n 's/^0:://p' /proc/self/cgroup)
	fi
	[[ -e $root/cgroup.controllers || -e $root/memory.limit_in_bytes ]] || continue
	try=$root${above%/}/tern-test-$$
	mkdir "$try" 2>/dev/null || continue
	if echo $((96 << 20)) 2>/dev/null >"$try/$limit" &&
		(echo "$BASHPID" >"$try/cgroup.procs") 2>/dev/null; then
		group=$try
		break
	fi
	rmdir "$try"
done
if [[ ! $group ]]; then
	echo "no memory cgroup can be made here"
	exit 77
fi
leave() {
	local i
	# The kernel takes its time to see that the last process has gone.
	for ((i = 0; i < 40; i++)); do
		rmdir "$group" 2>/dev/null && break
		sleep 0.25
	done
	rm -rf "$folder"
}
trap leave EXIT

inside() { # ARGUMENTS of tern run
	(
		echo "$BASHPID" >"$group/cgroup.procs"
		exec "$tern" run "$@"
	) >"$out" 2>"$err"
	status=$?
}

sentence "a heap that the cgroup has no room for is refused, and the sentence says by what"
TERN_MEMORY=800M inside -n 2 "$TERN_BIN/core_ranks" fill
check_status 0
full="memory cgroup $group, whose limit \\($limit\\) is 98304 KiB, has [0-9]+ KiB left"
check_out "^the heap of rank 0 needs .* $full .*; raise its limit or use fewer ranks\$"

sentence "so it is where all ranks allocate together"
TERN_MEMORY=800M inside -n 2 "$TERN_BIN/core_ranks" fill-all
check_status 0
check_out "^the heap of rank [01] needs .* $full .*; raise its limit or use fewer ranks\$"

sentence "what a job may commit by default is half of what its cgroup has left"
inside -n 2 "$TERN_BIN/core_ranks" fill
check_status 0
check_out "^the heap of rank 0 needs .* budget is spent \\([0-9]+ of [1-4][0-9]{4} KiB"
finish
