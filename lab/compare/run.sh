#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Measures Tern beside other libraries that are installed, and prints one table.
# docs/compare.md says how it measures. `make compare` runs it; --help has the options.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
all_peers=openmpi,mpich,ucx,libfabric,limit

usage="usage: lab/compare/run.sh [OPTIONS]

Measures Tern beside MPI, UCX, libfabric and what the machine allows, in one run, and prints a
table: the median of each row, at the slowest rank, and Tern's time over the peer's. Below 1 Tern
is ahead.

  --quick          fewer ranks, sizes, settings and rounds: about a minute; a look, not a figure
  --ranks LIST     numbers of ranks (2,4,8,16); those above the cores are marked with *
  --sizes LIST     bytes, multiples of 8 (8,64,512,4096,32768,262144,1048576,4194304)
  --peers LIST     of openmpi, mpich, ucx, libfabric and limit (all that are installed)
  --prefix FOLDER  the peers of this folder too, as bin/mpicc or include/ucp: newer ones than the
                   system's stand beside as PEER@NAME, NAME is the folder's; several times if wanted
  --rows LIST      operations of the part rows (all), such as alltoall,allreduce
  --parts LIST     of rows, start, crowded, count and programs (all); docs/compare.md has them
  --rounds N       rounds of each program, which runs twice (10)
  --patience S     seconds before a program that does not end is given up (120)
  --build FOLDER   the build of Tern (build)
  --plain          no progress, on a terminal too
  --help           print this

BUILD/compare/ keeps the programs, samples.csv (every sample) and compare.csv (the table)."

quick= plain= peers=$all_peers ranks= sizes= rows= rounds= patience= build=$root/build prefixes=()
all_parts=rows,start,crowded,count,programs
parts=$all_parts
all_rows=round-trip,send-receive,rate,bandwidth,put,get,barrier,broadcast,reduce,allreduce
all_rows=$all_rows,allgather,alltoall
refuse() {
	echo "compare: $1" >&2
	exit 2
}
is_list() { [[ $1 =~ ^[0-9]+(,[0-9]+)*$ ]]; }
has_word() { [[ ,$1, == *",$2,"* ]]; } # LIST WORD

