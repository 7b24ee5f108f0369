/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: RANKS 8 */
/*
 * Requests and replies only: every rank asks every other in turn and waits for the answer. See
 * tests/seeds/wrap.sh.
 */
#include <stdio.h>
#include <stdlib.h>
#include <tern/tern.h>

static _Atomic uint64_t got;

static void ask(tern *t, const tern_msg *m)
{
	tern_reply(t, m, 1, tern_msg_word(m, 0), 0, 0);
}

static void answer(tern *t, const tern_msg *m)
{
	(void)m;
	tern_signal(t, &got, 1);
}

int main(int argc, char **argv)
{
	tern *t;
	uint64_t n = argc > 1 ? strtoull(argv[1], NULL, 0) : 5000;
	int rc = tern_open(&t, NULL);
	if (rc)
		return 1;
	tern_on(t, 0, ask);
	tern_on(t, 1, answer);
	tern_barrier(t);
	for (uint64_t i = 0; i < n; i++) {
		uint32_t size = tern_size(t),
			 dst = (uint32_t)((tern_rank(t) + 1 + i % (size - 1)) % size);
		if ((rc = tern_request(t, dst, 0, i, 1, 2, 3)) || (rc = tern_wait(t, &got, 1))) {
			printf("%d %s\n", rc, tern_strerror(rc));
			return 2;
		}
	}
	tern_barrier(t);
	rc = tern_close(t);
	if (!rc)
		printf("done\n");
	return rc;
}
