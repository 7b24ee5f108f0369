#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: TIMEOUT 300 LOCK launch LABELS slow once
# Jobs over several hosts. The hosts are network namespaces with a switch between them: their ranks
# share no memory, and each has its own loopback, its own address, and a cable that can be pulled.
. tests/lib/launch_frame.sh
need ip iproute2
((EUID)) && skip "network namespaces can be made by root alone"
has_udp || skip "this build has no UDP"

tern=$bin/tern net=tern$$ hosts=(a b c)
in_host() { ip netns exec "$net$1" "${@:2}"; }
hosts_stop() {
	launch_clean
	for host in "${hosts[@]}" switch; do ip netns del "$net$host"; done 2>/dev/null
}
trap hosts_stop EXIT

hosts_start() {
	local host number=0
	ip netns add "${net}switch" && ip -n "${net}switch" link add bridge type bridge &&
		ip -n "${net}switch" link set bridge up || return 1
	for host in "${hosts[@]}"; do
		ip netns add "$net$host" && ip -n "$net$host" link set lo up &&
			ip -n "$net$host" link add cable type veth peer name "$host" netns \
			"${net}switch" &&
			ip -n "${net}switch" link set dev "$host" master bridge up &&
			ip -n "$net$host" addr add 10.77.0.$((++number))/24 dev cable &&
			ip -n "$net$host" link set cable up || return 1
	done
}
hosts_start 2>"$err" || skip "hosts cannot be made of network namespaces here: $(tail -n 1 "$err")"

# What stands for ssh: HOST COMMAND.
cat >"$folder/shell" <<END
#!/bin/sh
host=\$1; shift
exec ip netns exec $net\$host sh -c "\$*"
END
chmod +x "$folder/shell"
launcher=("$tern" run --hosts a,b,c --ssh "$folder/shell")

sentence "the examples do on three hosts what they do on one"
same_as_tern_run 4 "$bin/hello"
same_as_tern_run 5 "$bin/ring"

sentence "everybody hears everybody, over networks and shared memory, in one session after another"
launch 7 "$bin/launch_ranks" all 50
check_status 0
says 21 '^rank [0-6] of 7: all came$'
TERN_NET=udp launch 4 "$bin/launch_ranks" all 50
check_status 0
says 12 '^rank [0-3] of 4: all came$'

if [[ $("$tern" info) == *"ofi            usable"* ]]; then
	TERN_NET=shm,ofi/tcp launch 4 "$bin/launch_ranks" all 50
	check_status 0
	says 12 '^rank [0-3] of 4: all came$'
else
	echo "    skipped: libfabric is not usable here"
fi

sentence "memory, channels, what is handed over and threads do so, too"
for example in transpose pipeline halo; do
	launch 4 "$bin/$example"
	check_status 0
	grep -q ' [1-9][0-9]* wrong' "$out" && fail "$example: something is wrong"
	grep -q ' 0 wrong' "$out" || fail "$example says nothing"
done
launch 4 "$bin/quicksort"
check_status 0
says 1 '^200000 numbers, 0 wrong$'
launch 4 "$bin/fetch_add"
check_status 0
says 4 ' has sum 10$'

sentence "memory is ordered among ranks of one host and of several as tern_mem(7) says"
for nets in shm,udp shm,ofi/tcp; do
	[[ $nets == *ofi* && $("$tern" info) != *"ofi            usable"* ]] && continue
	TERN_NET=$nets launch 4 "$bin/litmus_test" none_is_seen_by_the_ranks_of_a_launcher
	check_status 0
	says 4 '^ok   none_is_seen_by_the_ranks_of_a_launcher$'
done

sentence "collectives do what their reference does, with as many ranks on each host and with others"
plain=("${launcher[@]}")
for nets in shm,udp shm,ofi/tcp; do
	[[ $nets == *ofi* && $("$tern" info) != *"ofi            usable"* ]] && continue
	for places in a:2,b:2,c:2 a:4,b:1,c:2; do
		launcher=("$tern" run --hosts $places --ssh "$folder/shell")
		ranks=$((${places:2:1} + ${places:6:1} + ${places:10:1}))
		TERN_NET=$nets launch $ranks "$bin/coll_test" \
			collectives_by_the_ranks_of_a_launcher
		check_status 0
		says $ranks '^ok   collectives_by_the_ranks_of_a_launcher$'
		TERN_NET=$nets launch $ranks "$bin/coll_bits_test" \
			members_have_the_same_bits_at_the_ranks_of_a_launcher
		check_status 0
		says $ranks '^ok   members_have_the_same_bits_at_the_ranks_of_a_launcher$'
		TERN_NET=$nets launch $ranks "$bin/coll_varied_test" \
			lengths_of_each_member_at_the_ranks_of_a_launcher
		check_status 0
		says $ranks '^ok   lengths_of_each_member_at_the_ranks_of_a_launcher$'
		TERN_NET=$nets launch $ranks "$bin/leave_test" \
			the_ranks_of_a_launcher_leave_when_their_part_is_done
		check_status 0
		says $ranks '^ok   the_ranks_of_a_launcher_leave_when_their_part_is_done$'
		TERN_NET=$nets launch $ranks --survive "$bin/survivors_test" \
			the_ranks_of_a_launcher_lose_one_and_go_on
		check_status 137
		says $((ranks - 1)) '^ok   the_ranks_of_a_launcher_lose_one_and_go_on$'
	done
