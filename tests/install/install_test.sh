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
was=$(. "$TERN_BIN/../install-paths" && echo "$prefix") # what the build was for
# lib, or lib/x86_64-linux-gnu where the build was for /usr
lib=$(dirname "$(find "$prefix" -name libtern.so)")

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
	if [[ $was != /usr ]]; then
		expect "a program links the shared library through pkg-config and runs" \
			"$folder/shared"
	else # where the loader looks by itself, had it been installed there
		expect "a program links the shared library through pkg-config and runs" \
			env LD_LIBRARY_PATH="$lib" "$folder/shared"
	fi
	$CC -static "$folder/user.c" -o "$folder/static" $(pkg-config --static --cflags --libs tern)
	expect "a program links the static library through pkg-config --static and runs" \
		"$folder/static"
	if command -v mpiexec.hydra >/dev/null; then
		echo "under another launcher both find the installed tern-link, by the library or TERN_LINK"
		for how in "$folder/shared" "env TERN_LINK=$prefix/libexec/tern-link $folder/static" \
			"env PATH=$prefix/libexec $folder/static"; do
			LD_LIBRARY_PATH=$lib timeout 60 mpiexec.hydra -n 2 $how >"$folder/log" 2>&1 &&
				[[ $(grep -c '^rank [01] of 2$' "$folder/log") == 2 ]] || {
				cat "$folder/log"
				exit 1
			}
		done
	fi
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
cmake -S "$folder" -B "$folder/build" -DCMAKE_PREFIX_PATH="$prefix" -DCMAKE_C_COMPILER="$CC" \
	>"$folder/log" 2>&1 &&
	cmake --build "$folder/build" >>"$folder/log" 2>&1 || { cat "$folder/log"; exit 1; }
expect "a program finds tern::tern with find_package and runs" "$folder/build/user_tern"
expect "a program finds tern::static with find_package and runs" "$folder/build/user_static"

if command -v c++ >/dev/null; then
	cat >"$folder/user.cpp" <<'END'
#include <cstdio>
#include <tern/tern.hpp>

int main()
{
	tern::endpoint t = tern::open();
	std::printf("rank %u of %u\n", t.rank(), t.size());
}
END
	mkdir "$folder/cpp"
	cat >"$folder/cpp/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.25)
project(user LANGUAGES CXX)
find_package(tern 0.1 CONFIG REQUIRED)
add_executable(user ../user.cpp)
target_compile_features(user PRIVATE cxx_std_17)
target_link_libraries(user PRIVATE tern::tern)
END
	cmake -S "$folder/cpp" -B "$folder/cpp/build" -DCMAKE_PREFIX_PATH="$prefix" \
		>"$folder/log" 2>&1 &&
		cmake --build "$folder/cpp/build" >>"$folder/log" 2>&1 || { cat "$folder/log"; exit 1; }
	expect "a program in C++ finds tern::tern with find_package and runs" "$folder/cpp/build/user"
	if command -v pkg-config >/dev/null; then
		c++ -std=c++17 "$folder/user.cpp" -o "$folder/shared_cpp" \
			$(pkg-config --cflags --libs tern)
		expect "a program in C++ links through pkg-config and runs" \
			env LD_LIBRARY_PATH="$lib" "$folder/shared_cpp"
	fi
else
	echo "there is no C++ compiler: not checked"
fi

echo "the shared library's soname is libtern.so.0"
readelf -d "$lib/libtern.so" | grep -q 'SONAME.*\[libtern\.so\.0\]'
[[ $(readlink "$lib/libtern.so.0") == libtern.so.0.1.0 ]]

echo "both libraries show tern_* and nothing else"
foreign=$({ nm -D --defined-only "$lib/libtern.so"; nm -g --defined-only "$lib/libtern.a"; } |
	awk 'NF == 3 && $2 != "A" && $3 !~ /^tern_/ { print $3 }')
[[ -z $foreign ]] || { echo "    and $foreign"; exit 1; }

echo "the installed command runs"
"$prefix/bin/tern" info >"$folder/log" || { cat "$folder/log"; exit 1; }

echo "it finds every program that was built, in libexec/tern or beside it"
for program in machines $(cd "$TERN_BIN" && echo tern-*); do
	"$prefix/bin/tern" "${program#tern-}" --help >"$folder/log" 2>&1 &&
		grep -q "^usage: tern.${program#tern-}" "$folder/log" || { cat "$folder/log"; exit 1; }
