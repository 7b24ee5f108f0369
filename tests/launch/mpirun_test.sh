#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: TIMEOUT 600 LOCK launch LABELS slow once
# Programs under Open MPI's mpirun, which speaks PMIx.
. tests/lib/launch_frame.sh
need mpirun.openmpi openmpi-bin
usable PMIx || skip "this Tern was built without PMIx (Debian: libpmix-dev)"

export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
launcher=(mpirun.openmpi --oversubscribe)
survive=--enable-recovery
launch_suite mpirun
launch_strangers mpirun

if [[ $several ]]; then
	sentence "mpirun: machines that differ in their networks are named, with what to set"
	launch_odd TERN_FLOW=nack 'the services' flow\ by\ {nack,credit},order,retry
	launch_odd TERN_SERVICE=flow,retry 'the services' 'flow by credit,retry' \
		'flow by credit,order,retry'
	launch_odd TERN_PROTECT=encrypt 'the protection' encrypt auth
	if [[ $("$bin/tern" info) == *"ofi            usable"* ]]; then
		launch_odd TERN_NET=shm,ofi/tcp 'the network' 'shm,ofi/tcp.*' shm,udp
		TERN_NET=shm,ofi/tcp launch_odd TERN_NET=shm,ofi/sockets 'the network' \
			shm,ofi/sockets 'shm,ofi/tcp.*'
		# A fabric is a folder of sysfs, which root can put there for some.
		cat >"$folder/fabric" <<-'END'
			#!/bin/sh
			[ "$TERN_MACHINE" = "$LACKS" ] && exec "$@"
			exec unshare --mount sh -c 'mount -t tmpfs none /sys/class && mkdir -p /sys/class/infiniband/fake0 && exec "$0" "$@"' "$@"
		END
		chmod +x "$folder/fabric"
		sentence "mpirun: machines with a fabric use it, and none does if one lacks it"
		if LACKS=none "$folder/fabric" true 2>"$err"; then
			ODD=TERN_NET=ofi launch 5 "$spread" "$folder/fabric" "$bin/launch_ranks" \
				all 20
			differ 'the network' 'ofi/.*' 'shm,ofi/.*' TERN_NET
			LACKS=machine2 launch 5 "$spread" "$folder/fabric" "$bin/launch_ranks" all \
				20
			check_status 0
			says 15 '^rank [0-4] of 5: all came$'
		else
			echo "    skipped: no fabric can be put there: $(head -n 1 "$err")"
		fi
	fi
fi

# When all run, rank 1 stops mpirun, which then answers nobody, and does what it is told. The others
# open when mpirun is stopped.
cat >"$folder/stopping" <<'END'
#!/bin/sh
rank1=$1 said=$2 && shift 2
if [ "$PMIX_RANK" = 1 ]; then
	until [ "$(grep -c '^begun$' "$said")" = 2 ]; do sleep 0.1; done
	kill -STOP "$PPID" && eval "$rank1"
fi
echo begun >>"$said"
until grep -q '^State:.T' "/proc/$PPID/status"; do sleep 0.1; done
"$@" 2>>"$said"
echo ended >>"$said"
END
chmod +x "$folder/stopping"
others_ended() { [[ $(grep -c '^ended$' "$folder/said") == 2 ]]; }
launch_stopping() { # RANK-1 WORDS: what rank 1 does, and what the others' tern_open() says of it
	: >"$folder/said"
	begin 3 "$folder/stopping" "$1" "$folder/said" "$bin/launch_ranks" wait
	until_true others_ended || fail "the others wait for ever"
	[[ $(grep -cE -- "launch_ranks: wait: $2" "$folder/said") == 2 ]] ||
		fail "not both of the others say: $2, but: $(cat "$folder/said")"
	kill -9 $front $(marked) 2>/dev/null
	wait $front 2>/dev/null
	check_nothing_left
}
sentence "mpirun: a launcher that hangs when a rank has died keeps nobody in tern_open()"
launch_stopping 'kill -9 $$' 'rank 1 ended before joining the others'
sentence "mpirun: a launcher that does not answer is not waited for longer than TERN_JOIN says"
TERN_JOIN=2 launch_stopping 'exec sleep 300' \
	'PMIx of the launcher .* has not answered within 2 s \(TERN_JOIN\)'

sentence "mpirun: TERN_ALONE=1 makes jobs of one"
TERN_ALONE=1 launch 2 "$bin/hello"
check_status 0
says 2 '^rank 0: rank 0 says 42$'

sentence "mpirun: a rank that says nothing to Tern does not stand in the way of the launcher"
launch 3 true
check_status 0

sentence "without PMIx's library a rank says what is missing, and that it is one of several"
library=$(readlink -f "$(ldconfig -p | awk '/libpmix.so.2 /{ print $NF; exit }')")
without_pmix() { unshare --mount sh -c 'mount --bind /dev/null "$1" && exec "$0"' "$1" "$library"; }
if without_pmix true 2>"$err"; then
	PMIX_RANK=0 without_pmix "$bin/hello" >"$out" 2>&1 && fail "the status is 0"
	says 1 '^hello: PMIX_RANK=0 says that mpirun.*cannot be loaded.*libpmix2.*TERN_ALONE=1'
else
	echo "    skipped: the library cannot be hidden here: $(head -n 1 "$err")"
fi

finish
