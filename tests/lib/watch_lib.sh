# SPDX-License-Identifier: BSD-3-Clause
# Sourced by top_test.sh and why_test.sh: jobs that run until they are ended, and what is said of
# them.

. tests/lib/frame.sh
job=

job_start() { # RANKS PLAY; variables may stand before the call
	job_run -n "$1" "$TERN_BIN/stuck_ranks" "$2"
}
job_run() { # ARGUMENTS of tern run
	"$tern" run "$@" >"$folder/job" 2>&1 &
	job=$!
}
job_end() {
	[[ $job ]] || return
	kill "$job" 2>/dev/null
	wait "$job" 2>/dev/null
	job=
}
sleep 100000 & # a process that has nothing to do with any job
stranger=$!
watch_end() {
	job_end
	kill $stranger 2>/dev/null
	rm -rf "$folder"
}
trap watch_end EXIT
ask() { # COMMAND ARGUMENTS
	"$tern" "$@" >"$out" 2>"$err"
	status=$?
}
ask_until() { # PATTERN COMMAND ARGUMENTS: a job takes its time to come where it gets stuck
	local pattern=$1 i
	shift
	for ((i = 0; i < 1200; i++)); do
		ask "$@"
		grep -qE -- "$pattern" "$out" && return
		sleep 0.25
	done
	fail "no line of the output matches: $pattern"
}
