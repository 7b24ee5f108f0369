#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# scripts/draw.sh FILE.draw: writes the drawing that FILE describes to standard output, as SVG.
#
# One element a line; fields are separated by |, positions are pixels from the upper left corner:
#
#   size  | WIDTH HEIGHT      | what the drawing shows, for readers who cannot see it
#   group | X Y WIDTH HEIGHT  | heading
#   box   | X Y WIDTH HEIGHT  | KIND   | title | line | line ...
#   arrow | X Y X Y ...       | KIND   | label | X Y of the label (the middle of the arrow)
#   note  | X Y               | KIND   | text
#   step  | X Y               | number
#
# Kinds of boxes: program, layer, core, net, base, memory. Kinds of arrows: go, back, use.
# Kinds of notes: left, middle, right, small. A line that begins with # is a comment.
set -euo pipefail

awk -F ' *[|] *' '
function fail(why) {
	printf "%s:%d: %s\n", FILENAME, FNR, why > "/dev/stderr"
	failed = 1
	exit 1
}
function text(s) {
	gsub(/&/, "\\&amp;", s)
	gsub(/</, "\\&lt;", s)
	gsub(/>/, "\\&gt;", s)
	return s
}
function words(class, x, y, s) {
	printf "<text class=\"%s\" x=\"%s\" y=\"%s\">%s</text>\n", class, x, y, text(s)
}
function style() {
	print "<style>"
	print "text { font-family: -apple-system, \"Segoe UI\", \"DejaVu Sans\", Helvetica, sans-serif; }"
	print "text { fill: #1f2328; font-size: 12px; }"
	print ".title { font-size: 13px; font-weight: 600; text-anchor: middle; }"
	print ".line, .middle, .label { text-anchor: middle; }"
	print ".right { text-anchor: end; }"
	print ".heading { font-size: 13px; font-weight: 600; }"
	print ".small, .label, .line { font-size: 11px; fill: #424a53; }"
	print ".number { font-size: 11px; font-weight: 700; fill: #ffffff; text-anchor: middle; }"
	print ".ground { fill: #ffffff; }"
	print ".group { fill: #f6f8fa; stroke: #d0d7de; }"
	print ".disc { fill: #0969da; }"
	print ".program { fill: #fff8c5; stroke: #bf8700; }"
	print ".layer { fill: #ddf4ff; stroke: #218bff; }"
	print ".core { fill: #dafbe1; stroke: #2da44e; }"
	print ".net { fill: #fbefff; stroke: #a475f9; }"
	print ".base { fill: #eaeef2; stroke: #8c959f; }"
	print ".memory { fill: #fff1e5; stroke: #e16f24; }"
	print ".arrow { fill: none; stroke-width: 1.6; }"
	print ".go { stroke: #0969da; } .back { stroke: #1a7f37; } .use { stroke: #6e7781; }"
	print ".tip-go { fill: #0969da; } .tip-back { fill: #1a7f37; } .tip-use { fill: #6e7781; }"
	print ".back, .tip-back { stroke-linejoin: round; }"
	print "@media (prefers-color-scheme: dark) {"
	print "text { fill: #e6edf3; }"
	print ".small, .label, .line { fill: #b1bac4; }"
	print ".number { fill: #0d1117; }"
	print ".ground { fill: #0d1117; }"
	print ".group { fill: #161b22; stroke: #30363d; }"
	print ".disc { fill: #58a6ff; }"
	print ".program { fill: #3b2e00; stroke: #d29922; }"
	print ".layer { fill: #0c2d6b; stroke: #58a6ff; }"
	print ".core { fill: #033a16; stroke: #3fb950; }"
	print ".net { fill: #3c1e70; stroke: #bc8cff; }"
	print ".base { fill: #21262d; stroke: #8b949e; }"
	print ".memory { fill: #4a2206; stroke: #f0883e; }"
	print ".go { stroke: #58a6ff; } .back { stroke: #3fb950; } .use { stroke: #8b949e; }"
	print ".tip-go { fill: #58a6ff; } .tip-back { fill: #3fb950; } .tip-use { fill: #8b949e; }"
	print "}"
	print "</style>"
}
function begin(width, height, says) {
	printf "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %s %s\" ", width, height
	printf "width=\"%s\" height=\"%s\" role=\"img\">\n", width, height
	printf "<title>%s</title>\n", text(says)
	style()
	print "<defs>"
	for (i = 1; i <= split("go back use", kinds, " "); i++)
		printf "<marker id=\"%s\" viewBox=\"0 0 10 10\" refX=\"9\" refY=\"5\" " \
			"markerWidth=\"7\" markerHeight=\"7\" orient=\"auto-start-reverse\">" \
			"<path class=\"tip-%s\" d=\"M0,0 L10,5 L0,10 z\"/></marker>\n", kinds[i], kinds[i]
	print "</defs>"
	printf "<rect class=\"ground\" width=\"%s\" height=\"%s\" rx=\"8\"/>\n", width, height
}
function rectangle(class, corner) {
	printf "<rect class=\"%s\" x=\"%s\" y=\"%s\" width=\"%s\" height=\"%s\" rx=\"%s\"/>\n", \
		class, at[1], at[2], at[3], at[4], corner
}
function box(n,   lines, y, i) {
	if (split($2, at, " ") != 4) fail("a box has a position, a width and a height")
	rectangle($3, 6)
	lines = n - 4
	y = at[2] + at[4] / 2 + 5 - lines * 8
	words("title", at[1] + at[3] / 2, y, $4)
	for (i = 5; i <= n; i++)
		words("line", at[1] + at[3] / 2, y + (i - 4) * 16, $i)
}
function arrow(n,   count, path, i) {
	count = split($2, at, " ")
	if (count < 4 || count % 2) fail("an arrow has two points or more")
	path = "M" at[1] "," at[2]
	for (i = 3; i < count; i += 2)
		path = path " L" at[i] "," at[i + 1]
	printf "<path class=\"arrow %s\" d=\"%s\" marker-end=\"url(#%s)\"/>\n", $3, path, $3
	if (n >= 5) {
		split($5, at, " ")
		words("label", at[1], at[2], $4)
	}
}
/^#/ || /^[ \t]*$/ { next }
{ split($2, at, " ") }
$1 == "size" { begin(at[1], at[2], $3); next }
$1 == "group" {
	rectangle("group", 8)
	words("heading", at[1] + 12, at[2] + 20, $3)
	next
}
$1 == "box" { box(NF); next }
$1 == "arrow" { arrow(NF); next }
$1 == "note" { words($3 == "left" ? "" : $3, at[1], at[2], $4); next }
$1 == "step" {
	printf "<circle class=\"disc\" cx=\"%s\" cy=\"%s\" r=\"9\"/>\n", at[1], at[2]
	words("number", at[1], at[2] + 4, $3)
	next
}
{ fail("no such element: " $1) }
END { if (!failed) print "</svg>" }' "$1"
