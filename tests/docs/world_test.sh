#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: LABELS once
# Time and waiting go through base/world.h: no other object of the library asks a clock or waits by
# itself. Prints the source and the symbol.
set -euo pipefail

objects=$TERN_BIN/../CMakeFiles/tern_objects.dir
if ! command -v nm >/dev/null || [[ ! -d $objects ]]; then
	echo "skipped: there is no nm, or no objects in $objects"
	exit 77
fi

clocks='clock|clock_gettime|gettimeofday|time|times|timespec_get'
naps='alarm|clock_nanosleep|nanosleep|pause|sched_yield|sleep|thrd_sleep|ualarm|usleep'
waits='epoll_p?wait2?|p?poll|p?select|__p?poll_chk'
locks='pthread_cond_(clock|timed)?wait|sem_(clock|timed)?wait'
signals='setitimer|sigsuspend|sigtimedwait|sigwait|sigwaitinfo|timer_create|timerfd_create'
around='futex_wait|futex_wait_many|syscall|world_real'

# OBJECT SYMBOL: what may stay, and why.
allowed() {
	case $1:$2 in
	src/base/world.c:*) ;;                      # it is the place
	# futexes and memory barriers, for world.c and for waking
	src/base/kernel.c:syscall) ;;
	src/base/kernel.c:clock_gettime) ;;         # a futex of the kernel has a date of the kernel
	src/base/numa.c:syscall) ;;                 # getcpu(), set_mempolicy()
	src/base/process.c:syscall) ;;              # pidfd_open()
	src/net/udp/socket.c:syscall) ;;            # recvmsg() that does not wait
	src/base/file.c:sigtimedwait) ;;            # takes a signal that is pending
	src/boot/link/program.c:syscall) ;;         # close_range()
	src/core/delivery/interrupt.c:timer_create) ;;       # a signal to a program that computes
	src/layers/spawn/preempt.c:timer_create) ;;        # time slices
	# a world of its own: a rank without the turn waits in real time
	src/net/sim/*:world_real | src/net/sim/machine/baton.c:*) ;;
	*) return 1 ;;
	esac
}

rc=0
while read -r source symbol; do
	# A build folder may have objects of files that were moved.
	if [[ -f $source ]] && ! allowed "$source" "$symbol"; then
		echo "$source uses $symbol: time and waiting go through base/world.h"
		rc=1
	fi
done < <(cd "$objects" && find src -name '*.c.o' | sort | xargs nm -A | sed 's/\.o:/ /' |
	awk 'NF == 3 && $2 == "U" { print $1, $3 }' |
	grep -E " ($clocks|$naps|$waits|$locks|$signals|$around)\$")
exit $rc
