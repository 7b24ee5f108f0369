#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: TIMEOUT 300 LABELS perf
# What `tern cost` prints, and that it counts the same each time; never how much.
command=cost patience=500
keys=(operation what form words packets total alone weighted unattributed same source destination)
. tests/lib/frame.sh
[[ $("$TERN_BIN/tern" cost --list 2>&1) != *"was built without"* ]] || {
	"$TERN_BIN/tern" cost --list
	exit 77
}

number() { grep -oE "\"$2\": [0-9.]+" <<<"$1" | head -1 | grep -oE '[0-9.]+$'; } # TEXT KEY
sum() { # TEXT KEY...: of one object
	local all=0 key text=$1
	shift
	for key; do all=$((all + $(number "$text" "$key"))); done
	echo "$all"
}

sentence "--list names every operation"
run --list
check_status 0
check_quiet
operations=$(wc -l <"$out")
for name in request-2 request-4 put-8 finite-16-put-then finite-1024-send stream-16-by-4 \
	stream-1024-by-12; do
	count_out 1 "^$name  +[0-9]+ words, +[0-9]+ packets?, "
done

sentence "--json prints a record for each and nothing else; nothing is left unattributed"
run --json
check_status 0
check_quiet
check_records "$operations"
count_out "$operations" '"unattributed": 0, "same": true'
cp "$out" "$folder/first"

# the long ones are more of the same, and each was counted twice above
sentence "the same command counts the same"
short=$(run --list && cut -d' ' -f1 "$out" | grep -v 1024 | paste -sd,)
run --json --operation "$short"
records() { grep -oE '\{"operation".*\}' "$1" | grep -v '"operation": "[^"]*1024'; }
[[ $(records "$out" | wc -l) == $(records "$folder/first" | wc -l) ]] ||
	fail "there are not as many"
cmp -s <(records "$folder/first") <(records "$out") ||
	fail "$(diff <(records "$folder/first") <(records "$out") | head -5)"

sentence "features, steps and kinds each add up to each side's total, and the sides to the whole"
while read -r line; do
	[[ $line == *'"operation"'* ]] || continue
	name=$(grep -oE '"operation": "[^"]*' <<<"$line" | cut -d'"' -f4) whole=0
	for side in source destination; do
		part=$(grep -oE "\"$side\": \{[^}]*" <<<"$line") total=$(number "$part" total)
		[[ $(sum "$part" base buffer order fault flow protection statistics) == "$total" \
			]] || fail "$name: features, $side"
		[[ $(sum "$part" call setup write read status control) == "$total" ]] ||
			fail "$name: steps, $side"
		[[ $(sum "$part" register memory device) == "$total" ]] ||
			fail "$name: kinds, $side"
		whole=$((whole + total))
	done
	[[ $whole == $(number "$line" total) ]] || fail "$name: its sides are $whole"
done <"$folder/first"

sentence "the tables have the paper's figures and Tern's, and the picture is a picture"
run --plot "$folder/cost.svg"
check_status 0
check_quiet
for table in '1. A single packet' "2. The study's protocols" '3. What a better network' '4. Kinds' \
	'5. As a formula' '6. What is not base' '7. By interrupt'; do
	count_out 1 "^$table"
done
count_out 1 '^total +20 +27 +[0-9]+ +[0-9]+ +[0-9]+ +[0-9]+$'
for totals in '173 +224 +397' '216 +265 +481' '6221 +5516 +11737' '13824 +16141 +29965'; do
	count_out 2 "^total +$totals +[0-9]+ +[0-9]+ +[0-9]+( +[0-9]+)?$" # the protocol, and a put
done
count_out 2 "^of CMAM's +[0-9.]+$"           # finite
count_out 2 "^of CMAM's +[0-9.]+ +[0-9.]+$" # indefinite, acknowledged singly and in groups
for base in 181 149 10261 8717; do
	count_out 1 "^on a better network +$base$"
done
count_out 1 '^  total +128 +10 +35 +168 +24 +32$'
count_out 2 '^ +[48] +[0-9]+ +[0-9]+ % +[0-9]+ % +[0-9]+ % +[0-9]+ %$'
count_out 4 '^ +[0-9]+ +[0-9]+ +[0-9]+ % +[0-9]+ % +- +-$'

sentence "a send and its reception by interrupt have the thesis' categories, which add up"
for side in 'send 16 18' 'reception 35 43'; do
	read -r title all memory <<<"$side"
	awk -v title="$title" -v all="$all" -v memory="$memory" '
		$0 == title { on = 1; next }
		on && /^total / {
			for (i = 2; i <= 7; i++) bad += $i != sum[i]
			exit bad || $2 != all || $5 != memory || $3 <= $4
		}
		on && /[0-9]$/ { for (i = 2; i <= 7; i++) sum[i] += $(NF - 7 + i) }
		END { if (!on) exit 1 }' "$out" || fail "$title: the categories do not add up"
