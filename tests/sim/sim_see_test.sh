#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: TIMEOUT 180
# Seeing a simulated run: the table of the machine's parts, the heat map, the bottleneck, traces in
# virtual time; patterns that are played without a program.
command=sim patience=60
. tests/lib/frame.sh
ranks=$TERN_BIN/sim_ranks
bare=(--set network=logp --set latency=1us --set gap=0 --set gap_byte=1ns --set poll=1ps
	--set send_request=10ns --set send_reply=20ns --set receive=300ns --set header=0)

column() { # PART NODE COLUMN, of the table
	awk -F, -v part="$1" -v node="$2" -v c="$3" '$1 == part && $2 == node { print $c }' "$folder/t"
}

sentence "the table says how long each part was busy"
run -n 2 "${bare[@]}" --csv "$folder/t" "$ranks" trip
check_status 0
[[ $(<"$out") == 2646 ]] || fail "the program's output is $(<"$out")"
sent=$(column send 0 7)
[[ $(column receive 1 7) == "$(column out 1 7 || true)$(column inbox 1 7)" ]] ||
	fail "node 1 has received another number than came to its inbox"
[[ $(column send 0 4) == "$(awk -v n="$sent" 'BEGIN { printf "%.6f", n * 0.01 }')" ]] ||
	fail "$sent requests of 10 ns took $(column send 0 4) us"

sentence "the table of a program is its user's alone, and is written through no link"
[[ $(stat -c %a "$folder/t") == 600 ]] || fail "its mode is $(stat -c %a "$folder/t")"
echo kept >"$folder/kept"
ln -s "$folder/kept" "$folder/link"
run -n 2 "${bare[@]}" --csv "$folder/link" "$ranks" trip
check_status 1
check_err 'figures, .*/link: it is a symbolic link; remove it$'
[[ $(<"$folder/kept") == kept ]] || fail "the file behind the link was written"

for way in --csv --heat; do
	run -n 16 --pattern random --set network=mesh $way "$folder/link"
	check_status 1
	check_err '/link: it is a symbolic link; remove it$'
	run -n 16 --pattern random --set network=mesh $way "$folder/new$way"
	[[ $(stat -c %a "$folder/new$way") == 600 ]] || fail "others may read the file of $way"
done
[[ $(<"$folder/kept") == kept ]] || fail "the file behind the link was written"

sentence "the table of a pattern is that of the packets that it has"
run -n 64 --pattern alltoall --bytes 100 "${bare[@]}" --csv "$folder/t"
check_status 0
check_out '^alltoall, 64 nodes of cluster .logp.: .* us, 4032 packets'
for node in 0 63; do
	[[ $(column send $node 7) == 63 && $(column inbox $node 7) == 63 ]] ||
		fail "node $node has sent $(column send $node 7)"
	[[ $(column in $node 4) == 6.300000 ]] || fail "its channel was busy for $(column in $node 4)"
done

sentence "a mesh has a line for each link, and all flits are carried"
run -n 64 --pattern random --rounds 20 --set network=mesh --csv "$folder/t" \
	--heat "$folder/heat.svg"
check_status 0
[[ $(grep -c ^link, "$folder/t") == 224 ]] || fail "$(grep -c ^link, "$folder/t") links of 224"
awk -F, '$1 == "in" { i += $4 } $1 == "out" { o += $4 }
	END { exit !(i > 0 && i - o < 1e-6 && o - i < 1e-6) }' "$folder/t" ||
	fail "what went in has not come out"
head -c 4 "$folder/heat.svg" | grep -q '<svg' || fail "the heat map is no picture"
grep -q 'link from 0 to 1: busy' "$folder/heat.svg" || fail "the heat map has no link"
tail -1 "$folder/heat.svg" | grep -q '</svg>' || fail "the heat map does not end"

sentence "the heat map numbers rows and columns, of many nodes as many as do not touch"
for head in 0 8 56 +0 +7; do
	grep -qF ">$head</text>" "$folder/heat.svg" || fail "there is no head $head"
done
run -n 4096 --pattern halo --heat "$folder/large.svg"
check_status 0
for head in 0 64 4032 +0 +60; do
	grep -qF ">$head</text>" "$folder/large.svg" || fail "there is no head $head"
done

