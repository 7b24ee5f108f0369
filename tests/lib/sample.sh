# SPDX-License-Identifier: BSD-3-Clause
# Sourced by tests that walk through a matrix, such as networks times programs. `sampled CELL` tells
# whether this run visits the cell: every one, unless TEST_SAMPLE has a seed; then about half of
# them.
[[ ${TEST_SAMPLE-} ]] && echo "a sample: TEST_SAMPLE=$TEST_SAMPLE repeats it"
sampled() { # CELL
	[[ ! ${TEST_SAMPLE-} ]] && return
	local sum
	sum=$(cksum <<<"$TEST_SAMPLE $*")
	((${sum%% *} / 7 % 2))
}
