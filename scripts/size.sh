#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# scripts/size.sh [--tsv] [FOLDER...]: how much code a folder has, without tests: files, lines that
# are neither blank nor comment, and preprocessor tokens. Without a FOLDER: the public headers,
# every folder of src, the laboratory; the core, which is src without tools, layers, checks and the
# simulated machine; the library, which is src without tools, and the public headers. --tsv: with
# tabs, for programs.
set -euo pipefail
cd "$(dirname "$0")/.."

format='%-20s %6s %8s %8s\n'
if [[ ${1-} == --tsv ]]; then
	format='%s\t%s\t%s\t%s\n'
	shift
fi
code() { # FOLDER: its code without comments
	find "$1" -name '*.[ch]' ! -name '*_test.c' -print0 |
		xargs -0r -n1 "${CC:-gcc}" -fpreprocessed -dD -E -P -x c 2>/dev/null |
		grep -v '^[[:space:]]*$' || true
}
token='[A-Za-z_][A-Za-z0-9_]*|[0-9][A-Za-z0-9_.]*|"([^"\\]|\\.)*"'
token+="|'([^'\\\\]|\\\\.)*'"
token+='|[-+*/%&|^<>=!]=|<<|>>|->|\+\+|--|&&|\|\||##|[^[:space:]]'
# shellcheck disable=SC2059
row() { printf "$format" "$@"; }
sums() { # of the rows on stdin
	awk '/^(include|src\/[a-z]+) / && !/^src\/tools / {
			for (i = 2; i <= 4; i++) {
				library[i] += $i
				core[i] += /^(include|src\/(layers|check)) / ? 0 : $i
			}
		}
		/^src\/net\/sim / { for (i = 2; i <= 4; i++) core[i] -= $i }
		END {
			print "core", core[2], core[3], core[4]
			print "library", library[2], library[3], library[4]
		}'
}

row folder files lines tokens
rows=
for part in "${@:-include src/*/ src/net/sim src/layers/*/ lab}"; do
	for folder in $part; do
		folder=${folder%/}
		text=$(code "$folder")
		f=$(find "$folder" -name '*.[ch]' ! -name '*_test.c' | wc -l)
		l=$(grep -c . <<<"$text") t=$(grep -oE "$token" <<<"$text" | wc -l) || true
		one=("$folder" "$f" "$l" "$t")
		row "${one[@]}"
		rows+="${one[*]}"$'\n'
	done
done
(($#)) || sums <<<"$rows" | while read -ra one; do row "${one[@]}"; done
