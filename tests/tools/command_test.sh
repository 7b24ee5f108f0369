#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: LABELS once
# `tern NAME` finds its programs as git does, and each program links only what it needs.
set -uo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0
fail() {
	echo "    failed: $1"
	failed=$((failed + 1))
}
program() { # FILE: a program that says where it is and what it was given
	mkdir -p "$(dirname "$1")"
	printf '#!/bin/sh\necho "%s: $*"\nexit 7\n' "$1" >"$1"
	chmod +x "$1"
}
says() { # TEXT WORDS of tern
	local said
	said=$("$tern" "${@:2}" 2>&1)
	[[ $said == *"$1"* ]] || fail "tern ${*:2}: $said"
}
mkdir -p "$folder/bin"
cp "$TERN_BIN/tern" "$folder/bin/tern"
tern=$folder/bin/tern
export PATH=$folder/path:$PATH

echo "a program on PATH is a command, with its words and its exit status"
program "$folder/path/tern-own"
"$tern" own a 'b c' >"$folder/said"
[[ $? == 7 && $(<"$folder/said") == "$folder/path/tern-own: a b c" ]] || fail "$(<"$folder/said")"
says "path/tern-own: --help" help own

echo "libexec/tern comes before PATH, and what is beside the command before both"
program "$folder/libexec/tern/tern-own"
says "libexec/tern/tern-own: x" own x
program "$folder/bin/tern-own"
says "bin/tern-own: x" own x

echo "the help lists what is there of Tern's own, and nothing else"
"$tern" help | grep -q '^  perf ' && fail "perf is listed and is not there"
"$TERN_BIN/tern" help | grep -q '^  top ' || fail "top is not listed and is there"

echo "an unknown name says what there is, and where it was looked for"
says "no command 'wyh'; did you mean 'tern why'?" wyh
says "There are run, why, trace. tern-wyh was looked for" wyh
says "tern-perf was looked for in $folder/bin, $folder/bin/../libexec/tern, " perf
says ", and on PATH" perf
says "no command '../bin/tern-own'" ../bin/tern-own
"$tern" perf 2>/dev/null
[[ $? == 2 ]] || fail "the exit status is another than 2"

echo "a command that is found and cannot be executed says why"
printf '#!/no/such/shell\n' >"$folder/bin/tern-broken"
chmod +x "$folder/bin/tern-broken"
says "executing $folder/bin/tern-broken: No such file" broken

if command -v readelf >/dev/null; then
	echo "the command needs libc alone, only cost libdw and Capstone"
	for file in "$TERN_BIN"/tern "$TERN_BIN"/tern-*; do
		allowed='lib(c|gcc_s|asan|ubsan|tsan|clang_rt.*|tern_internal)|ld-linux.*'
		grep -q __sanitizer_ "$file" && allowed+='|libm' # the runtime's
		case $file in
		*/tern) ;;
		*-cost) allowed+='|lib(m|sodium|dw|capstone|elf)' ;;
		*) allowed+='|lib(m|sodium)' ;;
		esac
		needs=$(readelf -d "$file" | sed -n 's/.*NEEDED.*\[\(.*\)\]/\1/p' |
			grep -vE "^($allowed)(-[0-9.]+)?\.so")
		[[ -z $needs ]] || fail "$file needs "$needs
	done
else
	echo "readelf is not installed: what programs link is not checked"
fi

((failed == 0)) || echo "$failed failed"
exit $((failed > 0))
