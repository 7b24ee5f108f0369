/* SPDX-License-Identifier: BSD-3-Clause */
/* The switch itself. */
#include "spawn/machine.h"

#include <fenv.h>
#include <stdlib.h>

#include "lib/check.h"

enum { STACK = 65536 };

static struct machine home, away;
static void (*swap)(struct machine *from, const struct machine *to);
static char *stack;
static unsigned turns;
static void *got;

/*
 * Keeps more values alive across a switch than there are registers a callee preserves, integers and
 * doubles, so that some of them stay in each; the sum tells whether one was lost.
 */
__attribute__((noinline)) static double busy(uint64_t seed, struct machine *from,
					     const struct machine *to)
{
	uint64_t a = seed, b = seed * 3, c = seed * 5, d = seed * 7, e = seed * 11, f = seed * 13,
		 g = seed * 17, h = seed * 19, i = seed * 23, j = seed * 29;
	double p = (double)seed / 3, q = (double)seed / 7, r = (double)seed / 11,
	       s = (double)seed / 13;
	for (unsigned n = 0; n < 100; n++) {
		swap(from, to);
		a += b, b += c, c += d, d += e, e += f, f += g, g += h, h += i, i += j, j += a;
		p += q, q += r, r += s, s += p / 1024;
	}
	return (double)(a ^ b ^ c ^ d ^ e ^ f ^ g ^ h ^ i ^ j) + p + q + r + s;
}

static void nothing(struct machine *from, const struct machine *to)
{
	(void)from, (void)to;
}

static double busy_alone(uint64_t seed)
{
	void (*real)(struct machine * from, const struct machine *to) = swap;
	swap = nothing;
	double result = busy(seed, NULL, NULL);
	swap = real;
	return result;
}

static double there;

static void be_busy(void *arg)
{
	there = busy((uint64_t)(uintptr_t)arg, &away, &home);
	for (;;)
		swap(&away, &home);
}

static void count_turns(void *arg)
{
	for (;; turns++) {
		got = arg;
		swap(&away, &home);
	}
}

static uintptr_t entered_at;

static void note_stack(void *arg)
{
	_Alignas(16) char here[16];
	(void)arg;
	__asm__ volatile("" : : "r"(here) : "memory");
	entered_at = (uintptr_t)here;
	swap(&away, &home);
	abort();
}

static void prepare(machine_entry *entry, void *arg)
{
	stack = malloc(STACK);
	swap = machine_switch;
	machine_make(&away, stack, STACK, entry, arg);
}

TEST(a_switch_keeps_what_is_in_registers)
{
	prepare(be_busy, (void *)123);
	double expect_here = busy_alone(77), expect_there = busy_alone(123);
	CHECK(busy(77, &home, &away) == expect_here);
	swap(&home, &away);
	CHECK(there == expect_there);
	free(stack);
}

TEST(a_machine_goes_on_where_it_left_off)
{
	int arg;
	prepare(count_turns, &arg);
	for (unsigned i = 0; i < 1000; i++) {
		swap(&home, &away);
		CHECK_IS(turns, i);
	}
	CHECK(got == &arg);
	free(stack);
}

TEST(a_machine_runs_on_its_own_aligned_stack)
{
	prepare(note_stack, NULL);
	swap(&home, &away);
	CHECK(entered_at >= (uintptr_t)stack && entered_at < (uintptr_t)stack + STACK);
	CHECK_IS(entered_at % 16, 0);
	free(stack);
}

#if defined(__x86_64__)
static void round_up(void *arg)
{
	(void)arg;
	fesetround(FE_UPWARD);
	swap(&away, &home);
	turns = fegetround() == FE_UPWARD;
	swap(&away, &home);
}

TEST(each_machine_has_its_own_rounding)
{
	prepare(round_up, NULL);
	fesetround(FE_TONEAREST);
	swap(&home, &away);
	CHECK_IS(fegetround(), FE_TONEAREST);
	fesetround(FE_DOWNWARD);
	swap(&home, &away);
	CHECK_IS(turns, 1);
	CHECK_IS(fegetround(), FE_DOWNWARD);
	free(stack);
}
#endif
