/* SPDX-License-Identifier: BSD-3-Clause */
/* A forked child uses the parent's endpoint: it is refused, and nothing else notices. */
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <tern/tern.h>
#include <unistd.h>
static inline void must(int rc)
{
	if (rc < 0) {
		fprintf(stderr, "%s\n", tern_strerror(rc));
		exit(1);
	}
}
static int got;
static void h(tern *t, const tern_msg *m)
{
	(void)t;
	(void)m;
	got++;
}
int main(void)
{
	tern *t;
	must(tern_open(&t, NULL));
	must(tern_on(t, 0, h));
	must(tern_barrier(t));
	pid_t p = fork();
	if (!p) {
		for (int i = 0; i < 100; i++) {
			int rc = tern_request(t, (tern_rank(t) + 1) % tern_size(t), 0);
			if (rc) {
				printf("child: %s\n", tern_strerror(rc));
				_exit(0);
			}
		}
		fflush(stdout);
		_exit(0);
	}
	int st;
	waitpid(p, &st, 0);
	for (int i = 0; i < 100; i++)
		must(tern_request(t, (tern_rank(t) + 1) % tern_size(t), 0));
	int rc = tern_barrier(t);
	printf("rank %u got %d of 200, barrier %d %s\n", tern_rank(t), got, rc, tern_strerror(rc));
	return tern_close(t);
}
