#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: LABELS once
# What instructions are for stands in lab/cost/marks.txt for files and functions that exist, and in
# the sources for single lines. `tern cost` is built from it on x86-64 alone; this looks everywhere.
set -uo pipefail

command -v awk >/dev/null || { echo "skipped: there is no awk"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0
fail() {
	echo "    failed: $1"
	failed=$((failed + 1))
}
sources=$(find include -name '*.h' && find src lab/cost -name '*.[ch]')

echo "every file and function of the table exists, and every annotation is one"
awk -f cmake/cost.awk lab/cost/marks.txt $sources >"$folder/marks.c" 2>"$folder/said" ||
	fail "$(<"$folder/said")"
[[ $(grep -c '^	{ "' "$folder/marks.c") -gt 500 ]] || fail "there are too few"
${CC:-cc} -fsyntax-only -I. -Isrc -Iinclude -Isrc/layers "$folder/marks.c" || fail "it is no C"

echo "a function has the meaning of the table, from its brace to its brace"
cat >"$folder/a.c" <<'END'
__attribute__((noinline)) int one(int n,
				  int m)
{
	return n + m; /* cost: flow status */
}

struct between {
	int n;
};

int two(void)
{
	return 2;
}
END
refused() { # SENTENCE TABLE
	awk -f cmake/cost.awk "$folder/marks.txt" "$folder/a.c" >"$folder/out" 2>"$folder/said" &&
		fail "it is taken: $(<"$folder/marks.txt")"
	grep -q -- "$1" "$folder/said" || fail "it says: $(<"$folder/said")"
}
printf '%s\n' "$folder base setup a.c" "$folder/a.c order read one" >"$folder/marks.txt"
awk -f cmake/cost.awk "$folder/marks.txt" "$folder/a.c" >"$folder/out" || fail "it is refused"
[[ $(sed -n 's/^	{ ".*a\.c", //p' "$folder/out") == "1, 2147483647, COST_BASE, COST_SETUP },
4, 4, COST_FLOW, COST_STATUS },
3, 5, COST_ORDER, COST_READ }," ]] || fail "it is: $(<"$folder/out")"

echo "what does not exist or means nothing is refused"
echo "$folder/a.c order read three" >"$folder/marks.txt"
refused "there is no $folder/a.c three"
echo "$folder order read b.c" >"$folder/marks.txt"
refused "there is no $folder/b.c"
echo "$folder/a.c odrer read one" >"$folder/marks.txt"
refused "has no feature and step"
: >"$folder/marks.txt"
echo '/* cost: base setup */' >>"$folder/a.c"
refused "stands beside no code"

((failed == 0)) || echo "$failed failed"
exit $((failed > 0))