done
for program in "$TERN_BIN"/tern-*; do
	[[ -x $prefix/libexec/tern/${program##*/} ]] || { echo "    not $program"; exit 1; }
done

# all of it: a pipe that is cut fails
"$prefix/bin/tern-machines" --help | grep '^usage: ' >/dev/null

echo "the man pages are there"
for page in man1/tern.1 man1/tern-run.1 man1/tern-perf.1 man1/tern-logp.1 man1/tern-info.1 \
	man1/tern-machines.1 man7/tern.7; do
	[[ -s $prefix/share/man/$page ]] || { echo "    not $page"; exit 1; }
done
compgen -G "$prefix/share/man/man3/tern_*.3" >/dev/null || { echo "    none in section 3"; exit 1; }
if man --version 2>&1 | grep '^man [0-9]' >/dev/null; then # small images have a script that says no
	echo "man finds a page by each of its names"
	man -M "$prefix/share/man" -P cat tern_team_split | grep tern_team_all >/dev/null
fi

echo "every link of every installed document leads to a file"
documents=$(find "$prefix" -name '*.md')
[[ $(wc -l <<<"$documents") -gt 15 ]] || { echo "    there are only: $documents"; exit 1; }
for document in $documents; do
	for link in $(grep -oP '\]\(\K[^)#]+(?=(#[^)]*)?\))' "$document" | grep -v '^http'); do
		[[ -e $(dirname "$document")/$link ]] || { echo "    $document: $link"; exit 1; }
	done
done

echo "licence, README, examples and completion are there, and the examples compile"
for file in doc/tern/LICENSE doc/tern/README.md doc/tern/examples/hello.c \
	bash-completion/completions/tern{,-machines}; do
	[[ -s $prefix/share/$file ]] || { echo "    not $file"; exit 1; }
done
for example in "$prefix"/share/doc/tern/examples/*.c; do
	$CC -Wall -Wextra -Werror "$example" -o "$folder/example" -I"$prefix/include" -L"$lib" \
		-ltern
done
for example in "$prefix"/share/doc/tern/examples/*.cpp; do
	! command -v c++ >/dev/null ||
		c++ -std=c++17 -Wall -Wextra -Werror "$example" -o "$folder/example" \
			-I"$prefix/include" -L"$lib" -ltern
done

echo "the Python module is there, and finds the library of its prefix"
[[ -s $prefix/share/tern/python/README.md && -s $prefix/share/tern/python/halo.py ]]
if command -v python3 >/dev/null; then
	expect "a program imports it and runs" env PYTHONPATH="$prefix/share/tern/python" PYTHONDONTWRITEBYTECODE=1 \
		python3 -c 'import tern; t = tern.Endpoint(); print("rank", t.rank, "of", t.size); t.close()'
else
	echo "python3 is not installed: not run"
fi

echo "make install says how to compile and run, and that works as it stands"
mkdir "$folder/made"
sed "s|'$was|'$prefix|" "$TERN_BIN/../install-paths" >"$folder/made/install-paths"
env -u PKG_CONFIG_PATH scripts/installed.sh "$folder/made" >"$folder/said"
grep -q "^    export PATH=$prefix/bin:" "$folder/said" || { cat "$folder/said"; exit 1; }
sed -n 's/^    //p' "$folder/said" >"$folder/commands"
if [[ $was != /usr ]]; then
	(cd "$folder" && unset PKG_CONFIG_PATH && timeout 60 bash -eu commands >hello.out) || {
		cat "$folder/commands"
		exit 1
	}
	[[ $(grep -c '^rank [0-3]: rank [0-3] says 42$' "$folder/hello.out") == 4 ]] || {
		cat "$folder/hello.out"
		exit 1
	}
fi
[[ -z $(DESTDIR=/nowhere scripts/installed.sh "$folder/made") ]]

echo "a build that leaves something out says so, with the command that adds it"
cmake -S . -B "$folder/less" -DCMAKE_C_COMPILER="$CC" -DSODIUM_INCLUDE= -DFABRIC_INCLUDE= \
	-DPMIX_HEADER_DIR= >"$folder/log" 2>&1 ||
	{ cat "$folder/log"; exit 1; }
scripts/left_out.sh "$folder/less" 'make demo' >"$folder/said"
for word in 'UDP (libsodium-dev)' 'libfabric (libfabric-dev)' \
	'PMIx for mpirun and srun (libpmix-dev)'; do
	grep -q "^Left out of this build: .*$word" "$folder/said" || { cat "$folder/said"; exit 1; }
done
! command -v apt-get >/dev/null ||
	grep -q '^To add it: .*apt-get install libsodium-dev libfabric-dev libpmix-dev.* && make demo$' "$folder/said"
: >"$folder/made/left-out"
[[ -z $(scripts/left_out.sh "$folder/made" make) ]]

echo "whoever builds Tern to use it builds the examples and no tests"
grep -q '^all: examples/all' "$folder/less/CMakeFiles/Makefile2"
if grep -q '^all: tests/all' "$folder/less/CMakeFiles/Makefile2"; then exit 1; fi
