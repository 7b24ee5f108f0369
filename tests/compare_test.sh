#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: TIMEOUT 300 LOCK launch LABELS once
# What `make compare` prints, with the peers that are installed; never how fast they were.
set -uo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
out=$folder/out err=$folder/err failed=0 status=0

fail() {
	echo "    failed: $1"
	head -5 "$err" | sed 's/^/    stderr: /'
	failed=$((failed + 1))
}
# A build folder of its own, with this build's Tern: nobody's kept figures are overwritten.
mkdir "$folder/build"
ln -s "$(cd "$TERN_BIN" && pwd)" "$folder/build/bin"
ln -s "$(cd "$TERN_BIN/../lib" && pwd)" "$folder/build/lib"
run() { # ARGUMENTS; variables may stand before the call
	compare/run.sh --build "$folder/build" --patience 300 "$@" >"$out" 2>"$err" </dev/null
	status=$?
}
check_status() { [[ $status == "$1" ]] || fail "the status is $status, not $1"; }
check_out() { grep -qE -- "$1" "$out" || fail "no line of the output matches: $1"; }
check_not_out() { ! grep -qE -- "$1" "$out" || fail "a line of the output matches: $1"; }
count() { # HOW MANY, PATTERN, FILE
	[[ $(grep -cE -- "$2" "$3") == "$1" ]] ||
		fail "$(grep -cE -- "$2" "$3") lines match $2, not $1"
}
refused() { # PATTERN ARGUMENTS
	local pattern=$1
	shift
	run "$@"
	check_status 2
	grep -qE -- "$pattern" "$err" || fail "standard error does not match: $pattern"
	[[ $(wc -l <"$err") == 1 && ! -s $out ]] || fail "it says more than one sentence"
}

echo "--quick has every operation, and every result is verified"
run --quick --sizes 8,4096,1048576 --parts rows
check_status 0
[[ ! -s $err ]] || fail "something stands on standard error"
check_not_out 'failed|did not end'
csv=$folder/build/compare/compare.csv samples=$folder/build/compare/samples.csv
check_out '^operation +ranks +size +Tern '
figure='[0-9.]+ (ns|us|ms|M/s|GB/s)'
for row in round-trip send-receive rate; do
	count 1 "^$row +2[ *] +8 B +$figure .* yes\$" "$out"
done
count 1 "^barrier +2[ *] +- +$figure .* yes\$" "$out"
count 1 "^barrier +4[ *] +- +$figure .* yes\$" "$out"
count 1 "^updates +2[ *] +- +$figure .* yes\$" "$out"
count 1 "^updates +4[ *] +- +$figure .* yes\$" "$out"
for row in bandwidth put get; do
	count 3 "^$row +2[ *] +[0-9]+ (B|KiB|MiB) +$figure .* yes\$" "$out"
done
for row in broadcast reduce allreduce allgather alltoall; do
	for ranks in 2 4; do
		for size in '8 B' '4 KiB' '1 MiB'; do
			count 1 "^$row +$ranks[ *] +$size +$figure .* yes\$" "$out"
		done
	done
done
count 46 ' yes$' "$out"
count 0 ' no$' "$out"

