#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What `tern info` shows.
command=info
. tests/lib/frame.sh

sentence "it names every setting that the library reads"
run
check_status 0
for name in $(grep -oE '"TERN_[A-Z_]+"' src/base/setting.c | tr -d '"' | sort -u); do
	[[ $name == TERN_ ]] || check_out "^ +$name "
done
check_out 'TERN_SPIN +20000 +default'
count_out 0 'wrong:'

sentence "it names every network, limit and job size"
for word in self shm ranks words payload request handlers pool-blocks keep defer request-lines \
	reply-lines; do
	check_out "^  $word "
done
for ranks in 2 16 64 256; do
	check_out "^  $ranks +[0-9.]+ +[0-9.]+ +[0-9.]+ +[0-9.]+$"
done
for word in pair request-ring reply-ring spares pool large-block; do
	check_out "^  $word +[0-9.]+  "
done
for word in ops regions segments names when dims; do
	check_out "^  $word +[0-9]+  "
done
check_out '^  tern run +usable'
# Tests look for these words, and skip a network that they do not find.
for word in udp ofi; do
	check_out "^  $word            (not )?usable"
done
for word in PMIx PMI-1 "Slurm's PMI-1"; do
	check_out "^  $word +(usable: |not usable here: .*(install|build))"
done
check_out '^  heap +1024 MiB '
check_out '^  single-copy +(yes: |no, .*: .*(ptrace_scope|SYS_PTRACE|CONFIG_CROSS_MEMORY_ATTACH))'
check_out '^  membarrier '
check_out '^  futex_waitv '
[[ -s $err ]] && fail "it complains about nothing"

sentence "single copy that was switched off is not tried, and the heap is as large as it was set"
TERN_SINGLE_COPY=0 TERN_HEAP=64M run
check_status 0
check_out '^  single-copy +no, .*: TERN_SINGLE_COPY is 0'
check_out '^  heap +64 MiB '

sentence "a setting of the environment is shown as such"
TERN_SPIN=77 run
check_status 0
check_out 'TERN_SPIN +77 +environment'

sentence "a setting that is not a number is pointed out"
TERN_GRACE=soon run
check_status 0
check_out "wrong: TERN_GRACE is 'soon'"

sentence "so is one that is not among the words that it can be"
TERN_NET=foo TERN_FLOW=tokn TERN_SERVICE=order,zz TERN_PROTECT=yes TERN_FAULT=drop=9 \
	TERN_DELIVERY=foo \
	TERN_KEEPALIVE=x TERN_UDP_BIND=here TERN_STATS=9 run
check_status 0
count_out 9 'wrong:'
check_out "wrong: TERN_NET is 'foo'; .*ofi/PROVIDER/DOMAIN"
check_out "wrong: TERN_FLOW is 'tokn'; .*token"
check_out "wrong: TERN_SERVICE has 'zz'"
check_out "wrong: TERN_PROTECT is 'yes'; .*encrypt"
check_out "wrong: TERN_FAULT has 'drop=9'; drop is .*0 to 1"
check_out "wrong: TERN_DELIVERY is 'foo'"
check_out "wrong: TERN_KEEPALIVE is 'x'"
check_out "wrong: TERN_UDP_BIND is 'here'"
check_out "wrong: TERN_STATS is '9'; .*0, 1, or 2"
TERN_FAULT=dorp=0.1 run
check_out "wrong: TERN_FAULT has 'dorp=0.1'; there are drop, .*partition .*late.*seed"
TERN_SERVICE=order TERN_FLOW=token run
check_out "wrong: TERN_FLOW is 'token', but TERN_SERVICE has no flow"
TERN_FAULT=corrupt=0.1 TERN_PROTECT=none run
check_out "wrong: TERN_FAULT has corrupt, but .*TERN_PROTECT=auth"

sentence "and those that can be used are not"
for net in auto shm udp ofi shm,udp shm,ofi ofi/tcp shm,ofi/tcp/lo; do
	TERN_NET=$net TERN_FLOW=token TERN_SERVICE=order,flow TERN_PROTECT=encrypt \
		TERN_FAULT=drop=0.1,late=5,seed=0x7 \
		TERN_DELIVERY=thread TERN_UDP_BIND=127.0.0.1 TERN_STATS=2 run
	count_out 0 'wrong:'
done

sentence "a TERN_* variable that nothing reads gets one warning with the nearest name"
TERN_SPINN=1 run
check_status 0
[[ $(wc -l <"$err") == 1 ]] || fail "there are $(wc -l <"$err") lines on standard error"
check_err 'TERN_SPINN.*TERN_SPIN[^N]'
TERN_FOO=1 run --json
[[ $(wc -l <"$err") == 1 ]] || fail "there are $(wc -l <"$err") lines on standard error"
check_err 'TERN_FOO'

sentence "--json is one JSON object with everything in it"
run --json
check_status 0
"$check" version layout networks launchers limits memory mem waiting settings <"$out" >/dev/null \
	2>"$err" || fail "it is not"
TERN_SPIN=$'a"b\\c\nd' run --json
"$check" settings <"$out" >/dev/null 2>"$err" || fail "not with odd characters in a value"

sentence "--help helps, and what it does not know it refuses with a sentence"
run --help
check_status 0
check_out '^usage: tern info'
run --jsn
check_status 2
check_err "'--jsn'.*--json"
run extra
check_status 2

finish
