/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * run_start: rank 0 prints the microseconds from RUN_TEST_BEGAN (nanoseconds, as
 * from `date +%s%N`) to its first round trip with the last rank.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include <tern/tern.h>

enum { ASK, ANSWER };

static _Atomic uint64_t answered, asked;

static void on_ask(tern *t, const tern_msg *m)
{
	tern_reply(t, m, ANSWER);
	tern_signal(t, &asked, 1);
}

static void on_answer(tern *t, const tern_msg *m)
{
	(void)m;
	tern_signal(t, &answered, 1);
}

int main(void)
{
	tern *t;
	struct timespec now;
	const char *began = getenv("RUN_TEST_BEGAN");
	if (tern_open(&t, NULL))
		return 1;
	uint32_t last = tern_size(t) - 1;
	tern_on(t, ASK, on_ask);
	tern_on(t, ANSWER, on_answer);
	if (tern_rank(t) == 0 && (tern_request(t, last, ASK) || tern_wait(t, &answered, 1)))
		return 1;
	clock_gettime(CLOCK_REALTIME, &now);
	if (tern_rank(t) == 0)
		printf("%lld\n",
		       (now.tv_sec * 1000000000LL + now.tv_nsec - atoll(began ? began : "0")) /
			       1000);
	if (tern_rank(t) == last && tern_wait(t, &asked, 1))
		return 1;
	return tern_close(t) != 0;
}
