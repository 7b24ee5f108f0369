#!/usr/bin/env bash
# SPDX-License-Identifier: BSD-3-Clause
# ctest: LABELS once
# A call or a handler in C++ has as many instructions as in C, or fewer, with exceptions and with
# codes; what throws is another function.
set -euo pipefail

command -v objdump >/dev/null || { echo "skipped: there is no objdump"; exit 77; }
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# What both do. In C, a code is handed to a function that does not return.
cat >"$folder/both.c" <<'END_OF_C'
#include <tern/buf.h>
#include <tern/mem.h>
#include <tern/post.h>
#include <tern/thread.h>

struct item {
	uint64_t a, b, c;
	double d;
};
void fail(int rc) __attribute__((noreturn, cold));
static inline void must(int rc)
{
	if (__builtin_expect(rc, 0))
		fail(rc);
}
extern uint64_t sum;

void request(tern *t, uint32_t dst, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	must(tern_request(t, dst, 3, a, b, c, d));
}
int request_code(tern *t, uint32_t dst, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	return tern_request(t, dst, 3, a, b, c, d);
}
void request_struct(tern *t, uint32_t dst, const struct item *i)
{
	must(tern_request(t, dst, 4, i->a, i->b, i->c, i->d));
}
void request_data(tern *t, uint32_t dst, const double *p, size_t n)
{
	must(tern_request_data(t, dst, 7, p, n * sizeof *p, 5));
}
void put(tern *t, tern_addr a, uint64_t v)
{
	must(tern_put(t, a, &v, sizeof v));
}
int put_code(tern *t, tern_addr a, uint64_t v)
{
	return tern_put(t, a, &v, sizeof v);
}
void put_start(tern *t, tern_addr a, const uint64_t *p, size_t n, tern_op *op)
{
	must(tern_put_start(t, a, p, n * sizeof *p, op));
}
uint64_t get(tern *t, tern_addr a)
{
	uint64_t v;
	must(tern_get(t, &v, a, sizeof v));
	return v;
}
uint64_t fetch_add(tern *t, tern_addr a, uint64_t v)
{
	uint64_t old;
	must(tern_amo(t, a, TERN_AMO_ADD, v, &old));
	return old;
}
void post(tern *t, uint32_t dst, uint64_t a, uint64_t b)
{
	must(tern_post(t, dst, 5, a, b));
}
void post_struct(tern *t, uint32_t dst, const struct item *i)
{
	must(tern_post(t, dst, 4, i->a, i->b, i->c, i->d));
}
void spawn(tern *t, uint32_t dst, uint64_t a, uint64_t b)
{
	must(tern_spawn(t, dst, 8, NULL, NULL, a, b));
}
void buf_send(tern *t, uint32_t dst, const double *p, size_t n)
{
	must(tern_buf_send_start(t, dst, 9, p, n * sizeof *p, 0, NULL));
}
void put_parts(tern *t, tern_addr a, const uint64_t *p, size_t n)
{
	tern_part dst = { .addr = a, .run = n * sizeof *p };
	tern_part src = { .base = (void *)p, .run = n * sizeof *p };
	must(tern_put_parts(t, &dst, 1, &src, 1));
}
void handle(tern *t, const tern_msg *m)
{
	(void)t;
	sum += tern_msg_word(m, 0) * tern_msg_word(m, 1);
}
void handle_struct(tern *t, const tern_msg *m)
{
	(void)t;
	sum += tern_msg_word(m, 0) * (uint64_t)tern_msg_double(m, 3);
}
void handle_reply(tern *t, const tern_msg *m)
{
	must(tern_reply(t, m, 6, tern_msg_word(m, 0) * tern_msg_word(m, 1)));
}
END_OF_C
cat >"$folder/both.cpp" <<'END_OF_CPP'
#include <tern/tern.hpp>

struct item {
	uint64_t a, b, c;
	double d;
};
constexpr tern::handler<uint64_t, uint64_t, uint64_t, uint64_t> four{ 3 };
constexpr tern::handler<item> one{ 4 };
constexpr tern::handler<uint64_t, uint64_t> two{ 5 };
constexpr tern::handler<uint64_t> answer{ 6 };
constexpr tern::handler<int, tern::span<const double>> data{ 7 };
constexpr tern::thread_fn<void(uint64_t, uint64_t)> thread{ 8 };
constexpr tern::buf_type<double> rows{ 9 };
using ref = tern::endpoint_ref;
using ptr = tern::global_ptr<uint64_t>;
extern uint64_t sum;

