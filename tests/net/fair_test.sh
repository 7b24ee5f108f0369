#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: TIMEOUT 600 RUN_SERIAL LOCK launch LABELS slow once
# Two ranks of one host talk with a server on another over UDP, and it serves both alike: when one
# has its rounds done, the other has at least half of them. Hosts are network namespaces.
. tests/lib/netns_frame.sh

cable=(f$$a f$$b)

clean() {
	ip link delete "${cable[0]}" 2>/dev/null
	for i in 0 1; do ip netns delete "$host$i" 2>/dev/null; done
}
lay() { # a cable with an end in each namespace
	ip link add "${cable[0]}" type veth peer name "${cable[1]}" || return 1
	for i in 0 1; do
		ip netns add "$host$i" && ip link set "${cable[i]}" netns "$host$i" &&
			ip -n "$host$i" address add "10.211.57.$((i + 1))/24" dev "${cable[i]}" &&
			ip -n "$host$i" link set lo up &&
			ip -n "$host$i" link set "${cable[i]}" up || return 1
	done
}
lay 2>"$folder/why" || skip "no namespaces with a cable between them: $(head -1 "$folder/why")"

cat >"$folder/ssh" <<END
#!/bin/sh
host=\$1
shift
exec ip netns exec $host\$host sh -c "\$*"
END
chmod +x "$folder/ssh"

pushed() { # RANK
	sed -n "s/^rank $1 pushed //p" "$folder/out"
}

# ROUNDS: whether the job ends well; then $two and $three are what each of the two ranks has done.
serve() {
	TERN_NET=shm,udp TERN_UDP_BIND=10.211.57.0/24 timeout -k 5 140 "$TERN_BIN/tern" run \
		--bind none --hosts 0,1 \
		--ssh "$folder/ssh" -n 4 "$TERN_BIN/fair_ranks" "$1" >"$folder/out" 2>&1 </dev/null
	two=$(pushed 2) three=$(pushed 3)
	[[ $two && $three ]] || return 1
	echo "    rank 2 has $two rounds, rank 3 has $three"
}

# All ranks are on this machine. Where other work has its cores, the scheduler may give one rank
# less than half of the time that the other has, so a job that is not fair is tried twice more.
echo "ranks of a host have their shares"
for rounds in 100 400; do
	for try in 1 2 3; do
		serve "$rounds" || { fail "the job did not end well"; exit 1; }
		((2 * two >= three && 2 * three >= two)) && break
		((try == 3)) && fail "one had less than half of the other, three times"
	done
done
exit $failed
