/* SPDX-License-Identifier: BSD-3-Clause */
/* Stacks: their size, their guards, and what is said when one overflows. */
#include "spawn/stack.h"

#include <sys/mman.h>

#include "lib/threads.h"

enum { DEEP, FAULT, TOUCH };

TEST(a_stack_can_be_used_to_its_last_byte_and_has_a_guard_below)
{
	struct stack s;
	REQUIRE(stack_map(&s, 70000) == 0);
	CHECK(s.size >= 70000);
	memset(stack_bottom(&s), 1, s.size);
	pid_t child = fork();
	if (child == 0) {
		signal(SIGSEGV, SIG_DFL);
		((volatile char *)stack_bottom(&s))[-1] = 1;
		_exit(0);
	}
	int status;
	waitpid(child, &status, 0);
	CHECK(!WIFEXITED(status) ||
	      WEXITSTATUS(status) != 0); /* a sanitizer exits with a code of its own */
	unsigned char there;
	char *bottom = stack_bottom(&s);
	stack_unmap(&s);
	CHECK(mincore(bottom, 4096, &there) != 0 && errno == ENOMEM);
}

__attribute__((noinline)) static uint64_t deeper(uint64_t n)
{
	volatile char here[256];
	here[n % sizeof here] = (char)n;
	return n ? deeper(n - 1) + (uint64_t)here[n % sizeof here] : 0;
}

static uint64_t go_deep(tern *t, const uint64_t word[TERN_WORDS_MAX], void *arg)
{
	(void)arg;
	(void)t;
	return deeper(word[0]) & 0;
}

static uint64_t fault(tern *t, const uint64_t word[TERN_WORDS_MAX], void *arg)
{
	(void)arg;
	(void)t;
	*(volatile char *)(uintptr_t)word[0] = 1;
	return 0;
}

/* What a child that runs such a thread writes to its standard error, and how it ends. */
static int child_says(unsigned id, uint64_t word, char *text, size_t len)
{
	int to[2], status;
	struct ending ended = { 0 };
	REQUIRE(pipe(to) == 0);
	fflush(NULL);
	pid_t child = fork();
	if (child == 0) {
		dup2(to[1], STDERR_FILENO);
		threads_open(1);
		threads_on(DEEP, go_deep);
		threads_on(FAULT, fault);
		tern_spawn(local[0], 0, id, note_ending, &ended, word);
		await(&ended, 1);
		_exit(0);
	}
	close(to[1]);
	size_t n = 0;
	for (ssize_t got; n < len - 1 && (got = read(to[0], text + n, len - 1 - n)) > 0;)
		n += (size_t)got;
	text[n] = '\0';
	close(to[0]);
	waitpid(child, &status, 0);
	return status;
}

TEST(a_thread_that_overflows_its_stack_is_named_and_the_process_ends_as_it_would_have)
{
	char text[8192];
	int status = child_says(DEEP, 1000000, text, sizeof text);
	CHECK(strstr(text,
		     "tern: rank 0: a thread that runs function 0 has overflowed its stack of "
		     "65536 bytes") != NULL);
	CHECK(strstr(text, "TERN_STACK") != NULL);
	CHECK(WIFSIGNALED(status) && WTERMSIG(status) == SIGSEGV);
}

TEST(a_larger_stack_holds_more)
{
	char text[8192];
	setenv("TERN_STACK", "64M", 1);
	CHECK_IS(child_says(DEEP, 20000, text, sizeof text), 0);
	CHECK_IS(text[0], '\0');
}

TEST(another_fault_of_a_thread_is_not_called_an_overflow)
{
	char text[8192];
	int status = child_says(FAULT, 16, text, sizeof text);
	CHECK(strstr(text, "overflow its stack") == NULL);
	CHECK(status != 0);
}

static void exit_33(int number)
{
	(void)number;
	_exit(33);
}

TEST(a_handler_that_the_program_had_still_gets_other_faults)
{
	char text[8192];
	signal(SIGSEGV, exit_33);
	int status = child_says(FAULT, 16, text, sizeof text);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 33);
}
