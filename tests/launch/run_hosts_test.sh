#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: TIMEOUT 200 LOCK launch
# What `tern run --hosts` promises; here each host is this machine, through a script that stands for
# ssh. hosts_test.sh has a real sshd.
. tests/launch/run_frame.sh

# What stands for ssh, where a start-up file of the shell speaks first: HOST COMMAND.
cat >"$folder/noisy" <<'END'
#!/bin/sh
echo "Welcome to $1"
shift
exec sh -c "$*"
END
chmod +x "$folder/noisy"

sentence "what a host writes before tern-link is named; nothing is left of one given up early"
for ((round = 0; round < 6; round++)); do
	run --hosts there,elsewhere --ssh "$folder/noisy" -n 2 sleep 1000
	check_status 255
	check_err \
		"^tern run: what host (there|elsewhere) wrote .*\\('Welcome to \\1'\\).* only at a terminal"
	grep -q 'killed by signal' "$err" && fail "a keeper was killed"
	check_nothing_left
done

sentence "a host that cannot be reached is named"
printf '#!/bin/sh\nexit 255\n' >"$folder/unable"
chmod +x "$folder/unable"
run --hosts nowhere --ssh "$folder/unable" -n 2 true
check_status 255
check_err "^tern run: host nowhere: '$folder/unable' ended with status 255 and tern-link did not answer"

elsewhere() { # HOSTS SHELL PATTERN: what is refused as a mistake
	run --hosts "$1" --ssh "$2" -n 2 true
	check_status 2
	check_err "$3"
}
sentence "hosts that are none, and no command to reach them with, are mistakes on the command line"
elsewhere a,,b "$folder/quiet" "'' is no host"
elsewhere 'a, b' "$folder/quiet" "' b' is no host"
elsewhere a,a "$folder/quiet" 'a is named twice'
elsewhere true '' '^tern run: --ssh: .*is empty'
elsewhere a:1,b:x "$folder/quiet" "'b:x' has no number of ranks behind its colon"
elsewhere a:4,b "$folder/quiet" 'a has a number of ranks and b has none'
elsewhere a:1 "$folder/quiet" '-n 2: the hosts have 1 places'
mistake 'how many ranks\? .* --hosts a:4,b:8' --hosts a,b --ssh "$folder/quiet" true

# What stands for ssh, and lets its ranks know where they are: HOST COMMAND.
cat >"$folder/named" <<'END'
#!/bin/sh
export WHERE=$1 ENVIRONMENT="$(env)"
shift
exec sh -c "$*"
END
chmod +x "$folder/named"

sentence "hosts with numbers get as many ranks, in order, until all have a place"
run --hosts a:1,b:3,c:2 --ssh "$folder/named" sh -c 'echo "$TERN_RANK of $TERN_SIZE at $WHERE"'
check_status 0
[[ $(sort "$out") == \
	$'0 of 6 at a\n1 of 6 at b\n2 of 6 at b\n3 of 6 at b\n4 of 6 at c\n5 of 6 at c' ]] ||
	fail "they are elsewhere: $(<"$out")"
run --hosts a:1,b:3,c:2 --ssh "$folder/named" -n 2 sh -c 'echo "$TERN_RANK of $TERN_SIZE at $WHERE"'
[[ $(sort "$out") == $'0 of 2 at a\n1 of 2 at b' ]] || fail "they are elsewhere: $(<"$out")"

sentence "a file of hosts becomes a list"
printf 'b:2\na:1\n' >"$folder/hosts"
run --hosts "$(paste -sd, "$folder/hosts")" --ssh "$folder/named" --tag sh -c 'echo "at $WHERE"'
check_status 0
[[ $(sort "$out") == $'[0] at b\n[1] at b\n[2] at a' ]] || fail "they are elsewhere: $(<"$out")"

sentence "--env sets variables on every host, and for the command that reaches it only Tern's"
HERE=here run --hosts a,b --ssh "$folder/named" -n 2 --env SAID='a = b' --env HERE \
	--env TERN_SPIN=77 \
	sh -c 'echo "$SAID, $HERE, $TERN_SPIN"; echo "$ENVIRONMENT" | grep -E "^(SAID|TERN_SPIN)="'
check_status 0
count_printed 'a = b, here, 77' 2 || fail "they have others: $(<"$out")"
count_printed 'TERN_SPIN=77' 2 || fail "tern-link does not see what Tern reads"
printed 'SAID=.*' && fail "the command that reaches a host has it, too"

sentence "what survivors return counts on other hosts, too"
for host in a b; do
	run --hosts a,b --ssh "$folder/named" -n 4 --survive=survivors sh \
		-c "[ \$WHERE = $host ] && kill -9 \$\$; exit 0"
	check_status 0
	run --hosts a,b --ssh "$folder/named" -n 4 --survive=survivors sh \
		-c "[ \$WHERE = $host ] && kill -9 \$\$; exit 4"
	check_status 4
	run --hosts a,b --ssh "$folder/named" -n 4 --survive=any sh \
		-c "[ \$WHERE = $host ] && exit 5; exit 0"
	check_status 0
	run --hosts a,b --ssh "$folder/named" -n 4 --survive sh \
		-c "[ \$WHERE = $host ] && kill -9 \$\$; exit 0"
	check_status 137
done
check_nothing_left

sentence "a command line that this host takes is taken on another one, too"
run --hosts a,b --ssh "$folder/quiet" -n 2 sh -c 'echo $#' $(seq 120000)
check_status 0
count_printed 119999 2 || fail "words are lost: $(head -c 100 "$out")"

sentence "a job that was suspended as a whole goes on, though it was silent for long"
TERN_KEEPALIVE=3 start --hosts a,b --ssh "$folder/quiet" -n 2 sh \
	-c "echo ready; until [ -e $folder/go ]; do sleep 0.1; done; echo fine"
until_true count_printed ready 2 || fail "it does not begin"
kill -STOP $(marked) 2>/dev/null
sleep 5
kill -CONT $(marked) 2>/dev/null
sleep 0.7
: >"$folder/go"
ended
check_status 0
count_printed fine 2 || fail "it did not go on"

sentence "tern-link without an order says so"
link() { timeout 300 "$TERN_BIN/../libexec/tern-link" >"$out" 2>"$err"; status=$?; }
link </dev/null
check_status 1
check_err '^tern-link: whoever started this has gone before'
link <<<'echo nonsense'
check_status 1
check_err '^tern-link: what comes in is no order'

[[ $failed == 0 ]] || echo "$failed checks failed (SEED=$seed)"
exit $((failed > 0))
