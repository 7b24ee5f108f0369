/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: LABELS slow TIMEOUT 120 */
/*
 * Holds and releases, one instruction at a time. A child holds and releases between two marks, and
 * its parent steps through that. At one instruction boundary, another one in each round, the parent
 * delivers the signal of an interrupt; a message is there. Between the end of the hold's addition
 * and the release's subtraction no handler may run then, and when the release has returned the
 * message must have been handled. Signals that come of themselves are kept back.
 */
#include <errno.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/user.h>

#include "core/scope.h"
#include "lib/chance.h"
#include "lib/local.h"

#if !defined(__x86_64__)
TEST(a_hold_is_stepped_through)
{
	check_skip("single-stepping is written for x86-64");
}
#else

enum { VISIT, SIGNAL = 40, MARK = 0xcc, LOCK = 0xf0, MESSAGES = 2, STEPS_MOST = 200000 };

/* What the child tells; the parent reads it. */
struct board {
	_Atomic unsigned handled;
	_Atomic unsigned depth, deepest; /* of handlers */
	_Atomic(_Atomic uint64_t *) guard;
};

static struct board *board;

static void note_visit(tern *t, const tern_msg *m)
{
	(void)t, (void)m;
	unsigned depth = ++board->depth;
	if (depth > board->deepest)
		board->deepest = depth;
	board->handled++;
	board->depth--;
}

/* -- The child ------------------------------------------------------------------------------ */

#define STOP_HERE() __asm__ volatile("int3" : : : "memory")

static void child_round(tern *t)
{
	while (tern_poll(t) > 0)
		;
	board->handled = 0;
	for (int i = 0; i < MESSAGES; i++)
		CHECK_IS(tern_request(local[1], 0, VISIT), 0);
	__asm__ volatile("" : "+r"(t));
	STOP_HERE();
	tern_hold(t);
	__asm__ volatile("" : : : "memory");
	tern_release(t);
	STOP_HERE();
}

__attribute__((noreturn)) static void child_main(const char *delivery)
{
	local_delivered(delivery);
	local_open(2);
	local_on(VISIT, note_visit);
	CHECK_IS(tern_poll(local[0]), 0);
	CHECK_IS(tern_delivery_set(local[1], TERN_DELIVERY_POLL), 0);
	board->guard = local[0]->own->owner.guard;
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		_exit(1);
	raise(SIGSTOP);
	for (;;)
		child_round(local[0]);
}

/* -- The parent ------------------------------------------------------------------------------ */

static pid_t child;
static struct user_regs_struct regs; /* of the child, at its last stop */

/* To the next stop that is a step or a mark. `number` is delivered on the way, or 0. */
static void child_resume(int how, int number)
{
	int status;
	for (;; number = 0) {
		REQUIRE(ptrace(how, child, NULL, (void *)(uintptr_t)number) == 0);
		REQUIRE(waitpid(child, &status, 0) == child && WIFSTOPPED(status));
		if (WSTOPSIG(status) == SIGTRAP)
			break;
		REQUIRE(WSTOPSIG(status) == SIGNAL); /* the timer's, or the sender's */
	}
	REQUIRE(ptrace(PTRACE_GETREGS, child, NULL, &regs) == 0);
}

static void child_start(const char *delivery)
{
	int status;
	board = mmap(NULL, sizeof *board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		     0);
	REQUIRE(board != MAP_FAILED);
	child = fork();
	REQUIRE(child >= 0);
	if (child == 0)
		child_main(delivery);
	REQUIRE(waitpid(child, &status, 0) == child);
	if (!WIFSTOPPED(status))
		check_skip("this machine does not let a process trace its child");
	ptrace(PTRACE_SETOPTIONS, child, NULL, (void *)(uintptr_t)PTRACE_O_EXITKILL);
}

static void child_end(void)
{
	kill(child, SIGKILL);
	waitpid(child, NULL, 0);
}

/* The code is the parent's, too. */
static unsigned char byte_here(void)
{
	return *(const unsigned char *)(uintptr_t)regs.rip;
}

static bool at_mark(void)
{
	return byte_here() == MARK;
}

static void step(void)
{
	child_resume(PTRACE_SINGLESTEP, 0);
}

