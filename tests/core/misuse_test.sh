#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Every function of the library is given objects that are NULL, closed or freed, by
# tests/core/misuse.c: the table there has each function that the library exports, and no other.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
nm -D --defined-only "$TERN_BIN/../lib/libtern.so" |
	awk '$2 == "T" && $3 ~ /^tern_/ { sub(/@.*/, "", $3); print $3 }' | sort >"$folder/exported"
"$TERN_BIN/misuse" --list | sort >"$folder/table"
[[ $(wc -l <"$folder/exported") -ge 150 ]] || { echo "nm finds no functions"; exit 1; }
diff "$folder/exported" "$folder/table" || {
	echo "FAIL: tests/core/misuse_table.h has other functions (>) than the library exports (<)"
	exit 1
}
for check in 0 1; do
	echo "TERN_CHECK=$check"
	TERN_CHECK=$check MALLOC_PERTURB_=165 "$TERN_BIN/misuse" # what is freed is written over
done
# A sanitizer takes the fault itself.
(ulimit -c 0 && TERN_CHECK=0 "$TERN_BIN/misuse" --inline) 2>"$folder/said" && exit 1
! grep -q Sanitizer "$folder/said" || exit 0

echo "with TERN_CHECK=1 an inline call of NULL ends with SIGSEGV and a sentence"
(ulimit -c 0 && TERN_CHECK=1 "$TERN_BIN/misuse" --inline) 2>"$folder/said" && exit 1
[[ $? == 139 ]]
grep -q '^tern: NULL was used, at address' "$folder/said" || { cat "$folder/said"; exit 1; }
(ulimit -c 0 && TERN_CHECK=0 "$TERN_BIN/misuse" --inline) 2>"$folder/said" && exit 1
if grep -q '^tern: NULL' "$folder/said"; then
	cat "$folder/said"
	exit 1
fi
