#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: LABELS once
# Bash completes the commands and options that there are, and no others.
set -uo pipefail

. scripts/completion.bash
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0
fail() {
	echo "    failed: $1"
	failed=$((failed + 1))
}
completed() { # WORDS: what the last of them may become, as bash splits them
	COMP_WORDS=("$TERN_BIN/tern" "$@") COMP_CWORD=$#
	_tern
	printf '%s\n' "${COMPREPLY[@]}" | sort -u
}
offers() { # "CHOICES" WORDS
	local said
	said=$(completed "${@:2}")
	[[ $(echo $said) == "$1" ]] || fail "tern ${*:2}: $(echo $said)"
}

echo "commands are those that tern has"
commands=$("$TERN_BIN/tern" --help | sed -n 's/^  \([a-z]*\) .*/\1/p')
[[ $(wc -w <<<"$commands") -ge 8 ]] || fail "the help has too few: $commands"
[[ $(completed '') == "$(printf '%s\n' $commands help --help --version | sort)" ]] ||
	fail "they are others: $(completed '')"
offers "trace" tr
offers "perf" help pe

echo "every option that is offered exists, and every one that exists is offered"
for command in $commands; do
	[[ $("$TERN_BIN/tern" "$command" --help 2>&1) != *"was built without"* ]] || continue
	options=$(completed "$command" -)
	[[ $options == *--help* ]] || fail "tern $command: no --help among: $options"
	for option in $options; do
		said=$("$TERN_BIN/tern" "$command" "$option" --no-such-option --no-such-option 2>&1)
		[[ $said == "usage: "* ]] || grep -q -- no-such-option <<<"$said" ||
			fail "tern $command $option: $said"
	done
	folder_of=$command
	[[ $command != top && $command != why ]] || folder_of=watch
	for source in src/tools/$folder_of/options.c src/tools/$folder_of/$command.c; do
		[[ -e $source ]] || continue
		for option in $(grep -oP '\.name = "--\K[a-z-]+' "$source" |
			grep -vxE 'agent|link'); do
			grep -qxe "--$option" <<<"$options" || fail "tern $command: not --$option"
		done
	done
done
[[ $(completed run -) == *-np* ]] || fail "tern run: not -np"

echo "values are completed where there is a list of them"
offers "core none" run -n 4 --bind ''
offers "survivors" run --survive = s
offers "any first survivors" run --survive =

echo "programs and files are completed where they stand"
: >"$folder/program.c"
offers "$folder/program.c" run -n 4 "$folder/prog"
offers "$folder/program.c" run -n 4 ./solver "$folder/prog"
offers "$folder/program.c" run --hostfile "$folder/prog"
offers "$folder/program.c" trace "$folder/prog"
offers "" run -n 4 ./solver --surv
offers "" run -n 4 -- ./solver --surv
[[ $(completed run -n 2 gre) == *grep* ]] || fail "programs of PATH are not completed"

((failed == 0)) || echo "$failed failed"
exit $((failed > 0))
