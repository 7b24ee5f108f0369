# SPDX-License-Identifier: BSD-3-Clause
# shellcheck shell=bash disable=SC2034 # for whoever sources it
# For tests over UDP between hosts that are network namespaces, called ${host}0 and so on. A test
# says in clean() what it has to end; what its folder has as out* and *.out is shown when it fails.
set -uo pipefail

PATH=$PATH:/usr/sbin:/sbin
folder=$(mktemp -d)
failed=0 host=tern$$-

clean() { :; }
trap 'clean; rm -rf "$folder"' EXIT
trap 'exit 1' INT TERM
skip() {
	echo "skipped: $1"
	exit 77
}
fail() {
	echo "    failed: $1"
	sed 's/^/    /' "$folder"/out* "$folder"/*.out 2>/dev/null
	failed=1
}

[[ $("$TERN_BIN/tern" info) == *"udp            usable"* ]] || skip "this build has no UDP"
((EUID == 0)) || skip "network namespaces are for root"
command -v ip >/dev/null || skip "ip is not here (Debian: iproute2)"