sentence "the colours of the heat map are even: each step of load is as much lighter"
awk '/<title>[0-9]+ %<\/title>/ && match($0, /#[0-9a-f]+/) {
		light = 0
		for (k = 0; k < 3; k++) {
			c = hex(substr($0, RSTART + 1 + 2 * k, 2)) / 255
			c = c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ^ 2.4
			light += c * (k == 0 ? 0.2126 : k == 1 ? 0.7152 : 0.0722)
		}
		light = 116 * light ^ (1 / 3) - 16 # as it is perceived, 0 to 100
		if (n++ && (light - before < 6 || light - before > 9.5))
			exit 1
		before = light
	}
	function digit(text, i) { return index("0123456789abcdef", substr(text, i, 1)) - 1 }
	function hex(text) { return 16 * digit(text, 1) + digit(text, 2) }
	END { exit n != 11 }' "$folder/heat.svg" || fail "they are not"

sentence "the bottleneck is named: processor, controller, injection, ejection, link, latency"
explain() { # WORDS OPTIONS
	run --explain "${@:2}"
	check_status 0
	check_out "^bottleneck: $1"
}
explain 'processor, node [0-9]+, which is busy for [0-9.]+ %' -n 16 --pattern alltoall
explain 'injection, node' -n 16 --pattern alltoall --set network=logp --bytes 16384
explain 'ejection, node 0' -n 16 --set network=crossbar --set gap=1us "$ranks" fan
explain 'controller .magic., node 0, ' -n 16 --profile flash --set interrupt=0 "$ranks" fan
explain 'link, node [0-9]+ to node' -n 64 --pattern random --rounds 20 --set network=torus \
	--set gap_byte=5ns
explain 'latency. No part is busy half' -n 64 --pattern allreduce --set latency=50us
explain 'latency' -n 2 --set latency=50us "$ranks" trip

sentence "a run has the same table each time"
run -n 8 --set network=mesh --csv "$folder/first" "$ranks" traffic 1
run -n 8 --set network=mesh --csv "$folder/second" "$ranks" traffic 1
# Events and switches have those of the start, which ranks come to in real time.
sed -i 's/ events=[0-9]*//; s/ switches=.*//' "$folder/first" "$folder/second"
cmp -s "$folder/first" "$folder/second" || fail "the tables differ"
run -n 100 --pattern random --rounds 5 --csv "$folder/first"
run -n 100 --pattern random --rounds 5 --csv "$folder/second"
cmp -s "$folder/first" "$folder/second" || fail "the tables of a pattern differ"

sentence "a trace has virtual times, and tern trace reads it"
run -n 4 "${bare[@]}" --trace "$folder/trace" "$ranks" trips 3
check_status 0
"$tern" trace "$folder"/trace.* >"$out" 2>"$err" || fail "tern trace fails: $(<"$err")"
check_out '^24 messages: 24 from send to handler'
check_out ' 0.020 us  handler 0 .on_ask.'
"$tern" trace "$folder"/trace.* | head -1 >"$folder/first"
run -n 4 "${bare[@]}" --trace "$folder/trace" "$ranks" trips 3
"$tern" trace "$folder"/trace.* | head -1 | cmp -s - "$folder/first" ||
	fail "the second trace has another length"

sentence "TERN_STATS counts virtual time: a handler that replies takes what a reply does"
TERN_STATS=1 run -n 2 "${bare[@]}" "$ranks" trips 100
check_status 0
check_err '^tern: +user 0 .on_ask. +100 +800 +[0-9]+ +[0-9]+ +20$'
check_err '^tern: +user 1 .on_answer. +100 +800 +[0-9]+ +0 +0$'

sentence "tern why explains a simulated job"
"$tern" sim -n 2 "$ranks" trips 100000000 >/dev/null 2>&1 &
job=$!
for ((i = 0; i < 240; i++)); do
	"$tern" why $job >"$out" 2>"$err" && grep -qE '^  rank [01]' "$out" && break
	kill -0 $job 2>/dev/null || break
	sleep 0.25
done
check_out "^job of [0-9]+: 2 ranks"
check_out '^  rank [01] .*(waits?|waited|comput|handle)'
kill $job 2>/dev/null
wait $job 2>/dev/null

sentence "patterns go past the ranks that can be run"
run -n 20000 --pattern allreduce --explain
check_status 0
check_out '^20000 nodes of cluster'
run -n 2000 --pattern halo --rounds 3 --speed
check_out '^[0-9.]* million events in .* million a second'
run -n 4 --speed "$ranks" trips 100
check_out '^4 ranks: [89][0-9][0-9] packets handled, [01][.][0-9]* switches each, in .* a second'
run -n 64 --pattern allreduce "${bare[@]}" --bytes 0
check_out ': 7.860 us, 384 packets' # 6 doublings of 1.31 us
run -n 100 --pattern allreduce "${bare[@]}" --bytes 0
# 36 nodes bring their part and get the result; those who help them handle two packets at first.
check_out ': 10.780 us, 456 packets'

