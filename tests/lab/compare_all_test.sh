#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: TIMEOUT 300 LOCK launch LABELS slow once
# What `make compare` measures, with every peer that is installed; never how fast they were.
. tests/lab/compare_lib.sh

echo "--quick has every operation, and every result is verified"
run --quick --sizes 8,4096,1048576 --parts rows
check_status 0
[[ ! -s $err ]] || fail "something stands on standard error"
check_not_out 'failed|did not end'
check_out '^operation +ranks +size +Tern '
for row in round-trip send-receive rate; do
	count 1 "^$row +2[ *] +8 B +$figure .* yes\$" "$out"
done
count 1 "^barrier +2[ *] +- +$figure .* yes\$" "$out"
count 1 "^barrier +4[ *] +- +$figure .* yes\$" "$out"
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
count 44 ' yes$' "$out"
count 0 ' no$' "$out"

echo "what is left out is named, and there is a column for what is not"
for peer in 'openmpi|Open MPI' 'mpich|MPICH' 'ucx|UCX' 'libfabric|libfabric' 'limit|limit'; do
	name=${peer%|*} title=${peer#*|}
	if ! grep -q "^compare: $title is left out" "$out"; then
		check_out "^operation .* Tern .*$title "
		[[ $name == limit ]] || check_out "^Tern is ahead of $title in [0-9]+ of [0-9]+ rows\$"
		grep -q "^$name," "$samples" || fail "there is no sample of $title"
	fi
done

echo "compare.csv has the table, and samples.csv every sample"
count 45 '^' "$csv"
count 1 '^operation,ranks,cores,bytes,tern_ns,.*verified$' "$csv"
count 44 '^[a-z-]+,[0-9]+,[0-9]+,[0-9]+,[0-9.]+,.*yes$' "$csv"
count 176 '^tern,default,[a-z-]+,[24],[0-9]+,[0-9.]+,yes$' "$samples" # 44 rows, 2 orders, 2 rounds
count 0 ',no$' "$samples"

echo "start-up, two ranks on one core, and instructions for a message"
run --quick --sizes 8 --ranks 2 --parts start,crowded,count --peers openmpi,ucx,libfabric,limit
check_status 0
check_not_out 'failed|did not end'
count 1 "^start-up +2[ *] +- +$figure .* yes\$" "$out"
count 1 "^crowded-round-trip +2\* +8 B +$figure .* yes\$" "$out"
count 1 "^crowded-barrier +2\* +- +$figure .* yes\$" "$out"
count 4 '^tern,default,start-up,2,0,[0-9]+,yes$' "$samples" # 2 rounds, 2 orders
! grep -qE '^(libfabric|limit),.*(start-up|barrier)' "$samples" || fail "they have no such row"
if [[ $(uname -m) != x86_64 ]]; then
	check_out '^compare: instructions are left out: callgrind mistakes calls for returns on '
elif command -v valgrind >/dev/null; then
	for row in send take; do
		# More than nothing, fewer than a system call and a scheduler would take.
		count 1 "^tern,default,instructions-$row,2,8,[1-9][0-9]{1,2}\.[0-9],yes\$" "$samples"
		count 1 "^limit,default,instructions-$row,2,8,[1-9][0-9]?\.[0-9],yes\$" "$samples"
	done
	count 0 counted "$samples"
else
	check_out '^compare: instructions are left out: valgrind is not installed'
fi

echo "programs of MPI, with ranks that divide nothing: their results are right, and Tern's beside them"
if [[ -x $TERN_BIN/apps/gups ]]; then
	run --quick --ranks 3 --parts programs --peers openmpi --rounds 1
	check_status 0
	check_not_out 'failed|did not end'
	for row in neighborhood gups; do
		count 1 "^$row +3[ *] +[0-9]+ +$figure .* yes\$" "$out"
		grep -q 'Open MPI is left out' "$out" ||
			count 2 "^openmpi,default,$row,3,[0-9]+,[0-9.]+,yes\$" "$samples"
	done
	count 0 '^fft' "$out" # it needs a power of 2
	run --quick --ranks 4 --parts programs --peers openmpi --rounds 1
	check_status 0
	count 3 ' yes$' "$out"
	count 1 '^fft +4' "$out"
else
	echo "    skipped: \`make apps\` has not been run"
fi

finish
