#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# scripts/format.sh OPTIONS: clang-format with these options on every C file of the project.
set -euo pipefail
cd "$(dirname "$0")/.."
find include src tests examples apps -name '*.[ch]' -print0 2>/dev/null | xargs -0r clang-format "$@"
