#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: TIMEOUT 180
# The examples do what they say, alone and as jobs of several sizes; the README shows them as they
# are.
set -uo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
out=$folder/out
failed=0
fail() {
	echo "    $1"
	sed 's/^/    it said: /' "$out" | head -12
	failed=$((failed + 1))
}
survive= # an option of tern run
run() { # EXAMPLE RANKS ARGUMENTS: 0 ranks is without the launcher
	local launcher=("$TERN_BIN/tern" run $survive -n "$2")
	(($2)) || launcher=()
	timeout 300 "${launcher[@]}" "$TERN_BIN/$1" "${@:3}" >"$out" 2>&1 ||
		fail "$1 on $2 ranks ended with status $?"
}
check() { # WHAT EXPECTED: the output, in any order of lines
	diff <(sort "$out") <(sort <<<"$2") >/dev/null || fail "$1"
}
ranks_of() { seq 0 $(($1 - 1)); }

for ranks in 0 1 2 4 16; do
	n=$((ranks ? ranks : 1))

	echo "hello on $ranks ranks: everybody is answered by the next"
	run hello $ranks
	check "not everybody was answered once" \
		"$(for r in $(ranks_of $n); do echo "rank $r: rank $(((r + 1) % n)) says 42"; done)"

	if [[ -x $TERN_BIN/hello_cpp ]]; then
		echo "hello_cpp and hash_cpp on $ranks ranks: everybody is answered, and rightly"
		run hello_cpp $ranks
		check "not everybody was answered once" \
			"$(for r in $(ranks_of $n); do echo "rank $r: rank $(((r + 1) % n)) says 42"; done)"
		run hash_cpp $ranks
		check "a lookup is wrong" "$((20000 * n)) lookups, 0 wrong"
	fi

	echo "fetch_add on $ranks ranks: every ticket is given once, and every sum is complete"
	run fetch_add $ranks
	tickets=$(sed -n "s/^rank [0-9]* of $n has ticket //p" "$out" | sort -n)
	[[ $tickets == "$(ranks_of $n)" ]] || fail "the tickets are not 0 to $((n - 1))"
	sed -i '/ticket/d' "$out"
	check "a sum is wrong" \
		"$(for r in $(ranks_of $n); do echo "rank $r has sum $((n * (n + 1) / 2))"; done)"

	for delivery in poll thread interrupt; do
		echo "server on $ranks ranks, by $delivery: it counts requests while it computes"
		run server $ranks $delivery
		count=$((100 * (n - 1)))
		grep -qx "server: counted $count of $count, and the root of 2 is 1.414" "$out" ||
			fail "the server counted something else"
		[[ $(grep -c '^rank .*: each request took [0-9.]* us$' "$out") == $((n - 1)) ]] ||
			fail "not everybody was answered"
	done

	echo "ring on $ranks ranks: the letter is signed by everybody in turn, twice"
	run ring $ranks
	check "the signatures are wrong" "$(echo signed by $(ranks_of $n) $(ranks_of $n))"

	echo "mill on $ranks ranks: every sack comes home, and is weighed"
	run mill $ranks
	sed -i '/ had to wait$/d' "$out"
	check "the weights are wrong" "$n sacks, $((n * (n - 1) / 2 + n * n * (n + 1) / 2)) in all, \
$((n - 1 + n * (n + 1) / 2)) in the heaviest"

	echo "heat on $ranks ranks: none of it is lost"
	run heat $ranks
	check "heat was lost" "heat: 1000.000 in 4096 cells after 50 steps"

	echo "jacobi on $ranks ranks: blocks give what the whole square gives"
	run jacobi $ranks
	blocks=([1]='1 x 1' [2]='2 x 1' [4]='2 x 2' [16]='4 x 4')
	error=([1]=4.9083 [2]=13.8267 [4]=33.0726 [16]=92.6496) # 1, 4 and 16 as one block has it
	check "the error is another" \
		"${blocks[n]} blocks: an error of ${error[n]} after 100 steps"

	echo "histogram on $ranks ranks: every bin has every rank's samples"
	run histogram $ranks
	[[ $(tail -1 "$out") == "$((20000 * n)) samples, 0 bins wrong" ]] ||
		fail "the last line is another"
	[[ $(awk '/#/ { sum += $NF } END { print (sum > 19000 * '$n') }' "$out") == 1 ]] ||
		fail "there is no bell"

	echo "tally on $ranks ranks: every bin has every rank's samples"
	run tally $ranks
	[[ $(tail -1 "$out") == "$((100000 * n)) samples, 0 bins wrong" ]] ||
		fail "the last line is another"

	echo "index_gather on $ranks ranks: every word that is read has been counted by all"
	run index_gather $ranks
	[[ $(grep -c '^rank .*: 20000 words read, 0 wrong$' "$out") == "$n" ]] ||
		fail "not every rank has read them"

	echo "clerks on $ranks ranks: every prime is counted once"
	run clerks $ranks
	check "primes are missing" "5133 primes below 50000"

	echo "hash_table on $ranks ranks: every key is found, and every key that was inserted is there"
	run hash_table $ranks
	[[ $(grep -c '^rank .*: 9000 keys looked up, 0 wrong; ' "$out") == "$n" ]] ||
		fail "not every rank has found them"
	[[ $(awk '{ sum += $9 } END { print sum }' "$out") == $((18000 * n)) ]] ||
		fail "some were lost"

	echo "survivors on $ranks ranks: the last one dies, and the others compute pi"
	survive=--survive=survivors
	run survivors $ranks
	survive=
	grep -qx "pi is 3.141592654, by $((n > 1 ? n - 1 : 1)) of $n ranks" "$out" ||
		fail "they do not"
	[[ $n == 1 ]] || grep -qx "rank $((n - 1)) dies" "$out" || fail "nobody dies"
	[[ $n -le 2 ]] || grep -qx "rank $((n - 1)) is lost" "$out" || fail "nobody hears of it"

	echo "halo on $ranks ranks: the glider arrives, and nothing else lives"
	run halo $ranks
	[[ $(grep -c '^rank .*: 0 wrong$' "$out") == "$n" ]] || fail "not every block is right"

	echo "pipeline on $ranks ranks: every row of every column is right"
	run pipeline $ranks
	[[ $(grep -c '^rank .*: 2048 rows, 0 wrong$' "$out") == "$n" ]] ||
		fail "not every column is right"

	echo "transpose on $ranks ranks: every element is where it belongs"
	run transpose $ranks
	[[ $(grep -c '^rank .* transposed, 0 wrong$' "$out") == "$n" ]] ||
		fail "not every rank's rows are right"
	echo "quicksort on $ranks ranks: the numbers are in order, and every rank had threads"
	run quicksort $ranks
	grep -q '^200000 numbers, 0 wrong$' "$out" || fail "they are not"
	[[ $(grep -c '^rank [0-9]*: [1-9][0-9]* threads$' "$out") == "$n" ]] ||
		fail "not every rank had some"

	echo "collector on $ranks ranks: every report is read"
	run collector $ranks
	grep -q "^$((20 * (n - 1))) reports of $((20 * (n - 1)))" "$out" || fail "some are not"

	echo "shares on $ranks ranks: every rank has as many tasks as the others, and the next ones"
	run shares $ranks
	[[ $(grep -c ', 0 wrong$' "$out") == "$n" ]] || fail "something is wrong"
	all=$(sed -n '1s/.* of \([0-9]*\),.*/\1/p' "$out")
	check "the shares are others" "$(for r in $(ranks_of $n); do
		echo "rank $r: tasks $((all * r / n)) to $((all * (r + 1) / n)) of $all, 0 wrong"
	done)"

	echo "tiles on $ranks ranks: columns, cards and previews are the neighbour's"
	run tiles $ranks
	[[ $(grep -c '^rank .*: 2048 pixels, 0 wrong$' "$out") == "$n" ]] || fail "not all are"

	echo "aisles on $ranks ranks: rows and columns do not hear each other"
	run aisles $ranks
	[[ $(grep -c "^rank .*, one of $n on machine 0 of 1: .* heard, 0 wrong$" "$out") == "$n" ]] ||
		fail "something was heard in the wrong place"

	echo "harvest on $ranks ranks: all that was found is collected, and known to all"
	run harvest $ranks
	[[ $(grep -c '^rank .* found, 0 wrong$' "$out") == "$n" ]] || fail "something is missing"

	echo "crew on $ranks ranks: every task is done"
	run crew $ranks
	check "some are not" "the numbers below 40000: right"

	echo "pingpong on $ranks ranks: every message comes back as it was, in each mode and size"
	run pingpong $ranks
	[[ $(grep -cE '^(automatic|ready|rendezvous) .*1000 there and back, 0 wrong' "$out") == 9 \
		]] || fail "not all nine"
