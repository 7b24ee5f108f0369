#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: LABELS once
# What is installed can be found, linked, run and read.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
prefix=$folder/prefix

echo "cmake --install fills a prefix"
cmake --install "$TERN_BIN/.." --prefix "$prefix" >"$folder/log" || { cat "$folder/log"; exit 1; }
lib=$(dirname "$(find "$prefix" -name libtern.so)") # lib, or lib/x86_64-linux-gnu where the build was for /usr

# As a user would write it, but for the check that a name of theirs may be one of ours inside.
cat >"$folder/user.c" <<'END'
#include <stdio.h>
#include <tern/tern.h>

int job_create(void);
int job_create(void)
{
	return 7;
}

int main(void)
{
	tern *t;
	int rc = tern_open(&t, NULL);
	if (rc) {
		fprintf(stderr, "%s\n", tern_strerror(rc));
		return 1;
	}
	printf("rank %u of %u\n", tern_rank(t), tern_size(t));
	return tern_close(t) || job_create() != 7;
}
END

expect() { # WHAT COMMAND...
	echo "$1"
	shift
	local said
	said=$("$@") || { echo "    $* ended with status $?"; exit 1; }
	[[ $said == "rank 0 of 1" ]] || { echo "    it said: $said"; exit 1; }
}

export PKG_CONFIG_PATH=$lib/pkgconfig
if command -v pkg-config >/dev/null; then
	[[ $(pkg-config --modversion tern) == 0.1.0 ]]
	$CC "$folder/user.c" -o "$folder/shared" $(pkg-config --cflags --libs tern)
	expect "a program links the shared library through pkg-config and runs" \
		env LD_LIBRARY_PATH="$lib" "$folder/shared"
	$CC -static "$folder/user.c" -o "$folder/static" $(pkg-config --static --cflags --libs tern)
	expect "a program links the static library through pkg-config --static and runs" "$folder/static"
else
	echo "pkg-config is not installed: not checked"
fi

cat >"$folder/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES C)
find_package(tern 0.1 CONFIG REQUIRED)
foreach(form tern static)
	add_executable(user_${form} user.c)
	target_link_libraries(user_${form} PRIVATE tern::${form})
endforeach()
END
cmake -S "$folder" -B "$folder/build" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_COMPILER="$CC" >"$folder/log" 2>&1 &&
	cmake --build "$folder/build" >>"$folder/log" 2>&1 || { cat "$folder/log"; exit 1; }
expect "a program finds tern::tern with find_package and runs" "$folder/build/user_tern"
expect "a program finds tern::static with find_package and runs" "$folder/build/user_static"

echo "the shared library's soname is libtern.so.0"
readelf -d "$lib/libtern.so" | grep -q 'SONAME.*\[libtern\.so\.0\]'
[[ $(readlink "$lib/libtern.so.0") == libtern.so.0.1.0 ]]

echo "both libraries show tern_* and nothing else"
foreign=$({ nm -D --defined-only "$lib/libtern.so"; nm -g --defined-only "$lib/libtern.a"; } |
	awk 'NF == 3 && $2 != "A" && $3 !~ /^tern_/ { print $3 }')
[[ -z $foreign ]] || { echo "    and $foreign"; exit 1; }

echo "the installed command runs"
"$prefix/bin/tern" info >"$folder/log" || { cat "$folder/log"; exit 1; }

echo "the man pages are there"
for page in man1/tern.1 man1/tern-run.1 man1/tern-perf.1 man1/tern-logp.1 man1/tern-info.1 man7/tern.7; do
	[[ -s $prefix/share/man/$page ]] || { echo "    not $page"; exit 1; }
done
compgen -G "$prefix/share/man/man3/tern_*.3" >/dev/null || { echo "    none in section 3"; exit 1; }
