#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# The sparse triangular solve, on generated matrices and on files.
. apps/test.sh

sentence "the solution is that of the serial loop, for any pattern"
for ranks in 1 2 3 8; do
	shared sparse 3 $ranks --rows 120 --span 30
done
shared sparse 9 5 --rows 1,2,50 --degree 64
shared sparse 6 2 --rows 60 --span 1 --degree 0,1

sentence "so it is over UDP with faults, and on simulated machines"
faults sparse 3 3 --rows 40 --span 9
simulated sparse 3 5 --rows 40 --span 9
profile=ipsc860 simulated sparse 3 4 --rows 500 # with sends of 33 to 64 bytes

sentence "a Matrix Market file is read, whichever triangle of a symmetric matrix it has"
file=$folder/matrix
printf '%%%%MatrixMarket matrix coordinate %s\n%% a comment\n\n%s\n' 'real symmetric' \
	$'4 4 5\n1 1 2\n2 1 0.5\n1 3 -4e-1\n3 2 1\n4 3 7' >"$file"
shared sparse 3 2 --matrix "$file"
printf '%%%%MatrixMarket matrix coordinate pattern general\n3 3 2\n3 1\n1 3\n' >"$file"
shared sparse 3 3 --matrix "$file"

sentence "a malformed file is refused, with the line"
malformed() { # PATTERN CONTENT
	printf '%s' "$2" >"$file"
	refused sparse 2 "--matrix $file$1" --matrix "$file"
}
head='%%MatrixMarket matrix coordinate real general'
malformed ':1: it does not begin with' ''
malformed ':1: it does not begin with' $'1 1 0\n'
malformed ':1: the matrix is array' $'%%MatrixMarket matrix array real general\n2 2\n'
malformed ':1: values are complex' $'%%MatrixMarket matrix coordinate complex general\n'
malformed ':1: the matrix is skew' $'%%MatrixMarket matrix coordinate real skew-symmetric\n'
malformed ':2: rows, columns and the number' "$head"$'\n2 2\n'
malformed ':2: 0 by 2 with 1 entries' "$head"$'\n0 2 1\n'
malformed ':2: 2 by 2 with 9 entries' "$head"$'\n2 2 9\n'
malformed ':3: an entry is a row, a column and a value' "$head"$'\n2 2 1\n1 1\n'
malformed ':3: an entry is' "$head"$'\n2 2 1\n1 1 nan\n'
malformed ':3: row 3, column 1 is outside' "$head"$'\n2 2 1\n3 1 1\n'
malformed ':4: the file ends after 1 of 2' "$head"$'\n2 2 2\n2 1 1\n'
malformed ':4: there are more entries than the 1' "$head"$'\n2 2 1\n2 1 1\n1 1 1\n'
malformed ': 2 by 3 is not square' "$head"$'\n2 3 1\n2 1 1\n'
refused sparse 2 "--matrix /nowhere:0: it cannot be read" --matrix /nowhere
finish
