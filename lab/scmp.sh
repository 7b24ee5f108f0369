#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# lab/scmp.sh [OPTIONS] [TABLE...]: the stressmarks of the thesis on SCMP (ch. 6), simulated.
#
# Tables, in Markdown: speedup, improvement (beside the thesis' percentages), changes (each change
# of the machine switched off alone), ranges (over which values of what the thesis omits the sign
# holds), depth (figure 6.1). Without one, the first two.
#
#   --nodes LIST   for the first two; 1,2,4,8,16,32,64 unless said
#   --at N         for the others: nodes; 16 unless said
#   --quick        smaller problems, and up to 16 nodes
#   --data FILE    keeps what was run, as CSV; what is there already is not run again
#   --have         runs nothing: what FILE does not have is -
#   --plot FILE    an SVG of the speed-ups
#   --sizes        prints what is run, and nothing else
# BUILD=FOLDER takes another build than build/.
set -euo pipefail
cd "$(dirname "$0")/.."

bin=${BUILD:-build}/bin
nodes= at=16 quick= have= data= plot= only=
tables=()
die() { echo "lab/scmp.sh: $*" >&2; exit 2; }
while (($#)); do
	case $1 in
	--nodes) nodes=$2 && shift ;;
	--at) at=$2 && shift ;;
	--quick) quick=1 ;;
	--have) have=1 ;;
	--data) data=$2 && shift ;;
	--plot) plot=$2 && shift ;;
	--sizes) only=1 ;;
	speedup | improvement | changes | ranges | depth) tables+=("$1") ;;
	*) die "there is no $1" ;;
	esac
	shift
