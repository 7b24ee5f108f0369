/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: ONE_MODE */
/* What a process has of the signal that ends it, before and after its function for that. */
#include <signal.h>

#include "lib/local.h"

static volatile sig_atomic_t caught;

static void programs_own(int number)
{
	caught = number;
}

static void last_words(tern *t, int number, void *arg)
{
	(void)t, (void)number, (void)arg;
	CHECK(false);
}

static bool is_programs_own(void)
{
	struct sigaction now;
	return sigaction(SIGTERM, NULL, &now) == 0 && now.sa_handler == programs_own;
}

/* With a handler of the program's, and the function in its place. */
static void hooked_open(void)
{
	const struct sigaction own = { .sa_handler = programs_own };
	CHECK_IS(sigaction(SIGTERM, &own, NULL), 0);
	local_polled();
	local_open(1);
	CHECK_IS(tern_end_on(local[0], last_words, NULL), 0);
	CHECK(!is_programs_own());
}

TEST(a_program_has_its_handler_back_when_it_takes_the_function_back)
{
	hooked_open();
	CHECK_IS(tern_end_on(local[0], last_words, NULL), 0); /* in place of itself */
	CHECK(!is_programs_own());
	CHECK_IS(tern_end_on(local[0], NULL, NULL), 0);
	CHECK(is_programs_own());
	local_close();
}

TEST(and_when_the_endpoint_closes)
{
	hooked_open();
	local_close();
	CHECK(is_programs_own());
}

TEST(a_signal_that_comes_too_late_for_the_function_is_the_programs)
{
	hooked_open();
	CHECK_IS(raise(SIGTERM), 0);
	CHECK_IS(caught, 0);
	CHECK_IS(tern_end_on(local[0], NULL, NULL), 0);
	CHECK_IS(caught, SIGTERM);
	local_close();
}
