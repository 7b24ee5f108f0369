#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: LABELS once
# docs/api.md and the man pages have the signatures of the public headers, all of them and no other.
set -uo pipefail

command -v python3 >/dev/null || {
	echo "skipped: python3 is not here"
	exit 77
}
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0
fail() {
	echo "    failed: $1"
	failed=$((failed + 1))
}

# Statements outside of braces, one a line, of C on stdin; macros as they are defined
statements() {
	sed -zE 's:/\*([^*]|\*+[^*/])*\*+/: :g' |
		sed -e ':again; /\\$/ { N; s/\\\n/ /; b again; }' | # lines that go on
		sed -e 's/^#define \(tern_[a-z0-9_]*\)(.*/macro \1;/' -e '/^#/d' |
		awk '{
			line = $0
			while (length(line)) {
				one = substr(line, 1, 1)
				line = substr(line, 2)
				if (one == "{")
					depth++
				if (!depth)
					text = text one
				if (one == "}" && --depth == 0 || one == ";" && !depth) {
					print text
					text = ""
				}
			}
			text = text " "
		}'
}

# The signatures among them, written in one way
signatures() {
	grep -E '^ *macro|\b_?tern_[a-z0-9_]+\(' | grep -vE '^[^(]*\b(typedef|TERN_ASSERT_)\b' |
		sed -E -e 's/\b(TERN_INLINE_|TERN_BEGIN_|TERN_END_|static inline)\b//g' \
			-e 's/[[:space:]]+/ /g' -e 's/^ //' -e 's/ ?([(*]) ?/ \1/g' \
			-e 's/\( \*/(*/g' -e 's/[; ]*$//'
}

name() { sed -E 's/^macro //; s/^[^(]*\b(tern_[a-z0-9_]+) ?\(.*/\1/'; } # of each signature

# tern.h includes lang.h, ring.h and fast.h: what they have is tern.h's.
mkdir "$folder/headers"
for header in include/tern/*.h; do
	whole=$(basename "$header")
	[[ ! $whole =~ ^(lang|ring|fast)\.h$ ]] || whole=tern.h
	statements <"$header" | signatures >>"$folder/headers/$whole"
done
sort -u "$folder"/headers/* >"$folder/built"

# The page: one file for each header's section.
awk -v folder="$folder" '
	/^## / {
		header = match($0, /tern\/[a-z]+\.h/) ? substr($0, RSTART + 5, RLENGTH - 5) : ""
	}
	/^```/ { inside = !inside && header; next }
	inside { print > (folder "/page-" header) }' docs/api.md
for section in "$folder"/page-*; do
	statements <"$section" | signatures >"$folder/is-${section##*/page-}"
done

echo "every signature on the page is in the header of its section"
for section in "$folder"/is-*; do
	header=${section##*/is-}
	[[ -e $folder/headers/$header ]] || touch "$folder/headers/$header"
	[[ -s $section ]] || fail "the section of $header is empty"
	while IFS= read -r signature; do
		grep -qxF -- "$signature" "$folder/headers/$header" && continue
		[[ $signature == *...* || $signature == *TYPE* ]] &&
			grep -qx "macro $(name <<<"$signature")" "$folder/headers/$header" && continue
		fail "tern/$header: $signature"
	done <"$section"
done

echo "every function and macro that a header has for programs is on the page"
for header in "$folder"/headers/*; do
	on_page=$(name <"$folder/is-${header##*/}")
	for function in $(name <"$header" | sort -u | grep -vE '_$'); do
		grep -qx "$function" <<<"$on_page" || fail "$function of tern/${header##*/} is not"
	done
done

echo "every constant of theirs is there, too"
for header in include/tern/*.h; do
	[[ $header =~ /(lang|ring|fast)\.h$ ]] && continue # the inline path's
	for constant in $(grep -oP '^#define \KTERN_\w*[A-Z](?=[ (])' "$header" | sort -u); do
		grep -q "^#define $constant\b" docs/api.md || fail "$constant of $header is not"
	done
done

echo "every synopsis of a man page is a signature of a header"
for page in $(find man -name "*.3" -type f); do
	awk '/^\.Sh/ { on = /SYNOPSIS/ }
		on && /^\.Ft/ { sub(/^\.Ft /, ""); gsub(/"/, ""); type = $0 }
		on && /^\.Fn/ { sub(/^\.Fn /, ""); gsub(/" "/, ", "); sub(/ "/, "("); sub(/"$/, ")")
			print type " " $0 ";" }' "$page" | signatures >"$folder/synopsis"
	while IFS= read -r signature; do
		grep -qxF -- "$signature" "$folder/built" && continue
		[[ $signature == *...* || $signature == *TYPE* ]] &&
			grep -qx "macro $(name <<<"$signature")" "$folder/built" && continue
		fail "$page: $signature"
	done <"$folder/synopsis"
done

echo "every call in the tables of which call when is built, or the table says that it is not"
names=$(name <"$folder/built")
for page in README.md docs/api.md; do
	rows=$(sed -n '/^## Which call when/,/^## /p' "$page" | grep '^|' | grep -v 'not built')
	[[ $rows ]] || fail "$page has no such table"
	for call in $(grep -oP '`\Ktern_[a-z0-9_]+(?=`)' <<<"$rows" | sort -u); do
		grep -qx "$call" <<<"$names" || fail "$page: $call"
	done
done

((failed == 0)) || echo "$failed failed"
exit $((failed > 0))
