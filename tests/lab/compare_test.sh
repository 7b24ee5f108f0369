#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: TIMEOUT 120 LOCK launch LABELS once
# What `make compare` prints, with few peers; compare_all_test.sh has all of them.
. tests/lab/compare_lib.sh

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
awk -v cores=2 -v csv="$folder/csv" -v peers="openmpi mpich limit" -f lab/compare/table.awk \
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
PATH=$folder/bin:$PATH run --quick --rounds 1 --sizes 8 --ranks 2 --peers mpich --parts rows
check_status 0
check_out '^compare: MPICH is left out: mpicc.mpich does not compile \(is libmpich-dev installed\?\)$'
count 12 ' yes$' "$out"
count 1 '^operation,ranks,cores,bytes,tern_ns,.*verified$' "$csv"
count 12 '^[a-z-]+,2,[0-9]+,[0-9]+,[0-9.]+,.*yes$' "$csv"
count 24 '^tern,default,[a-z-]+,2,[0-9]+,[0-9.]+,yes$' "$samples" # 12 rows, 2 orders, 1 round
count 0 ',no$' "$samples"
mkdir "$folder/few"
for tool in awk bash cat dirname env grep ld as mkdir nproc rm sed sort tac timeout tr uniq cut; do
	ln -s "$(command -v "$tool")" "$folder/few/$tool"
done
# A compiler that finds none of the libraries.
printf '#!/bin/sh\ncase "$*" in *-lucp*|*-lfabric*) exit 1;; esac\nexec %s "$@"\n' \
	"$(command -v cc)" >"$folder/few/cc"
chmod +x "$folder/few/cc"
CC= PATH=$folder/few run --quick --rounds 1 --sizes 8 --ranks 2 --parts rows,start,crowded,count
check_status 0
check_out '^compare: UCX is left out: its program does not compile \(is libucx-dev installed\?\)$'
check_out '^compare: libfabric is left out: its program does not compile \(is libfabric-dev installed\?\)$'
check_out '^compare: instructions are left out: valgrind is not installed'
check_out '^compare: the rows of one core are left out: taskset is not installed'

check_out '^compare: Open MPI is left out: it is not installed \(openmpi-bin libopenmpi-dev\)$'
check_out '^compare: MPICH is left out: it is not installed \(mpich libmpich-dev\)$'

echo "a peer is measured beside Tern, and has its columns and samples"
run --quick --rounds 1 --sizes 8 --ranks 2 --parts rows --rows round-trip,barrier \
	--peers openmpi,limit
check_status 0
count 4 '^tern,default,(round-trip|barrier),2,' "$samples" # and no other row, in 2 orders
count 4 '^tern,' "$samples"
check_not_out 'failed|did not end'
for peer in 'openmpi|Open MPI' 'limit|limit'; do
	grep -q "^compare: ${peer#*|} is left out" "$out" && continue
	check_out "^operation .* Tern .*${peer#*|} "
	grep -q "^${peer%|*}," "$samples" || fail "there is no sample of ${peer#*|}"
done

echo "a peer of a folder stands beside that of the system"
run --quick --rounds 1 --sizes 8 --ranks 2 --parts rows --peers libfabric,ucx,limit --prefix /usr
check_status 0
check_not_out 'failed|did not end'
for peer in 'ucx|UCX' 'libfabric|libfabric'; do
	grep -q "^compare: ${peer#*|} is left out" "$out" && continue
	check_out "^operation .* ${peer#*|} ratio .*${peer%|*}@usr ratio "
	grep -q "^${peer%|*}@usr," "$samples" || fail "there is no sample of ${peer%|*}@usr"
done

echo "a mistake is refused with one sentence and status 2"
refused "'--quik' is not an option" --quik
refused "needs a value" --ranks
refused "--prefix needs a folder" --prefix
refused "no peer is in '$folder'" --prefix "$folder"
refused "2 to 64" --ranks 1
refused "2 to 64" --ranks 2,65
refused "numbers with commas" --ranks two
refused "multiples of 8" --sizes 12
refused "multiples of 8" --sizes 8388608
refused "libfabric, limit, not 'gasnet'" --peers gasnet
refused "count, programs, not 'end'" --parts end
refused "allgather, alltoall, not 'all'" --rows all
refused "number above 0" --rounds 0
refused "takes seconds" --patience soon

echo "without a build it says what to do"
lab/compare/run.sh --build "$folder/none" >"$out" 2>"$err"
status=$?
check_status 1
grep -q 'run make first' "$err" || fail "it does not"
[[ ! -e $folder/none ]] || fail "it made the folder"

echo "--help helps"
run --help
check_status 0
check_out '^usage: lab/compare/run.sh'

finish
