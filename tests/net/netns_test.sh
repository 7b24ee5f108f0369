#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: TIMEOUT 300 LOCK launch LABELS slow once
# Two ranks in network namespaces of their own, with a cable between them: over UDP everything comes
# once and in order, no datagram is longer than the cable takes, also while the cable is out for
# some time.
. tests/lib/netns_frame.sh

job=
cable=(t$$a t$$b) # names of interfaces are short

clean() {
	[[ $job ]] && kill "$job" 2>/dev/null && wait "$job" 2>/dev/null
	ip link delete "${cable[0]}" 2>/dev/null
	for i in 0 1; do
		ip netns delete "$host$i" 2>/dev/null
	done
}

lay() { # a cable of 1500 bytes, with an end in each namespace
	ip link add "${cable[0]}" mtu 1500 type veth peer name "${cable[1]}" mtu 1500 || return 1
	for i in 0 1; do
		ip netns add "$host$i" && ip link set "${cable[i]}" netns "$host$i" &&
			ip -n "$host$i" address add "10.211.55.$((i + 1))/24" dev "${cable[i]}" &&
			ip -n "$host$i" link set lo up &&
			ip -n "$host$i" link set "${cable[i]}" up || return 1
	done
}
lay 2>"$folder/why" || skip "no namespaces with a cable between them: $(head -1 "$folder/why")"

cat >"$folder/rank" <<END
#!/bin/sh
exec ip netns exec $host\$TERN_RANK env TERN_UDP_BIND=10.211.55.\$((TERN_RANK + 1)) "\$@"
END
chmod +x "$folder/rank"

# A counter of IP's in a namespace, by its name.
counted() {
	ip netns exec "$host$1" cat /proc/net/snmp |
		awk -v name="$2" \
		'$1 == "Ip:" { if (!at) for (i = 1; i <= NF; i++) if ($i == name) at = i; value = $at } END { print value }'
}

begin() { # returns when messages flow: a busy machine takes its time
	local i before
	before=$(counted 0 OutRequests)
	rm -f "$folder/stop"
	TERN_NET=udp timeout -k 5 500 "$TERN_BIN/tern" run -n 2 "$folder/rank" \
		"$TERN_BIN/netns_ranks" "$folder/stop" \
		>"$folder/out" 2>&1 </dev/null &
	job=$!
	for ((i = 0; i < 3000 && $(counted 0 OutRequests) < before + 100; i++)); do sleep 0.1; done
}
end() {
	: >"$folder/stop"
	wait "$job" || fail "the job ended with status $?"
	job=
	[[ $(grep -cE '^rank [01]: [1-9][0-9]* messages, 0 wrong: fine$' "$folder/out") == 2 ]] ||
		fail "not everything came"
	sed 's/^/    /' "$folder/out"
}
echo "everything comes once and in order, and nothing is cut"
begin
sleep 1
end
for i in 0 1; do
	[[ $(counted $i FragCreates) == 0 ]] ||
		fail "datagrams of host $i are longer than the cable takes"
done

echo "a cable that is pulled and put back delays, and loses nothing"
begin
sleep 0.5
ip -n "${host}0" link set "${cable[0]}" down
sleep 2
ip -n "${host}0" link set "${cable[0]}" up
sleep 1
end

echo "a cable that loses, delays and reorders"
if tc -n "${host}0" qdisc add dev "${cable[0]}" root netem loss 1% delay 1ms reorder 95% \
	2>"$folder/why"; then
	begin
	sleep 1
	end
else
	echo "    skipped: this kernel has no netem: $(head -1 "$folder/why")"
fi
exit $failed
