#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# Shows what Tern does: one job, then what it costs on this machine. Wants a finished build.
set -euo pipefail
cd "$(dirname "$0")/.."

say() {
	printf '\n$ %s\n' "$*"
	"$@"
}

say build/bin/tern run -n 4 --tag build/bin/fetch_add
say build/bin/tern perf --quick
