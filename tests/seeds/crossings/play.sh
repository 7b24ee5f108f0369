#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# tests/seeds/crossings/play.sh NETWORK SEED [OPTION=NUMBER...]: plays the program of a seed and
# says what is wrong; docs/testing.md has the options. NETWORK is one of
#   shm udp faults ofi sim:PROFILE    ranks of one machine
#   queues:PROFILE    SCMP with the queues of its network interface
#   machines machines-udp machines-ofi    of two, with shared memory within each or without it
#   machines-faults    of two, with faults between them
# The number of ranks, the way of delivery and other settings follow from the seed; RANKS and
# DELIVERY change them.
# Exit status 0: all is as the model says, or the fault of a planted seed was noticed; 77: skipped.
set -uo pipefail
cd "$(dirname "$0")/../../.."
bin=${CROSSINGS_BIN:-build/bin}
network=$1 seed=$2
shift 2

tern=$bin/tern crossings=$bin/crossings
ways=(poll thread interrupt)
ranks=${RANKS:-$((2 + seed % 4))} delivery=${DELIVERY:-${ways[seed / 4 % 3]}}
settings=(TERN_DELIVERY="$delivery" TERN_SIGNAL=40 TERN_STUCK="${TERN_STUCK:-30}")
start=("$tern" run --survive=survivors)
faults=drop=0.02,duplicate=0.02,reorder=0.05,delay=0.02,late=500,corrupt=0.005,seed=$seed
case $network in
shm) settings+=(TERN_NET=shm) ;;
udp) settings+=(TERN_NET=udp) ;;
faults) settings+=(TERN_NET=udp TERN_FAULT=$faults) ;;
ofi) settings+=(TERN_NET=ofi/tcp) ;;
sim:* | queues:*)
	# That a crash is planned, though it never comes, lets no rank look ahead of the clock.
	# Ranks poll: a thread that serves would wait in real time for a clock that stands.
	delivery=poll settings=(TERN_DELIVERY=poll TERN_STUCK=0)
	((seed % 2)) || settings+=(TERN_CHECK=1)
	ranks=${RANKS:-$((2 << seed % 2))}
	start=("$tern" sim --survive --profile "${network#*:}" \
		--set crash_at=1000000s)
	# Behind a rendezvous nothing leaves SCMP's queues (src/net/sim/machine/README.md), so a
	# program that does something else meanwhile stands still. With jitter the machine has no
	# such queues; with them, all ranks meet after each step.
	[[ $network != queues:* ]] || set -- calm=1 ending=0 "$@"
	[[ $network != sim:scmp* ]] || start+=(--set jitter=1ns) ;;
machines) ;;
machines-faults) settings+=(TERN_FAULT=$faults) ;;
machines-udp) settings+=(TERN_NET=udp) ;;
machines-ofi) settings+=(TERN_NET=shm,ofi/tcp) ;;
*)
	echo "$0: no network is called $network" >&2
	exit 2
	;;
esac
((seed % 5)) || settings+=(TERN_CHECK=1)
((seed % 7)) || settings+=(TERN_SINGLE_COPY=0)
((seed % 11)) || settings+=(TERN_GRANT=1)
# libfabric raises no signals.
[[ $network != *ofi || $delivery != interrupt ]] || settings[0]=TERN_DELIVERY=thread
[[ $network != machines* ]] || start=(scripts/tern-machines 2 "${start[@]}" --hosts m1,m2)

out=$(mktemp)
trap 'rm -f "$out"' EXIT
env "${settings[@]}" timeout -k 5 "${PATIENCE:-300}" "${start[@]}" -n "$ranks" "$crossings" \
	"$seed" "$@" >"$out" 2>&1 </dev/null
status=$?

if ((seed % 100 == 99)); then # something is made wrong, and has to be noticed
	grep -q '(planted)' "$out" && exit 0
	echo "FAIL $network $seed: a fault was planted, and nothing noticed it"
	exit 1
fi
if ((status)); then
	((status == 124)) && why="it hangs" || why="status $status"
	echo "FAIL tests/seeds/crossings/play.sh $network $seed $*" \
		"($why; RANKS=$ranks DELIVERY=$delivery)"
	grep -vE ' go(es)? on$|was killed by signal (9|15)' "$out" | head -"${LINES_SHOWN:-12}" |
		sed 's/^/    /'
	exit 1
fi
[[ ! ${VERBOSE-} ]] || cat "$out"