done

echo "halo where heaps are protected: what is granted can be stored to"
TERN_GRANT=1 run halo 4
[[ $(grep -c '^rank .*: 0 wrong$' "$out") == 4 ]] || fail "not every block is right"

echo "survivors without --survive: the job ends with the rank"
timeout 300 "$TERN_BIN/tern" run -n 2 "$TERN_BIN/survivors" >"$out" 2>&1 && fail "it goes on"

echo "an example that fails says why"
OMPI_COMM_WORLD_SIZE=2 "$TERN_BIN/hello" >"$out" 2>&1 && fail "it did not fail"
grep -q '^hello: OMPI_COMM_WORLD_SIZE=2 says that .* TERN_ALONE=1' "$out" ||
	fail "it said something else"

[[ ! -x $TERN_BIN/hello_cpp ]] || {
	OMPI_COMM_WORLD_SIZE=2 "$TERN_BIN/hello_cpp" >"$out" 2>&1 && fail "it did not fail in C++"
	grep -q '^hello_cpp: OMPI_COMM_WORLD_SIZE=2 says that .* TERN_ALONE=1' "$out" ||
		fail "it said something else in C++"
}

echo "the environment chooses the delivery, too, and a wrong word is refused"
TERN_DELIVERY=thread run server 2
timeout 300 "$TERN_BIN/server" thraed >"$out" 2>&1 && fail "it did not fail"
grep -q '^server: .*thraed.* did you mean thread' "$out" || fail "it said something else"

echo "the README shows hello.c and what it prints"
# the N-th block between fences
block() { awk -v n="$1" '/^```/ { fence++; next } fence == 2 * n - 1' README.md; }
[[ $(block 2) == "$(<examples/hello.c)" ]] || fail "the program in the README is another"
block 3 | sed '1d' >"$folder/shown"
run hello 4
check "the README shows other output" "$(<"$folder/shown")"

[[ $failed == 0 ]] || echo "$failed failed"
exit $((failed > 0))