while (($#)); do
	case $1 in
	--quick) quick=1 ;;
	--plain) plain=1 ;;
	--help)
		echo "$usage"
		exit 0
		;;
	--prefix)
		(($# > 1)) || refuse "--prefix needs a folder"
		prefixes+=("$2")
		shift
		;;
	--ranks | --sizes | --peers | --rows | --parts | --rounds | --patience | --build)
		(($# > 1)) || refuse "$1 needs a value"
		declare "${1#--}=$2"
		shift
		;;
	*) refuse "'$1' is not an option; --help lists them" ;;
	esac
	shift
done
if [[ $quick ]]; then
	: "${ranks:=2,4}" "${sizes:=8,4096,1048576}" "${rounds:=2}" "${patience:=60}"
	microseconds=300
else
	: "${ranks:=2,4,8,16}" "${sizes:=8,64,512,4096,32768,262144,1048576,4194304}"
	: "${rounds:=10}" "${patience:=120}"
	microseconds=1000
fi
is_list "$ranks" || refuse "--ranks takes numbers with commas between them, not '$ranks'"
is_list "$sizes" || refuse "--sizes takes numbers with commas between them, not '$sizes'"
[[ $rounds =~ ^[1-9][0-9]*$ ]] || refuse "--rounds takes a number above 0, not '$rounds'"
[[ $patience =~ ^[1-9][0-9]*$ ]] || refuse "--patience takes seconds, not '$patience'"
for n in ${ranks//,/ }; do
	((n >= 2 && n <= 64)) || refuse "--ranks takes 2 to 64, not $n"
done
for n in ${sizes//,/ }; do
	((n >= 8 && n <= 4194304 && n % 8 == 0)) ||
		refuse "--sizes takes multiples of 8 up to 4194304, not $n"
done
for name in ${peers//,/ }; do
	has_word "$all_peers" "$name" || refuse "--peers takes ${all_peers//,/, }, not '$name'"
done
for name in ${rows//,/ }; do
	has_word "$all_rows" "$name" || refuse "--rows takes ${all_rows//,/, }, not '$name'"
done
for name in ${parts//,/ }; do
	has_word "$all_parts" "$name" || refuse "--parts takes ${all_parts//,/, }, not '$name'"
done

# -- The programs -----------------------------------------------------------------------------

work=$build/compare
samples=$work/samples.csv said=$work/stderr
cores=$(nproc)
# A peer is a kind, as ucx, or one of a folder of --prefix, as ucx@NAME.
declare -A title=([tern]="Tern" [openmpi]="Open MPI" [mpich]="MPICH" [ucx]="UCX"
	[libfabric]="libfabric" [limit]="the limit")
declare -A packages=([openmpi]="openmpi-bin libopenmpi-dev" [mpich]="mpich libmpich-dev"
	[ucx]="libucx-dev" [libfabric]="libfabric-dev")
# What peers without a launcher are made of, beside measure.c and pair.c.
declare -A made_of=([ucx]="ucx.c -lucp -lucs" [libfabric]="fabric.c -lfabric"
	[limit]="limit.c")
flags=(-O2 -std=gnu11)
has_launcher() { [[ ! ${made_of[${1%%@*}]-} ]]; } # PEER
kind_of() { echo "${1%%@*}"; } # PEER
tool_of() { # PEER mpicc|mpirun
	[[ ${prefix_of[$1]-} ]] && echo "${prefix_of[$1]}/bin/$2" || echo "$2.$1"
}

# The kinds of peers in a folder; mpirun says which MPI it belongs to.
kinds_in() { # FOLDER
	local version=
	[[ ! -x $1/bin/mpicc ]] || version=$("$1/bin/mpirun" --version 2>&1 || true)
	[[ $version != *"Open MPI"* ]] || echo openmpi
	[[ $version != *HYDRA* ]] || echo mpich
	[[ ! -e $1/include/ucp/api/ucp.h ]] || echo ucx
	[[ ! -e $1/include/rdma/fabric.h ]] || echo libfabric
}
declare -A prefix_of=()
wanted=${peers//,/ }
for folder in ${prefixes[@]+"${prefixes[@]}"}; do
	kinds=$(kinds_in "$folder")
	[[ $kinds ]] || refuse "no peer is in '$folder': bin/mpicc with an mpirun of Open MPI or MPICH,\
 include/ucp/api/ucp.h and include/rdma/fabric.h are missing"
	for name in $kinds; do
		has_word "$peers" "$name" || continue
		prefix_of[$name@${folder##*/}]=$(cd "$folder" && pwd)
		wanted+=" $name@${folder##*/}"
	done
done

if [[ ! -x $build/bin/tern ]]; then
	echo "compare: $build has no Tern: run make first, or name another folder with --build" >&2
	exit 1
fi
mkdir -p "$work"
${CC:-cc} "${flags[@]}" -I"$root/include" "$here/measure.c" "$here/tern.c" -o "$work/tern" \
	-L"$build/lib" -ltern -Wl,-rpath,"$(cd "$build/lib" && pwd)"

compile() { # PEER
	local at=${prefix_of[$1]-}
	case $(kind_of "$1") in
	openmpi | mpich)
		"$(tool_of "$1" mpicc)" "${flags[@]}" "$here/measure.c" "$here/mpi.c" -o "$work/$1"
		;;
	*)
		# shellcheck disable=SC2086
		at=${at:+-I$at/include -L$at/lib -Wl,-rpath,$at/lib}
		# shellcheck disable=SC2086
		(cd "$here" && ${CC:-cc} "${flags[@]}" $at \
			measure.c pair.c ${made_of[$(kind_of "$1")]} -o "$work/$1")
		;;
	esac
}
here_are=(tern)
missing=()
for name in $wanted; do
	: "${title[$name]:=$name}"
	left_out="${title[$name]} is left out:"
	if has_launcher "$name" && ! command -v "$(tool_of "$name" mpicc)" >/dev/null ||
		has_launcher "$name" && ! command -v "$(tool_of "$name" mpirun)" >/dev/null; then
		missing+=("$left_out it is not installed (${packages[$name]})")
	elif compile "$name" 2>"$said"; then
		here_are+=("$name")
	elif [[ ${prefix_of[$name]-} ]]; then
		missing+=("$left_out its program does not compile: $(grep -m1 . "$said")")
	elif ! has_launcher "$name"; then
		missing+=("$left_out its program does not compile (is ${packages[$name]-cc} installed?)")
	else
		missing+=("$left_out mpicc.$name does not compile (is ${packages[$name]#* } installed?)")
	fi
done

# The programs of apps/ that have an MPI version: the options of Tern's and the sizes of the other,
# and the same for --quick. The first size stands in the table.
programs="fft|--points 65536|65536|--points 4096|4096
neighborhood|--bits 11 --side 128|11 128|--bits 7 --side 32|7 32
gups|--table 1048576 --updates 65536|1048576 65536 1024|--table 8192 --updates 4096|8192 4096 1024"
program_sizes() { # PROGRAM: into `for_tern` and `for_mpi`
	local name full full_mpi less less_mpi
	while IFS='|' read -r name full full_mpi less less_mpi; do
		[[ $name == "$1" ]] || continue
		[[ ! $quick ]] || full=$less full_mpi=$less_mpi
		read -ra for_tern <<<"$full"
		read -ra for_mpi <<<"$full_mpi"
	done <<<"$programs"
}
program_names() { cut -d'|' -f1 <<<"$programs"; }
compile_programs() { # PEER
	local name
	for name in $(program_names); do
		"$(tool_of "$1" mpicc)" "${flags[@]}" -I"$root/apps" "$here/programs/program.c" \
			"$here/programs/$name.c" "$root/apps/frame/serial.c" -lm -o "$work/$1-$name" || return
	done
}
if has_word "$parts" programs && [[ ! -x $build/bin/apps/gups ]]; then
	missing+=("the programs are left out: \`make apps\` builds Tern's")
	parts=${parts//programs/none}
elif has_word "$parts" programs; then
	for name in "${here_are[@]:1}"; do
		! has_launcher "$name" || compile_programs "$name" 2>"$said" ||
			missing+=("programs of ${title[$name]} do not compile: $(grep -m1 . "$said")")
	done
fi

# -- The runs ---------------------------------------------------------------------------------

# MPICH spins while it waits: with more ranks than cores each wait takes a slice of the scheduler.
is_slow() { [[ $1 == mpich* ]] && (($2 > cores)); } # PEER RANKS
SLOW_ROUNDS=2

# A plan is lines of PART PEER SETTING RANKS.
settings() { # PEER
	case $(kind_of "$1"):$quick in
	tern:) echo default heap ;;
	openmpi:) echo default tuned sm ucx ;;
	openmpi:1) echo default sm ;;
	libfabric:) echo shm tcp ;;
	libfabric:1) echo shm ;;
	*) echo default ;;
	esac
}
plan_rows() {
	local n name setting
	for n in ${ranks//,/ }; do
		for name in "${here_are[@]}"; do
			[[ ! $quick ]] || ! is_slow "$name" "$n" || continue
			has_launcher "$name" || ((n == 2)) || continue
			for setting in $(settings "$name"); do
				echo "rows $name $setting $n"
			done
		done
	done
}
# An empty program, with the fewest and the most ranks.
plan_start() {
	local n name
	for n in $(tr , '\n' <<<"$ranks" | sort -nu | sed -n '1p;$p' | uniq); do
		for name in "${here_are[@]}"; do
			! has_launcher "$name" || echo "start $name default $n"
		done
	done
}
# Two ranks on one core.
plan_crowded() {
	local name
	command -v taskset >/dev/null || return 0
	for name in "${here_are[@]}"; do
		echo "crowded $name $(settings "$name" | cut -d' ' -f1) 2"
	done
}
# Why instructions are not counted here; nothing if they are.
count_lacks() {
	if ! command -v valgrind >/dev/null; then
		echo "valgrind is not installed (valgrind)"
	elif [[ $(uname -m) != x86_64 ]]; then
		echo "callgrind mistakes calls for returns on $(uname -m)"
	fi
}
plan_count() {
	local name
	[[ ! $(count_lacks) ]] || return 0
	for name in "${here_are[@]}"; do
		echo "count $name $(settings "$name" | cut -d' ' -f1) 2"
	done
}
# SETTING is the program; MPI by what mpirun does by itself.
plan_programs() {
	local n name program
	for n in ${ranks//,/ }; do
		for name in "${here_are[@]}"; do
			! is_slow "$name" "$n" || continue
			for program in $(program_names); do
				[[ $program == fft ]] && ((n & (n - 1))) && continue
				[[ $name != tern && ! -x $work/$name-$program ]] ||
					! has_launcher "$name" || echo "programs $name $program $n"
			done
		done
	done
}
plan() { # PART...: those that are wanted
	local part
	for part in "$@"; do
		! has_word "$parts" "$part" || "plan_$part"
	done
}

vader=(--mca pml ob1 --mca btl "self,vader")
launcher_of() { # PEER SETTING RANKS CROWDED: into `command`
	case $(kind_of "$1") in
	tern)
		command=("$build/bin/tern" run -n "$3")
		(($4)) || command+=(--bind core)
		;;
	mpich)
		command=("$(tool_of "$1" mpirun)" -n "$3")
		(($4)) || command+=(-bind-to core)
		;;
	openmpi)
		command=("$(tool_of "$1" mpirun)" -n "$3")
		if (($4)); then
			command+=(--oversubscribe --bind-to none --mca mpi_yield_when_idle 1)
		else
			command+=(--bind-to core)
		fi
		;;
	ucx) command=(env "UCX_TLS=sm,self") ;;
	libfabric) command=(env "COMPARE_PROVIDER=$2") ;;
	*) command=() ;;
	esac
	case $2 in
	heap) command=(env COMPARE_HEAP=1 "${command[@]}") ;;
	tuned) command+=("${vader[@]}" --mca coll "tuned,basic,libnbc,self,inter") ;;
	sm) command+=("${vader[@]}" --mca coll_sm_priority 100) ;;
	ucx)
		command+=(--mca pml ucx --mca pml_ucx_tls any --mca pml_ucx_devices any)
		command+=(-x "UCX_TLS=sm,self")
		;;
	esac
}

