#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: LABELS once
# Every C file is laid out as clang-format does it.
set -euo pipefail

echo "clang-format changes nothing"
if ! command -v clang-format >/dev/null; then
	echo "skipped: clang-format is not installed"
	exit 77
fi
if [[ $(clang-format --version) != *"version 14."* ]]; then
	echo "skipped: another clang-format than 14 lays some lines out differently"
	exit 77
fi
scripts/format.sh --dry-run -Werror || {
	echo "run: make format"
	exit 1
}
