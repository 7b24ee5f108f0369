/* SPDX-License-Identifier: BSD-3-Clause */
/* Every rank greets the next one, which answers. */
#include <stdio.h>
#include <stdlib.h>
#include <tern/tern.h>

enum { GREETING, ANSWER }; /* handler numbers, the same on every rank */

static _Atomic uint64_t answers;

static void on_greeting(tern *t, const tern_msg *m)
{
	tern_reply(t, m, ANSWER, tern_msg_arg(m, 0) + 1);
}

static void on_answer(tern *t, const tern_msg *m)
{
	printf("rank %u: rank %u says %u\n", tern_rank(t), tern_msg_src(m), (unsigned)tern_msg_arg(m, 0));
	tern_signal(t, &answers, 1);
}

static void must(int rc)
{
	if (!rc)
		return;
	fprintf(stderr, "hello: %s\n", tern_strerror(rc));
	exit(1);
}

int main(void)
{
	tern *t;
	must(tern_open(&t, NULL));
	must(tern_on(t, GREETING, on_greeting));
	must(tern_on(t, ANSWER, on_answer));
	must(tern_request(t, (tern_rank(t) + 1) % tern_size(t), GREETING, 41));
	must(tern_wait(t, &answers, 1));
	must(tern_barrier(t)); /* answers the others until they have been answered too */
	must(tern_close(t));
	return 0;
}
