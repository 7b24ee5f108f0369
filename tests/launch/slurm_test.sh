#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: TIMEOUT 600 LOCK launch LABELS slow once
# Programs under a real Slurm, whose daemons run on this machine for as long as the test: with PMIx,
# with PMI-2, and with neither.
. tests/lib/launch_frame.sh
need slurmctld slurmctld
need slurmd slurmd
need srun slurm-client
need munged munge

cluster=$folder/cluster node=$(hostname -s)
export SLURM_CONF=$cluster/slurm.conf
daemons=()
cluster_stop() { # the last one first: the others need munge
	local i
	for ((i = ${#daemons[@]} - 1; i >= 0; i--)); do
		kill "${daemons[i]}" 2>/dev/null
		wait "${daemons[i]}" 2>/dev/null
	done
	launch_clean
}
trap cluster_stop EXIT

cluster_write() { # PORT
	mkdir -p "$cluster/state" "$cluster/spool"
	(umask 077 && head -c 64 /dev/urandom >"$cluster/munge.key")
	# it is not used, but something has to be named
	echo "CgroupPlugin=cgroup/v1" >"$cluster/cgroup.conf"
	cat >"$SLURM_CONF" <<-END
		ClusterName=test
		SlurmctldHost=$node(127.0.0.1)
		SlurmctldPort=$1
		SlurmdPort=$(($1 + 1))
		SlurmUser=$(id -un)
		SlurmdUser=$(id -un)
		AuthType=auth/munge
		AuthInfo=socket=$cluster/munge.socket
		CredType=cred/munge
		ProctrackType=proctrack/linuxproc
		TaskPlugin=task/none
		SelectType=select/cons_tres
		StateSaveLocation=$cluster/state
		SlurmdSpoolDir=$cluster/spool
		SlurmctldPidFile=$cluster/slurmctld.pid
		SlurmdPidFile=$cluster/slurmd.pid
		SlurmctldLogFile=$cluster/slurmctld.log
		SlurmdLogFile=$cluster/slurmd.log
		SlurmdParameters=config_overrides
		MpiDefault=none
		NodeName=$node NodeAddr=127.0.0.1 CPUs=64
		PartitionName=all Nodes=ALL Default=YES State=UP
	END
}
cluster_start() {
	chmod 755 "$folder" # munge's clients must reach its socket
	cluster_write $((20000 + RANDOM % 10000))
	munged --foreground --force --socket="$cluster/munge.socket" \
		--key-file="$cluster/munge.key" \
		--pid-file="$cluster/munged.pid" --seed-file="$cluster/munge.seed" \
		>"$cluster/munged.log" 2>&1 &
	daemons+=($!)
	until_true test -S "$cluster/munge.socket" || return 1
	slurmctld -D >"$cluster/slurmctld.out" 2>&1 &
	daemons+=($!)
	slurmd -D >"$cluster/slurmd.out" 2>&1 &
	daemons+=($!)
	until_true node_idle
}
node_idle() { [[ $(sinfo -h -o %T 2>/dev/null) == idle ]]; }

cluster_start || {
	fail "the daemons do not start: $(grep -hi error "$cluster"/*.log | head -3)"
	exit 1
}

survive=--kill-on-bad-exit=0
if ! usable PMIx; then
	echo "srun --mpi=pmix: skipped, this Tern was built without PMIx"
elif ! srun --mpi=list 2>&1 | grep pmix >/dev/null; then
	echo "srun --mpi=pmix: skipped, this Slurm has none (Debian: slurm-wlm-basic-plugins)"
else
	launcher=(srun --mpi=pmix)
	hasty=yes
	launch_suite "${launcher[*]}"
	hasty=
fi
launcher=(srun --mpi=pmi2)
launch_suite "${launcher[*]}"
launcher=(srun)
if usable "Slurm's PMI-1"; then
	launch_suite srun
else
	echo "srun: skipped, Slurm's PMI library is missing (Debian: libpmi0)"
fi

# MPI beside Tern: Open MPI joins through PMIx, MPICH through PMI-1 on the descriptor of PMI-2.
beside() { # MPI SRUN-OPTION
	local order lib=$bin/../lib
	if ! command -v "mpicc.$1" >/dev/null; then
		echo "srun $2: $1 beside Tern is skipped: mpicc.$1 is not here"
		return
	fi
	sentence "srun $2: $1 and Tern in one program"
	"mpicc.$1" tests/launch/mpi/beside_ranks.c -o "$folder/ranks" -Iinclude -L"$lib" -ltern \
		-Wl,-rpath,"$lib" -pthread >"$err" 2>&1 || fail "it does not compile"
	launcher=(srun "$2")
	for order in IOCF IOFC OICF OIFC OCIF TOCF IACF ISFC; do
		launch 4 "$folder/ranks" $order
		check_status 0
		says 4 "^rank [0-3] of 4: $order is done\$"
	done
	launch 2 "$folder/ranks" IFOX
	says 2 '^refused: .*MPI_Finalize\(\) was called'
}
usable PMIx && beside openmpi --mpi=pmix
beside mpich --mpi=pmi2

finish
