# SPDX-License-Identifier: BSD-3-Clause
# Sourced by the tests of how jobs end: `run` starts one and leaves its status and output.
set -uo pipefail

bin=$TERN_BIN tern=$TERN_BIN/tern
export -n TERN_BIN
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
out=$folder/out err=$folder/err
failed=0
fail() {
	echo "    $1"
	sed 's/^/    stdout: /' "$out"
	sed 's/^/    stderr: /' "$err"
	failed=1
}
run() { # ARGUMENTS
	timeout 50 "$tern" run "$@" >"$out" 2>"$err"
	status=$?
}
has_udp() {
	[[ $("$tern" info) == *"udp            usable"* ]] && return
	echo "    skipped: this build has no UDP"
	return 1
}
# In place of ssh: every host is this one.
cat >"$folder/shell" <<'END'
#!/bin/sh
shift
exec sh -c "$*"
END
chmod +x "$folder/shell"
