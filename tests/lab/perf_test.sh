#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What `tern perf` prints; never how fast it was.
command=perf
keys=(test size ranks value unit limit ratio spread better bar)
. tests/lib/frame.sh

sentence "--list names every test with its unit and sizes"
run --list
check_status 0
tests=(round-trip rate payload send-overhead handling-overhead two-receivers two-senders \
	payload-trip poll barrier)
bulk=(put get copy put-signal chunk chunk-trip put-start get-start add sum part \
	put-request put-reply block-get parts parts-get parts-list words-list)
upper=(ready-trip auto-trip typed chan-trip turn overlap no-overlap spawn-trip block stream \
	stream-group)
alone=(yield) # there is no limit to compare it with
team=(team-barrier team-allreduce team-broadcast team-broadcast-long team-allreduce-long)
gathered=(gathered)
# have more ranks than most machines
many=(all-to-all random fan-in fan-out flooding-trip flooding-trip-99 flooded-trip flooded-trip-99 \
	among-trip among-trip-99 multicast)
# left out of a build without libsodium
udp=(udp-trip udp-auth-trip udp-rate udp-bulk udp-claim)
# left out where the kernel does not copy between processes
kernel=(private-put private-get rendezvous)
for name in "${tests[@]}" "${bulk[@]}" "${upper[@]}" "${alone[@]}" "${many[@]}" \
	"${team[@]}" "${gathered[@]}" "${kernel[@]}" "${udp[@]}"; do
	check_out "^$name  .*, in [A-Za-z%/]+; [0-9,]+ [a-z]+ "