extern "C" {
void request(ref t, uint32_t dst, uint64_t a, uint64_t b, uint64_t c, uint64_t d)
{
	t.request(dst, four, a, b, c, d);
}
int request_code(tern::nothrow::endpoint_ref t, uint32_t dst, uint64_t a, uint64_t b, uint64_t c,
		 uint64_t d)
{
	return t.request(dst, four, a, b, c, d).code();
}
void request_struct(ref t, uint32_t dst, const item *i) { t.request(dst, one, *i); }
void request_data(ref t, uint32_t dst, const double *p, size_t n)
{
	t.request(dst, data, 5, { p, n });
}
void put(ref t, ptr a, uint64_t v) { t.put(a, v); }
int put_code(tern::nothrow::endpoint_ref t, ptr a, uint64_t v) { return t.put(a, v).code(); }
void put_start(ref t, ptr a, const uint64_t *p, size_t n, tern_op *op) { t.put(a, { p, n }, op); }
uint64_t get(ref t, ptr a) { return t.get(a); }
uint64_t fetch_add(ref t, ptr a, uint64_t v) { return t.fetch_add(a, v); }
void post(ref t, uint32_t dst, uint64_t a, uint64_t b) { t.post(dst, two, a, b); }
void post_struct(ref t, uint32_t dst, const item *i) { t.post(dst, one, *i); }
void spawn(ref t, uint32_t dst, uint64_t a, uint64_t b) { t.spawn(dst, thread, nullptr, a, b); }
void buf_send(ref t, uint32_t dst, const double *p, size_t n) { t.buf_send(dst, rows, { p, n }); }
void put_parts(ref t, ptr a, const uint64_t *p, size_t n)
{
	t.put_parts(tern::part(a, n), tern::part(tern::span<const uint64_t>(p, n)));
}
}

namespace { // as lambdas are: known to this file alone
struct handle {
	void operator()(uint64_t a, uint64_t b) const { sum += a * b; }
};
struct handle_struct {
	void operator()(const item &i) const { sum += i.a * uint64_t(i.d); }
};
struct handle_reply {
	void operator()(tern::message m, uint64_t a, uint64_t b) const { m.reply(answer, a * b); }
};
} // namespace
void handlers(tern::endpoint &t)
{
	t.on(two, handle());
	t.on(one, handle_struct());
	t.on(two, handle_reply());
}
END_OF_CPP

# OBJECT: the instructions of each function, with its cold part; a handler has its type's name
count() {
	objdump -dC --no-show-raw-insn "$1" | awk '
		/^[0-9a-f]+ <.*>:$/ {
			name = $0
			sub(/^[0-9a-f]+ </, "", name)
			sub(/( \[clone [^>]*)?>:$/, "", name)
			sub(/\.cold.*/, "", name)
			if (match(name, /entry_<.*handle[a-z_]*,.*::on\(/)) {
				sub(/^.*namespace\)::/, "", name)
				sub(/,.*/, "", name)
			}
		}
		/^ +[0-9a-f]+:/ && $2 !~ /^(nop|udf|xchg|data16|cs)/ { n[name]++ }
		END { for (name in n) if (name ~ /^[a-z_]+$/) print name, n[name] }' | sort
}

# On x86-64 gcc may join two stores into one by three moves, in one language and not in the other.
options='-O2 -fno-stack-protector -fno-tree-slp-vectorize'
compilers=
for pair in 'gcc g++' 'clang clang++'; do
	read -r c cpp <<<"$pair"
	command -v $c >/dev/null && command -v $cpp >/dev/null || { echo "no $cpp here"; continue; }
	compilers+=$cpp
	# shellcheck disable=SC2086
	$c -std=c11 $options -Iinclude -c "$folder/both.c" -o "$folder/c.o"
	count "$folder/c.o" >"$folder/c"
	for dialect in c++17 c++20; do
		echo "$cpp -std=$dialect has the instructions of C"
		$cpp -std=$dialect $options -Iinclude -c "$folder/both.cpp" -o "$folder/cpp.o"
		count "$folder/cpp.o" >"$folder/cpp"
		compared=0
		while read -r name in_c in_cpp; do
			compared=$((compared + 1))
			((in_cpp <= in_c)) || {
				echo "    $name: $in_cpp in C++ and $in_c in C"
				exit 1
			}
		done < <(join "$folder/c" "$folder/cpp")
		[[ $compared == 17 ]] || { echo "    compared $compared of 17"; exit 1; }
		nm -C "$folder/cpp.o" >"$folder/names"
		grep -q 'tern::fail_(int)' "$folder/names" || {
			echo "    the exception is not thrown by a function of its own"
			exit 1
		}
		if grep -E '::(operator\(\)|request|post|reply|put|put_parts|get|spawn|buf_send|part|amo|fetch_add|run_|call_|take_|packed_|check|give)[<(]' \
			"$folder/names"; then
			echo "    is left out of line, and not counted"
			exit 1
		fi
	done
done
[[ $compilers ]] || { echo "skipped: there is no C++ compiler"; exit 77; }