# Open MPI refuses to run as root unless it is told so twice.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
failures=()
# WHAT PEER SETTING PREFIX COMMAND...: adds the program's rows to the samples, with names that begin
# with PREFIX.
sample() {
	local status=0 what=$1 row="$2,$3,$4"
	timeout -k 5 "$patience" "${@:5}" </dev/null 2>"$said" |
		sed -nE "s/^([a-z-]+,[0-9]+,[0-9]+,[0-9.]+,(yes|no))\$/$row\1/p" >>"$samples" ||
		status=$?
	((status)) || return 0
	if ((status == 124 || status == 137)); then
		failures+=("$what did not end within $patience s; what it had measured counts")
	else
		failures+=("$what failed with status $status: $(grep -m1 . "$said" || true)")
	fi
	[[ $2 != tern ]] || tern_failed=1
}
run_rows() { # WHAT PEER SETTING RANKS
	local n=$rounds
	! is_slow "$2" "$4" || n=$((rounds < SLOW_ROUNDS ? rounds : SLOW_ROUNDS))
	launcher_of "$2" "$3" "$4" $(($4 > cores))
	sample "$1" "$2" "$3" "" "${command[@]}" "$work/$2" "$n" "$microseconds" "$sizes" \
		${rows:+"$rows"}
}
# The shell's clock, from before the launcher until it has ended.
run_start() {
	local i begun now
	launcher_of "$2" "$3" "$4" $(($4 > cores))
	for ((i = 0; i < rounds; i++)); do
		begun=${EPOCHREALTIME/./}
		sample "$1" "$2" "$3" "" "${command[@]}" "$work/$2" start
		now=${EPOCHREALTIME/./}
		echo "$2,$3,start-up,$4,0,$((now - begun))000,yes" >>"$samples"
	done
}
run_crowded() {
	local n=$((rounds < SLOW_ROUNDS ? rounds : SLOW_ROUNDS)) core
	core=$(taskset -cp $$ | grep -oE '[0-9]+' | tail -1)
	launcher_of "$2" "$3" "$4" 1
	sample "$1" "$2" "$3" "crowded-" taskset -c "$core" "${command[@]}" "$work/$2" "$n" \
		"$microseconds" 8 round-trip,barrier
}
# callgrind counts what a rank runs within counted_send() or counted_take() of measure.c.
run_count() {
	local counts=$work/counts file messages verified
	rm -rf "$counts"
	mkdir -p "$counts/marks"
	launcher_of "$2" "$3" "$4" $(($4 > cores))
	sample "$1" "$2" "$3" "" "${command[@]}" valgrind -q --tool=callgrind \
		'--toggle-collect=counted_send*' '--toggle-collect=counted_take*' \
		--callgrind-out-file="$counts/rank.%p" "$work/$2" count "$counts/marks"
	IFS=, read -r _ _ _ _ _ messages verified <<<"$(sed -n "/^$2,$3,counted,/p" "$samples")"
	sed -i '/,counted,/d' "$samples"
	[[ $messages ]] || return 0
	for file in "$counts"/rank.*; do
		awk -v messages="$messages" -v begin="$2,$3,instructions-" -v verified="$verified" '
			match($0, /counted_(send|take)/) { what = substr($0, RSTART + 8, 4) }
			/^totals: / { total = $2 }
			END { if (what) printf "%s%s,2,8,%.1f,%s\n", begin, what, total / messages, verified }
		' "$file" >>"$samples"
	done
}
# A sample of Tern is the median of a variant, which is its setting.
run_programs() {
	local json=$work/program.json status=0
	program_sizes "$3"
	launcher_of "$2" default "$4" $(($4 > cores))
	if [[ $2 != tern ]]; then
		sample "$1" "$2" default "" "${command[@]}" "$work/$2-$3" "$rounds" "${for_mpi[@]}"
		return
	fi
	timeout -k 5 "$patience" "${command[@]}" "$build/bin/apps/$3" --json --repeat "$rounds" \
		"${for_tern[@]}" </dev/null >"$json" 2>"$said" || status=$?
	awk -v row="$3,$4,${for_mpi[0]}" '
		function value(key,   at) {
			at = index($0, "\"" key "\": ")
			if (!at)
				return ""
			at = substr($0, at + length(key) + 4)
			sub(/[,}].*/, "", at)
			gsub(/"/, "", at)
			return at
		}
		value("seconds") != "" {
			printf "tern,%s,%s,%.1f,%s\n", value("variant"), row, value("seconds") * 1e9,
				value("wrong") == 0 ? "yes" : "no"
		}' "$json" >>"$samples"
	((status == 0)) || failures+=("$1 failed with status $status: $(grep -m1 . "$said" || true)")
	((status == 0)) || tern_failed=1
}

