#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# What `tern logp` prints, writes and draws; never how fast it was.
command=logp
keys=(ranks cores words rounds disturbed parameters phases predictions)
. tests/lib/frame.sh

short() { run --count 40 --repeat 3 "$@"; } # ARGUMENTS: nobody looks at the figures
check_object() {
	"$check" "${keys[@]}" <"$out" >/dev/null 2>>"$err" ||
		fail "this is not the object: $(head -c 200 "$out")"
}
# KEY: those that begin with it, a line each
records() { grep -oE '\{"'"$1"'[^}]*\}' "$out"; }
field() { sed -nE 's/.*"'"$1"'": "?([^,"}]*).*/\1/p'; }         # KEY
count_records() { # HOW MANY PATTERN KEY
	local n
	n=$(records "$3" | grep -cE -- "$2")
	[[ $n == "$1" ]] || fail "$n records of $3 match $2, not $1"
}

sentence "--json is one object with every parameter of every size, and every prediction"
short --json
check_status 0
check_quiet
check_object
for name in trip o_s L o_r g; do
	for words in 0 1 2 3 4 5 6; do
		count_records 1 "\"$name\", \"size\": $words, \"size_unit\": \"words\"" parameter
	done
	for bytes in 64 128 256 512 1024 2048 4096 8192; do
		count_records 1 "\"$name\", \"size\": $bytes, \"size_unit\": \"bytes\"" parameter
	done
done
count_records 8 '"g", "size": [0-9]+, "size_unit": "messages"' parameter
count_records 1 '"L", "size": [0-9]+, "size_unit": "ranks"' parameter
count_records 1 '"G", "size": 1024, "size_unit": "bytes".*"ns/B"' parameter
for n in 1 2 4 8 16 32 64; do
	count_records 1 "\"burst\", \"size\": $n, " pattern
done
count_records 3 '"all-to-all", ' pattern
count_records 1 "\"ring\", \"size\": $(($(nproc) < 2 ? 2 : $(nproc)))," pattern
count_records 2 'payloads?", "size": 3000, "size_unit": "bytes"' pattern
count_records 0 '"(value|low|high|predicted|error_percent)": null' '(parameter|pattern)'
count_records 6 '"o_[sr]", "size": [0-9]+, "size_unit": "(words|bytes|send&receive)"' phase
count_records 2 '"(trip|g)", "size": 1024, "size_unit": "send&receive"' phase

sentence "every interval holds its median, and every error follows from what stands beside it"
records '(parameter|pattern)' >"$folder/records"
paste -d' ' <(field low <"$folder/records") <(field value <"$folder/records") \
	<(field high <"$folder/records") |
	awk 'NF != 3 || !($1 <= $2 && $2 <= $3) { bad++ } END { exit bad || NR < 90 }' ||
	fail "one does not"
records pattern >"$folder/records"
paste -d' ' <(field predicted <"$folder/records") <(field value <"$folder/records") \
	<(field error_percent <"$folder/records") |
	awk '{ d = 100 * ($1 / $2 - 1) - $3; most = 0.01 + ($3 < 0 ? -$3 : $3) / 1e4
		if (d > most || d < -most) bad++ } END { exit bad || NR != 13 }' ||
	fail "an error does not"

sentence "sizes, ranks and rounds are honoured; a size that is named twice counts once"
short --json --words 1,3,1 --bytes 100 --ranks 3 --repeat 7
check_status 0
check_object
check_out '"ranks": 3,'
check_out '"words": 1,'
check_out '"rounds": 7,'
count_records 5 '"size": [0-9]+, "size_unit": "bytes".*"ns"' parameter
count_records 10 '"size": [0-9]+, "size_unit": "words"' parameter
count_records 1 '"ring", "size": 3,' pattern

sentence "without two large payloads there is no G, and what needs it is not predicted"
count_records 1 '"G".*"value": null' parameter
count_records 1 '"16 payloads".*"predicted": null, "error_percent": null' pattern

