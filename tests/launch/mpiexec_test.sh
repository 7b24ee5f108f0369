#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: TIMEOUT 300 LOCK launch LABELS slow once
# Programs under MPICH's mpiexec, which speaks PMI-1.
. tests/lib/launch_frame.sh
need mpiexec.hydra mpich

launcher=(mpiexec.hydra)
survive= # its -disable-auto-cleanup does not do what it says
launch_suite mpiexec

# Machines with a cable between them: its ranks speak PMI over a descriptor, which a network
# namespace does not cut.
net=tern$$-
machines_stop() {
	launch_clean
	for machine in 0 1; do ip netns del "$net$machine"; done 2>/dev/null
}
machines_start() {
	local machine
	command -v ip >/dev/null || { echo "ip is not here (Debian: iproute2)" && return 1; }
	trap machines_stop EXIT
	for machine in 0 1; do
		ip netns add "$net$machine" && ip -n "$net$machine" link set lo up || return 1
	done
	ip -n "${net}0" link add cable type veth peer name cable netns "${net}1" || return 1
	for machine in 0 1; do
		ip -n "$net$machine" addr add "10.78.0.$((1 + machine))/24" dev cable &&
			ip -n "$net$machine" link set cable up || return 1
	done
}
cat >"$folder/there" <<END
#!/bin/sh
exec ip netns exec $net\$((PMI_RANK % 2)) env TERN_UDP_BIND=10.78.0.0/24 "\$@"
END
chmod +x "$folder/there"

if [[ ! $several ]]; then
	echo "mpiexec: a machine that falls silent is skipped: Tern was built without UDP"
elif ! machines_start >"$err" 2>&1; then
	echo "mpiexec: a machine that falls silent is skipped: $(head -n 1 "$err")"
else
	sentence "mpiexec: a cable that is pulled and put back loses nobody"
	begin 4 "$folder/there" "$bin/launch_ranks" all 3000
	sleep 0.5
	ip -n "${net}1" link set cable down
	sleep 2
	ip -n "${net}1" link set cable up
	ends
	check_status 0
	says 12 '^rank [0-3] of 4: all came$'

	# Long enough for links that wait for a core to be heard of.
	sentence "mpiexec: ranks of a machine that was silent for TERN_KEEPALIVE seconds are dead"
	TERN_KEEPALIVE=10 begin 4 "$folder/there" "$bin/fail_ranks" lose
	until_true wrote 4 ready || fail "it does not begin"
	sleep 1
	wrote 0 dead || fail "somebody is dead before anything happened"
	ip -n "${net}1" link set cable down
	until_true wrote 4 'wait: dead' || fail "not everybody knows"
	says 2 '^[02] wait: dead: rank [13] is taken for dead: its machine is not heard of'
	says 2 '^[13] wait: dead: rank [02] is taken for dead: its machine is not heard of'
	ends
	check_nothing_left
fi

finish
