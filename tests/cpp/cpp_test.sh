#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: LABELS once TIMEOUT 600
# The C++ headers do what the programs here say in every dialect, and refuse at compile time what
# cannot work.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
lib=$TERN_BIN/../lib
flags=(-Wall -Wextra -Wpedantic -Wshadow -Werror -Iinclude)
command -v g++ >/dev/null || command -v clang++ >/dev/null || {
	echo "skipped: there is no C++ compiler"
	exit 77
}

run() { # COMPILER OPTIONS
	command -v "$1" >/dev/null || { echo "no $1 here"; return 0; }
	echo "the tests with $*"
	"$@" "${flags[@]}" tests/cpp/*.cpp -o "$folder/test" -pthread -L"$lib" -ltern \
		-Wl,-rpath,"$lib"
	timeout 100 "$folder/test" >"$folder/said" 2>&1 || {
		echo "    it ended with status $?"
		tail -4 "$folder/said"
		exit 1
	}
}
run g++ -std=c++17
run g++ -std=c++20 -O2
run clang++ -std=c++17 -fno-exceptions -DTERN_NO_INLINE
run clang++ -std=c++20
for other in 'g++ -std=c++20 -fno-exceptions' 'clang++ -std=c++17'; do
	! command -v "${other%% *}" >/dev/null || $other "${flags[@]}" -fsyntax-only tests/cpp/*.cpp
done

cat >"$folder/frame.h" <<'END_OF_FRAME'
#include <string>
#include <tern/tern.hpp>
struct five { uint64_t w[5]; };
constexpr tern::handler<int> h{ 0 };
END_OF_FRAME
compile() { # COMPILER STATEMENTS [LINE BEFORE]
	printf '%s\n#include "%s"\nvoid f(tern::endpoint &t, tern::nothrow::endpoint &n) { (void)t, (void)n; %s }\n' \
		"${3-}" "$folder/frame.h" "$2" >"$folder/one.cpp"
	$1 -std=c++17 "${flags[@]}" -fsyntax-only "$folder/one.cpp" >"$folder/said" 2>&1
}
refused() { # SENTENCE STATEMENTS [LINE BEFORE]
	! compile "$compiler" "${@:2}" || { echo "    $compiler compiles: $2"; exit 1; }
	grep -q -- "$1" "$folder/said" || {
		echo "    $compiler does not say '$1' of $2:"
		head -5 "$folder/said"
		exit 1
	}
}
for compiler in g++ clang++; do
	command -v $compiler >/dev/null || continue
	echo "$compiler refuses with a sentence what cannot work"
	compile $compiler 't.request(1, h, 2);' || { cat "$folder/said"; exit 1; }
	refused 'what a message carries is trivially copyable' \
		't.request(1, tern::handler<std::string>{ 1 }, "x");'
	refused 'at most 8 words; put them into one struct' \
		't.request(1, tern::handler<five, five>{ 1 }, {}, {});'
	refused 'one span at most, and last' \
		't.request(1, tern::handler<tern::span<const int>, int>{ 1 }, {}, 1);'
	refused 'an item has at most 6 words' 't.post(1, tern::handler<five, int, int>{ 1 }, {}, 1, 2);'
	refused 'a handler takes the types of its number' 't.on(h, [](std::string) {});'
	refused 'a handler that takes a span<const T> last' 't.claim<int>(1, 2).commit(h);'
	refused 'a thread to be joined takes words alone' \
		't.thread_start(1, tern::thread_fn<int(tern::span<const int>)>{ 1 }, {});'
	refused 'a thread takes at most 8 words' 'tern::thread_fn<void(five, five)>{ 1 };'
	refused 'error:.*request' 't.request(1, h);'
	refused 'error:.*\(int\|request\)' 't.request(1, h, "x");'
	refused 'error:.*nodiscard' 'n.request(1, h, 2);'
	refused 'before the C headers of Tern' '' '#include <tern/mem.h>'
done
