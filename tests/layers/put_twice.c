/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Two ranks pass a token: a 4-byte word in rank 0's heap, put by whoever has it, polled with
 * tern_get by the other. All puts and gets are blocking, aligned, 4 or 8 bytes (argv[1]), one
 * writer at a time: a put returns before the other rank can answer it. The token must never go back
 * to a value that has been overwritten.
 *
 * Seen: tern_put() of 4 (8) bytes ends in memcpy(), whose code for 4..7 (8..15) bytes stores the
 * first and the last 4 (8) bytes: two stores of the same bytes. Between the two the other rank sees
 * the first, answers with a put of its own, and then the second store brings the old value back.
 *
 * tern run -n 2 put_twice 4 3000000     exit 1 and a line when the token went back
 */
#include <stdio.h>
#include <stdlib.h>
#include <tern/mem.h>

#include "lib/handed.h"

int main(int argc, char **argv)
{
	tern *t;
	unsigned width = argc > 1 ? (unsigned)atoi(argv[1]) : 4;
	uint64_t rounds = argc > 2 ? strtoull(argv[2], NULL, 0) : 3000000, bad = 0, last = 0;
	if (tern_open(&t, NULL))
		return 2;
	uint64_t me = tern_rank(t), n = tern_size(t);
	void *p = handed_alloc_all(t, 64);
	tern_addr token = tern_addr_at(t, 0, p);
	tern_barrier(t);
	for (uint64_t i = me; i < rounds; i += n) { /* the token is i when it is my turn */
		uint64_t v = 0;
		for (;;) {
			v = 0;
			tern_get(t, &v, token, width);
			if (v < last) { /* it only ever grows */
				printf("rank %d: token went back from %lu to %lu\n", (int)me,
				       (unsigned long)last, (unsigned long)v);
				fflush(stdout);
				_Exit(1);
			}
			last = v;
			if (v == i)
				break;
			tern_poll(t);
		}
		uint64_t next = i + 1;
		if (argc > 3) { /* a third argument: split-phase */
			tern_op op = TERN_OP;
			tern_put_start(t, token, &next, width, &op);
			tern_op_wait(t, &op);
		} else {
			tern_put(t, token, &next, width);
		}
		last = next;
		v = 0;
		tern_get(t, &v, token, width);
		if (v < next && bad++ < 3)
			printf("rank %d: put %lu, then got %lu\n", (int)me, (unsigned long)next,
			       (unsigned long)v);
		if (bad) {
			fflush(stdout);
			_Exit(1);
		}
	}
	tern_barrier(t);
	tern_close(t);
	if (!me)
		printf("put_twice: %lu rounds of %u bytes, the token never went back\n",
		       (unsigned long)rounds, width);
	return bad != 0;
}