static uint64_t guard_there(void)
{
	errno = 0;
	long word = ptrace(PTRACE_PEEKDATA, child, (void *)board->guard, NULL);
	REQUIRE(errno == 0);
	return (uint64_t)word;
}

static bool holds_there(void)
{
	return (guard_there() >> 16 & GUARD_MASK) != 0;
}

/* Steps into the handler of the signal and on until it has returned. */
static void interrupt_here(void)
{
	unsigned long long ip = regs.rip, sp = regs.rsp;
	child_resume(PTRACE_SINGLESTEP, SIGNAL);
	for (unsigned n = 0; regs.rip != ip || regs.rsp != sp; n++) {
		REQUIRE(n < STEPS_MOST);
		step();
	}
}

/* Up to so many instructions from the first mark; false if the second comes before. */
static bool round_steps(unsigned n)
{
	child_resume(PTRACE_CONT, 0);
	for (; n; n--) {
		if (at_mark())
			return false;
		step();
	}
	return true;
}

/* To the second mark; by then everything is handled, once. */
static void round_end(void)
{
	while (!at_mark()) /* a step at a time: a mark that was stepped to has not been passed */
		step();
	CHECK_IS(board->handled, MESSAGES);
	CHECK_IS(board->deepest, 1);
	child_resume(PTRACE_CONT, 0);
}

TEST(an_interrupt_at_any_instruction_of_a_hold_and_a_release_is_kept_off_or_handled)
{
	unsigned kept_off = 0, n = 0;
	bool last = false;
	child_start("interrupt");
	for (; !last; n++) {
		REQUIRE(round_steps(n));
		last = at_mark(); /* the boundary behind the release's last instruction */
		bool held_here = holds_there();
		interrupt_here();
		CHECK_IS(board->handled, held_here ? 0 : MESSAGES);
		kept_off += held_here;
		round_end();
	}
	printf("    %u boundaries, %u of them under the hold\n", n, kept_off);
	CHECK(kept_off > 2 && kept_off < n - 2);
	child_end();
}

/* From the hold's addition on: what follows has an alert to care for, and comes to the library. */
TEST(a_second_interrupt_at_any_instruction_of_what_follows_does_no_harm)
{
	struct chance c = { check_seed() };
	unsigned most = 0;
	child_start("interrupt");
	for (unsigned round = 0; round < 60; round++) {
		REQUIRE(round_steps(0));
		while (!holds_there())
			step();
		interrupt_here();
		CHECK_IS(board->handled, 0);
		unsigned n = 0, at = most ? chance_below(&c, most) : UINT32_MAX;
		for (; !at_mark() && n < at; n++)
			step();
		if (at_mark())
			most = n > most ? n : most;
		else
			interrupt_here();
		round_end();
	}
	printf("    at 60 of %u boundaries\n", most);
	child_end();
}

/* -- What it costs -------------------------------------------------------------------------- */

#if __GNUC__ == 12 && !defined(__clang__) && defined(__OPTIMIZE__) && !defined(CHECK_SANITIZED) && \
	!defined(TERN_NO_INLINE)
enum { HOLD_AND_RELEASE = 8 };
#else
enum { HOLD_AND_RELEASE = 40 }; /* calls, or another compiler's choice */
#endif

/* The fewest of some rounds: now and then the progress thread wants something. */
static void check_cost(const char *delivery)
{
	unsigned least = UINT32_MAX, locks = 0;
	child_start(delivery);
	for (int round = 0; round < 30; round++) {
		unsigned n = 0, locked = 0;
		child_resume(PTRACE_CONT, 0);
		for (; !at_mark() && n < 1000; n++) {
			locked += byte_here() == LOCK;
			step();
		}
		if (n < least) {
			least = n;
			locks = locked;
		}
		while (!at_mark())
			step();
		child_resume(PTRACE_CONT, 0);
	}
	printf("    %s: %u instructions\n", delivery, least);
	CHECK(least <= HOLD_AND_RELEASE);
	CHECK_IS(locks, 0);
	child_end();
}

TEST(hold_and_release_take_eight_instructions_in_every_way_of_delivery_and_none_is_locked)
{
	check_cost("poll");
	check_cost("thread");
	check_cost("interrupt");
}
#endif
