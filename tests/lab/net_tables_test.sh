#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: TIMEOUT 400 LABELS slow
# The papers' tables over networks of packets: `tern logp` and `tern perf --paper` are whole there.
command=logp
. tests/lib/frame.sh
patience=90

number='-?[0-9.]+' interval='[0-9.-]+ \([0-9.-]+ [0-9.-]+\)'

for net in udp ofi/tcp; do
	[[ $("$tern" info) =~ (^|$'\n')' '*"${net%/*}"' '+usable ]] || continue
	export TERN_NET=$net

	sentence "tern logp has every table over $net"
	command=logp
	run --quick --count 60 --repeat 3
	check_status 0
	check_quiet
	count_out 1 "^4 words( +$interval){5}$"
	count_out 3 "^(1024|4096|8192) bytes( +$interval){5}$"
	count_out 2 "^o_[sr], phase +$interval +ns: "
	count_out 2 "^here +Tern +(32 bytes|1 KiB) +$number us( +$number us){3} +[0-9]+$"
	count_out 1 "^here +send&receive +1 KiB +(-|$number us)( +$number us){2} +- +3$"
	count_out 13 "^(burst|all-to-all|ring|payload|16 payloads) .* %$"

	sentence "tern perf --paper has every table over $net, and every figure"
	command=perf
	run --paper --json --count 60 --repeat 3
	check_status 0
	check_quiet
	for paper in thesis:34 phases:9 flash:8; do
		count_out "${paper#*:}" "\"paper\": \"${paper%:*}\""
	done
	count_out 2 '"value": null' # a hop, and FLASH's preparation
	run --paper --count 60 --repeat 3
	check_status 0
	count_out 5 '^(alpha|beta|R-infinity|N-half|cycles per message).* [0-9.]+ +[0-9.]+$'
done
unset TERN_NET

finish
