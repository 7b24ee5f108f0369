#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: LABELS slow once
# The man pages are well formed, complete, true to the header and the code, and their examples run.
set -uo pipefail

if ! command -v mandoc >/dev/null; then
	echo "skipped: mandoc is not installed"
	exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0
fail() {
	echo "    $1"
	failed=$((failed + 1))
}
text() { mandoc -T ascii "$1" | sed 's/.\x08//g'; } # PAGE, as one reads it

pages=() links=()
for page in man/*.[137]; do
	if [[ -L $page ]]; then
		links+=("$page")
	else
		pages+=("$page")
	fi
done

echo "the pages of layers and networks say who can do what"
for page in man/tern.7 man/tern_*.7 man/tern-{shm,udp,ofi}.7; do
	[[ $(sed -n '/^\.Sh SECURITY/,/^\.Sh SEE ALSO/p' "$page" | wc -l) -gt 5 ]] ||
		fail "$page has no SECURITY"
done

echo "every public function has a page in section 3, which describes it in its synopsis"
# HEADER, up to its inline path: what is declared from there on is the library's own
functions_of() {
	local code
	code=$(sed -e '/^\/\* -- The inline path/,$d' "$1" |
		sed -e ':again; $!N; s/\\\n//; t again; P; D' | # join what goes on in the next line
		sed -e 's|/\*.*\*/||' -e '/\/\*/,/\*\//d' |  # drop comments
		sed -e ':more; /,$/{ N; s/\n[[:space:]]*/ /; b more; }' | # a prototype in one line
		grep -v 'TERN_SIX_)')                        # and what only macros call
	{
		grep -oP '^#define \Ktern_[a-z0-9_]+(?=\()' <<<"$code"
		grep -vE '^(#|typedef|[[:space:]])' <<<"$code" |
			grep -oP '^[^(]*?\Ktern_[a-z0-9_]+(?=\()'
	} | grep -v '_$' | sort -u
}
# Each header, the page with its table, and how many functions it has at least.
headers=(tern:tern:35 op:tern:6 mem:tern_mem:34 lock:tern_mem:3 send:tern_msg:9 buf:tern_typed:6 \
	chan:tern_chan:20 coll:tern_coll:35 async:tern_async:6 thread:tern_spawn:9 \
	post:tern_post:2 sequence:tern_sequence:7 stats:tern:4 sim:tern-sim:1)
functions=
for header in "${headers[@]}"; do
	IFS=: read -r header _ least <<<"$header"
	some=$(functions_of include/tern/$header.h)
	[[ $(wc -l <<<"$some") -ge $least ]] || fail "$header.h seems to have too few: "$some
	functions+=$some$'\n'
done
synopsis() { sed -n '/^\.Sh SYNOPSIS/,/^\.Sh DESCRIPTION/s/^\.F[no] \([a-z0-9_]*\).*/\1/p' "$1"; }
for function in $functions; do
	page=man/$function.3
	[[ -s $page ]] || { fail "$function has none"; continue; }
	grep -qx "$function" <<<"$(synopsis "$page")" || fail "$page does not describe $function"
done

echo "every function in a synopsis is in a header"
for page in "${pages[@]}"; do
	for function in $(synopsis "$page"); do
		grep -qx "$function" <<<"$functions" || fail "$page describes $function"
	done
done

echo "every function that a page speaks of is in a header"
for function in $(sed -nE 's/^\.(It )?Fn (tern_[a-z0-9_]+)( .*|)$/\2/p' "${pages[@]}" | sort -u); do
	grep -qx "$function" <<<"$functions" ||
		fail "$(grep -lE "Fn $function( |\$)" "${pages[@]}" | head -1): $function"
done

