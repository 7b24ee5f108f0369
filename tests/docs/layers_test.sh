#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: LABELS once
# The folders of the library form a graph without circles. The table of docs/design.md, "Layers",
# says which folder uses which; the objects of the build and the #include lines of the sources say
# what is so. An edge that the table does not have fails with both files and the symbol, or with
# the file, the line and the header; so does an edge of the table that nothing needs, and a row that
# names a folder above it.
set -euo pipefail

objects=$TERN_BIN/../CMakeFiles/tern_objects.dir
if ! command -v nm >/dev/null || [[ ! -d $objects ]]; then
	echo "skipped: there is no nm, or no objects in $objects"
	exit 77
fi

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Of sources that are still there: a build folder may have objects of files that were moved.
(cd "$objects" && find src -name '*.c.o') | sort | while read -r object; do
	[[ ! -f ${object%.o} ]] || echo "$object"
done >"$work/objects"

# SOURCE U SYMBOL, SOURCE T SYMBOL. Weak references are left out: they need nobody.
(cd "$objects" && xargs nm -A <"$work/objects") | sed 's/\.o:/ /' |
	awk 'NF == 3 && $2 == "U" { print $1, "U", $3 } NF == 4 && $3 ~ /^[TDBRVWG]$/ { print $1, "T", $4 }' \
		>"$work/symbols"
[[ -s $work/symbols ]] || { echo "no object of the library was found in $objects"; exit 1; }

# FILE:LINE I HEADER, of the sources in every folder of the table but tests.
find src -name '*.[ch]' ! -name '*_test.c' ! -path 'src/tools/*' ! -path 'src/check/*' -print0 |
	xargs -0 awk '/^[ \t]*#[ \t]*include[ \t]*"[^"]*\// {
		split($0, part, "\"")
		print FILENAME ":" FNR, "I", "src/" part[2]
	}' >>"$work/symbols"

# FOLDER: FOLDER..., from rows "| `src/NAME` | `NAME...` | ... |" of the section.
awk '/^## / { here = $0 == "## Layers" }
	here && /^\| `src\// {
		split($0, cell, "|")
		gsub(/[` ]|src\/(layers\/)?/, "", cell[2])
		gsub(/[`,]/, " ", cell[3])
		print cell[2] ":" cell[3]
	}' docs/design.md >"$work/table"
[[ -s $work/table ]] || {
	echo "docs/design.md has no table of folders in its section Layers"
	exit 1
}

cat >"$work/check.awk" <<'AWK'
function may(from, to) {
	return from == to || (from, to) in allowed ||
		((from, "*") in allowed && to in row && row[from] < row[to])
}
function folder(file) { # the core is one, and so is a layer, with the folders in it
	sub(/^src\/(layers\/)?/, "", file)
	sub(index(layers, " " substr(file, 1, index(file, "/"))) ? "/.*" : "/[^/]*$", "", file)
	return file
}
FILENAME ~ /table$/ {
	split($0, part, ":")
	row[part[1]] = ++rows
	n = split(part[2], used, " ")
	for (i = 1; i <= n; i++) {
		allowed[part[1], used[i]] = 1
		if (used[i] in row) {
			print "docs/design.md: " part[1] " may use " used[i] ", which stands above it"
			bad = 1
		}
	}
	next
}
$2 == "T" { home[$3] = $1 }
$2 == "I" {
	from = folder($1); to = folder($3)
	seen[from, to] = 1
	if (!may(from, to)) {
		print $1 " includes " substr($3, 5) ": docs/design.md does not let " from " use " to
		bad = 1
	}
}
$2 == "U" { needer[++needs] = $1; needed[needs] = $3 }
END {
	for (i = 1; i <= needs; i++) {
		if (!(needed[i] in home))
			continue
		from = folder(needer[i]); to = folder(home[needed[i]])
		seen[from, to] = 1
		if (!may(from, to)) {
			print needer[i] " uses " needed[i] " of " home[needed[i]] \
				": docs/design.md does not let " from " use " to
			bad = 1
		}
	}
	for (s in home)
		if (!(folder(home[s]) in row)) {
			print home[s] ": its folder is not in the table of docs/design.md"
			bad = 1
		}
	for (pair in allowed)
		if (complete && !(pair in seen) && pair !~ /\*$/) {
			split(pair, side, SUBSEP)
			print "docs/design.md: " side[1] " may use " side[2] ", but does not"
			bad = 1
		}
	exit bad
}
AWK
# A build that lacks a network or a process manager has not every edge.
complete=1
[[ -z $(find "$objects/src" -name '*lacking.c.o' -print -quit) ]] || complete=0
awk -v complete=$complete -v layers=" core/ $(cd src/layers && echo */)" -f "$work/check.awk" "$work/table" "$work/symbols"
