#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: LABELS once
# The public headers ask for C11 or C++17 and nothing more, with the inline path and without it.
set -euo pipefail

folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cat >"$folder/self.c" <<'END'
#include <tern/async.h>
#include <tern/chan.h>
#include <tern/lock.h>
#include <tern/mem.h>
#include <tern/send.h>
#include <tern/sequence.h>
#include <tern/sim.h>
#include <tern/thread.h>
#include <tern/stats.h>
#include <tern/buf.h>

static tern_flag got;
static double half;
static float quarter;

static void on_answer(tern *t, const tern_msg *m)
{
	half = tern_msg_double(m, 1);
	quarter = (float)tern_msg_double(m, 2);
	tern_signal(t, &got, tern_msg_word(m, 0));
}

static void on_question(tern *t, const tern_msg *m)
{
	tern_reply(t, m, 1, tern_msg_word(m, 0) + tern_msg_word(m, 1), tern_msg_double(m, 2) * 2,
		   (float)tern_msg_double(m, 3));
}

/* The type of what gets the old value chooses the operation; minima compare as it does. */
static int atomics(tern *t)
{
	uint64_t u64;
	int64_t i64 = 0;
	uint32_t u32;
	int32_t i32;
	double d;
	float f;
	tern_op op = TERN_OP;
	void *p;
	if (tern_alloc_all(t, 8, &p))
		return 1;
	tern_addr a = tern_addr_at(t, tern_rank(t), p);
	return tern_amo(t, a, TERN_AMO_STORE, -1, (int64_t *)NULL) ||
	       tern_amo(t, a, TERN_AMO_MIN, 5, &i64) || i64 != -1 ||
	       tern_amo(t, a, TERN_AMO_MIN, 5, &u64) || u64 != UINT64_MAX ||
	       tern_cas(t, a, 5, -2, &i64) || i64 != 5 ||
	       tern_amo_start(t, a, TERN_AMO_MAX, 1, &i32, &op) || tern_op_wait(t, &op) ||
	       i32 != -2 ||
	       tern_cas_start(t, a, 1, 2, &u32, NULL) || u32 != 1 ||
	       tern_amo(t, a, TERN_AMO_STORE, 0.5, &d) ||
	       tern_amo(t, a, TERN_AMO_ADD, 1, &d) || d != 0.5 ||
	       tern_amo(t, a, TERN_AMO_SWAP, 0.25f, &f) || tern_amo(t, a, TERN_AMO_LOAD, 0, &f) ||
	       f != 0.25f;
}

int main(void)
{
	tern *t;
	if (tern_open(&t, NULL) || tern_on(t, 0, on_question) || tern_on(t, 1, on_answer))
		return 1;
	if (tern_request(t, tern_rank(t), 0, 40, 2, 0.25, -0.25f) || tern_wait(t, &got, 42))
		return 2;
	if (half != 0.5 || quarter != -0.25f)
		return 6;
	if (atomics(t))
		return 7;
	tern_chan *to, *from;
	uint64_t value = 0;
	if (tern_chan_to(t, 0, 1, &to) || tern_chan_from(t, 0, 1, &from))
		return 3;
	tern_out out = tern_chan_out(to);
	tern_in in = tern_chan_in(from);
	for (uint64_t i = 0; i < 1000; i++)
		if (tern_chan_put(&out, &i, sizeof i) ||
		    tern_chan_get(&in, &value, sizeof value) || value != i)
			return 4;
	uint64_t answer = 42;
	if (tern_send(t, 0, 7, &answer, sizeof answer) ||
	    tern_recv(t, TERN_RANK_ANY, 7, &value, sizeof value, NULL) || value != 42)
		return 5;
	return tern_close(t);
}
END

lib=$TERN_BIN/../lib
for compiler in gcc clang; do
	command -v $compiler >/dev/null || continue
	for inline in TERN_INLINE TERN_NO_INLINE; do
		for level in -O0 -O2; do
			echo "a program compiles with $compiler $level -D$inline, and answers itself"
			$compiler -std=c11 -pedantic-errors -Wall -Wextra -Werror $level -D$inline \
				-Iinclude \
				"$folder/self.c" -o "$folder/self" -L"$lib" -ltern -Wl,-rpath,"$lib"
			"$folder/self"
		done
	done
done

for compiler in g++ clang++; do
	command -v $compiler >/dev/null || { echo "no $compiler here"; continue; }
	for inline in TERN_INLINE TERN_NO_INLINE; do
		echo "the same program compiles with $compiler -std=c++17 -D$inline, and answers itself"
		$compiler -std=c++17 -x c++ -Wall -Wextra -Wpedantic -Werror -O2 -D$inline \
			-Iinclude \
			"$folder/self.c" -x none -o "$folder/self" -L"$lib" -ltern -Wl,-rpath,"$lib"
		"$folder/self"
	done
	for header in include/tern/*.h; do
		[[ $header == */fast.h || $header == */ring.h ]] && continue # parts of tern.h
		echo "#include <${header#include/}>" |
			$compiler -std=c++17 -x c++ -Wall -Wextra -Wpedantic -Werror \
				-fsyntax-only -Iinclude - ||
			{ echo "    $header by itself"; exit 1; }
	done
