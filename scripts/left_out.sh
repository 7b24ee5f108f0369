#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# scripts/left_out.sh FOLDER AGAIN: says what the build in FOLDER lacks that it could have, and the
# command that adds it.
set -euo pipefail

packages=() what=
while IFS=$'\t' read -r package adds; do
	packages+=("$package")
	what+="${what:+, }$adds ($package)"
done <"$1/left-out"
((${#packages[@]})) || exit 0

as_root=
((EUID == 0)) || as_root='sudo '
echo
echo "Left out of this build: $what."
if command -v apt-get >/dev/null; then
	echo "To add it: ${as_root}apt-get install ${packages[*]} && $2"
else
	echo "To add it, install these packages (the names are Debian's), and: $2"
fi
