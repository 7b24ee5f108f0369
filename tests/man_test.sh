#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: LABELS once
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
	if grep -q '^\.so ' "$page"; then
		links+=("$page")
	else
		pages+=("$page")
	fi
done

echo "every page passes mandoc's lint"
lint=$(mandoc -T lint -W warning "${pages[@]}" 2>&1) || fail "$lint"

echo "every public function has a page in section 3, which describes it in its synopsis"
functions_of() { # HEADER
	local code
	code=$(sed -e ':again; $!N; s/\\\n//; t again; P; D' "$1" | # join what goes on in the next line
		sed -e 's|/\*.*\*/||' -e '/\/\*/,/\*\//d' |       # drop comments
		grep -v 'TERN_SIX_)')                             # and what only macros call
	{
		grep -oP '^#define \Ktern_[a-z0-9_]+(?=\()' <<<"$code"
		grep -vE '^(#|typedef|[[:space:]])' <<<"$code" | grep -oP '^[^(]*?\Ktern_[a-z0-9_]+(?=\()'
	} | sort -u
}
core=$(functions_of include/tern/tern.h)
mem=$(functions_of include/tern/mem.h)
functions=$core$'\n'$mem
synopsis() { sed -n '/^\.Sh SYNOPSIS/,/^\.Sh DESCRIPTION/s/^\.F[no] \([a-z0-9_]*\).*/\1/p' "$1"; }
[[ $(wc -l <<<"$core") -ge 35 ]] || fail "tern.h seems to have too few: "$core
[[ $(wc -l <<<"$mem") -ge 40 ]] || fail "mem.h seems to have too few: "$mem
for function in $functions; do
	page=man/$function.3
	[[ -s $page ]] || { fail "$function has none"; continue; }
	target=$(sed -n 's|^\.so man3/|man/|p' "$page")
	grep -qx "$function" <<<"$(synopsis "${target:-$page}")" || fail "${target:-$page} does not describe $function"
done

echo "every function in a synopsis is in a header"
for page in man/*.3; do
	for function in $(synopsis "$page"); do
		grep -qx "$function" <<<"$functions" || fail "$page describes $function"
	done
done

echo "every link leads to a page that names it"
for link in "${links[@]}"; do
	name=$(basename "$link" .3) target=$(sed -n 's|^\.so man3/|man/|p' "$link")
	[[ -s $target ]] && grep -q "^\.Nm $name\b" "$target" || fail "$link leads to $target"
done

echo "every page that is referred to exists"
referred=$(sed -n 's/^\.Xr \(tern[a-z0-9_-]*\) \([0-9]\).*/\1.\2/p' "${pages[@]}" | sort -u)
for page in $referred; do
	[[ -s man/$page ]] || fail "$page does not"
done

echo "tern(7) has every setting and every error code"
model=$(text man/tern.7)
for word in $(grep -oP '^\t\[SETTING_.*?"\KTERN_[A-Z_]+' src/base/setting.c) \
	$(grep -ohP 'error_set\(\s*-\KE[A-Z0-9]+' -r src/base src/boot src/core src/net | sort -u); do
	grep -qw -- "$word" <<<"$model" || fail "not $word"
done

echo "tern_mem(7) has every error code of the memory layer"
memory=$(text man/tern_mem.7)
for word in $(grep -ohP 'error_set\(\s*-\KE[A-Z0-9]+' -r src/mem | sort -u); do
	grep -qw -- "$word" <<<"$memory" || fail "not $word"
done

echo "the tables of tern(7) and tern_mem(7) have every function that takes an endpoint or a message"
table() { sed -n '/What is legal where/,/^\(ENVIRONMENT\|   Limits\)/p' <<<"$1"; }
core_table=$(table "$model") mem_table=$(table "$memory")
for function in $core; do
	[[ $function == tern_msg_* ]] || grep -qw "$function" <<<"$core_table" || fail "not $function"
done
for function in $mem; do
	grep -qw "$function" <<<"$mem_table" || fail "not $function"
done

echo "each command's page has every option that its --help has"
for command in run info perf cost; do
	page=$(text man/tern-$command.1)
	for option in $("$TERN_BIN/tern" $command --help | grep -oE -- '(^|[[:space:]])--[a-z][a-z-]*' | sort -u); do
		grep -q -- "$option" <<<"$page" || fail "tern-$command(1) does not have $option"
	done
done

display() { # N PAGE: the N-th display of the examples, as one would type it
	awk -v n="$1" '/^\.Sh/ { on = /EXAMPLES/ } /^\.Ed/ { inside = 0 } on && inside && at == n
		/^\.Bd/ && on { inside = 1; at++ }' "$2" | sed 's/\\e/\\/g'
}

echo "the examples of the pages compile; those that are programs run, and print what the page says"
lib=$TERN_BIN/../lib
for page in man/*.3; do
	grep -q '^\.Sh EXAMPLES' "$page" || continue
	name=$(basename "$page" .3) source=$folder/$(basename "$page" .3).c
	{
		printf '#include <%s>\n' errno.h stdio.h stdlib.h string.h tern/tern.h tern/mem.h
		display 1 "$page"
	} >"$source"
	${CC:-cc} -std=c11 -O1 -Wall -Wextra -Werror -Wno-unused-but-set-variable -Iinclude -c "$source" -o "$folder/$name.o" ||
		{ fail "$page"; continue; }
	grep -q '^int main' "$source" || continue
	${CC:-cc} "$folder/$name.o" -o "$folder/$name" -L"$lib" -ltern -Wl,-rpath,"$lib" || { fail "$page"; continue; }
	timeout 20 "$folder/$name" >"$folder/out" 2>&1 || fail "$page: its program returns $?: $(<"$folder/out")"
	said=$(display 2 "$page")
	[[ -z $said || $said == "$(<"$folder/out")" ]] || fail "$page: its program prints: $(<"$folder/out")"
done

[[ $failed == 0 ]] || echo "$failed failed"
exit $((failed > 0))
