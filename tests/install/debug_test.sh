#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: TIMEOUT 300 LABELS slow once
# The commands of tern-debug(7) do what the page says: gdb, valgrind and core dumps.
set -uo pipefail

bin=$TERN_BIN lib=$TERN_BIN/../lib
page=$PWD/man/tern-debug.7
folder=$(mktemp -d)
out=$folder/out
failed=0 checked=0 front=
trap '[[ $front ]] && kill "$front" 2>/dev/null; rm -rf "$folder"' EXIT
fail() {
	echo "    failed: $1"
	tail -15 "$out" | sed 's/^/    it said: /'
	failed=$((failed + 1))
}
says() { grep -qE -- "$1" "$out" || fail "no line matches: $1"; }
until_true() { # COMMAND...
	local try
	for try in {1..1500}; do
		"$@" && return 0
		sleep 0.02
	done
	return 1
}
# PATTERN: the commands of the page's first display with a line that matches, as one would type them
commands() {
	awk -v pattern="$1" '/^\.Ed/ { if (text ~ pattern) { printf "%s", text; exit } inside = 0 }
		inside { text = text $0 "\n" } /^\.Bd/ { inside = 1; text = "" }' "$page" |
			sed -e 's/^\$ //' -e 's/\\e$/\\/'
}
follow() { # PATTERN: runs them in the folder where ./program is; its status is that of the last
	local text
	text=$(commands "$1")
	[[ $text ]] || fail "the page has no command with $1"
	(cd "$folder" && PATH=$bin:$PATH && timeout -k 5 200 bash -c "$text") >"$out" 2>&1 \
		</dev/null
}
program() { # SOURCE of handler 0, which rank 2 gets, or the last
	cat >"$folder/program.c" <<END
#include <stdio.h>
#include <tern/tern.h>

static void on_request(tern *t, const tern_msg *m)
{
	(void)t, (void)m;
	$1
}

int main(void)
{
	tern *t;
	if (tern_open(&t, NULL) || tern_on(t, 0, on_request))
		return 1;
	if (tern_rank(t) == 0 && tern_request(t, tern_size(t) > 2 ? 2 : tern_size(t) - 1, 0, 7))
		return 1;
	int rc = tern_barrier(t);
	puts(rc ? "the barrier failed" : "the barrier was passed");
	return rc == 0 && tern_close(t);
}
END
	"$CC" -g -Iinclude "$folder/program.c" -o "$folder/program" -L"$lib" -ltern \
		-Wl,-rpath,"$lib" || exit 1
}
export TERN_HEAP=16M # core dumps are written

if command -v gdb >/dev/null && gdb -q -batch -ex run --args true 2>&1 |
	grep -q 'exited normally'; then
	echo "ranks under gdb show where they crashed, all of them or one"
	program '*(volatile int *)0 = 1;'
	follow 'tag gdb'
	says '^\[2\] Program received signal SIGSEGV'
	says '^\[2\] #0 .* on_request '
	says '^\[2\] #.* main '
	says '^\[0\] the barrier'
	follow 'TERN_RANK = 2'
	says '^Program received signal SIGSEGV'
	says '^#0 .* on_request '

	echo "gdb attaches to a rank by the number that tern why prints, and the job goes on"
	program 'while (getchar() > 0) ;'
	mkfifo "$folder/fifo"
	timeout -k 5 200 "$bin/tern" run -n 1 "$folder/program" <"$folder/fifo" >"$folder/said" \
		2>&1 &
	front=$!
	exec 8>"$folder/fifo"
	waiting() {
		job=$(pgrep -P $front) && "$bin/tern" why "$job" 2>/dev/null | grep -q 'rank 0 *pid'
	}
	until_true waiting || fail "tern why does not see it"
	pid=$("$bin/tern" why "$job" | sed -n 's/.*rank 0 *pid \([0-9]*\).*/\1/p')
	reading() {
		grep -q pipe_read "/proc/$pid/wchan" 2>/dev/null ||
			grep -q '^0 ' "/proc/$pid/syscall" 2>/dev/null
	}
	until_true reading
	timeout 60 gdb -q -batch -p "$pid" -ex 'thread apply all bt' >"$out" 2>&1
	says '^#.* on_request '
	says '^#.* main '
	exec 8>&- # the end of its input
	wait $front || fail "the job ended with status $?"
	front=
	checked=$((checked + 1))
else
	echo "gdb is not here, or may not trace: not checked"
fi

if command -v valgrind >/dev/null && valgrind -q true 2>/dev/null; then
	echo "valgrind finds nothing in Tern, and what is wrong in a program"
	for how in TERN_DELIVERY=poll TERN_DELIVERY=thread \
		'TERN_DELIVERY=interrupt TERN_SIGNAL=40' TERN_NET=udp; do
		[[ $how == *udp && $("$bin/tern" info) != *"udp            usable"* ]] && continue
		cp "$bin/ring" "$folder/program"
		(export $how && follow 'valgrind -q ./program' && ! grep == "$out") || fail "$how"
		checked=$((checked + 1))
	done
	cp "$bin/quicksort" "$folder/program"
	(follow 'max-stackframe' && ! grep == "$out") || fail "threads"
	program 'char *text = tern_rank(t) ? __builtin_malloc(10) : NULL; if (text) putchar(text[3] + 10 > 0 ? 44 : 46);'
	follow 'valgrind -q ./program'
	says 'on_request '
else
	echo "valgrind is not here: not checked"
fi

if [[ $(</proc/sys/kernel/core_pattern) != [\|/]* ]] && (ulimit -c unlimited) 2>/dev/null &&
	command -v gdb >/dev/null; then
	echo "a core dump shows where a rank crashed"
	program '*(volatile int *)0 = 1;'
	(ulimit -c unlimited && cd "$folder" && "$bin/tern" run -n 2 ./program) >"$out" 2>&1
	says 'killed by signal 11 \(Segmentation fault, core dumped\)'
	core=$(find "$folder" -maxdepth 1 -name "core*" | head -1)
	gdb -q -batch -ex bt "$folder/program" "$core" >"$out" 2>&1
	says '^#0 .* on_request '
	checked=$((checked + 1))
else
	echo "cores do not go into the folder of the program here, or may not be: not checked"
fi

((checked)) || { echo "skipped: neither gdb nor valgrind can be used"; exit 77; }
((failed == 0)) || echo "$failed failed"
exit $((failed > 0))