echo "what is left out is named, and there is a column for what is not"
for peer in 'openmpi|Open MPI' 'mpich|MPICH' 'ucx|UCX' 'libfabric|libfabric' 'zeromq|ZeroMQ' \
	'nng|nng' 'limit|limit'; do
	name=${peer%|*} title=${peer#*|}
	if ! grep -q "^compare: $title is left out" "$out"; then
		check_out "^operation .* Tern .*$title "
		[[ $name == limit ]] || check_out "^Tern is ahead of $title in [0-9]+ of [0-9]+ rows\$"
		grep -q "^$name," "$samples" || fail "there is no sample of $title"
	fi
done

echo "compare.csv has the table, and samples.csv every sample"
count 47 '^' "$csv"
count 1 '^operation,ranks,cores,bytes,tern_ns,.*verified$' "$csv"
count 46 '^[a-z-]+,[0-9]+,[0-9]+,[0-9]+,[0-9.]+,.*yes$' "$csv"
count 184 '^tern,default,[a-z-]+,[24],[0-9]+,[0-9.]+,yes$' "$samples" # 46 rows, 2 orders, 2 rounds
count 0 ',no$' "$samples"

echo "start-up, two ranks on one core, and instructions for a message"
run --quick --sizes 8 --ranks 2 --parts start,crowded,count --peers openmpi,ucx,zeromq,limit
check_status 0
check_not_out 'failed|did not end'
count 1 "^start-up +2[ *] +- +$figure .* yes\$" "$out"
count 1 "^crowded-round-trip +2\* +8 B +$figure .* yes\$" "$out"
count 1 "^crowded-barrier +2\* +- +$figure .* yes\$" "$out"
count 4 '^tern,default,start-up,2,0,[0-9]+,yes$' "$samples" # 2 rounds, 2 orders
! grep -qE '^(zeromq|limit),.*(start-up|barrier)' "$samples" || fail "they have no such row"
if command -v valgrind >/dev/null; then
	for row in send take; do
		# More than nothing, fewer than a system call and a scheduler would take.
		count 1 "^tern,default,instructions-$row,2,8,[1-9][0-9]{1,2}\.[0-9],yes\$" "$samples"
		count 1 "^limit,default,instructions-$row,2,8,[1-9][0-9]?\.[0-9],yes\$" "$samples"
	done
	count 0 '^zeromq,.*instructions' "$samples"
	count 0 counted "$samples"
else
	check_out '^compare: instructions are left out: valgrind is not installed'
fi

echo "programs of MPI, with ranks that divide nothing: their results are right, and Tern's beside them"
if [[ -x $TERN_BIN/apps/lu ]]; then
	run --quick --ranks 3 --parts programs --peers openmpi --rounds 1
	check_status 0
	check_not_out 'failed|did not end'
	for row in transpose neighborhood cg closure lu gups gather sort; do
		count 1 "^$row +3[ *] +[0-9]+ +$figure .* yes\$" "$out"
		grep -q 'Open MPI is left out' "$out" ||
			count 2 "^openmpi,default,$row,3,[0-9]+,[0-9.]+,yes\$" "$samples"
	done
	count 0 '^fft' "$out" # it needs a power of 2
	run --quick --ranks 4 --parts programs --peers openmpi --rounds 1
	check_status 0
	count 9 ' yes$' "$out"
	count 1 '^fft +4' "$out"
else
	echo "    skipped: \`make apps\` has not been run"
fi

echo "the median of the best setting counts, and a wrong result shows"
cat >"$folder/samples" <<'END'
limit,default,round-trip,2,8,50.0,yes
mpich,default,allreduce,4,8,2000.0,yes
openmpi,default,allreduce,4,8,1000.0,yes
openmpi,default,allreduce,4,8,3000.0,yes
openmpi,default,allreduce,4,8,9000.0,yes
openmpi,default,instructions-send,2,8,500.0,yes
openmpi,default,gups,2,8192,3000000.0,yes
openmpi,sm,allreduce,4,8,400.0,yes
openmpi,sm,allreduce,4,8,600.0,yes
tern,default,allreduce,4,8,100.0,yes
tern,default,allreduce,4,8,300.0,yes
tern,default,allreduce,4,8,9000.0,yes
tern,default,barrier,2,0,700.0,no
tern,default,crowded-round-trip,2,8,900.0,yes
tern,default,instructions-send,2,8,50.5,yes
tern,default,round-trip,2,8,600.0,yes
tern,gathered,gups,2,8192,2000000.0,yes
tern,message,gups,2,8192,4000000.0,yes
END
awk -v cores=2 -v csv="$folder/csv" -v peers="openmpi mpich limit" -f compare/table.awk \
	"$folder/samples" >"$out" 2>"$err" || fail "table.awk failed"
count 1 '^allreduce +4\* +8 B +300 ns +500 ns +0.60 +2000 ns +0.15  yes$' "$out"
count 1 '^barrier +2  +- +700 ns +- +- +- +-  no$' "$out"
count 1 '^round-trip +2  +8 B +600 ns +- +- +50 ns +12  yes$' "$out"
count 1 '^crowded-round-trip +2\* +8 B +900 ns +- +- +- +-  yes$' "$out"
count 1 '^instructions-send +2  +8 B +50.5 +500.0 +0.10 +- +-  yes$' "$out"
count 1 '^allreduce,4,2,8,300.0,default,500.0,sm,0.6000,2000.0,default,0.1500,,,,yes$' "$folder/csv"
count 1 '^barrier,2,2,0,700.0,default,,,,,,,,,,no$' "$folder/csv"
count 1 '^gups +2  +8192 +2000.0 us +3000.0 us +0.67  yes$' "$out"
count 1 '^gups,2,2,8192,2000000.0,gathered,3000000.0,default,0.6667,,,,,,,yes$' "$folder/csv"
check_out '^Tern is ahead of Open MPI in 3 of 3 rows$'
check_not_out 'ahead of .*limit'

echo "a part of the table has the columns of those peers alone that have rows in it"
count 1 '^operation +ranks +size +Tern +Open MPI ratio +limit ratio  verified$' "$out"
count 1 '^operation +ranks +size +Tern +Open MPI ratio +MPICH ratio  verified$' "$out"

echo "a peer that is not there, or cannot be compiled for, is left out with a sentence"
mkdir "$folder/bin"
printf '#!/bin/sh\nexit 1\n' >"$folder/bin/mpicc.mpich"
cp "$folder/bin/mpicc.mpich" "$folder/bin/mpirun.mpich"
chmod +x "$folder/bin/"*
PATH=$folder/bin:$PATH run --quick --sizes 8 --ranks 2 --peers mpich --parts rows
check_status 0
check_out '^compare: MPICH is left out: mpicc.mpich does not compile \(is libmpich-dev installed\?\)$'
count 13 ' yes$' "$out"
mkdir "$folder/few"
for tool in awk bash cat dirname env grep ld as mkdir nproc rm sed sort tac timeout tr uniq cut; do
	ln -s "$(command -v "$tool")" "$folder/few/$tool"
done
# A compiler that finds none of the libraries.
printf '#!/bin/sh\ncase "$*" in *-lucp*|*-lfabric*|*-lzmq*|*-lnng*) exit 1;; esac\nexec %s "$@"\n' \
	"$(command -v cc)" >"$folder/few/cc"
chmod +x "$folder/few/cc"
CC= PATH=$folder/few run --quick --sizes 8 --ranks 2 --parts rows,start,crowded,count
check_status 0
check_out '^compare: UCX is left out: its program does not compile \(is libucx-dev installed\?\)$'
check_out '^compare: nng is left out: its program does not compile \(is libnng-dev installed\?\)$'
check_out '^compare: instructions are left out: valgrind is not installed'
check_out '^compare: the rows of one core are left out: taskset is not installed'

check_out '^compare: Open MPI is left out: it is not installed \(openmpi-bin libopenmpi-dev\)$'
check_out '^compare: MPICH is left out: it is not installed \(mpich libmpich-dev\)$'

echo "a mistake is refused with one sentence and status 2"
refused "'--quik' is not an option" --quik
refused "needs a value" --ranks
refused "2 to 64" --ranks 1
refused "2 to 64" --ranks 2,65
refused "numbers with commas" --ranks two
refused "multiples of 8" --sizes 12
refused "multiples of 8" --sizes 8388608
refused "zeromq, nng, limit, not 'gasnet'" --peers gasnet
refused "count, programs, not 'end'" --parts end
refused "number above 0" --rounds 0
refused "takes seconds" --patience soon

echo "without a build it says what to do"
compare/run.sh --build "$folder/none" >"$out" 2>"$err"
status=$?
check_status 1
grep -q 'run make first' "$err" || fail "it does not"
[[ ! -e $folder/none ]] || fail "it made the folder"

echo "--help helps"
run --help
check_status 0
check_out '^usage: compare/run.sh'

((failed == 0)) || echo "$failed failed"
exit $((failed > 0))
