# SPDX-License-Identifier: BSD-3-Clause
# Collects the annotations of `tern cost` and prints them as a table in C: first lab/cost/marks.txt,
# which says it of whole files and functions, then the sources, which say it of single lines:
#
#     x = y; /* cost: flow status */
#
# A feature and a step; `program` stands alone. lab/cost/cost.h says what they mean.
BEGIN {
	split("base buffer order fault flow protection statistics", words)
	for (i in words) feature[words[i]] = 1
	split("call setup write read status control", words)
	for (i in words) step[words[i]] = 1
	print "/* Made from the sources by cmake/cost.awk. */"
	print "#include \"lab/cost/site.h\"\n"
	print "const struct cost_mark cost_marks[] = {"
}

FILENAME ~ /marks\.txt$/ {
	if (/^#/ || NF == 0)
		next
	first = 1
	if (/^[^\t]/) {
		place = $1
		meant = meaning($2, $3)
		first = $2 == "program" ? 3 : 4
	}
	for (i = first; i <= NF; i++) # a file of the folder, or a function of the file
		said[$i ~ /\./ ? place "/" $i : place " " $i] = meant
	next
}

FNR == 1 {
	head = ""
	if (FILENAME in said)
		mark(1, 2147483647, FILENAME)
}
match($0, /\/\* cost: [a-z ]+ \*\//) {
	split(substr($0, RSTART, RLENGTH), word, " ")
	if (substr($0, 1, RSTART - 1) !~ /[^ \t]/)
		refuse("this annotation stands beside no code; lab/cost/marks.txt has whole functions")
	printf "\t{ \"%s\", %d, %d, %s },\n", FILENAME, FNR, FNR, meaning(word[3], word[4])
}

# The line that has the name of a function, then its body.
/^[A-Za-z_].*\(/ && !/;$/ && !/^(typedef|enum)/ { head = $0 }
/^{/ { begun = FNR }
/^}/ {
	if ((FILENAME " " function_name()) in said)
		mark(begun, FNR, FILENAME " " function_name())
	head = ""
}

function function_name(  name, at, rest) {
	name = head
	while ((at = index(name, "__attribute__((")) > 0) {
		rest = substr(name, at)
		name = substr(name, 1, at - 1) substr(rest, index(rest, "))") + 2)
	}
	return match(name, /[A-Za-z_][A-Za-z0-9_]*\(/) ? substr(name, RSTART, RLENGTH - 1) : ""
}

function meaning(what, how) {
	if (what == "program")
		return "COST_PROGRAM, COST_CALL"
	if (!(what in feature && how in step))
		refuse("this annotation has no feature and step of lab/cost/cost.h")
	return "COST_" toupper(what) ", COST_" toupper(how)
}

function refuse(why) {
	printf "%s:%d: %s\n", FILENAME, FNR, why > "/dev/stderr"
	failed = 1
	exit
}

function mark(from, to, name) {
	printf "\t{ \"%s\", %d, %d, %s },\n", FILENAME, from, to, said[name]
	used[name] = 1
}

END {
	for (name in said)
		if (!failed && !(name in used)) {
			printf "lab/cost/marks.txt: there is no %s\n", name > "/dev/stderr"
			failed = 1
		}
	if (failed)
		exit 1
	print "};\n\nconst size_t cost_marks_count = sizeof cost_marks / sizeof *cost_marks;"
}
