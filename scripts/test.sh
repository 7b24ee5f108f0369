#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# scripts/test.sh SUITE...: builds and tests each, goes on after a failure, and closes with one
# line that sums them all: N passed, N failed, N skipped. Exit status 0 only if none failed.
#
# A test that fails beside others is run once more, alone, and counts as it ends then: ranks of
# several tests share few cores, and some tests wait for a process that got none. The name of each
# such test is printed at the end. What a sanitizer found, and a crash, are never tried again.
set -uo pipefail
cd "$(dirname "$0")/.."

jobs=${JOBS:-$(nproc)}
at_once=$((jobs + 1)) # tests: many wait more than they compute
export MAKEFLAGS=--no-print-directory # not the flags of the make that called
passed=0 failed=0 skipped=0
broken=()
second=() # tests that passed only alone
late=()   # suites that were not begun

# What each suite builds (a preset), and which of the tests it runs. dev and slow have them all;
# slow visits a sample of each matrix, matrix all of it. What another compiler, sanitizer or
# processor may see differently is run there once more:
#   sanitize   everything in one way of delivery, the core in each, numbers that wrap, and
# libFuzzer's targets: bytes and lengths
#   tsan       what is made of threads and processes, polled and by thread: who writes what when
#   clang      the parts one by one, and
#   aarch64    the same, in another order of memory than x86-64's
#   noinline   what depends on the inline path
#   lean       the parts one by one, in a build that has neither libsodium nor libfabric nor PMIx
# Not what depends on the clock (perf), on the text of sources (once), or repeats a program over
# each network (slow).
suite_preset() {
	case $1 in
	fast | slow | soak | matrix) echo dev ;;
	fuzz-soak) echo sanitize ;;
	*) echo "$1" ;;
	esac
}
suite_targets() {
	case $1 in
	clang | aarch64 | lean) echo unit_tests ;;
	noinline) echo inline_tests ;;
	tsan) echo unit_tests job_tests ;;
	*) echo all tests ;;
	esac
}
suite_select() {
	case $1 in
	dev) echo -LE 'soak|slow|perf' ;;
	slow) echo -L 'slow|perf' -LE 'soak' ;;
	matrix) echo -L 'slow' -LE 'soak' ;;
	fast | sanitize) echo -LE 'soak|slow|perf|once' -E '^tests/.*@' ;;
	soak) echo -L 'soak' ;;
	fuzz-soak) echo -L 'fuzz-soak' ;;
	tsan) echo -LE 'soak|slow|perf|once|script|example|by-interrupt' ;; # it holds signals back
	noinline) echo -L 'inline' -LE 'soak|slow|perf|once|by-' ;;
	clang) echo -L 'unit' -LE 'soak|slow|perf|once|by-' ;;
	aarch64 | lean) echo -L 'unit' -LE 'soak|slow|perf|once|by-' ;;
	*) return 1 ;;
	esac
}

# Thread sanitizer needs the addresses that a kernel with much randomness does not give it.
unrandomized() {
	if setarch -R true 2>/dev/null; then
		setarch -R "$@"
	else
		"$@"
	fi
}

build() { # PRESET DIR TARGET...
	local log=$2/build.log
	mkdir -p "$2"
	cmake --preset "$1" --log-level=WARNING >"$log" 2>&1 &&
		cmake --build "$2" -j "$jobs" --target "${@:3}" >>"$log" 2>&1 && return
	grep -E -A4 'error:|CMake Error|undefined reference|\*\*\*' "$log" | head -40
	echo "The $1 build failed; $log has it all."
	return 1
}

count() { # ATTRIBUTE of the file that ctest wrote
	sed -n "s/^[[:space:]]*$1=\"\([0-9]*\)\".*/\1/p" "$2" | head -1
}

