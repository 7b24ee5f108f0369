#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: LABELS soak TIMEOUT 7200 RUN_SERIAL
# The random tests again and again, each round from seeds of its own, for SOAK_SECONDS (600).
# A test prints its seed; `NAME_test --seed=N` plays it again.
set -uo pipefail

end=$((SECONDS + ${SOAK_SECONDS:-600}))
log=$(mktemp)
trap 'rm -f "$log"' EXIT
rounds=0
while ((SECONDS < end)); do
	for name in stress flood wake order fail session; do
		if ! "$TERN_BIN/${name}_test" >"$log" 2>&1; then
			cat "$log"
			echo "FAIL: ${name}_test, after $rounds rounds"
			exit 1
		fi
	done
	rounds=$((rounds + 1))
done
echo "$rounds rounds without a failure"
