#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: TIMEOUT 600 LABELS slow
# A layer is a folder and a line: the core builds and runs without any, each layer with just what it
# uses, one from outside of the tree, and all others when a layer is deleted.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
here=$PWD
failed=0
fail() {
	echo "    failed: $*"
	failed=$((failed + 1))
}

build() { # SOURCE DIR LAYERS
	cmake -S "$1" -B "$2" -DTERN_LAYERS="$3" -DCMAKE_C_FLAGS_RELWITHDEBINFO="-O0 -g0" \
		--log-level=WARNING >"$2.log" 2>&1 &&
		cmake --build "$2" -j "$(nproc)" --target tern tern_command >>"$2.log" 2>&1 && return
	grep -E -A3 'error:|CMake Error|undefined' "$2.log" | head -20
	fail "a build with TERN_LAYERS=$3"
	return 1
}

program() { # NAME DIR: compiles it and runs two ranks
	"$CC" -I"$here/include" "$folder/$1.c" -o "$folder/$1" -L"$2/lib" -ltern \
		-Wl,-rpath,"$2/lib" && timeout 60 "$2/bin/tern" run -n 2 "$folder/$1"
}

cat >"$folder/core.c" <<'END'
#include <stdlib.h>
#include <tern/tern.h>
static int told;
static void on_ask(tern *t, const tern_msg *m) { tern_reply(t, m, 1, tern_msg_word(m, 0) + 1); }
static void on_told(tern *t, const tern_msg *m) { (void)t; told = (int)tern_msg_word(m, 0); }
int main(void)
{
	tern *t;
	if (tern_open(&t, NULL) || tern_on(t, 0, on_ask) || tern_on(t, 1, on_told) ||
	    tern_barrier(t) || tern_request(t, 1 - tern_rank(t), 0, 41))
		return 1;
	while (!told)
		tern_poll(t);
	return tern_barrier(t) || tern_close(t) || told != 42;
}
END
cat >"$folder/toy.c" <<'END'
#include <tern/tern.h>
int tern_toy_say(tern *t, uint32_t rank, uint64_t what);
uint64_t tern_toy_heard(tern *t);
int main(void)
{
	tern *t;
	if (tern_open(&t, NULL) || tern_toy_say(t, 1 - tern_rank(t), 42) || tern_barrier(t))
		return 1;
	while (tern_toy_heard(t) != 42)
		tern_poll(t);
	return tern_barrier(t) || tern_close(t);
}
END

echo "the core builds alone and carries messages"
build . "$folder/build" none && { program core "$folder/build" || fail "its program"; }
left_out=$(sed -n 's/.*REGEX "[^"(]*(\([a-z|]*\)).*/\1/p' "$folder/build/cmake_install.cmake" | head -1)
headers=$(cd include/tern && printf '%s\n' *.h | grep -vxE "($left_out)\.h" | tr '\n' ' ')
[[ $headers == "fast.h lang.h op.h sim.h stats.h tern.h " ]] || fail "it installs $headers"

# A call of each.
calls=(mem:tern_put msg:tern_send typed:tern_buf_send chan:tern_chan_any
	async:tern_async_send_start spawn:tern_spawn_array sequence:tern_sequence_send
	coll:tern_team_barrier post:tern_post_array)
uses() { sed -n "s/^tern_layer($1 .*USES \([a-z ]*\).*/\1/p" src/layers/layers.cmake; }
for layer in $(sed -n 's/^tern_layer(\([a-z]*\) .*/\1/p' src/layers/layers.cmake); do
	echo "$layer builds with what it uses, and nothing else"
	build . "$folder/build" "$layer" || continue
	nm -D "$folder/build/lib/libtern.so" >"$folder/names"
	for call in "${calls[@]}"; do
		name=${call%%:*}
		has=no
		[[ " $layer $(uses "$layer") " == *" $name "* ]] && has=yes
		if grep -q " T ${call#*:}" "$folder/names"; then is=yes; else is=no; fi
		[[ $is == "$has" ]] || fail "${call#*:} of $name: is it there? $is, not $has"
	done
done

echo "a layer from outside of the tree is built in"
build . "$folder/build" "$here/tests/layers/toy_layer" &&
	{ program toy "$folder/build" || fail "its program"; }

echo "a layer includes headers of those that it names as used, and the core of none"
layers=$(sed -n 's/^tern_layer(\([a-z]*\) .*/\1/p' src/layers/layers.cmake)
any=${layers//$'\n'/|}
for part in src/*/; do
	[[ $part =~ ^src/(layers|tools)/$ ]] ||
		! grep -rnE "#include [<\"](tern/)?($any)[/.]" --include='*.[ch]' \
			--exclude='*_test.c' "$part" || fail "$part includes a layer's header"
done
for layer in $layers; do
	for name in $layers; do
		[[ " $layer $(uses "$layer") " == *" $name "* ]] ||
			! grep -rnE "#include [<\"](tern/)?$name[/.]" --include='*.[ch]' \
				--exclude='*_test.c' "src/layers/$layer" ||
			fail "$layer does not say that it uses $name"
	done
done

echo "without its folder and its line a layer is gone, and the others build"
mkdir "$folder/tree"
cp -r CMakeLists.txt CMakePresets.json LICENSE README.md cmake src include man scripts docs lab \
	examples apps tests compare "$folder/tree" 2>/dev/null || true
rm -r "$folder/tree/src/layers/post"
sed -i '/^tern_layer(post /d' "$folder/tree/src/layers/layers.cmake"
build "$folder/tree" "$folder/less" "mem;msg;typed;chan;async;spawn;sequence;coll" &&
	{ program core "$folder/less" || fail "its program"; }

((failed == 0)) || { echo "$failed failed"; exit 1; }
