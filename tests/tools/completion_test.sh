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
machines() { # WORDS of tern-machines
	COMP_WORDS=(tern-machines "$@") COMP_CWORD=$#
	_tern_machines
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
[[ $(completed '') == "$(printf '%s\n' $commands help version --help --version | sort)" ]] ||
	fail "they are others: $(completed '')"
offers "trace" tr
offers "perf" help pe

synopsis() { # PAGE: the options of its synopsis
	sed -n '/^\.Sh SYNOPSIS/,/^\.Sh DESCRIPTION/p' "$1" |
		grep -oP '(Fl \K-?[a-z][a-z-]*|[|] \K-[a-z-]+)' | sed 's/^/-/' | sort -u
}

echo "every option that is offered exists, every one that exists is offered, and so is the synopsis"
for command in $commands; do
	[[ $("$TERN_BIN/tern" "$command" --no-such-option 2>&1) != *"was built without"* ]] || continue
	options=$(completed "$command" -)
	[[ $options == *--help* ]] || fail "tern $command: no --help among: $options"
	for option in $options; do
		said=$("$TERN_BIN/tern" "$command" "$option" --no-such-option --no-such-option 2>&1)
		[[ $said == "usage: "* ]] || grep -q -- no-such-option <<<"$said" ||
			fail "tern $command $option: $said"
	done
	# -np is a second name of -n
	[[ $(synopsis man/tern-$command.1) == "$(grep -vx -- -np <<<"$options")" ]] ||
		fail "tern-$command(1): its synopsis has "$(synopsis man/tern-$command.1)
	folder_of=$command
	[[ $command != top && $command != why ]] || folder_of=watch
	for source in {src/tools,lab}/$folder_of/{options,$command}.c; do
		[[ -e $source ]] || continue
		for option in $(grep -oP '\.name = "--\K[a-z-]+' "$source"); do
			grep -qxe "--$option" <<<"$options" || fail "tern $command: not --$option"
		done
	done
done
[[ $(completed run -) == *-np* ]] || fail "tern run: not -np"

: >"$folder/program.c"
: >"$folder/my.profile"
echo "values are completed where there is a list of them"
offers "core none" run -n 4 --bind ''
offers "survivors" run --survive = s
offers "any first survivors" run --survive =
profiles=$("$TERN_BIN/tern" sim --profiles | sed 's/ .*//' | sort)
[[ $(wc -w <<<"$profiles") -ge 8 ]] || fail "there are too few profiles: $profiles"
offers "$(echo $(grep '^cm' <<<"$profiles") cmake)" sim -n 4 --profile cm
offers "ncube2" sim --profile = nc
offers "$folder/my.profile" sim -n 4 --profile "$folder/my"
offers "allreduce alltoall" sim -n 4 --pattern al

echo "programs and files are completed where they stand"
offers "$folder/program.c" run -n 4 "$folder/prog"
offers "$folder/program.c" run -n 4 ./solver "$folder/prog"
offers "$folder/program.c" trace "$folder/prog"
offers "" run -n 4 ./solver --surv
offers "" run -n 4 -- ./solver --surv
offers "$folder/program.c" sim --set latency = 2us "$folder/prog"
offers "$folder/program.c" sim -n 4 --heat "$folder/prog"
offers "" sim -n 4 --set latency = 2us ./solver --prof
offers "--survive" run --hosts a : 4,b -n 4 --env A = B --surv
[[ $(completed run -n 2 gre) == *grep* ]] || fail "programs of PATH are not completed"

[[ $(completed sim -n 2 gre) == *grep* ]] || fail "programs of PATH are not completed"

echo "tern-machines is completed, and the command after it"
[[ $(machines -) == --help ]] || fail "tern-machines -: "$(machines -)
[[ $(machines 2 gre) == *grep* ]] || fail "programs of PATH are not completed"
[[ $(machines 2 "$TERN_BIN/tern" run --hos) == --hosts ]] ||
	fail "tern-machines 2 tern run --hos: "$(machines 2 "$TERN_BIN/tern" run --hos)
[[ $(machines 2 ./solver "$folder/prog") == "$folder/program.c" ]] || fail "files are not completed"

((failed == 0)) || echo "$failed failed"
exit $((failed > 0))