tern_failed=
: >"$samples"
mapfile -t forward < <(plan rows start crowded programs count)
mapfile -t backward < <(plan rows start crowded programs | tac)
progress= done=0 all=$((${#forward[@]} + ${#backward[@]}))
[[ $plain || ! -t 2 ]] || progress=1
for line in "${forward[@]}" ${backward[@]+"${backward[@]}"}; do
	read -r part name setting n <<<"$line"
	done=$((done + 1))
	[[ ! $progress ]] || printf '\r\033[K%d/%d  %s: %s (%s), %d ranks' "$done" "$all" "$part" \
		"${title[$name]}" "$setting" "$n" >&2
	"run_$part" "${title[$name]} ($setting) with $n ranks" "$name" "$setting" "$n"
done
[[ ! $progress ]] || printf '\r\033[K' >&2
! has_word "$parts" crowded || command -v taskset >/dev/null ||
	missing+=("the rows of one core are left out: taskset is not installed (util-linux)")
! has_word "$parts" count || [[ ! $(count_lacks) ]] ||
	missing+=("instructions are left out: $(count_lacks)")

# -- The table --------------------------------------------------------------------------------

sort -t, -k1,5 -k6,6g "$samples" |
	awk -v cores="$cores" -v csv="$work/compare.csv" -v peers="${here_are[*]:1}" \
		-f "$here/table.awk"
echo
echo "time: the median of $((2 * rounds)) rounds at the slowest rank, on $cores cores;\
 * more ranks than cores"
if [[ " ${here_are[*]} " == *" mpich "* ]] && is_slow mpich "${ranks##*,}"; then
	echo "MPICH spins while it waits: with more ranks than cores it\
 $([[ $quick ]] && echo "is left out here" || echo "plays $SLOW_ROUNDS rounds")"
fi
echo "ratio: Tern's time over the peer's; below 1 Tern is ahead"
for line in ${missing[@]+"${missing[@]}"} ${failures[@]+"${failures[@]}"}; do
	echo "compare: $line"
done
echo "$work/compare.csv has the table, samples.csv beside it every sample"
! grep -q ',no$' "$samples" || {
	echo "compare: a result was wrong: see the rows marked 'no'" >&2
	exit 1
}
[[ ! $tern_failed ]] || exit 1
