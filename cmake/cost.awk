# SPDX-License-Identifier: BSD-3-Clause
# Collects the annotations of `tern cost` from the sources given and prints them as a table in C.
#
#     x = y; /* cost: flow status */     the line that it stands on
#     /* cost: flow status */            on a line of its own: the function that begins next;
#                                        behind the last function: whatever else the file has
#
# A feature and a step; `program` stands alone. lab/cost/cost.h says what they mean.
BEGIN {
	split("base buffer order fault flow protection statistics", words)
	for (i in words) feature[words[i]] = 1
	split("call setup write read status control", words)
	for (i in words) step[words[i]] = 1
	everywhere = 2147483647
	print "/* Made from the sources by cmake/cost.awk. */"
	print "#include \"lab/cost/site.h\"\n"
	print "const struct cost_mark cost_marks[] = {"
}

FNR == 1 { rest() }
match($0, /\/\* cost: [a-z ]+ \*\//) {
	n = split(substr($0, RSTART, RLENGTH), word, " ")
	if (word[3] == "program" && n == 4)
		meaning = "COST_PROGRAM, COST_CALL"
	else if (word[3] in feature && word[4] in step && n == 5)
		meaning = "COST_" toupper(word[3]) ", COST_" toupper(word[4])
	else
		refuse("this annotation has no feature and step of lab/cost/cost.h")
	if (substr($0, 1, RSTART - 1) ~ /[^ \t]/)
		mark(FNR, FNR, meaning)
	else if (RSTART > 1)
		refuse("this annotation stands beside no code")
	else
		pending = meaning
	file = FILENAME
}

/^{/ { begun = FNR }
/^}/ && pending != "" {
	mark(begun, FNR, pending)
	pending = ""
}

# The annotation behind the last function of the file before.
function rest() {
	if (pending != "")
		printf "\t{ \"%s\", 1, %d, %s },\n", file, everywhere, pending
	pending = ""
}

function refuse(why) {
	printf "%s:%d: %s\n", FILENAME, FNR, why > "/dev/stderr"
	failed = 1
	exit
}

function mark(first, last, meaning) {
	printf "\t{ \"%s\", %d, %d, %s },\n", FILENAME, first, last, meaning
}

END {
	if (failed)
		exit 1
	rest()
	print "};\n\nconst size_t cost_marks_count = sizeof cost_marks / sizeof *cost_marks;"
}