sentence "a network that tolerates faults loses nothing, and only takes longer"
run -n 64 --pattern halo --rounds 5 --set drop=50000 --set tolerant=1
check_out ', 1280 packets$'
run -n 64 --pattern halo --rounds 5 --set drop=50000
check_not_out ', 1280 packets$'
time_of() { # OPTIONS: of 20 round trips, in whole us
	run -n 2 --profile cm5-cr --csv "$folder/t" "$@" "$ranks" trip
	check_status 0
	sed -n 's/.*time_us=\([0-9]*\).*/\1/p' "$folder/t"
}
calm=$(time_of) tolerant=$(time_of --set drop=100000)
bridged=$(time_of --set drop=100000 --set tolerant=0)
((calm < tolerant && tolerant < bridged)) ||
	fail "without faults $calm us, by the network $tolerant, by Tern $bridged"
run -n 16 --set room=1 "$ranks" fan
check_status 0
run -n 8 --set order=0 "$ranks" traffic 1
check_status 0
refused 'tolerant = 0' -n 4 --set network=mesh --set tolerant=1 --pattern halo

sentence "a sweep gives a row for each value, as a table, JSON and a picture"
run -n 64 --pattern random --rounds 5 --set network=mesh --sweep channel_flits=1,4,16 \
	--sweep channels=1,2 --plot "$folder/plot.svg"
check_status 0
count_out 6 '^ *(1|4|16) .* (processor|link|injection|ejection|latency)$'
[[ $(grep -c '<polyline' "$folder/plot.svg") == 4 ]] || fail "the picture has not two lines"
keys=(n nodes time_us speed_up packets events busiest bottleneck)
run --sweep n=1,2,4 --json "$ranks" traffic 1
check_status 0
check_records 3
run --sweep n=2,4,8 --plot "$folder/plot.svg" "$ranks" traffic 1
check_status 0
# the line itself, from 1 upward: twice the nodes, twice the speed
awk -F'[ ,"]' '/<polyline class="ideal"/ {
	for (i = 1; $i != "points="; i++) ;
	first = $(i + 2) - $(i + 4)
	second = $(i + 4) - $(i + 6)
	good += first > 20 && first - second < 0.2 && second - first < 0.2
} END { exit good != 1 }' "$folder/plot.svg" ||
	fail "the picture of the speed-up has not the ideal line"
grep -q '>ideal</text>' "$folder/plot.svg" || fail "it does not say which line is the ideal one"
run -n 4 --sweep latency=1us,2us "${bare[@]}" "$ranks" trip
check_out '^ +1us '
check_not_out '^[0-9]+$' # what the program prints

sentence "the commands of the tutorial work, and have the bottlenecks that it names"
while read -r line; do
	words=(${line%% | *})
	words=("${words[@]/.\/heat/$TERN_BIN/heat}")
	run "${words[@]/heat.svg/$folder/heat.svg}"
	check_status 0
	[[ $line != *=5us*tail* ]] || check_out '^bottleneck: latency'
	[[ $line != *16\ --explain* ]] || check_out '^bottleneck: processor, node .* compute for 7. %'
done < <(sed -n 's/^\$ tern sim //p' docs/sim-tutorial.md)
[[ -s $folder/heat.svg ]] || fail "the tutorial does not end with a picture"

sentence "a mistake is refused in one sentence"
refused 'say KEY=VALUE,VALUE' -n 2 --pattern halo --sweep latency
refused "no key 'speed'" -n 2 --pattern halo --sweep speed=1,2
refused '--csv, --heat, --explain, --trace and --speed are of one run' -n 2 --pattern halo --sweep gap=0 \
	--explain
refused 'a program runs on 1 to 1024 nodes' -n 2000 "$ranks"
refused 'there is no pattern .all.; it can be alltoall, allreduce, halo or random' \
	-n 4 --pattern all
refused 'a pattern needs 2 nodes or more' -n 1 --pattern random
refused 'a pattern needs no program' -n 4 --pattern halo "$ranks"
refused '--trace is of programs' -n 4 --pattern halo --trace x
refused '--plot is of a --sweep' -n 4 --pattern halo --plot x
refused 'a picture shows 4096 nodes at most' -n 5000 --pattern halo --heat "$folder/x"
finish
