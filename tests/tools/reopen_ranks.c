/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Ranks that open, exchange a few messages and close, over and over; `tern why` looks on
 * (why_test.sh).
 */
#include <stdio.h>
#include <stdlib.h>
#include <tern/tern.h>
#include <unistd.h>

static void must(int rc)
{
	if (rc < 0) {
		fprintf(stderr, "%s\n", tern_strerror(rc));
		exit(1);
	}
}

static void h(tern *t, const tern_msg *m)
{
	(void)t;
	(void)m;
}

int main(void)
{
	for (int s = 0; s < 200; s++) {
		tern *t;
		must(tern_open(&t, NULL));
		must(tern_on(t, 0, h));
		for (int i = 0; i < (s % 2 ? 10 : 1000); i++)
			must(tern_request(t, (tern_rank(t) + 1) % tern_size(t), 0));
		must(tern_barrier(t));
		usleep(100000);
		must(tern_close(t));
	}
	return 0;
}