run() { # SUITE
	local preset dir select began=$SECONDS built report around=()
	preset=$(suite_preset "$1")
	select=$(suite_select "$1") || { echo "$0: no suite is called $1" >&2; exit 2; }
	dir=build-$preset
	[[ $preset == dev ]] && dir=build
	[[ $preset == tsan ]] && around=(unrandomized)
	# There clang 14 looks for leaks for 3 s at the end of each process.
	[[ $preset == sanitize && $(uname -m) == aarch64 ]] &&
		around=(env "ASAN_OPTIONS=detect_leaks=0:${ASAN_OPTIONS-}")
	# There the thread sanitizer leaves a program 16 GiB of addresses; a heap takes one of them.
	[[ $preset == tsan && $(uname -m) == aarch64 ]] &&
		around=(unrandomized env TERN_HEAP=128M)
	[[ $1 == slow ]] && around=(env "TEST_SAMPLE=${TEST_SAMPLE:-$RANDOM}")
	report=$PWD/$dir/report-$1.xml

	echo "== $1"
	if [[ $1 == aarch64 && $(uname -m) == aarch64 ]]; then
		echo "This machine is one: the other suites were run on it."
		return
	fi
	# shellcheck disable=SC2046
	if ! build "$preset" "$dir" $(suite_targets "$1"); then
		broken+=("$1 (build)") failed=$((failed + 1))
		return
	fi
	built=$SECONDS
	rm -f "$report"
	set -f # patterns are for ctest
	(cd "$dir" && "${around[@]}" ctest -j "$at_once" --output-on-failure --no-tests=ignore \
		--output-junit "$report" $select) | tee "$dir/ctest.log" ||
		again "$1" "$dir" "$report" || broken+=("$1")
	set +f
	add "$1" "$report"
	echo "== $1 took $((SECONDS - began)) s, $((built - began)) of them to build"
}

failed_output() { # LOG of ctest: what the tests printed that failed
	awk '/^[0-9]+\/[0-9]+ Testing: / { text = "" }
		{ text = text $0 "\n" }
		/^Test Failed\./ { printf "%s", text }' "$1"
}

# Runs alone what failed. REPORT then says of each test how it ended last.
again() { # SUITE DIR REPORT
	local failures=$2/Testing/Temporary/LastTestsFailed.log said=$2/failed.log names
	[[ -s $3 && -s $failures ]] || return 1
	names=$(cut -d: -f2- "$failures")
	# A file, since grep -q would end a pipe early, and that counts as a failure of the pipe.
	failed_output "$2/Testing/Temporary/LastTest.log" >"$said"
	grep -F '***' "$2/ctest.log" >>"$said"
	if grep -qE 'Sanitizer: |runtime error: |SIGSEGV|SIGBUS|Exception:|signal 11|status 139' \
		"$said"; then
		return 1
	fi
	echo "== $1: once more, alone:" ${names//$'\n'/ }
	# By name: --rerun-failed goes by numbers, which -E has shifted.
	(cd "$2" && "${around[@]}" ctest -j 1 --output-on-failure --no-tests=error \
		-R "^(${names//$'\n'/|})\$" --output-junit "$3.again") || return 1
	while read -r name; do
		second+=("$name ($1)")
	done <<<"$names"
	sed -i '0,/failures="[0-9]*"/s//failures="0"/' "$3"
}

add() { # SUITE REPORT
	local tests fails skips
	if [[ ! -s $2 ]]; then
		echo "ctest left no report for $1."
		failed=$((failed + 1))
		return
	fi
	tests=$(count tests "$2") fails=$(count failures "$2") skips=$(count skipped "$2")
	passed=$((passed + tests - fails - skips)) failed=$((failed + fails)) \
		skipped=$((skipped + skips))
}

# LIMIT=SECONDS: a suite is not begun after that, which is said.
for suite in "$@"; do
	if ((SECONDS < ${LIMIT:-$((1 << 31))})); then
		run "$suite"
	else
		late+=("$suite")
	fi
done
((${#late[@]} == 0)) || echo "Left out, since $LIMIT s were over: ${late[*]}"
((${#broken[@]} == 0)) || echo "Failed in: ${broken[*]}"
((${#second[@]} == 0)) || printf 'Failed beside others, passed alone: %s\n' "${second[@]}"
# Something may have failed without a test to its name; the line must not hide that.
if ((${#broken[@]} > 0 && failed == 0)); then
	failed=1
fi
echo "$passed passed, $failed failed, $skipped skipped"
((failed == 0))