done

sentence "formulas agree with the counts beside them, exactly where they go through them"
count_out 3 '^  words, n: formula, count'
while read -r line; do
	checked=0
	while read -r formula count; do
		[[ $formula == "$count" ]] || ((100 * (formula - count) <= 13 * count &&
			100 * (count - formula) <= 13 * count && ++checked)) ||
			fail "$line: $formula for $count"
	done < <(grep -oE ': [0-9]+, [0-9]+' <<<"${line#*count}" | tr -d ':,')
	((checked <= 1)) || fail "$line: it differs $checked times"
done < <(grep -E '^  words, n: formula' "$out")
grep -q $'\033' "$out" && fail "there are terminal codes in a file"
[[ $(head -c 4 "$folder/cost.svg") == '<svg' && $(tail -1 "$folder/cost.svg") == '</svg>' ]] ||
	fail "it is not an SVG picture"
[[ $(grep -cE '>CMAM, (source|destination)</text>' "$folder/cost.svg") == 8 &&
	$(grep -cE '>Tern, (source|destination)</text>' "$folder/cost.svg") == 8 ]] ||
	fail "it has not 16 bars"
opened=$(grep -oE '<[a-z]+[ >]' "$folder/cost.svg" | wc -l)
closed=$(grep -oE '</[a-z]+>|/>' "$folder/cost.svg" | wc -l)
[[ $opened == "$closed" ]] || fail "$opened elements begin and $closed end"
if command -v xmllint >/dev/null; then
	xmllint --noout "$folder/cost.svg" 2>"$err" || fail "the picture is not well formed"
fi

sentence "--operation counts those that it names, and no others"
run --json --operation request-4,put-8
check_status 0
check_quiet
check_records 2
run --operation put-8,request-4
check_status 0
count_out 1 '^request-4 +[0-9]+ +16 '
count_out 1 '^put-8: tern_put, 8 bytes$'

sentence "--listing has each instruction with side, address, line, text, feature, step and kind"
run --operation request-4 --listing
check_status 0
check_quiet
rows=$(grep -cE \
	'^(source|destination) +[0-9a-f]{12}  [a-z/_]+\.[ch]:[0-9]+ +[a-z0-9]+ .* (register|memory|device)$' "$out")
own=$(grep -cE ' program +call +' "$out")
run --operation request-4 --json --listing
check_records 1
total=$(number "$(<"$out")" total) alone=$(number "$(<"$out")" alone)
[[ $((rows - own)) == "$alone" ]] ||
	fail "$rows are listed, $own of the program, and $alone counted"
[[ $(grep -oE '"instruction": ' "$out" | wc -l) == "$rows" ]] || fail "the records are not $rows"

sentence "--weights says what each kind costs"
run --json --operation request-4 --weights 1,1,1
[[ $(number "$(<"$out")" weighted) == "$total" ]] || fail "with equal weights it is not the count"
run --json --operation request-4 --weights 0,0,1
devices=0
for n in $(grep -oE '"device": [0-9]+' "$out" | grep -oE '[0-9]+'); do
	devices=$((devices + n))
done
[[ $(number "$(<"$out")" weighted) == "$devices" && $devices != 0 ]] ||
	fail "with one weight it is not $devices"
run --operation request-4 --weights 2,2,2 --plain
check_out "^request-4 .* $((2 * total))  tern_request"

sentence "what it cannot do it refuses with one sentence and status 2"
refused "'--lsit'.*--list" --lsit
refused "no such operation.*did you mean request-4" --operation reqest-4
refused "no such operation" --operation put-8,
refused "three numbers" --weights 1,1
refused "three numbers" --weights 1,1,5,6
refused "three numbers" --weights 1,1,-5
refused "three numbers" --weights one,1,5
refused "three numbers" --weights 1,nan,5
refused "needs a value" --plot
refused "is not an option.*--operation request-4" request-4
refused "lists the operations that --operation names" --listing
refused "use one of the two" --plot "$folder/x.svg" --operation put-8

TERN_NET=shm run --json --operation request-4
check_status 0
check_records 1

sentence "a network is refused: counts are those of shared memory"
TERN_NET=udp run --operation request-4
check_status 1
check_err '^tern cost: TERN_NET=udp: instructions are counted on shared memory alone; unset TERN_NET$'

sentence "a picture that cannot be written is an error with a sentence"
run --plot "$folder/none/x.svg"
check_status 1
check_err '^tern cost: --plot: writing .*: No such file or directory'

sentence "--help helps"
run --help
check_status 0
check_out '^usage: tern cost'

sentence "too little memory is an error with a sentence, not a crash"
TERN_MEMORY=8K run --operation finite-16-data
check_status 1
check_err '^tern cost: finite-16-data: .*memory'

finish
