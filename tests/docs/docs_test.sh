#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: LABELS once
# The documents are true to the tree: drawings are those of their sources, links and paths lead
# somewhere, and figures stand between their markers. How long they are: budgets_test.sh.
set -uo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0
fail() {
	echo "    failed: $1"
	failed=$((failed + 1))
}
mapfile -t readmes < <(git ls-files -co --exclude-standard '*/README.md' 2>/dev/null ||
	find src tests scripts models examples apps bindings compare -name README.md)
pages=(README.md docs/*.md "${readmes[@]}")

echo "every drawing is what scripts/draw.sh makes of its source"
for source in docs/*.draw; do
	scripts/draw.sh "$source" >"$folder/drawing" || fail "$source cannot be drawn"
	cmp -s "$folder/drawing" "${source%.draw}.svg" ||
		fail "${source%.draw}.svg is stale: make figures"
done

echo "the drawing of the layers names every folder of src"
for part in src/*/ src/net/*/ src/layers/*/; do
	name=${part#src/} name=${name#layers/} name=${name%/}
	[[ $name == net || $part == src/layers/ ]] || grep -qE "[|] $name( |:|\$)" docs/layers.draw ||
		fail "docs/layers.draw has no box for $part"
done

echo "a mistake in a drawing is refused with its line"
printf 'size | 10 10 | nothing\nbxo | 1 1 1 1 | core | x\n' >"$folder/wrong.draw"
scripts/draw.sh "$folder/wrong.draw" >/dev/null 2>"$folder/said" && fail "it was drawn"
grep -q 'wrong.draw:2: no such element: bxo' "$folder/said" || fail "it said: $(<"$folder/said")"

if command -v python3 >/dev/null; then
	echo "docs/api.md is what scripts/api.py writes of the headers"
	scripts/api.py >"$folder/api" && cmp -s "$folder/api" docs/api.md ||
		fail "docs/api.md is stale: scripts/api.py >docs/api.md"
else
	echo "python3 is not installed: docs/api.md is not checked"
fi

echo "every link between documents leads to a file"
for page in "${pages[@]}"; do
	for link in $(grep -oP '\]\(\K[^)#]+(?=(#[^)]*)?\))' "$page" | grep -v '^http'); do
		[[ -e $(dirname "$page")/$link ]] || fail "$page: $link"
	done
done

echo "man -l shows every page from the source tree: a second name is a link beside its page"
for page in $(grep -l '^\.so ' man/*); do
	fail "$page: .so is looked up where pages are installed; make it a symbolic link"
done
for page in $(find man -type l); do
	[[ $(readlink "$page") != */* && -e $page ]] || fail "$page leads to $(readlink "$page")"
done

if command -v mandoc >/dev/null; then
	echo "every man page passes mandoc's lint"
	lint=$(find man -type f -exec mandoc -T lint -W warning {} + 2>&1) || fail "$lint"
else
	echo "mandoc is not installed: man pages are not checked"
fi

echo "the README.md of a folder of the library names its sources"
for page in $(find src -name README.md ! -path 'src/tools/*'); do
	for file in $(find "$(dirname "$page")" -maxdepth 1 -name '*.c' ! -name '*_test.c'); do
		name=$(basename "$file" .c)
		grep -qE "\b$name\.[ch]\b" "$page" || fail "$page does not name $name.c"
	done
done

echo "docs/decisions.md has every decision that is named, each with a number of its own"
decided=$(sed -nE 's/^\*\*([0-9]+)\. .*/\1/p' docs/decisions.md | sort -n)
(($(wc -w <<<"$decided") >= 40)) || fail "it has $(wc -w <<<"$decided") decisions"
[[ -z $(uniq -d <<<"$decided") ]] || fail "twice: $(uniq -d <<<"$decided" | tr '\n' ' ')"
for number in $(cat "${pages[@]}" | grep -oE '\bdecisions? [0-9]+(, [0-9]+)*' | grep -oE '[0-9]+'); do
	grep -qx "$number" <<<"$decided" || fail "there is no decision $number"
done

echo "every file that the design and the README.md files name exists"
pattern='\b(src|lab|tests|scripts|models|include|examples|apps|cmake|docs|man)/[A-Za-z0-9_/.-]+\.[a-z0-9]+\b'
for page in README.md docs/design.md docs/tour.md "${readmes[@]}"; do
	for path in $(grep -oE "$pattern" "$page" | grep -v NAME | sort -u); do
		[[ -e $path ]] || fail "$page: $path"
	done
done

echo "every function, type and setting that the design and the README.md files name is in the source"
cat $(find include src -name '*.[ch]') | grep -oE '[A-Za-z_][A-Za-z0-9_]*' |
	sort -u >"$folder/words"
for word in $(grep -oHP '`(struct )?\K[a-z][a-z0-9]*_[a-z0-9_]+(?=[`(])|\bTERN_[A-Z_]+\b' \
	docs/design.md docs/tour.md "${readmes[@]}" | sed 's/^[^:]*://' |
	sort -u); do
	grep -qx "$word" "$folder/words" || grep -q "^$word(" tests/*/*.c ||
		grep -qrw "$word" cmake CMakeLists.txt CMakePresets.json ||
		fail "$(grep -lw "$word" docs/design.md docs/tour.md "${readmes[@]}" | head -1): $word"
done

echo "the figures of docs/cost.md stand between markers that say when and where they were measured"
begun=$(grep -cE '^<!-- figures: [a-z-]+ -->$' docs/cost.md)
ended=$(grep -cE '^<!-- end: [a-z-]+ -->$' docs/cost.md)
[[ $begun -ge 2 && $begun == "$ended" ]] || fail "$begun begin and $ended end"
written=$(scripts/figures.sh --list)
for name in $(grep -oP '^<!-- figures: \K[a-z-]+' docs/cost.md); do
	block=$(sed -n "/^<!-- figures: $name -->/,/^<!-- end: $name -->/p" docs/cost.md)
	grep -qE '^(Written by `make figures`|Measured by hand), [0-9]{4}-[0-9]{2}-[0-9]{2}' \
		<<<"$block" ||
		fail "$name has no date"
	grep -qx "$name" <<<"$written" || fail "scripts/figures.sh does not write $name"
done

echo "README.md has the counts of docs/cost.md"
counted() { sed -nE "s/^[|] $1 [|] [^|]* [|] ([0-9]+) [|]\$/\1/p" docs/cost.md; }
sent=$(counted 'send a 4-word request')
handled=$(counted "take it in, up to the handler's first instruction")
said="takes $sent instructions to send and $handled to take in"
tr '\n' ' ' <README.md | grep -qF "$said" || fail "it should say: $said"

((failed == 0)) || echo "$failed failed"
exit $((failed > 0))
