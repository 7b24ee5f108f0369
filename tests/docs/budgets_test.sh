#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: LABELS once
# The house stays as small as the table tests/docs/budgets.txt says.
command -v python3 >/dev/null || {
	echo "skipped: python3 is not here"
	exit 77
}
python3 tests/docs/budgets.py "$TERN_BIN/../lib/libtern.so"
