/* SPDX-License-Identifier: BSD-3-Clause */
/* Instructions written by hand, whose number and kinds are known. */
#include "lab/cost/counter.h"

#include <errno.h>
#include <unistd.h>

#include "lib/check.h"

static char shared[256], private[256];

/* Runs a function with marks; the trace has what it passed through, until the next but one. */
static struct cost_trace count(void (*fn)(struct cost_board *board, void *arg))
{
	static struct cost_trace traces[2];
	static unsigned counted;
	struct cost_trace *t = &traces[counted++ % 2];
	char why[200] = "";
	trace_free(t);
	int rc = counter_run(fn, NULL, t, why, sizeof why);
	if (rc == -EPERM)
		check_skip(why);
	CHECK_IS(rc, 0);
	return *t;
}

static void begin(struct cost_board *board)
{
	board->shared =
		(struct cost_shared){ (uintptr_t)shared, (uintptr_t)(shared + sizeof shared) };
	board->label = 1;
}

/* The kinds of a trace, a letter each. */
static const char *kinds(const struct cost_trace *t)
{
	static char text[100];
	size_t n = 0;
	for (; n < t->n && n < sizeof text - 1; n++)
		text[n] = "rmd"[t->insn[n].kind];
	text[n] = '\0';
	return text;
}

#define CHECK_KINDS(t, want) CHECK(strcmp(kinds(t), want) == 0 || !printf("    %s\n", kinds(t)))

/* What lies between the marks; the stack is free below, so that pushing is allowed. */
#define PASSAGE(code)                                                                     \
	__asm__ volatile("sub $256, %%rsp; int3\n" code "\nint3; add $256, %%rsp"         \
			 :                                                                \
			 : "b"(shared), "d"(private), "S"(private + 64), "D"(shared + 64) \
			 : "rax", "rcx", "r8", "r9", "r11", "memory", "cc")

static void nothing(struct cost_board *board, void *arg)
{
	(void)arg;
	begin(board);
	PASSAGE("");
}

TEST(between_two_marks_that_follow_each_other_lies_nothing)
{
	struct cost_trace t = count(nothing);
	CHECK_IS(t.passages, 1);
	CHECK_IS(t.n, 0);
}

static void straight(struct cost_board *board, void *arg)
{
	(void)arg;
	begin(board);
	PASSAGE("nop; nop; mov $1, %%eax; add %%eax, %%eax; xor %%ecx, %%ecx");
}

TEST(a_straight_line_has_as_many_as_it_has)
{
	struct cost_trace t = count(straight);
	CHECK_KINDS(&t, "rrrrr");
	for (size_t i = 1; i < t.n; i++)
		CHECK(t.insn[i].at > t.insn[i - 1].at);
}

static void loop(struct cost_board *board, void *arg)
{
	(void)arg;
	begin(board);
	PASSAGE("mov $10, %%ecx\n1: dec %%ecx; jnz 1b");
}

TEST(a_loop_counts_each_time_round)
{
	struct cost_trace t = count(loop);
	CHECK_IS(t.n, 1 + 2 * 10);
}

static void memory(struct cost_board *board, void *arg)
{
	(void)arg;
	begin(board);
	PASSAGE("mov (%%rdx), %%rax; mov %%rax, 8(%%rdx); mov (%%rbx), %%rax; addq $1, 8(%%rbx); "
		"mov $2, %%ecx; mov 16(%%rdx,%%rcx,8), %%rax; mov 16(%%rbx,%%rcx,8), %%rax; cmpb "
		"$0, 255(%%rbx); "
		"mov 256(%%rbx), %%al; mov -1(%%rbx), %%al; mov %%fs:0, %%rax");
}

TEST(where_an_address_leads_decides_between_memory_and_device)
{
	struct cost_trace t = count(memory);
	CHECK_KINDS(&t, "mmddrmddmmm");
}

static void stack(struct cost_board *board, void *arg)
{
	(void)arg;
	begin(board);
	PASSAGE("push %%rax; pop %%rax; call 1f; jmp 2f\n1: ret\n2: nop");
}

TEST(calls_and_the_stack_are_memory)
{
	struct cost_trace t = count(stack);
	CHECK_KINDS(&t, "mmmmrr");
}

static void named_only(struct cost_board *board, void *arg)
{
	(void)arg;
	begin(board);
	PASSAGE("lea 8(%%rbx), %%rax; nopl 8(%%rbx); prefetchw 8(%%rbx); prefetcht0 8(%%rdx)");
}

TEST(an_address_that_is_only_computed_is_not_touched)
{
	struct cost_trace t = count(named_only);
	CHECK_KINDS(&t, "rrdm");
}

static void string(struct cost_board *board, void *arg)
{
	(void)arg;
	begin(board);
	PASSAGE("mov $48, %%ecx; rep movsb; mov $3, %%ecx; lea 128(%%rdx), %%rdi; rep stosq");
}

TEST(a_string_instruction_is_one_however_often_it_repeats)
{
	struct cost_trace t = count(string);
	CHECK_KINDS(&t, "rdrrm");
}

static void kernel(struct cost_board *board, void *arg)
{
	(void)arg;
	begin(board);
	PASSAGE("mov $39, %%eax; syscall"); /* getpid */
}

TEST(a_system_call_is_the_device)
{
	struct cost_trace t = count(kernel);
	CHECK_KINDS(&t, "rd");
}

static void several(struct cost_board *board, void *arg)
{
	(void)arg;
	begin(board);
	PASSAGE("nop");
	board->label = 0;
	PASSAGE("nop; nop");
	board->label = 7;
	PASSAGE("nop; nop; nop");
}

TEST(passages_keep_their_labels_and_those_without_one_are_left_out)
{
	struct cost_trace t = count(several);
	REQUIRE(t.passages == 2);
	CHECK_IS(t.passage[0].label, 1);
	CHECK_IS(t.passage[0].n, 1);
	CHECK_IS(t.passage[1].label, 7);
	CHECK_IS(t.passage[1].first, 1);
	CHECK_IS(t.passage[1].n, 3);
}

TEST(the_same_is_counted_twice_the_same)
{
	struct cost_trace a = count(memory), b = count(memory);
	REQUIRE(a.n == b.n);
	for (size_t i = 0; i < a.n; i++)
		CHECK(a.insn[i].at == b.insn[i].at && a.insn[i].kind == b.insn[i].kind);
}

static void fails(struct cost_board *board, void *arg)
{
	(void)arg;
	board->failed = -ENOMEM;
	snprintf(board->sentence, sizeof board->sentence, "there is no memory");
}

static void dies(struct cost_board *board, void *arg)
{
	(void)arg;
	begin(board);
	COST_MARK();
	raise(SIGSEGV);
	COST_MARK();
}

static void leaves(struct cost_board *board, void *arg)
{
	(void)arg;
	begin(board);
	COST_MARK();
	_exit(3);
}

static int failure(void (*fn)(struct cost_board *board, void *arg), char *why, size_t len)
{
	struct cost_trace t;
	int rc = counter_run(fn, NULL, &t, why, len);
	if (rc == -EPERM)
		check_skip(why);
	return rc;
}

TEST(what_goes_wrong_in_the_child_is_told)
{
	char why[200];
	CHECK_IS(failure(fails, why, sizeof why), -ENOMEM);
	CHECK(strcmp(why, "there is no memory") == 0);
	CHECK_IS(failure(dies, why, sizeof why), -EPROTO);
	CHECK_IS(failure(leaves, why, sizeof why), -EPROTO);
}
