# SPDX-License-Identifier: BSD-3-Clause
# Sourced by the tests of crossings: which networks there are, and many programs at a time.
set -uo pipefail
export CROSSINGS_BIN=$TERN_BIN
[[ -x $TERN_BIN/crossings ]] || {
	echo "skipped: this build has no UDP, and so no simulated machine"
	exit 77
}

info=$("$TERN_BIN/tern" info)
one_machine=(shm) two_machines=() profiles=()
[[ $info != *"udp            usable"* ]] ||
	one_machine+=(udp faults) two_machines+=(machines machines-udp machines-faults)
[[ $info != *"ofi            usable"* ]] || one_machine+=(ofi) two_machines+=(machines-ofi)
scripts/tern-machines 2 true 2>/dev/null || two_machines=()
while read -r name _; do
	profiles+=("sim:$name")
	[[ $name != scmp* ]] || profiles+=("queues:$name")
done < <("$TERN_BIN/tern" sim --profiles 2>/dev/null)
echo "networks: ${one_machine[*]} ${two_machines[*]} ${profiles[*]}"

# Lines NETWORK SEED OPTIONS..., on standard input. All are played, also after a failure.
play_all() {
	xargs -P "${JOBS:-$(nproc)}" -L 1 bash tests/seeds/crossings/play.sh
}
# FIRST COUNT NETWORK...: so many seeds on each network, none of them on two.
seeds() {
	local network seed=$1
	for network in "${@:3}"; do
		for ((i = 0; i < $2; i++)); do
			echo "$network $((seed++))"
		done
	done
}

# Calls of a team of four, by number: tests/seeds/crossings/program.h has them in this order.
calls=25
call_options() { # CALL VICTIM
	echo "ending=2 call=$1 lost=2 victim=$2"
}
# How many events a rank has in a call: a line CALL VICTIM EVENTS for each.
events() { # SEED
	local call victim
	for ((call = 0; call < calls; call++)); do
		for victim in 0 1 2 3; do
			echo "$call $victim $(RANKS=4 VERBOSE=1 bash tests/seeds/crossings/play.sh \
				sim:cluster "$1" $(call_options $call $victim) after=0 |
				sed -n 's/.*takes \([0-9]*\) events.*/\1/p')"
		done
	done
}
# SEED EVERY FIRST: a rank dies at each event of each call, or at every n-th of them.
deaths() {
	local call victim most at=0
	while read -r call victim most; do
		[[ $most ]] || echo "sim:cluster $1 $(call_options "$call" "$victim") after=0"
		for ((event = 1; event <= ${most:-0}; event++)); do
			((at++ % $2 == $3)) || continue
			echo "sim:cluster $1 $(call_options "$call" "$victim") after=$event"
		done
	done < <(events "$1")
}
# SEED COUNT: two ranks die, at as many pairs of events.
pairs() {
	local lines call victim most second
	mapfile -t lines < <(events "$1")
	RANDOM=$1
	for ((i = 0; i < $2; i++)); do
		read -r call victim most <<<"${lines[RANDOM % ${#lines[@]}]}"
		second=$(((victim + 1 + RANDOM % 3) % 4))
		read -r _ _ other <<<"${lines[call * 4 + second]}"
		echo "sim:cluster $1 $(call_options "$call" "$victim") second=$second" \
			"after=$((1 + RANDOM % (${most:-1} + 1)))" \
			"after2=$((1 + RANDOM % (${other:-1} + 1)))"
	done
}
