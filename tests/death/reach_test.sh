#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: TIMEOUT 600 LOCK launch LABELS slow once
# What is said of a rank that lives and does not answer, and who is told: the cable between two
# hosts, which are network namespaces, is pulled while the launcher reaches both; a host refuses to
# send; loopback is down; a connection under libfabric is reset.
. tests/lib/netns_frame.sh

job=
cable=(r$$a r$$b)
export TERN_KEEPALIVE=2

clean() {
	[[ $job ]] && kill "$job" 2>/dev/null && wait "$job" 2>/dev/null
	ip link delete "${cable[0]}" 2>/dev/null
	for i in 0 1; do ip netns delete "$host$i" 2>/dev/null; done
}
lay() { # a cable with an end in each namespace
	ip link add "${cable[0]}" type veth peer name "${cable[1]}" || return 1
	for i in 0 1; do
		ip netns add "$host$i" && ip link set "${cable[i]}" netns "$host$i" &&
			ip -n "$host$i" address add "10.211.56.$((i + 1))/24" dev "${cable[i]}" &&
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

cat >"$folder/odd" <<'END'
#!/bin/sh
[ "$TERN_RANK" = 0 ] && export TERN_UDP_BIND=127.0.0.1
exec "$@"
END
chmod +x "$folder/odd"
before=()

begin() { # SETTINGS: two ranks on two hosts
	: >"$folder/out"
	rm -f "$folder/stop"
	env TERN_UDP_BIND=10.211.56.0/24 "$@" timeout -k 5 120 "$TERN_BIN/tern" run --hosts 0,1 \
		--ssh "$folder/ssh" -n 2 \
		"${before[@]}" "$TERN_BIN/reach_ranks" "$folder/stop" >"$folder/out" 2>&1 \
		</dev/null &
	job=$!
	((${#before[@]})) && return
	said 'begun' || fail "the job did not begin"
	sleep 0.3
}
ahead=1
begin_here() { # SETTINGS: two ranks on this host, with $ahead requests under way
	: >"$folder/out"
	rm -f "$folder/stop"
	env "$@" timeout -k 5 120 "$TERN_BIN/tern" run -n 2 "$TERN_BIN/reach_ranks" "$folder/stop" \
		"$ahead" >"$folder/out" 2>&1 </dev/null &
	job=$!
	said 'begun' || fail "the job did not begin"
	sleep 0.3
}
said() { # PATTERN: waits until the job has said so, or has ended
	for ((i = 0; i < 1100; i++)); do
		grep -qE "$1" "$folder/out" && return 0
		kill -0 "$job" 2>/dev/null || break
		sleep 0.1
	done
	grep -qE "$1" "$folder/out"
}
ended() { # STATUS
	wait "$job"
	local status=$?
	job=
	[[ $status == "$1" ]] || fail "the job ended with status $status, not $1"
}
fine() {
	: >"$folder/stop"
	ended 0
	grep -qE '^[1-9][0-9]* answered: fine$' "$folder/out" || fail "not everything was answered"
}
down() { ip -n "${host}0" link set "${cable[0]}" down; }
up() { ip -n "${host}0" link set "${cable[0]}" up; }

nets=(shm,udp)
[[ $("$TERN_BIN/tern" info) == *"ofi            usable"* ]] && nets+=("shm,ofi/tcp/${cable[0]}")
for net in "${nets[@]}"; do
	# A provider is told the interface, which has another name on each host.
	if [[ $net == *ofi* ]]; then
		for i in 0 1; do
			ip -n "$host$i" link set "${cable[i]}" down
			ip -n "$host$i" link set "${cable[i]}" name wire
			ip -n "$host$i" link set wire up
		done
		cable=(wire wire) net=shm,ofi/tcp/wire
	fi

	echo "$net: a cable that is pulled is reported, and so is its return; nothing is lost"
	begin TERN_NET="$net"
	down
	said 'rank 0 has had no answer from rank 1 on .* for [0-9]+ s: .*; rank 0 waits for it' ||
		fail "nobody was warned"
	up
	said 'rank 1 on .* answers rank 0 again' || fail "nobody heard that it is back"
	fine

	echo "$net: who does not want to wait for it gets an error"
	begin TERN_NET="$net" TERN_UNREACHABLE=fail
	down
	said 'rank 0 failed: EHOSTUNREACH: rank 0 cannot reach rank 1 on ' ||
		fail "no call returned an error that names the rank"
	ended 4
	up
done

echo "a host that refuses to send to another says so, with the address and the error"
begin TERN_NET=shm,udp
ip -n "${host}0" route add prohibit 10.211.56.2/32
said 'rank 0 failed: EHOSTUNREACH: .*10\.211\.56\.2, port [0-9]+, fails: Permission denied' ||
	fail "no call returned the error of sending"
ended 4
ip -n "${host}0" route delete prohibit 10.211.56.2/32

echo "and so does one whose sandbox forbids it"
case $(uname -m) in
x86_64) calls=(44 46 307) ;;
aarch64) calls=(206 211 269) ;;
*) calls=() ;;
esac
if ((${#calls[@]})); then
	TERN_NET=udp timeout -k 5 120 "$TERN_BIN/refuse_calls" 1 "${calls[@]}" -- "$TERN_BIN/tern" \
		run -n 2 "$TERN_BIN/reach_ranks" \
		"$folder/stop" >"$folder/out" 2>&1 </dev/null
	status=$?
	((status == 77)) && echo "    skipped: no seccomp" && status=4
	((status == 4)) || fail "the job ended with status $status, not 4"
	((status == 77)) ||
		grep -qE \
		'failed: EHOSTUNREACH: .*127\.0\.0\.1, port [0-9]+, fails: Operation not permitted' "$folder/out" ||
		fail "no call returned the error of sending"
fi

echo "a job over UDP does not begin while loopback is down"
ip -n "${host}0" link set lo down
TERN_NET=udp ip netns exec "${host}0" timeout 100 "$TERN_BIN/tern" run -n 2 \
	"$TERN_BIN/reach_ranks" "$folder/stop" >"$folder/out" 2>&1 </dev/null
grep -q 'the loopback interface is down' "$folder/out" ||
	fail "it was not said that loopback is down"
ip -n "${host}0" link set lo up

echo "a rank at an address of loopback is pointed out to those of other machines"
before=("$folder/odd")
begin TERN_NET=shm,udp TERN_UNREACHABLE=fail
said 'rank 0 on .* has the address 127\.0\.0\.1, which only its own machine reaches' ||
	fail "nobody was told"
said 'rank [01] failed: EHOSTUNREACH' || fail "no call returned an error"
ended 4
before=()

reset() { # the connections of the job's ranks
	for pid in $(pgrep -f "^$TERN_BIN/reach_ranks $folder/stop"); do
		ss -Htnp state established | grep "pid=$pid," | awk '{ print $3 }' | sed 's/.*://' |
			while read -r port; do ss -K "sport = :$port"; done
	done >"$folder/why" 2>&1
}
if [[ $("$TERN_BIN/tern" info) != *"ofi            usable"* ]] || ! command -v ss >/dev/null; then
	echo "    skipped: no libfabric or no ss to reset its connections with"
	exit $failed
fi
echo "a reset connection under libfabric is reported to both ends, and the call returns"
begin_here TERN_NET=ofi/tcp
reset
if said 'rank 0 failed: EHOSTUNREACH: rank 0 cannot reach rank 1 on .*: messages were lost'; then
	ended 4
else
	fail "no call returned an error"
fi

echo "and nothing that comes behind a lost message is handled"
ahead=500
for turn in 1 2 3; do
	begin_here TERN_NET=ofi/tcp
	reset
	said 'rank 0 failed: EHOSTUNREACH: rank 0 cannot reach rank 1 on .*: messages were lost' ||
		fail "turn $turn: no call returned an error"
	ended 4
	! grep -q 'is missing' "$folder/out" ||
		fail "turn $turn: a message was handled though one before it was lost"
done

echo "with retry on top of it nothing is lost, be it one request at a time or many"
for ahead in 1 500; do
	begin_here TERN_NET=ofi/tcp TERN_SERVICE=order,flow,retry
	reset
	sleep 0.5
	fine
	! grep -q 'is missing' "$folder/out" || fail "$ahead at a time: messages are missing"
done
exit $failed