done
launcher=("${plain[@]}")

sentence "a network that does not reach the other hosts is refused in words"
TERN_NET=shm launch 3 "$bin/hello"
((status)) || fail "the status is 0"
grep -q "TERN_NET is 'shm', which reaches the ranks of one machine, and the job has 3 machines" \
	"$err" || fail "nothing says so"

sentence "if one host lacks a fabric that others have, none uses it"
cat >"$folder/fabric" <<END
#!/bin/sh
[ "\$1" = b ] && exec "$folder/shell" "\$@"
host=\$1; shift
exec ip netns exec $net\$host unshare --mount \\
	sh -c "mount -t tmpfs none /sys/class && mkdir -p /sys/class/infiniband/fake0 && \$*"
END
chmod +x "$folder/fabric"
if "$folder/fabric" a true 2>"$err"; then
	plain=("${launcher[@]}")
	launcher=("$tern" run --hosts a,b,c --ssh "$folder/fabric")
	launch 5 "$bin/launch_ranks" all 20
	check_status 0
	says 15 '^rank [0-4] of 5: all came$'
	launcher=("${plain[@]}")
else
	echo "    skipped: $(head -n 1 "$err")"
fi

sentence "a rank that chose another network than the others is named, on one machine, too"
"$tern" run -n 3 sh -c "[ \$TERN_RANK = 1 ] && export TERN_NET=udp; exec $bin/launch_ranks all 20" \
	>"$out" 2>"$err"
grep -q 'rank [02] on .* has the network shm, and this rank udp,' "$err" || fail "nobody says so"

sentence "a rank that dies is named on every host, and the others go on"
for victim in 0 3 5; do
	launch 6 --survive "$bin/fail_ranks" survive $victim
	check_status 137
	says 5 "^[0-5] wait: dead: rank $victim is dead: killed by signal 9"
	says 5 "^[0-5] request: dead: rank $victim is dead"
	says 10 "^[0-5] barrier: dead: rank $victim is dead"
	says 5 '^[0-5] others: fine'
done

sentence "so is one that dies before it calls tern_open()"
cat >"$folder/early" <<'END'
#!/bin/sh
[ "$TERN_RANK" = 3 ] && kill -9 $$
exec "$@"
END
chmod +x "$folder/early"
launch 6 --survive "$folder/early" "$bin/fail_ranks" lose
says 5 '^[0-5] wait: dead: rank 3 is dead: killed by signal 9'

start() { # ARGUMENTS: starts, with $front its process
	: >"$out"
	LAUNCH_TEST_MARK=$mark "${launcher[@]}" "$@" >"$out" 2>"$err" </dev/null &
	front=$!
}
in_pids() { ip netns pids "$net$1"; }
lost() { # HOW: what the others say of a host that is gone
	wait $front
	status=$?
	((status)) || fail "a host was $1 and the status is 0"
	says 4 "wait: dead: rank [45] is "
	check_nothing_left
}
ready() { [[ $(grep -c ready "$out") == "$1" ]]; }

sentence "a host that is lost is noticed, at once if its connection ends, and its ranks are named"
start -n 6 --survive "$bin/fail_ranks" lose
until_true ready 6 || fail "it does not begin"
kill -9 $(in_pids c)
lost killed

sentence "and within the time of keep-alive if it only falls silent"
export TERN_KEEPALIVE=5
start -n 6 --survive "$bin/fail_ranks" lose
until_true ready 6 || fail "it does not begin"
stopped=$(in_pids c)
kill -STOP $stopped
wait $front
kill -9 $stopped 2>/dev/null
lost stopped
grep -q 'nothing was heard of host .* for 5 s' "$err" || fail "nobody says that it was silent"
unset TERN_KEEPALIVE

sentence "ranks of a host whose loopback is down are told of all the same"
ip -n "${net}b" link set lo down
launch 4 "$bin/launch_ranks" all 5
ip -n "${net}b" link set lo up
check_status 0
says 12 '^rank [0-3] of 4: all came$'

sentence "a network that lets nothing through is told of"
export TERN_KEEPALIVE=1
ip -n "${net}switch" link set dev b nomaster
start -n 3 "$bin/launch_ranks" all 5
until_true grep -qE 'rank [012] has had no answer from rank [012] on .* for 1 s' "$err" ||
	fail "nobody says so"
ip -n "${net}switch" link set dev b master bridge
wait $front
status=$?
check_status 0
says 9 '^rank [0-2] of 3: all came$'
unset TERN_KEEPALIVE

sentence "a cable that is pulled and put back delays messages and loses none"
start -n 6 "$bin/launch_ranks" all 4000
sleep 0.5
for round in 1 2; do
	ip -n "${net}b" link set cable down
	sleep 0.7
	ip -n "${net}b" link set cable up
	sleep 0.3
done
wait $front
status=$?
check_status 0
says 18 '^rank [0-5] of 6: all came$'

sentence "links that lose, double and reorder packets change nothing"
if in_host a tc qdisc add dev cable root netem loss 5% reorder 10% delay 1ms duplicate 2% \
	2>"$err"; then
	launch 6 "$bin/launch_ranks" all 500
	check_status 0
	says 18 '^rank [0-5] of 6: all came$'
else
	echo "    skipped: $(head -n 1 "$err") (tc netem)"
fi

check_nothing_left
finish
