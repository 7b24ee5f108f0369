#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: TIMEOUT 60
# tern_abort() says why, and ends the whole job.
set -uo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0
check() { # WHERE SENTENCE
	echo "in the $1"
	TERN_GRACE=60000 timeout 50 "$TERN_BIN/tern" run -n 3 "$TERN_BIN/abort_ranks" "$1" 2>"$folder/err"
	local status=$?
	[[ $status == 1 ]] || {
		echo "    the status is $status, not 1"
		failed=1
	}
	grep -qx "tern: rank 1 ends the job: $2" "$folder/err" || {
		sed 's/^/    stderr: /' "$folder/err"
		failed=1
	}
}
check program "the disk is full"
check handler "the input is damaged"
exit $failed