done
count_out \
	$((${#tests[@]} + ${#bulk[@]} + ${#upper[@]} + ${#alone[@]} + ${#many[@]} + \
	${#team[@]} + ${#gathered[@]} + ${#kernel[@]} + \
	${#udp[@]})) .

sentence "every test runs, and --json prints an array of records and nothing else"
run --json --repeat 1 --count 20 --test "$(IFS=, && echo "${tests[*]}")"
check_status 0
check_quiet
check_records 31
for name in "${tests[@]}"; do
	check_out "\"test\": \"$name\""
done
count_out 0 '"value": null'

sentence "so does every test of the memory layer"
run --json --repeat 1 --count 2 --test "$(IFS=, && echo "${bulk[*]}")"
check_status 0
check_quiet
check_records 74
for name in "${bulk[@]}"; do
	check_out "\"test\": \"$name\""
done
count_out 0 '"value": null'
count_out 0 '"limit": null'

sentence "so does every test of many ranks"
run --json --repeat 1 --count 20 --size 3,16 --test all-to-all,random,fan-in,fan-out,flooding-trip \
	--test flooding-trip-99,flooded-trip,flooded-trip-99,among-trip,among-trip-99
check_status 0
check_quiet
check_records 20
count_out 0 '"value": null'
count_out 0 '"limit": null'

sentence "so does every test of collectives"
run --json --repeat 1 --count 20 --test "$(IFS=, && echo "${team[*]}")"
check_status 0
check_quiet
check_records 15
count_out 0 '"value": null'
count_out 0 '"limit": null'

sentence "so do those of gathered messages"
run --json --repeat 1 --count 2000 --size 2,4 --test gathered
check_status 0
check_quiet
check_records 2
count_out 0 '"value": null'
count_out 0 '"limit": null'

sentence "so does every test of sends, typed messages, channels, what is handed over, and threads"
run --json --repeat 1 --count 20 --test "$(IFS=, && echo "${upper[*]}")"
check_status 0
check_quiet
check_records 23
for name in "${upper[@]}"; do
	check_out "\"test\": \"$name\""
done
count_out 0 '"value": null'
count_out 0 '"limit": null'

run --json --repeat 1 --count 20 --test multicast --size 3
check_status 0
check_records 1

if [[ $("$tern" info) == *"udp            usable"* ]]; then
	sentence "so does every test over UDP"
	run --json --repeat 1 --count 128 --test "$(IFS=, && echo "${udp[*]}")"
	check_status 0
	check_quiet
	check_records 8
	count_out 0 '"value": null'
	count_out 0 '"limit": null'
fi

sentence "what needs the kernel's copy between processes is left out without it, and it says why"
if [[ $("$tern" info --json) == *'"single-copy", "value": true'* ]]; then
	run --json --repeat 1 --count 2 --test "$(IFS=, && echo "${kernel[*]}")"
	check_status 0
	check_quiet
	check_records 14
	count_out 0 '"value": null'
fi
TERN_SINGLE_COPY=0 run --repeat 1 --count 2 --test private-put,add
check_status 0
check_out '^private-put +left out: TERN_SINGLE_COPY is 0'
count_out 1 '^add +8 bytes '

sentence "bytes are shown in KiB and MiB when they are many"
run --repeat 1 --count 1 --test put --size 4096,65536,1048576
count_out 1 '^put +4096 bytes .* at least 0.91$'
count_out 1 '^put +64 KiB .* at least 0.95$'
count_out 1 '^put +1 MiB .* at least 0.95$'

sentence "sizes, counts and repeats are honoured"
run --json --test round-trip,payload --size 3,4000 --count 7 --repeat 5
check_status 0
check_quiet
check_records 3
count_out 3 '"count": 7, "rounds": 5,'
count_out 1 '"test": "round-trip", "size": 3, "size_unit": "words"'
count_out 1 '"test": "payload", "size": 4000, "size_unit": "bytes"'

sentence "a size goes to every test that it fits"
run --json --size 256 --count 2 --repeat 1 --test round-trip,payload,put
check_status 0
check_records 2

sentence "figures stand beside their limit, and a bar is shown where there is one"
run --json --test round-trip --size 4 --count 100 --repeat 4
check_out \
	'"unit": "ns", "limit": [0-9.e+]+, "ratio": [0-9.e+-]+, "better": "lower", "bar": "at most 1.10"'
run --json --test yield --count 20 --repeat 1
check_out '"limit": null, "ratio": null, "better": "lower", "bar": null'

sentence "--quick is a table with a line for each figure, and says what the limits are"
run --quick --count 50 --repeat 3
check_status 0
check_quiet
check_out '^test +size +value +spread +limit +ratio +bar$'
for row in 'round-trip +4 words' 'rate +1 word' 'rate +4 words' 'payload +4096 bytes' \
	'barrier +8 ranks' 'put +4096 bytes' 'put +1 MiB'; do
	count_out 1 \
		"^$row +[0-9.]+ [A-Za-z/]+ .* +[0-9.]+ [A-Za-z/]+ +[0-9.]+  at (most|least) [0-9]"
done
count_out 10 '  limit: '
grep -q $'\033' "$out" && fail "there are terminal codes in a file"

sentence "--paper has every row of the thesis' tables 4-1, 4-7 and 4-8, and the cost of words"
run --paper --count 40 --repeat 3
check_status 0
check_quiet
check_out '^operation +table +ns +95 % interval +cycles +GB/s +nCUBE/2 +CM-5 +CM-5 MB/s$'
check_out '^send request, 4 words +4-1, 4-7 .* 13.1 us, 24 instr +1.5 us, 50.7 cyc +10.6$'
check_out '^handle xfer, 2 segments +4-7 .* 2.2 us, 71.1 cyc +7.40$'
check_out '^latency of a hop +4-1, 4-7( +-){4} +2.2 us +0.8 us, 8.0 cyc +-$'
count_out 3 '^fetch&add, .* 4-8 '
count_out 14 '^(send|handle) [0-6] words?  '

sentence "its phases are played between processes, for messages and for send&receive"
check_out '^send, to two ranks +4-1, 4-7 +[0-9.]+ .* 13.1 us +1.5 us, 50.7 cyc +10.6$'
check_out '^handle, from two ranks +4-7 +[0-9.]+ .* 1.6 us, 52.2 cyc +10.0$'
check_out '^send&receive, send +4-1 +[0-9.]+ .* 92 us +- +-$'
check_out '^send&receive, receive +4-1 +[0-9.]+ .* 102 us +- +-$'
check_out '^send&receive, round trip +4-1 +[0-9.]+ .* 328 us +- +-$'

sentence "alpha, beta, R-infinity, N-half and cycles per message stand beside the thesis' figures"
check_out '^alpha, start-up +us +[0-9.]+ +[0-9.]+ +28.0 +15.5$'
check_out '^beta, each byte +ns +[0-9.]+ +[0-9.]+ +450 +100$'
check_out '^R-infinity, 1 / beta +MB/s +[0-9.]+ +[0-9.]+ +2.20 +10.0$'
check_out '^N-half, alpha / beta +bytes +[0-9.]+ +[0-9.]+ +62.0 +155$'
check_out '^cycles per message +cycles +([0-9.]+|-) +- +700 +100$'

sentence "section 5 of FLASH has a table"
check_out '^operation +section +ns +95 % interval +cycles +GB/s +FLASH$'
check_out '^page, clean +5.2 +[0-9.]+ .* 11 us, 372 MB/s$'
check_out '^page, dirty +5.2 +[0-9.]+ .* 16.4 us, 249 MB/s$'
check_out '^Fetch-and-Op +5.3 +[0-9.]+ .* 2 us$'

sentence "it says what an interval is, which medians are independent, and what o leaves out"
check_out '^ns: the median over rounds. 95 % interval: between two'
check_out 'Tables are played one after another, independently'
check_out "^overheads are the processor's part alone"

sentence "its figures lie in their intervals, and --json has them all"
paper_keys=(paper operation tables value low high unit cycles mb_per_s ncube2_us \
	ncube2_instructions cm5_us cm5_cycles cm5_mb_per_s theirs_us theirs_mb_per_s)
run --paper --json --count 40 --repeat 5
check_status 0
check_quiet
[[ $("$check" "${paper_keys[@]}" <"$out" 2>>"$err") == 51 ]] || fail "there are not 51 records"
count_out 2 '"value": null'
sed -nE 's/.*"value": ([^,]*), "low": ([^,]*), "high": ([^,]*),.*/\2 \1 \3/p' "$out" |
	grep -v null |
	awk '!($1 <= $2 && $2 <= $3) { bad++ } END { exit bad || NR != 49 }' || fail "one does not"

sentence "--delivery has every way at every interval, and the regime that it is"
run --delivery --count 2 --repeat 1 --plot "$folder/delivery.svg"
check_status 0
check_quiet
check_out '^interval +delivery +slowdown +round trip +99 % +calls/msg +messages/s +regime$'
for way in 'poll, each 10 us' 'poll, never' 'thread' 'interrupt'; do
	count_out 8 \
		"^[^:]{10}$way +-?[0-9.]+ %( +[0-9.]+ [num]s){2} +(-|[0-9.]+) +[0-9]+ +(infrequent|moderate|frequent|)$"
done
[[ $(head -c 4 "$folder/delivery.svg") == "<svg" && $(tail -1 "$folder/delivery.svg") == "</svg>" \
	]] || fail "the picture is not whole"
[[ $(grep -c '<polyline' "$folder/delivery.svg") == 14 ]] ||
	fail "the picture has not ten lines and four in its key"

if [[ $("$TERN_BIN/tern" info) == *"udp            usable"* ]]; then
	sentence "--flow has every strategy under every load"
	run --flow --count 50 --repeat 1
	check_status 0
	check_quiet
	for strategy in credit return drop nack token permit reserve; do
		count_out 3 "^$strategy +(short|bulk|incast)( +[0-9.]+) +(M|GB)/s( +[0-9.]+){2}$"
	done
	run --flow --count 50 --repeat 1 --json
	check_status 0
	check_quiet
	[[ $("$check" strategy load rate unit packets again <"$out" 2>>"$err") == 21 ]] ||
		fail "there are not 21 records"
fi

sentence "rows of many ranks are drawn over the number of ranks"
run --test all-to-all,flooded-trip,flooded-trip-99 --size 3,4 --count 20 --repeat 1 \
	--plot "$folder/many.svg"
check_status 0
check_quiet
[[ $(head -c 4 "$folder/many.svg") == "<svg" && $(tail -1 "$folder/many.svg") == "</svg>" ]] ||
	fail "the picture is not whole"
[[ $(grep -c 'class="title"' "$folder/many.svg") == 3 ]] || fail "there are not three charts"
[[ $(grep -o '<circle' "$folder/many.svg" | wc -l) == 12 ]] ||
	fail "the picture has not a dot for each figure and each limit"

sentence "--plot draws any tests, with a chart for each and its limit dashed"
run --test round-trip,yield --count 20 --repeat 1 --plot "$folder/tests.svg"
check_status 0
[[ $(grep -c 'class="title"' "$folder/tests.svg") == 2 ]] || fail "there are not two charts"
[[ $(grep -o '<circle' "$folder/tests.svg" | wc -l) == 13 ]] ||
	fail "the picture has not six figures, their limits, and one without"

sentence "the records of --delivery are whole"
sweep_keys=(interval_us delivery poll_us slowdown latency_ns latency_p99_ns calls_per_message \
	messages_per_s
	regime ms rounds cores)
run --delivery --json --count 2 --repeat 1
check_status 0
check_quiet
[[ $("$check" "${sweep_keys[@]}" <"$out" 2>>"$err") == 32 ]] || fail "there are not 32 records"
for interval in 1000 300 100 30 10 3 1 0; do
	count_out 4 "\"interval_us\": $interval,"
done
count_out 0 '"(slowdown|latency_ns|latency_p99_ns|calls_per_message|messages_per_s)": null'

sentence "what it cannot do it refuses with one sentence and status 2"
refused "'--quik'.*--quick" --quik
refused "no such test.*did you mean rate" --test rte
refused "no such test" --test rate,
refused "whole number" --size four
refused "whole number" --size 1,,2
refused "round-trip takes 0 to 8 words" --test round-trip --size 9
refused "none of the tests takes that size" --test round-trip,rate --size 9
refused "whole number" --count 0
refused "whole number" --repeat 1001
refused "whole number" --repeat -1
refused "needs a value" --size
refused "is not an option" rate
refused "cannot stand beside it" --paper --test rate
refused "cannot stand beside it" --paper --size 4
refused "cannot stand beside it" --delivery --test rate
refused "cannot stand beside it" --delivery --paper
refused "cannot be used with anything else" --paper --plot x.svg

sentence "--help helps"
run --help
check_status 0
check_out '^usage: tern perf'

sentence "too little memory is an error with a sentence, not a crash"
TERN_MEMORY=8K run --test payload --size 64 --count 10 --repeat 1
check_status 1
check_err '^tern perf: .*memory'

sentence "it works inside a job, and with a warning for a variable that nothing reads"
TERN_SPINN=1 run --test round-trip --size 1 --count 10 --repeat 1
check_status 0
[[ $(wc -l <"$err") == 1 ]] || fail "there are $(wc -l <"$err") warnings"
timeout 300 "$tern" run -n 1 "$tern" perf --json --test rate,barrier --size 2 --count 10 --repeat 1 \
	>"$out" 2>"$err"
status=$?
check_status 0
check_records 2

finish
