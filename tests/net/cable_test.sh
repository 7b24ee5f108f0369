#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: TIMEOUT 300 LOCK launch LABELS slow once
# Links that are slow, long, bad or narrow, between hosts that are network namespaces: over UDP
# everything comes, a link is shared with TCP, and datagrams are as long as the way takes.
# tests/net/cable_test.sh measure SECONDS SETTINGS... WHAT...: how `tern` and `tcp`, as often as
# they are named, share such a link.
. tests/lib/netns_frame.sh

cable= jobs=() out=$folder/out

hosts_end() {
	[[ $cable ]] && kill "$cable" && wait "$cable"
	cable=
	for i in 0 1 way; do ip netns delete "$host$i"; done
} 2>/dev/null
clean() {
	((${#jobs[@]})) && kill "${jobs[@]}" 2>/dev/null && wait "${jobs[@]}" 2>/dev/null
	hosts_end
}

hosts_begin() { # NAMES
	for i in "$@"; do
		ip netns add "$host$i" && ip -n "$host$i" link set lo up || return 1
	done
}
join() { # SETTINGS of tests/net/cable.c: both hosts, at 10.211.0.1 and .2
	hosts_begin 0 1 || return 1
	"$TERN_BIN/cable" "${host}0" cable "${host}1" cable "$@" >"$folder/cable.out" 2>&1 &
	cable=$!
	for ((i = 0; i < 100; i++)); do
		grep -q ready "$folder/cable.out" && break
		kill -0 $cable 2>/dev/null || return 1
		sleep 0.05
	done
	for i in 0 1; do
		ip -n "$host$i" address add "10.211.0.$((i + 1))/24" dev cable &&
			ip -n "$host$i" link set cable mtu 1500 txqueuelen 5000 up || return 1
	done
}
rank_script() { # ADDRESS, of which X is the rank plus 1
	cat >"$folder/rank" <<END
#!/bin/sh
bind=\$(echo $1 | sed "s/X/\$((TERN_RANK + 1))/")
exec $hurry ip netns exec $host\$TERN_RANK env TERN_UDP_BIND=\$bind "\$@"
END
	chmod +x "$folder/rank"
}
begin() { # tern or tcp, and a number
	local last=
	[[ $1 == tcp ]] && last=10.211.0.2
	TERN_NET=udp timeout -k 5 500 "$TERN_BIN/tern" run -n 2 "$folder/rank" \
		"$TERN_BIN/cable_ranks" "$1" "$folder/stop" $last \
		>"$out.$1.$2" 2>&1 </dev/null &
	jobs+=($!)
}
end() {
	: >"$folder/stop"
	for job in "${jobs[@]}"; do
		wait "$job" || fail "a job ended with status $?"
	done
	jobs=()
	rm "$folder/stop"
	for one in "$out".tern.*; do
		grep -qE '^rank 1: [1-9][0-9]* messages, 0 wrong: fine$' "$one" ||
			fail "not everything came"
	done
	rm -f "$out".*
}
tell() { # what each flow has had since the last time, by the cable's count
	local before
	before=$(grep -c '^-' "$folder/cable.out")
	kill -USR1 $cable
	while [[ $(grep -c '^-' "$folder/cable.out") == "$before" ]]; do sleep 0.02; done
}
had() { # tcp or udp: bytes between the last two times
	awk -v name="$1" \
		'/^-/ { last = now; now = 0 } $2 == 0 && $3 == name { now += $7 } END { print last }' "$folder/cable.out"
}
flowing() { # FLOW...: until each has something of the cable; then their counts begin anew
	local i flow all
	for ((i = 0; i < 1000; i++)); do
		sleep 0.2
		tell
		all=yes
		for flow in "$@"; do (($(had "$flow") > 50000)) || all=; done
		[[ $all ]] && break
	done
}
hurry=

if [[ ${1-} == measure ]]; then
	seconds=$2 hurry="chrt -r 1" # so that it is the cable that is slow
	shift 2
	while [[ ${1-} == *=* ]]; do settings+=("$1") && shift; done
	join "${settings[@]}" || skip "$(tail -1 "$folder/cable.out")"
	rank_script 10.211.0.X
	for what in "$@"; do begin "$what" ${#jobs[@]}; done
	sleep 4
	tell
	sleep "$seconds"
	tell
	end
	awk '
	/^-/ { n++; ms = $2 }
	n == 1 && $2 == 0 && ($9 > 100 || $11) {
		line[++k] = $3; bytes[k] = $7; all[k] = $9 + $11 + $13; gone[k] = $11; wait[k] = $15
	}
	END {
		for (i = 1; i <= k; i++)
			printf "%s %.1f Mbit/s, %.2f %% dropped, %.1f ms queued\n", line[i],
				bytes[i] * 8 / ms / 1e3, 100 * gone[i] / all[i], wait[i]
	}' "$folder/cable.out"
	exit $failed
fi

echo "over 20 ms, a short queue and 1 % lost, all comes, and neither Tern nor TCP starves"
# The machine may be busy, and give Tern no time when TCP, which lives in the kernel, has some: it
# is tried again.
for try in 1 2 3 4 5 6; do
	join rate=10 delay=10 queue=10 loss=1 2>"$folder/why" ||
		skip "no cable between namespaces: $(cat "$folder/why" "$folder/cable.out" |
		head -1)"
	rank_script 10.211.0.X
	begin tern $try
	begin tcp $try
	flowing udp tcp
	sleep 2
	tell
	end
	hosts_end
	udp=$(had udp) tcp=$(had tcp)
	((udp * 10 > udp + tcp && tcp * 10 > udp + tcp)) && break
	((try == 6)) && fail "Tern had $udp bytes and TCP $tcp"
done

echo "a gap of a second in a long link delays, and loses nothing"
join rate=50 delay=20 queue=20
rank_script 10.211.0.X
begin tern gap
flowing udp
ip -n "${host}1" link set cable down
sleep 1
ip -n "${host}1" link set cable up
sleep 0.5
end
hosts_end

# A router between the hosts, with a way to the second that takes 1280 bytes.
narrow() {
	hosts_begin 0 1 way || return 1
	local mtu=(1500 1280)
	for i in 0 1; do
		ip -n "$host$i" link add cable mtu ${mtu[i]} type veth peer name "to$i" mtu \
			${mtu[i]} netns "${host}way" &&
			ip -n "$host$i" address add "10.211.$((i + 1)).2/24" dev cable &&
			ip -n "$host$i" link set cable up &&
			ip -n "${host}way" address add "10.211.$((i + 1)).1/24" dev "to$i" &&
			ip -n "${host}way" link set "to$i" up &&
			ip -n "$host$i" route add default via "10.211.$((i + 1)).1" || return 1
	done
	ip netns exec "${host}way" sh -c 'echo 1 >/proc/sys/net/ipv4/ip_forward'
}
# A counter of IP's at the first host, by its name.
counted() {
	ip netns exec "${host}0" cat /proc/net/snmp |
		awk -v name="$1" \
		'$1 == "Ip:" { if (!at) for (i = 1; i <= NF; i++) if ($i == name) at = i; value = $at } END { print value }'
}

echo "a way that is narrower than its beginning is found out, and then nothing is cut"
narrow || fail "no router can be made of a namespace"
rank_script 10.211.X.2
begin tern narrow
for ((try = 0; try < 20; try++)); do # until so many packets in a row were not cut
	before=$(counted FragCreates)
	sent=$(counted OutRequests)
	for ((i = 0; i < 3000 && $(counted OutRequests) < sent + 300; i++)); do sleep 0.1; done
	after=$(counted FragCreates)
	((try > 0)) && [[ $before == "$after" ]] && break
done
end
[[ $before == "$after" ]] || fail "$((after - before)) fragments were made after the way was known"
hosts_end

echo "and messages come though the router tells nobody"
narrow
ip -n "${host}way" rule add iif lo to 10.211.0.0/16 priority 1 blackhole # what it says itself
sent=$(counted OutRequests)
begin tern dark
for ((i = 0; i < 3000 && $(counted OutRequests) < sent + 20; i++)); do sleep 0.1; done
sleep 1
end
exit $failed