done

echo "the library exports every function of its headers, for languages that cannot compile them"
nm -D --defined-only "$lib/libtern.so" | awk '{ print $3 }' | sed 's/@.*//' |
	sort >"$folder/exported"
cat include/tern/*.h | gcc -fpreprocessed -dD -E -P -x c - 2>/dev/null | tr '\n' ' ' \
	>"$folder/headers"
{
	grep -oE 'TERN_INLINE_ [a-z_0-9 *]+\(' "$folder/headers" | grep -oE 'tern_[a-z0-9_]+\('
	# What is not exported is the exported _start form without a handle.
	grep -oE 'static inline [a-z_0-9 *]+\(' "$folder/headers" |
		grep -oE 'tern_[a-z0-9_]*[a-z0-9]\(' | grep -v '_start($' | sed 's/($/_start(/'
} | tr -d '(' | sort -u >"$folder/inline"
[[ $(wc -l <"$folder/inline") -ge 20 ]] || {
	echo "    found $(wc -l <"$folder/inline") inline functions only"
	exit 1
}
missing=$(comm -23 "$folder/inline" "$folder/exported")
[[ -z $missing ]] || { echo "    not exported: $missing"; exit 1; }

echo "words are numbers of any type, eight at most; the first error says what is wrong"
# Each ends where another word would follow.
calls=('tern_request(t, 0, 0' 'tern_reply(t, m, 0' 'tern_request_data(t, 0, 0, "x", 1'
	'tern_reply_to(t, 0, 0'
	'tern_reply_data(t, m, 0, "x", 1' 'tern_commit(t, claimed, 0' 'tern_post(t, 0, 0'
	'tern_reply_commit(t, m, claimed, 0' 'tern_put_request(t, a, 0, "x", 1'
	'tern_put_request_start(t, a, 0, "x", 1, NULL, NULL'
	'tern_put_reply(t, m, a, 0, "x", 1, NULL'
	'tern_spawn(t, 0, 0, 0, 0' 'tern_thread_start(t, 0, 0, thread')
compile() { # COMPILER WORDS TYPE...: every call with these words, of each type
	local compiler=$1 words=$2 call type
	shift 2
	{
		printf '#include <%s>\n' stdbool.h tern/mem.h tern/post.h tern/thread.h
		echo 'struct bits { unsigned low : 3; };'
		for type; do
			echo "static inline void give_${type//[^a-z0-9]/_}(tern *t, const tern_msg *m,"
			echo "tern_thread *thread, void *claimed, tern_addr a,"
			echo "struct bits b, $type word) { (void)word, (void)b;"
			printf '(void)!%s, '"$words"');\n' "${calls[@]}"
			echo '}'
		done
	} >"$folder/words.c"
	$compiler -fsyntax-only -Wall -Wextra -Werror -Wno-unused-function \
		-Iinclude "$folder/words.c" 2>"$folder/said"
}
refused() { # SENTENCE COMPILER WORDS TYPE
	local sentence=$1
	shift
	! compile "$@" || { echo "    $* compiles"; exit 1; }
	[[ $(grep -m1 'error:' "$folder/said") == *"$sentence"* ]] || {
		echo "    $*: the first error is not '$sentence':"
		head -5 "$folder/said"
		exit 1
	}
	# A template is refused once, whoever uses it.
	[[ $1 == *++* || $(grep -c "error:.*$sentence" "$folder/said") == "${#calls[@]}" ]] || {
		echo "    $*: not said of each call"
		exit 1
	}
}
for compiler in 'gcc -std=c11' 'clang -std=c11 -ferror-limit=0' 'g++ -x c++ -std=c++17' \
	'clang++ -x c++ -std=c++17'; do
	command -v "${compiler%% *}" >/dev/null || { echo "no ${compiler%% *} here"; continue; }
	compile "$compiler" 'word, b.low, 3, 4, 5, word' 'enum tern_delivery' bool 'signed char' \
		'unsigned short' int uint64_t double float || {
		echo "    $compiler refuses words:"
		head -5 "$folder/said"
		exit 1
	}
	refused 'tern: a word is an integer, a float or a double; cast a pointer to uintptr_t' \
		"$compiler" '1, word' 'char *'
	refused 'tern: a message has at most 8 words' "$compiler" \
		'1, 2, 3, 4, 5, 6, 7, 8, word' int
	refused 'tern: a message has at most 8 words' "$compiler" \
		'1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, word' int
done
