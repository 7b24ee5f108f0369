#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# scripts/size.sh [FOLDER...]: how much code a folder has, without tests: files, lines that are
# neither blank nor comment, and preprocessor tokens. Without an argument, every folder of src, the
# laboratory, and the library, which is all of src but tools.
set -euo pipefail
cd "$(dirname "$0")/.."

code() { # FOLDER: its code without comments
	find "$1" -name '*.[ch]' ! -name '*_test.c' -print0 |
		xargs -0r -n1 "${CC:-gcc}" -fpreprocessed -dD -E -P -x c 2>/dev/null |
		grep -v '^[[:space:]]*$' || true
}
token='[A-Za-z_][A-Za-z0-9_]*|[0-9][A-Za-z0-9_.]*|"([^"\\]|\\.)*"'
token+="|'([^'\\\\]|\\\\.)*'"
token+='|[-+*/%&|^<>=!]=|<<|>>|->|\+\+|--|&&|\|\||##|[^[:space:]]'
row() { printf '%-14s %6s %8s %8s\n' "$@"; }

row folder files lines tokens
files=0 lines=0 tokens=0
for folder in "${@:-src/*/ src/layers/*/ lab}"; do
	for part in $folder; do
		part=${part%/}
		text=$(code "$part")
		f=$(find "$part" -name '*.[ch]' ! -name '*_test.c' | wc -l)
		l=$(wc -l <<<"$text")
		t=$(grep -oE "$token" <<<"$text" | wc -l)
		row "$part" "$f" "$l" "$t"
		[[ $part =~ ^(lab|src/(tools|layers/.*))$ ]] ||
			files=$((files + f)) lines=$((lines + l)) tokens=$((tokens + t))
	done
done
(($#)) || row library "$files" "$lines" "$tokens"
