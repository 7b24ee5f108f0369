#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: TIMEOUT 600 LABELS slow
# A layer is a folder and a line: the core builds and runs without any, each layer with just what it
# uses, one from outside of the tree, and all others when a layer is deleted. Nothing of the core
# names one.
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

program() { # NAME DIR [FLAG]: compiles it and runs two ranks
	"$CC" "${@:3}" -I"$here/include" "$folder/$1.c" -o "$folder/$1" -L"$2/lib" -ltern \
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
#include <stdio.h>
#include <tern/tern.h>
int tern_toy_say(tern *t, uint32_t rank, uint64_t what);
uint64_t tern_toy_heard(tern *t);
int main(void)
{
	tern *t;
	int rc = tern_open(&t, NULL);
	if (rc)
		return puts(tern_strerror(rc)), 1;
	if (tern_toy_say(t, 1 - tern_rank(t), 42) || tern_barrier(t))
		return 1;
	while (tern_toy_heard(t) != 42)
		tern_poll(t);
	return tern_barrier(t) || tern_close(t);
}
END

# A call of each layer that moves something between two ranks, or runs it: -DUSE_ and its name.
cat >"$folder/use.c" <<'END'
#include <string.h>
#include <tern/tern.h>
static tern *t;
static uint32_t me;
static uint64_t x = 42, got;
#ifdef USE_mem
#include <tern/mem.h>
static int use(void)
{
	void *p;
	if (tern_alloc_all(t, 8, &p) || tern_put(t, tern_addr_at(t, 1 - me, p), &x, 8) ||
	    tern_barrier(t))
		return 1;
	return memcmp(p, &x, 8);
}
#elif defined USE_msg
#include <tern/send.h>
static int use(void)
{
	if (!me)
		return tern_send(t, 1, 7, &x, 8);
	return tern_recv(t, 0, 7, &got, 8, NULL) || got != x;
}
#elif defined USE_typed
#include <tern/buf.h>
static int use(void)
{
	tern_buf buf;
	if (tern_buf_alloc(t, 3, 8, 4, 0) || tern_barrier(t) ||
	    tern_buf_send(t, 1 - me, 3, &x, 8) || tern_buf_recv(t, 3, 0, &buf))
		return 1;
	return memcmp(buf.data, &x, 8) || tern_buf_free(t, buf.data);
}
#elif defined USE_chan
#include <tern/chan.h>
static int use(void)
{
	tern_chan *c;
	if (me ? tern_chan_from(t, 0, 5, &c) : tern_chan_to(t, 1, 5, &c))
		return 1;
	tern_out out = tern_chan_out(c);
	tern_in in = tern_chan_in(c);
	return (me ? tern_chan_get(&in, &got, 8) || got != x : tern_chan_put(&out, &x, 8)) ||
	       tern_barrier(t) || tern_chan_close(c);
}
#elif defined USE_async
#include <tern/async.h>
static int turn(tern *of, void *arg) { (void)of, (void)arg; return ++got < 42; }
static int use(void)
{
	tern_op op = TERN_OP;
	return tern_async_start(t, turn, NULL, &op) || tern_op_wait(t, &op) || got != x;
}
#elif defined USE_spawn
#include <tern/thread.h>
static uint64_t fn(tern *of, const uint64_t word[TERN_WORDS_MAX], void *arg)
{
	(void)of, (void)arg;
	return word[0];
}
static int use(void)
{
	tern_thread thread;
	return tern_thread_on(t, 1, fn, NULL) || tern_barrier(t) ||
	       tern_thread_start_array(t, 1 - me, 1, &thread, 1, &x) ||
	       tern_thread_join(t, &thread, &got) || got != x;
}
#elif defined USE_sequence
#include <tern/sequence.h>
static int ended;
static void *accept(tern *of, uint32_t src, unsigned id, size_t len, void *arg)
{
	(void)of, (void)src, (void)id, (void)len;
	return arg;
}
static void end(tern *of, uint32_t src, unsigned id, void *data, size_t len, void *arg)
{
	(void)of, (void)src, (void)id, (void)data, (void)arg;
	ended = len == 8;
}
static int use(void)
{
	if (tern_sequence_on(t, 1, accept, end, &got) || tern_barrier(t) ||
	    tern_sequence_send(t, 1 - me, 1, &x, 8, TERN_WAY_AUTO))
		return 1;
	while (!ended)
		tern_poll(t);
	return got != x;
}
#elif defined USE_coll
#include <tern/coll.h>
static int use(void)
{
	tern_team *team;
	return tern_team_all(t, &team) ||
	       tern_team_allreduce(team, &x, &got, 1, TERN_TYPE_UINT64, TERN_REDUCE_SUM) ||
	       got != 2 * x || tern_team_free(team);
}
#elif defined USE_post
#include <tern/post.h>
static void on_item(tern *of, const tern_msg *m) { (void)of; got = tern_msg_word(m, 0); }
static int use(void)
{
	if (tern_on(t, 0, on_item) || tern_barrier(t) ||
	    tern_post_array(t, 1 - me, 0, 1, &x) || tern_post_flush(t))
		return 1;
	while (!got)
		tern_poll(t);
	return got != x;
}
#endif
int main(void)
{
	if (tern_open(&t, NULL))
		return 1;
	me = tern_rank(t);
	return use() || tern_barrier(t) || tern_close(t);
}
END

echo "the core builds alone and carries messages"
build . "$folder/build" none && { program core "$folder/build" || fail "its program"; }
left_out=$(sed -n 's/.*REGEX "[^"(]*(\([a-z|]*\)).*/\1/p' "$folder/build/cmake_install.cmake" | head -1)
headers=$(cd include/tern && printf '%s\n' *.h | grep -vxE "($left_out)\.h" | tr '\n' ' ')
[[ $headers == "fast.h lang.h op.h ring.h sim.h stats.h tern.h " ]] || fail "it installs $headers"

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
	program use "$folder/build" "-DUSE_$layer" || fail "what uses $layer"
done

echo "a layer from outside of the tree is built in"
cp -r tests/layers/toy_layer "$folder/outside"
build . "$folder/build" "$folder/outside" &&
	{ program toy "$folder/build" || fail "its program"; }

echo "a rank whose layer from outside has another text, or another number of handlers, is refused"
refused() {
	cp "$folder/build/bin/tern" "$folder/tern_before"
	build . "$folder/build" "$folder/outside" || return
	timeout 60 "$folder/tern_before" run -n 2 "$folder/toy" >"$folder/said" 2>&1 &&
		fail "it joins although $1"
	grep -q 'made by another build' "$folder/said" || fail "another sentence: $(<"$folder/said")"
}
sed -i 's/heard += /heard = /' "$folder/outside/toy/toy.c"
refused "its source was changed"
sed -i 's/HANDLERS 1/HANDLERS 2/' "$folder/outside/layers.cmake"
refused "it has another handler"

echo "a layer includes headers of those that it names as used"
layers=$(sed -n 's/^tern_layer(\([a-z]*\) .*/\1/p' src/layers/layers.cmake)
any=${layers//$'\n'/|}
for layer in $layers; do
	for name in $layers; do
		[[ " $layer $(uses "$layer") " == *" $name "* ]] ||
			! grep -rnE "#include [<\"](tern/)?$name[/.]" --include='*.[ch]' \
				--exclude='*_test.c' "src/layers/$layer" ||
			fail "$layer does not say that it uses $name"
	done
done

echo "no file of the core names a layer, in comments either, and no public struct of the core does"
names="#include [<\"](tern/)?($any)[/.]|layers/($any)\\b|(^|[^a-z/_])($any)/[a-z_/]+\.[ch]\\b"
names+="|\\bLAYER_(${any^^})\\b|\\b($any)_layer\\b"
names+="|\\b($any|memory|message|channel|collective|thread|team)s?'? layer"
for part in src/*/ include/tern/{fast,lang,op,stats,tern}.h; do
	[[ $part =~ ^src/(layers|tools|check)/$ ]] || ! grep -rnE "$names" --include='*.[ch]' \
		--exclude='*_test.c' --exclude-dir=sim "$part" || fail "$part names a layer"
done
core_structs=$(sed -n '/^struct [a-z_]* {/,/^};/p' include/tern/{fast,op,tern}.h)
! grep -nE "\\b($any|mem[a-z]*|team|thread)\\b" <<<"$core_structs" || fail "a public struct names a layer"

echo "without its folder and its line a layer is gone, and the others build"
tree=$folder/tree
mkdir "$tree"
cp -r CMakeLists.txt CMakePresets.json LICENSE README.md cmake src include man scripts docs lab \
	examples apps tests "$tree"
# The layers that do without it, as CMake wants a list.
without() {
	for name in $layers; do
		[[ " $name $(uses "$name") " == *" $1 "* ]] || printf '%s;' "$name"
	done
}
for layer in $layers; do
	mv "$tree/src/layers/$layer" "$folder/away"
	sed -i "/^tern_layer($layer /d" "$tree/src/layers/layers.cmake"
	if cmake -S "$tree" -B "$folder/less" -DTERN_LAYERS="$(without "$layer")" \
		--log-level=WARNING >"$folder/less.log" 2>&1; then
		grep -q "${layer}_layer" "$folder/less/generated/layers.c" && fail "$layer is still there"
		for name in $(without "$layer" | tr ';' ' '); do
			grep -q "&${name}_layer" "$folder/less/generated/layers.c" ||
				fail "without $layer there is no $name"
		done
	else
		cat "$folder/less.log"
		fail "nothing is configured without $layer"
	fi
	if [[ $layer == post ]]; then # and one is built
		build "$tree" "$folder/less" "$(without post)" &&
			{ program core "$folder/less" || fail "its program"; }
	fi
	mv "$folder/away" "$tree/src/layers/$layer"
	cp src/layers/layers.cmake "$tree/src/layers"
done

((failed == 0)) || { echo "$failed failed"; exit 1; }