done
[[ $nodes ]] || nodes=1,2,4,8,16$([[ $quick ]] || echo ,32,64)
((${#tables[@]})) || tables=(speedup improvement)
kept=$(mktemp)
trap 'rm -f "$kept" "$kept.err" "$kept.points"' EXIT
[[ $data ]] || data=$kept
touch "$data"

# Name, program and options, variants of send and receive; what the thesis has, in per cent, and on
# how many nodes.
if [[ $quick ]]; then
	marks=(
		"neighborhood 7 bits|neighborhood --naive 1 --bits 7 --side 64|send|25.49|64"
		"matrix (CG)|cg --naive 1 --rows 1000|send|3.21|64"
		"closure|closure --vertices 100|send|0.9|64"
		"LU|lu --size 128|ready,rendezvous|15.06,16.67|64"
	)
else
	marks=(
		"neighborhood 7 bits|neighborhood --naive 1 --bits 7|send|25.49|64"
		"neighborhood 11 bits|neighborhood --naive 1 --bits 11|send|44.4|64"
		"neighborhood 15 bits|neighborhood --naive 1 --bits 15|send|51.02|16"
		"matrix (CG)|cg --naive 1|send|3.21|64"
		"closure|closure|send|0.9|64"
		"LU|lu|ready,rendezvous|15.06,16.67|64"
	)
fi
mark() { IFS='|' read -r name program styles thesis peak <<<"$1"; }
if [[ $only ]]; then
	for m in "${marks[@]}"; do
		mark "$m"
		echo "$name: $program --variant active,$styles"
	done
	exit
fi

# -- Runs ------------------------------------------------------------------------------------------

# MACHINE NODES PROGRAM STYLES: plays active and these where that is not known yet. MACHINE: a
# profile, and keys behind commas. A machine that stands still is noted as a deadlock.
play() {
	local style
	for style in active ${4//,/ }; do play_style "$1" "$2" "$3" "$style"; done
}
play_style() { # MACHINE NODES PROGRAM STYLE
	local keys key set=() told
	[[ ! $have ]] && ! grep -qF "$1;$2;$3;$4;" "$data" || return 0
	echo "$3, $4, on $2 nodes of $1" >&2
	IFS=, read -ra keys <<<"$1"
	for key in "${keys[@]:1}"; do set+=(--set "$key"); done
	# shellcheck disable=SC2086 # options of the program
	told=$("$bin/tern" sim -n "$2" --profile "${keys[0]}" "${set[@]}" "$bin/apps/"$3 \
		--variant "$4" --repeat 1 --json 2>"$kept.err") || grep -q 'stands still' "$kept.err" ||
		die "$3 on $2 nodes of $1: $(<"$kept.err")"
	told=$(sed -nE 's/.*"seconds": ([0-9.e-]+),.*"messages": ([0-9.e+]+).*/\1;\2/p' <<<"$told")
	echo "$1;$2;$3;$4;${told:-deadlock;}" >>"$data"
}
seconds() { # MACHINE NODES PROGRAM STYLE
	awk -F';' -v key="$1;$2;$3;$4" '$1 ";" $2 ";" $3 ";" $4 == key { print $5; exit }' "$data"
}
machine_of() { [[ $1 == active ]] && echo scmp-original || echo scmp; } # STYLE
all() { # plays every mark, in each style on the machine that is made for it
	local m n style
	for m in "${marks[@]}"; do
		mark "$m"
		for n in ${nodes//,/ }; do
			for style in active ${styles//,/ }; do
				play_style "$(machine_of "$style")" "$n" "$program" "$style"
			done
		done
	done
}
ratio() { awk -v a="$1" -v b="$2" 'BEGIN { if (a + 0 && b + 0) printf "%.2f", a / b; else print b + 0 || !b ? "-" : b }'; }
gain() { # in per cent, how much less the second is
	awk -v a="$1" -v b="$2" 'BEGIN {
		if (a + 0 && b + 0) printf "%+.1f", 100 * (1 - b / a); else print b ? b : "-" }'
}
# MACHINE NODES PROGRAM STYLE: of a style there, over request threads on the original machine
improved() {
	gain "$(seconds scmp-original "$2" "$3" active)" "$(seconds "$1" "$2" "$3" "$4")"
}

# -- Tables ----------------------------------------------------------------------------------------

rule() { printf -- '|---%.0s' $(seq "$1") && echo '|'; }
speedup() {
	local m n machine style one
	all
	echo "| stressmark | style | machine | ${nodes//,/ | } |"
	rule $((3 + $(tr -cd , <<<"$nodes" | wc -c) + 1))
	for m in "${marks[@]}"; do
		mark "$m"
		one=$(seconds scmp-original "${nodes%%,*}" "$program" active)
		for style in active ${styles//,/ }; do
			machine=$(machine_of "$style")
			printf '| %s | %s | `%s` ' "$name" "$style" "$machine"
			for n in ${nodes//,/ }; do
				printf '| %s ' "$(ratio "$one" "$(seconds "$machine" "$n" "$program" \
					"$style")")"
			done
			echo '|'
		done
	done
}
improvement() {
	local m n style i told
	all
	echo "| stressmark | style | ${nodes//,/ | } | thesis |"
	rule $((3 + $(tr -cd , <<<"$nodes" | wc -c) + 1))
	for m in "${marks[@]}"; do
		mark "$m"
		IFS=, read -ra told <<<"$thesis"
		i=0
		for style in ${styles//,/ }; do
			printf '| %s | %s ' "$name" "$style"
			for n in ${nodes//,/ }; do
				printf '| %s ' "$(improved scmp "$n" "$program" "$style")"
			done
			printf '| %s %% on %s |\n' "${told[i]}" "$peak"
			i=$((i + 1))
		done
	done
}
changes() {
	local m style machine kinds=(scmp scmp,thread_queues=0 scmp,descriptors=0 scmp-original)
	echo "| stressmark | style | both changes | one queue | data in the queue | neither |"
	rule 6
	for m in "${marks[@]}"; do
		mark "$m"
		for style in active ${styles//,/ }; do
			printf '| %s | %s ' "$name" "$style"
			for machine in "${kinds[@]}"; do
				play "$machine" "$at" "$program" "$styles"
				play scmp-original "$at" "$program" "$styles"
				printf '| %s ' "$(improved "$machine" "$at" "$program" "$style")"
			done
			echo '|'
		done
	done
}
# What the thesis omits: its name, the key or option, the values, and which stressmarks it is for.
omitted=(
	"a load or a store|load=1cycles,store=1cycles load=2cycles,store=2cycles load=4cycles,store=4cycles load=10cycles,store=10cycles|"
	"a floating-point operation|floating=1cycles floating=2cycles floating=4cycles floating=10cycles|"
	"an integer operation|integer=1cycles integer=2cycles integer=4cycles|"
	"instructions for a message's head|command=1cycles,command_block=2cycles command=4cycles,command_block=8cycles command=10cycles,command_block=20cycles|"
	"a message in the NIU|send_request=1cycles,send_reply=1cycles,receive=1cycles send_request=4cycles,send_reply=4cycles,receive=4cycles send_request=10cycles,send_reply=10cycles,receive=10cycles|"
	"a thread's quantum|quantum=25cycles quantum=100cycles quantum=1000cycles|"
	"depth of a virtual channel|channel_flits=1 channel_flits=4 channel_flits=16|"
	"virtual channels|channels=4 channels=8 channels=16|"
	"side of the image|--side=64 --side=128 --side=256|neighborhood"
	"first partner: the next node, the first|--naive=0 --naive=1|neighborhood cg"
	"elements in half a row|--offsets=1 --offsets=4 --offsets=16|cg"
)
# One cell for each value, in the order of the values; without the largest problems.
range_cell() { # VALUES STYLE, of the mark
	local value machine original options
	for value in $1; do
		machine=scmp,$value original=scmp-original,$value options=$program
		if [[ $value == --* ]]; then
			machine=scmp original=scmp-original options="$program ${value/=/ }"
		fi
		play_style "$original" "$at" "$options" active
		play_style "$machine" "$at" "$options" "$2"
		printf '%s ' "$(gain "$(seconds "$original" "$at" "$options" active)" \
			"$(seconds "$machine" "$at" "$options" "$2")")"
	done
}
ranges() {
	local o m what values who shown style value row heads="| what the thesis omits | values |"
	local rows=()
	for o in "${omitted[@]}"; do
		IFS='|' read -r what values who <<<"$o"
		shown=
		for value in $values; do
			value=${value%%,*} shown+="${shown:+, }${value#*=}"
		done
		row="| $what | ${shown//cycles/} |"
		for m in "${marks[@]}"; do
			mark "$m"
			[[ $program == *"--bits 15" ]] && continue
			[[ $program == closure ]] && program="closure --vertices 200"
			for style in ${styles//,/ }; do
				((${#rows[@]})) || heads+=" $name, $style |"
				if [[ ! $who || " $who " == *" ${program%% *} "* ]]; then
					row+=" $(range_cell "$values" "$style")|"
				else
					row+=" |"
				fi
			done
		done
		rows+=("$row")
	done
	echo "$heads"
	rule $(($(tr -cd '|' <<<"$heads" | wc -c) - 1))
	printf '%s\n' "${rows[@]}"
}
depth() {
	local style queue n program="neighborhood --naive 1 --bits 11"
	[[ $quick ]] && program="neighborhood --naive 1 --bits 7 --side 64"
	echo "| style | flits | ${nodes//,/ | } |"
	rule $((3 + $(tr -cd , <<<"$nodes" | wc -c)))
	for style in send active; do
		for queue in 2 4 8 16 32 64 128; do
			printf '| %s | %s ' $style $queue
			for n in ${nodes//,/ }; do
				play_style scmp,queue=$queue "$n" "$program" $style
				printf '| %s ' "$(ratio "$(seconds scmp,queue=$queue "${nodes%%,*}" \
					"$program" $style)" "$(seconds scmp,queue=$queue "$n" \
					"$program" $style)")"
			done
			echo '|'
		done
	done
}

# -- The plot --------------------------------------------------------------------------------------

# What `tern report --points` draws.
points() {
	local m n style one
	echo "chart,line,nodes,speed-up"
	for m in "${marks[@]}"; do
		mark "$m"
		one=$(seconds scmp-original "${nodes%%,*}" "$program" active)
		for n in ${nodes//,/ }; do
			echo "$name,ideal,$n,$(ratio "$n" "${nodes%%,*}")"
			echo "$name,active original,$n,$(ratio "$one" "$(seconds \
				scmp-original "$n" "$program" active)")"
			for style in ${styles//,/ }; do
				echo "$name,$style new,$n,$(ratio "$one" "$(seconds scmp "$n" \
					"$program" "$style")")"
			done
		done
	done
}

for t in "${tables[@]}"; do
	$t
	[[ $t == "${tables[-1]}" ]] || echo
done
if [[ $plot ]]; then
	all
	points >"$kept.points"
	"$bin/tern" report --points "$kept.points" >"$plot"
fi
