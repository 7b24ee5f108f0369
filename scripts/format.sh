#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# scripts/format.sh OPTIONS: clang-format with these options on every C and C++ file of the project.
set -euo pipefail
cd "$(dirname "$0")/.."
find . -path './build*' -prune -o -name '*.[ch]' -print0 | xargs -0r clang-format "$@"
find . -path './build*' -prune -o -name '*.[ch]pp' -print0 |
	xargs -0r clang-format --style=file:scripts/cpp.clang-format "$@"