sentence "the table has parameters with intervals, the thesis' machines, and predictions"
short --quick --repeat 9
check_status 0
check_quiet
number='[0-9.]+' interval='[0-9.-]+ \([0-9.-]+ [0-9.-]+\)'
count_out 1 "^4 words( +$interval){5}$"
count_out 3 "^(1024|4096|8192) bytes( +$interval){5}$"
count_out 1 "^G +$interval +ns a byte"
count_out 1 '^P +[0-9]+ +ranks'
count_out 1 '^machine +layer +message +L \(latency\) +o \(overhead\) +g \(gap\) +o, processor.s +P \(processors\)$'
count_out 1 '^nCUBE/2 +Active Messages +32 bytes +25 us +14 us +14 us +- +1024$'
count_out 1 '^nCUBE/2 +Active Messages +1 KiB +471 us +14 us +236 us +- +1024$'
count_out 1 '^nCUBE/2 +send&receive +1 KiB +471 us +80 us +236 us +- +1024$'
count_out 1 '^CM-5 +CMAM +16 bytes +6.0 us +1.6 us +4.0 us +- +1024$'
count_out 2 "^here +Tern +(32 bytes|1 KiB) +-?$number us( +$number us){3} +[0-9]+$"
count_out 1 "^here +send&receive +1 KiB +(-|$number us)( +$number us){2} +- +3$"
count_out 2 "^o_[sr], phase +$interval +ns: "
count_out 7 "^burst +[0-9]+ messages? +-?$number +$interval +[-+]$number %$"
count_out 3 "^all-to-all +[0-9]+ to each +-?$number +$interval +[-+]$number %$"
count_out 1 "^ring +[0-9]+ ranks +-?$number +$interval +[-+]$number %$"
grep -q $'\033' "$out" && fail "there are terminal codes in a file"

sentence "it says what an interval is, which medians are independent, and what o leaves out"
check_out '^in brackets: the 95 % interval of the median over rounds: '
check_out 'need not be the round trip that is shown'
check_out "^o: the mean of both sides, by the papers' phases between processes"
check_out 'part leaves out the$'

sentence "a profile is lines of keys and numbers"
short --json --profile "$folder/profile"
check_status 0
check_quiet
[[ $(grep -cvE '^(#.*|[A-Za-z_0-9.]+ =( [-+0-9.e]+){1,3})$' "$folder/profile") == 0 ]] ||
	fail "a line is something else"
for key in profile ranks words L G G.start burst.3 burst.96 words.0.L words.6.o_s bytes.64.trip \
	bytes.8192.g; do
	grep -q "^$key = " "$folder/profile" || fail "there is no $key"
done

sentence "a file that cannot be written is an error with its name"
short --quick --profile "$folder/no/profile"
check_status 1
check_err "^tern logp: writing $folder/no/profile: "

sentence "what it cannot do it refuses with one sentence and status 2"
refused "'--quik'.*--quick" --quik
refused "0 to 8" --words 9
refused "whole number" --words four
refused "whole number" --words 1,,2
refused "1 to 8192" --bytes 0
refused "1 to 8192" --bytes 8193
refused "at most 15 sizes" --bytes "$(seq -s, 18)"
refused "2 to 256" --ranks 1
refused "whole number" --count 0
refused "1 to 1000" --repeat 1001
refused "needs a value" --profile
refused "is not an option" 4

sentence "--help helps"
run --help
check_status 0
check_out '^usage: tern logp'

sentence "too little memory is an error with a sentence, not a crash"
# for the front of the job, and for the first message; which it is depends on the ranks
for memory in 8K 64K; do
	TERN_MEMORY=$memory short --quick
	check_status 1
	check_err '^tern logp: .*memory'
done

sentence "it works inside a job, and with a warning for a variable that nothing reads"
TERN_SPINN=1 short --quick
check_status 0
[[ $(wc -l <"$err") == 1 ]] || fail "there are $(wc -l <"$err") warnings"
timeout 300 "$tern" run -n 1 "$tern" logp --json --quick --count 40 --repeat 1 >"$out" 2>"$err"
status=$?
check_status 0
check_object

finish
