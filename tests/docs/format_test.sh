#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: LABELS once
# No line of a C file or a script is longer than 100 columns, and every C file is laid out as
# clang-format does it.
set -euo pipefail

# In scripts, a string counts as nothing: most have no place where they could be broken.
long_lines() { # FILE...
	local file quoted="s/'[^']*'//g; s/\"[^\"]*\"//g"
	for file in "$@"; do
		[[ $file != *.[ch] ]] || quoted=
		expand -t 8 "$file" | sed "$quoted" |
			awk -v file="$file" 'length > 100 { print file ":" NR ": " length " columns" }'
	done
}

echo "lines have at most 100 columns"
mapfile -t files < <(find include src lab tests examples apps -name '*.[ch]')
long=$(long_lines "${files[@]}")
mapfile -t files < <(find tests scripts models apps lab .ci -type f '(' -name '*.sh' -o -perm -u+x ')')
long+=$(long_lines "${files[@]}")
if [[ $long ]]; then
	echo "$long"
	exit 1
fi

echo "clang-format changes nothing"
if ! command -v clang-format >/dev/null; then
	echo "skipped: clang-format is not installed"
	exit 77
fi
if [[ $(clang-format --version) != *"version 14."* ]]; then
	echo "skipped: another clang-format than 14 lays some lines out differently"
	exit 77
fi
scripts/format.sh --dry-run -Werror || {
	echo "run: make format"
	exit 1
}