echo "every link leads to a page that names it"
for link in "${links[@]}"; do
	name=$(basename "$link" .3) target=$(readlink "$link")
	[[ $target != */* && -s $link ]] && grep -q "^\.Nm $name\b" "$link" ||
		fail "$link leads to $target"
done

echo "every page that is referred to exists"
referred=$(grep -h '^\.' "${pages[@]}" | grep -oP '\bXr \Ktern[a-z0-9_-]* [0-9]' |
	tr ' ' . | sort -u)
for page in $referred; do
	[[ -s man/$page ]] || fail "$page does not"
done

echo "whoever opens a page of section 1 or 3 that has a namesake in section 7 is led there at once"
for page in man/*.7; do
	name=$(basename "$page" .7)
	for other in man/"$name".[13]; do
		[[ ! -e $other ]] || grep -qF "$name(7)" <<<"$(text "$other" | head -12)" ||
			fail "not from $other"
	done
done

echo "tern(7) and tern-developer(7) have every setting, tern(7) every error code"
model=$(text man/tern.7)$(text man/tern-developer.7)
for word in $(grep -oP '^\t\[SETTING_.*?"\KTERN_[A-Z_]+' src/base/setting.c) \
	$(grep -ohP 'error_set\(\s*-\KE[A-Z0-9]+' -r --exclude='*_test.c' \
		src/base src/boot src/core src/net | sort -u); do
	grep -qw -- "$word" <<<"$model" || fail "not $word"
done

for layer in mem msg typed chan coll async post spawn sequence; do
	echo "tern_$layer(7) has every error code of its layer"
	page=$(text "man/tern_$layer.7")
	codes=$(grep -ohP '(?<![\w-]|[!=]= |case )-\KE[A-Z0-9]{3,}\b' -r --exclude='*_test.c' \
		src/layers/$layer | sort -u)
	[[ $codes ]] || fail "src/layers/$layer has none"
	for word in $codes; do
		grep -qw -- "$word" <<<"$page" || fail "not $word"
	done
done

echo "the table of each page in section 7 has every function of its headers"
table() { awk '/^(   )?[A-Z]/ { on = /What is legal where/ } on' <<<"$1"; }
for header in "${headers[@]}"; do
	IFS=: read -r header page _ <<<"$header"
	legal=$(table "$(text man/$page.7)")
	for function in $(functions_of include/tern/$header.h); do
		[[ $function == tern_msg_* ]] || # which may be called anywhere, as the text says
			grep -qw "$function" <<<"$legal" || fail "$page(7): not $function"
	done
done

echo "each command's page has every option that its --help has"
for command in run info perf logp cost top why trace sim report; do
	page=$(text man/tern-$command.1)
	for option in $("$TERN_BIN/tern" $command --help |
		grep -oE -- '(^|[[:space:]])--[a-z][a-z-]*' | sort -u); do
		grep -q -- "$option" <<<"$page" || fail "tern-$command(1) does not have $option"
	done
done

display() { # N PAGE: the N-th display of the examples, as one would type it
	awk -v n="$1" '/^\.Sh/ { on = /EXAMPLES/ } /^\.Ed/ { inside = 0 } on && inside && at == n
		/^\.Bd/ && on { inside = 1; at++ }' "$2" | sed 's/\\e/\\/g'
}

echo "examples compile as they stand; those that are programs print what the page says"
lib=$TERN_BIN/../lib
code() { grep -qE '^(#include|static|enum|int) ' <<<"$1"; }
excerpt() { grep -qxF '\&...' <<<"$1"; }
# PAGE N: compiles the N-th display of its examples, runs it if it is a program, and compares with
# the next display
try() {
	local program=$folder/example said compiler=${CC:-cc} dialect=c11
	display "$2" "$1" >"$program.c"
	if grep -q '<tern/tern.hpp>' "$program.c"; then
		compiler=c++ dialect=c++17
		command -v c++ >/dev/null || { echo "no c++ here: $1 is not compiled"; return; }
	fi
	$compiler -x "${dialect%[0-9][0-9]}" -std=$dialect -O1 -Wall -Wextra -Werror -Iinclude \
		-c "$program.c" -o "$program.o" || {
		fail "$1"
		return
	}
	grep -q '^int main' "$program.c" || return
	$compiler "$program.o" -o "$program" -L"$lib" -ltern -Wl,-rpath,"$lib" || {
		fail "$1"
		return
	}
	timeout 100 "$program" >"$folder/out" 2>&1 ||
		fail "$1: its program returns $?: $(<"$folder/out")"
	# a long line goes on after \
	said=$(display $(($2 + 1)) "$1" | sed -e ':again; /\\$/ { N; s/\\\n *//; t again; }')
	code "$said" || [[ -z $said || $said == "$(<"$folder/out")" ]] ||
		fail "$1: its program prints: $(<"$folder/out")"
}
for page in "${pages[@]}"; do
	for ((n = 1; n < 9; n++)); do
		shown=$(display $n "$page")
		if code "$shown" && ! excerpt "$shown"; then
			try "$page" $n
		fi
	done
done

if man --version >/dev/null 2>&1; then
	echo "man shows every page in 80 columns without a warning"
	for page in man/*.[137]; do
		said=$(MANWIDTH=80 man --warnings -P cat -l "$page" 2>&1 >"$folder/out")
		[[ -z $said && -s $folder/out ]] || fail "$page: $(head -3 <<<"$said")"
		wide=$(col -bx <"$folder/out" | grep -E '.{81}') &&
			fail "$page: $(head -3 <<<"$wide")"
	done
else
	echo "man is not installed: the width of pages is not checked"
fi

[[ $failed == 0 ]] || echo "$failed failed"
exit $((failed > 0))
