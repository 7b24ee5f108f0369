#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# scripts/figures.sh [--exact | BLOCK...]: writes the figures of docs/ anew, with date and machine.
#
# docs/cost.md has blocks between the lines <!-- figures: BLOCK --> and <!-- end: BLOCK -->, and so
# has docs/scmp.md. This script is the only writer of a block, so a figure stands once and cannot
# contradict another.
# --exact leaves out what depends on the clock; --list prints the names of the blocks.
# BUILD=FOLDER measures another build than build/.
set -euo pipefail
cd "$(dirname "$0")/.."

exact=(drawings counts cost scmp)
timed=(perf paper delivery flow logp)
page=docs/cost.md
bin=${BUILD:-build}/bin
text=$(mktemp)
trap 'rm -f "$text"' EXIT

machine() { # one line: when, of which commit, and where
	local model
	model=$(sed -n 's/^model name[[:space:]]*: //p' /proc/cpuinfo | head -1)
	printf 'Written by `make figures`, %s, commit %s\n' "$(date -u +%F)" \
		"$(git describe --always --dirty --exclude='*')"
	printf '(%s, %s cores;\ngcc %s, Linux %s).\n' "${model:-$(uname -m)}" "$(nproc)" \
		"$(${CC:-cc} -dumpfullversion)" "$(uname -r | cut -d- -f1)"
}

block() { # NAME: what stands in $text becomes the block
	grep -qx "<!-- figures: $1 -->" $page || { echo "$page has no block $1" >&2; return 1; }
	{
		echo
		machine
		echo
		sed 's/[[:space:]]*$//' "$text"
		echo
	} >"$text.new"
	awk -v name="$1" -v new="$text.new" '
		$0 == "<!-- end: " name " -->" { skip = 0 }
		!skip
		$0 == "<!-- figures: " name " -->" {
			skip = 1
			while ((getline line < new) > 0)
				print line
		}' $page >"$text.page"
	cat "$text.page" >$page
	rm -f "$text.new" "$text.page"
}

shown() { # NAME TITLE COMMAND...: the block is the command and what it prints
	echo "$1: $2"
	{ printf '```\n$ %s\n' "$2" && "${@:3}" 2>/dev/null && echo '```'; } >"$text"
	block "$1"
}

drawings() {
	local source
	for source in docs/*.draw; do
		echo "drawings: ${source%.draw}.svg"
		scripts/draw.sh "$source" >"$text"
		cat "$text" >"${source%.draw}.svg"
	done
	scripts/api.py >"$text" && cat "$text" >docs/api.md
}

# -- counts: the table of instruction counts -----------------------------------------------------

records=
number() { # OPERATION KEY [SIDE]: of what `tern cost --json` printed
	grep -F "\"operation\": \"$1\"" <<<"$records" |
		{ [[ ${3-} ]] && grep -oE "\"$3\": \{[^}]*" || cat; } |
		grep -oE "\"$2\": [0-9]+" | head -1 | grep -oE '[0-9]+$'
}
budget() { # OPERATION: of what cost_budget_test printed
	sed -nE "s/^$1 +[0-9]+ of +([0-9]+).*/\1/p" <<<"$budgets"
}
printed() { # TEXT LABEL N: the N-th number behind the label
	sed -n "s/^$2//p" <<<"$1" | head -1 | grep -oE '[0-9]+(\.[0-9]+)?' | sed -n "$3p"
}
row() { printf '| %s | %s | %s |\n' "$1" "$2" "$3"; }
whole() { # OPERATION WORDS: a row with its budget, the copy apart
	local copy total
	copy=$(($(number "$1" copy source) + $(number "$1" copy destination))) \
		total=$(number "$1" total)
	row "$2" "$(budget "$1")" "$((total - copy))$( ((copy)) && echo ", and $copy to copy" ||
		true)"
}
counts() {
	local budgets loops poll
	echo "counts: tern cost, count_test, step_test, switch_count_test"
	records=$("$bin/tern" cost --json 2>/dev/null)
	budgets=$("$bin/cost_budget_test")
	loops=$("$bin/count_test")
	poll=$(($(number request-4 alone) - $(number request-4 total)))
	{
		echo "| path | budget | counted |"
		echo "|---|---|---|"
		row "send a 4-word request" "about 30" "$(number request-4 total source)"
		row "take it in, up to the handler's first instruction" "about 17" \
			"$(number request-4 total destination)"
		whole request-4 "both"
		row "a poll, besides its messages" "" "$poll"
		row "four 1-word requests, which share a line: send, take in" "" \
			"$(number request-1 total source), $(number request-1 total destination)"
		whole stream-16-by-8 "64 bytes as a stream: two 4-word requests"
		whole finite-16-put-then "64 bytes from memory to memory: a put, then a request"
		whole finite-1024-put-then "4,096 bytes, likewise"
		row "an 8-word request, in two lines: send, take in" "80 together" \
			"$(printed "$loops" '8-word request' 1), $(printed "$loops" \
			'8-word request' 2)"
		whole finite-16-data "64 bytes as a payload, used where it lies"
		whole put-8 "put of 8 bytes to a heap"
		row "put a value into a channel, average of a lap" 5 \
			"$(printed "$loops" 'channel value' 1)"
		row "get a value from a channel, likewise" 5 "$(printed "$loops" 'channel value' 2)"
		row '`tern_send` of 8 bytes to a posted receive: sender, receiver' "" \
			"$(printed "$loops" '8-byte send' 1), $(printed "$loops" '8-byte send' 2)"
		row "the same with 10,000 receives posted" "1.3 times that" \
			"$(printed "$loops" '  among 10,000' 1), $(printed "$loops" \
			'  among 10,000' 2)"
		row '`tern_hold` and `tern_release` together' 8 \
			"$(printed "$("$bin/step_test")" '    poll:' 1)"
		row "switch between two light threads" 30 \
			"$(printed "$("$bin/switch_count_test")" switch 1)"
	} >"$text"
	block counts
}

cost() {
	shown cost "tern cost" "$bin/tern" cost --plain
	"$bin/tern" cost --plot docs/cost.svg >/dev/null 2>&1
}

scmp() { # of virtual time, so exact; docs/scmp.md has larger problems besides
	local page=docs/scmp.md
	echo "scmp: lab/scmp.sh --quick"
	lab/scmp.sh --quick 2>/dev/null >"$text"
	block scmp
}

# -- what depends on the clock: let nothing else run meanwhile ------------------------------------

perf() { shown perf "tern perf" "$bin/tern" perf --plain; }
paper() { shown paper "tern perf --paper" "$bin/tern" perf --paper --plain; }
delivery() {
	shown delivery "tern perf --delivery --plot delivery.svg" \
		"$bin/tern" perf --delivery --plain --plot docs/delivery.svg
}
flow() { shown flow "tern perf --flow" "$bin/tern" perf --flow --plain; }
logp() { shown logp "tern logp" "$bin/tern" logp --plain; }

case ${1-} in
--list) printf '%s\n' "${exact[@]}" "${timed[@]}" && exit ;;
--exact) blocks=("${exact[@]}") ;;
'') blocks=("${exact[@]}" "${timed[@]}") ;;
*) blocks=("$@") ;;
esac
for name in "${blocks[@]}"; do
	[[ " ${exact[*]} ${timed[*]} " == *" $name "* ]] || {
		echo "figures.sh: no block is called $name; --list names them" >&2
		exit 2
	}
	"$name"
done
