#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Measures Tern beside the MPI implementations that are installed, and prints one table.
# docs/compare.md says how it measures. `make compare` runs it; --help has the options.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(dirname "$here")

usage="usage: compare/run.sh [OPTIONS]

Measures Tern beside Open MPI and MPICH on this machine, in one run, and prints a table: the median
of each row, at the slowest rank, and Tern's time over the peer's. Below 1 Tern is ahead.

  --quick          fewer ranks, sizes, settings and rounds: about a minute; a look, not a figure
  --ranks LIST     numbers of ranks (2,4,8,16); those above the cores are marked with *
  --sizes LIST     bytes, multiples of 8 (8,64,512,4096,32768,262144,1048576,4194304)
  --peers LIST     of openmpi and mpich (both, where they are installed)
  --rounds N       rounds of each program, which runs twice (10)
  --patience S     seconds before a program that does not end is given up (120)
  --build FOLDER   the build of Tern (build)
  --plain          no progress, on a terminal too
  --help           print this

BUILD/compare/ keeps the programs, samples.csv (every sample) and compare.csv (the table)."

quick= plain= peers=openmpi,mpich ranks= sizes= rounds= patience= build=$root/build
refuse() {
	echo "compare: $1" >&2
	exit 2
}
is_list() { [[ $1 =~ ^[0-9]+(,[0-9]+)*$ ]]; }

while (($#)); do
	case $1 in
	--quick) quick=1 ;;
	--plain) plain=1 ;;
	--help)
		echo "$usage"
		exit 0
		;;
	--ranks | --sizes | --peers | --rounds | --patience | --build)
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
	[[ $name == openmpi || $name == mpich ]] ||
		refuse "--peers takes openmpi and mpich, not '$name'"
done

# -- The programs -----------------------------------------------------------------------------

work=$build/compare
samples=$work/samples.csv said=$work/stderr
cores=$(nproc)
declare -A title=([tern]="Tern" [openmpi]="Open MPI" [mpich]="MPICH")
declare -A packages=([openmpi]="openmpi-bin libopenmpi-dev" [mpich]="mpich libmpich-dev")
flags=(-O2 -std=gnu11)

if [[ ! -x $build/bin/tern ]]; then
	echo "compare: $build has no Tern: run make first, or name another folder with --build" >&2
	exit 1
fi
mkdir -p "$work"
${CC:-cc} "${flags[@]}" -I"$root/include" "$here/measure.c" "$here/tern.c" -o "$work/tern" \
	-L"$build/lib" -ltern -Wl,-rpath,"$(cd "$build/lib" && pwd)"

here_are=(tern)
missing=()
for name in ${peers//,/ }; do
	if ! command -v "mpicc.$name" >/dev/null || ! command -v "mpirun.$name" >/dev/null; then
		missing+=("${title[$name]} is left out: it is not installed (${packages[$name]})")
	elif ! "mpicc.$name" "${flags[@]}" "$here/measure.c" "$here/mpi.c" -o "$work/$name" \
		2>"$said"; then
		missing+=("${title[$name]} is left out: mpicc.$name does not compile (is \
${packages[$name]#* } installed?)")
	else
		here_are+=("$name")
	fi
done

# -- The runs ---------------------------------------------------------------------------------

# MPICH spins while it waits: with more ranks than cores each wait takes a slice of the scheduler.
is_slow() { [[ $1 == mpich ]] && (($2 > cores)); } # PEER RANKS
SLOW_ROUNDS=2

# A plan is lines of PEER SETTING RANKS.
settings() { # PEER
	case $1:$quick in
	openmpi:) echo default tuned sm ucx ;;
	openmpi:1) echo default sm ;;
	*) echo default ;;
	esac
}
plan() {
	local n name setting
	for n in ${ranks//,/ }; do
		for name in "${here_are[@]}"; do
			[[ ! $quick ]] || ! is_slow "$name" "$n" || continue
			for setting in $(settings "$name"); do
				echo "$name $setting $n"
			done
		done
	done
}

vader=(--mca pml ob1 --mca btl "self,vader")
command_of() { # PEER SETTING RANKS: into `command`
	local crowded=$(($3 > cores)) n=$rounds
	! is_slow "$1" "$3" || n=$((rounds < SLOW_ROUNDS ? rounds : SLOW_ROUNDS))
	case $1 in
	tern)
		command=("$build/bin/tern" run -n "$3")
		((crowded)) || command+=(--bind core)
		;;
	mpich)
		command=(mpirun.mpich -n "$3")
		((crowded)) || command+=(-bind-to core)
		;;
	openmpi)
		command=(mpirun.openmpi -n "$3")
		if ((crowded)); then
			command+=(--oversubscribe --bind-to none --mca mpi_yield_when_idle 1)
		else
			command+=(--bind-to core)
		fi
		;;
	esac
	case $2 in
	tuned) command+=("${vader[@]}" --mca coll "tuned,basic,libnbc,self,inter") ;;
	sm) command+=("${vader[@]}" --mca coll_sm_priority 100) ;;
	ucx)
		command+=(--mca pml ucx --mca pml_ucx_tls any --mca pml_ucx_devices any)
		command+=(-x "UCX_TLS=sm,self")
		;;
	esac
	command+=("$work/$1" "$n" "$microseconds" "$sizes")
}

# Open MPI refuses to run as root unless it is told so twice.
export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
failures=()
run_one() { # PEER SETTING RANKS
	local status=0 what="${title[$1]} ($2) with $3 ranks"
	command_of "$@"
	timeout -k 5 "$patience" "${command[@]}" </dev/null 2>"$said" |
		sed -nE "s/^([a-z-]+,[0-9]+,[0-9]+,[0-9.]+,(yes|no))\$/$1,$2,\1/p" >>"$samples" ||
		status=$?
	((status)) || return 0
	if ((status == 124 || status == 137)); then
		failures+=("$what did not end within $patience s; what it had measured counts")
	else
		failures+=("$what failed with status $status: $(grep -m1 . "$said" || true)")
	fi
	[[ $1 != tern ]] || tern_failed=1
}

tern_failed=
: >"$samples"
mapfile -t forward < <(plan)
mapfile -t backward < <(plan | tac)
progress= done=0 all=$((2 * ${#forward[@]}))
[[ $plain || ! -t 2 ]] || progress=1
for line in "${forward[@]}" "${backward[@]}"; do
	read -r name setting n <<<"$line"
	done=$((done + 1))
	[[ ! $progress ]] || printf '\r\033[K%d/%d  %s (%s), %d ranks' "$done" "$all" \
		"${title[$name]}" "$setting" "$n" >&2
	run_one "$name" "$setting" "$n"
done
[[ ! $progress ]] || printf '\r\033[K' >&2

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
