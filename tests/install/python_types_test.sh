#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: TIMEOUT 180 LABELS once
# The Python module and its examples have types that mypy --strict accepts.
set -uo pipefail

if ! command -v mypy >/dev/null; then
	echo "skipped: mypy is not installed"
	exit 77
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
files=()
for file in bindings/python/*.py; do
	# Its memoryviews have items of type double; mypy knows only those of type int.
	[[ $file == */halo.py ]] || files+=("$file")
done
mypy --strict --cache-dir "$folder" "${files[@]}"
