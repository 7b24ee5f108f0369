#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: TIMEOUT 120 LABELS once
# scripts/mutate.py on a library of four functions: what its test notices, what it does not, what
# does not count, and that the tree stays as it is.
set -uo pipefail
for tool in python3 cmake; do
	command -v $tool >/dev/null || {
		echo "skipped: $tool is not installed"
		exit 77
	}
done

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
failed=0
fail() {
	echo "    failed: $1"
	failed=$((failed + 1))
}
root=$folder/root
mkdir -p "$root/src/ring" "$root/tests"
cat >"$root/CMakeLists.txt" <<'TEXT'
cmake_minimum_required(VERSION 3.25)
project(toy LANGUAGES C)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_LIBRARY_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
include_directories(src)
if(TERN_SANITIZE)
	add_compile_options(-fsanitize=${TERN_SANITIZE} -fno-sanitize-recover=all)
	add_link_options(-fsanitize=${TERN_SANITIZE})
endif()
add_library(tern_objects OBJECT src/ring/toy.c)
set_target_properties(tern_objects PROPERTIES POSITION_INDEPENDENT_CODE ON)
add_library(tern_internal SHARED $<TARGET_OBJECTS:tern_objects>)
add_custom_target(tern_command)
enable_testing()
add_subdirectory(tests)
TEXT
cat >"$root/tests/CMakeLists.txt" <<'TEXT'
add_executable(toy_test ../src/ring/toy_test.c)
target_link_libraries(toy_test PRIVATE tern_internal)
add_test(NAME src/ring/toy_test COMMAND toy_test)
TEXT
cat >"$root/src/ring/toy.h" <<'TEXT'
int toy_sum(int n);
void toy_forget(void);
void toy_unused(void);
int toy_most(const int *of, int n);
static inline int toy_even(int n)
{
	return n % 2 == 0;
}
TEXT
cat >"$root/src/ring/toy.c" <<'TEXT'
#include "ring/toy.h"
static int unseen;
int toy_sum(int n)
{
	int sum = 0;
	_Static_assert(sizeof(int) == 4, "");
	if (n < 0)
		return -1;
	n = n;
	while (n) {
		sum += n;
		n--;
	}
	return sum;
}
void toy_forget(void)
{
	unseen++;
}
void toy_unused(void)
{
	unseen--;
	__builtin_prefetch(&unseen);
}
int toy_most(const int *of, int n)
{
	int most = of[0];
	for (int i = 0; i < n; i++)
		if (of[i] > most)
			most = of[i];
	return most;
}
TEXT
cat >"$root/src/ring/toy_test.c" <<'TEXT'
#include <stdlib.h>
#include "ring/toy.h"
int main(void)
{
	int *three = calloc(3, sizeof *three), most;
	three[1] = 5;
	most = toy_most(three, 3);
	free(three);
	toy_forget();
	if (most != 5 || !toy_even(4) || toy_even(3))
		return 1;
	return toy_sum(4) != 10 || toy_sum(0) != 0 || toy_sum(-3) != -1;
}
TEXT
before=$(cd "$root" && find . -type f -exec cksum {} + | sort)
mutate() {
	env -u MAKEFLAGS TMPDIR="$folder" python3 -B scripts/mutate.py --root "$root" --seed 7 --jobs 2 \
		--patience 2 --out "$folder/out" "$@" >"$folder/said" 2>&1 || fail "it ends with $?"
}
result() { # LINE KIND: what became of it
	sed -n "s/.*\"path\": \"src\/ring\/$1\", \"line\": $2, \"kind\": \"$3\".*\"result\": \"\([^\"]*\)\".*/\1/p" \
		"$folder/out"
}
is() { # FILE LINE KIND RESULT...
	local got
	got=$(result "$1" "$2" "$3" | sort | xargs)
	[[ $got == "${*:4}" ]] || fail "$1:$2, $3: $got, not ${*:4}"
}

echo "a change that the test sees is noticed, in a header too"
mutate
is toy.c 7 condition noticed
is toy.c 8 error noticed
is toy.c 11 statement noticed
is toy.h 7 condition noticed

echo "a change that reads a word too far is noticed by the sanitizer alone"
is toy.c 28 bound noticed

echo "a change that nobody sees is listed"
is toy.c 18 statement survived
grep -q 'src/ring/toy.c:18: statement: unseen++ -> (nothing)' "$folder/said" || fail "it is not listed"

echo "a change of a line that no test executes is listed apart"
is toy.c 22 statement "not executed"
sed -n '/^No test executes/,/^$/p' "$folder/said" | grep -q 'toy.c:22: ' || fail "it is not listed"

echo "no place is a prefetch, which no test can notice"
is toy.c 23 statement

echo "a test that does not end has noticed the change, and is listed apart"
is toy.c 12 statement timeout
sed -n '/^Noticed by a timeout/,/^$/p' "$folder/said" | grep -q 'toy.c:12: ' || fail "it is not listed"

echo "a change that does not compile, or changes no code, does not count"
is toy.c 6 condition "does not compile"
is toy.c 9 statement "same code"
counted=$(grep -cE '"result": "(noticed|timeout|survived|not executed)"' "$folder/out")
grep -qE "^all, seed 7 +$counted " "$folder/said" || fail "not $counted are counted"

echo "what was tried is not tried again"
lines=$(wc -l <"$folder/out")
sed -n '/^folder/,$p' "$folder/said" >"$folder/first"
mutate --csv "$folder/table"
[[ $(wc -l <"$folder/out") == "$lines" ]] || fail "$(wc -l <"$folder/out") lines, not $lines"
sed -n '/^folder/,$p' "$folder/said" | cmp -s - "$folder/first" || fail "the summary differs"
[[ $(wc -l <"$folder/table") == $((counted + 1)) ]] || fail "the table has another length"

echo "no more are tried than were asked for, and the tree stays as it is"
rm "$folder/out"
mutate --count 2
grep -qE '^all, seed 7 +2 ' "$folder/said" || fail "not 2 are counted"
[[ $(cd "$root" && find . -type f -exec cksum {} + | sort) == "$before" ]] || fail "the tree has changed"
compgen -G "$folder/tern-mutate.*" >/dev/null && fail "a scratch folder is left"

((failed == 0)) || { cat "$folder/said" && echo "$failed failed"; }
exit $((failed > 0))
