#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: LOCK launch LABELS once
# tern-machines makes machines of network namespaces, for root and for others, and leaves nothing
# behind.
set -uo pipefail

machines=$PWD/scripts/tern-machines tern=$TERN_BIN/tern
folder=$(mktemp -d)
out=$folder/out
failed=0 status=0
mark=machines-test-$$-$RANDOM
marked() { grep -lzs "^MACHINES_TEST_MARK=$mark\$" /proc/[0-9]*/environ | grep -oE '[0-9]+'; }
trap 'kill -9 $(marked) 2>/dev/null; rm -rf "$folder"' EXIT
fail() {
	echo "    failed: $1"
	sed 's/^/    it said: /' "$out" | head -8
	failed=$((failed + 1))
}
run() {
	MACHINES_TEST_MARK=$mark timeout -k 5 100 "$@" >"$out" 2>&1 </dev/null
	status=$?
}
check_status() { [[ $status == "$1" ]] || fail "the status is $status, not $1"; }
# COUNT PATTERN
says() { [[ $(grep -cE -- "$2" "$out") == "$1" ]] || fail "not $1 lines match: $2"; }
nothing_left() {
	local try
	for try in {1..1500}; do
		[[ $(marked) ]] || return 0
		sleep 0.02
	done
	fail "these are left: $(marked)"
}

[[ $("$tern" info) == *"udp            usable"* ]] || {
	echo "skipped: this build has no UDP"
	exit 77
}
run "$machines" 1 true
((status == 0)) || { echo "skipped: $(head -1 "$out")"; exit 77; }

echo "ranks on two machines answer each other, over a network"
run "$machines" 2 "$tern" run --hosts m1,m2 -n 4 "$TERN_BIN/hello"
check_status 0
says 4 '^rank [0-3]: rank [0-3] says 42$'
TERN_NET=shm run "$machines" 2 "$tern" run --hosts m1,m2 -n 4 "$TERN_BIN/hello"
grep -q "TERN_NET is 'shm', which reaches the ranks of one machine, and the job has 2 machines" \
	"$out" || fail "they share memory"
nothing_left

echo "each machine has an address of its own, and reaches the others"
run "$machines" 3 "$tern" run --hosts m3:1,m1:1 sh \
	-c 'ip -brief address show eth0; ip route get 10.77.0.2'
check_status 0
says 1 '^eth0.* 10\.77\.0\.3/24'
says 1 '^eth0.* 10\.77\.0\.1/24'
says 2 '^10\.77\.0\.2 dev eth0'

echo "it returns what its command returns, and says what is wrong with its words"
run "$machines" 2 sh -c 'exit 7'
check_status 7
run "$machines" 2 "$tern" run --hosts m1,m3 -n 2 true
check_status 255
says 1 '^tern-machines: there is no machine m3; they are called m1 to m2$'
for words in '' 2 '0 true' '201 true' 'two true'; do
	run "$machines" $words
	check_status 2
done
run "$machines" --help
check_status 0

echo "nothing is left when it is killed"
MACHINES_TEST_MARK=$mark "$machines" 2 sh -c 'echo ready; exec sleep 1000' >"$out" 2>&1 &
front=$!
for try in {1..1500}; do
	grep -q ready "$out" && break
	sleep 0.02
done
kill -9 $front
wait $front 2>/dev/null
nothing_left

if ((EUID == 0)); then
	echo "who is not root can do the same"
	cp "$tern" "$TERN_BIN/hello" "$TERN_BIN"/../lib/libtern.so.0* "$machines" \
		"$TERN_BIN/../libexec/tern-link" "$folder"
	chmod -R a+rX "$folder"
	cd "$folder" || exit 1
	other=(setpriv --reuid 65534 --regid 65534 --clear-groups env LD_LIBRARY_PATH="$folder")
	if run "${other[@]}" unshare -rn true && [[ $status == 0 ]]; then
		run "${other[@]}" ./tern-machines 2 ./tern run --hosts m1,m2 -n 4 ./hello
		check_status 0
		says 4 '^rank [0-3]: rank [0-3] says 42$'
		nothing_left
	else
		echo "    not checked: $(head -1 "$out")"
	fi
fi

((failed == 0)) || echo "$failed failed"
exit $((failed > 0))
