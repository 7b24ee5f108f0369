/* SPDX-License-Identifier: BSD-3-Clause */
/* Every rank greets the next one, which answers. */
#include <stdio.h>
#include <tern/tern.h>

enum { GREETING, ANSWER }; /* handler numbers, the same on every rank */
static tern_flag answers;

static void on_greeting(tern *t, const tern_msg *m)
{
	tern_reply(t, m, ANSWER, tern_msg_word(m, 0) + 1);
}

static void on_answer(tern *t, const tern_msg *m)
{
	printf("rank %u: rank %u says %u\n", tern_rank(t), tern_msg_src(m),
	       (unsigned)tern_msg_word(m, 0));
	tern_signal(t, &answers, 1);
}

int main(void)
{
	tern *t;
	int rc;
	/* The barrier answers the others until they have been answered too. */
	if ((rc = tern_open(&t, NULL)) || (rc = tern_on(t, GREETING, on_greeting)) ||
	    (rc = tern_on(t, ANSWER, on_answer)) ||
	    (rc = tern_request(t, (tern_rank(t) + 1) % tern_size(t), GREETING, 41)) ||
	    (rc = tern_wait(t, &answers, 1)) || (rc = tern_barrier(t)) || (rc = tern_close(t)))
		fprintf(stderr, "hello: %s\n", tern_strerror(rc));
	return rc != 0;
}
