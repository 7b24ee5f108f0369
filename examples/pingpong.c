/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A message goes between the first and the last rank and back, in each mode of send and receive:
 * ready, whose receive must be there before; rendezvous, which asks first; and automatic,
 * which does whatever is better.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tern/send.h>
#include <time.h>

enum { PING = 100, PONG };
enum { TRIPS = 1000 };

static void must(int rc)
{
	if (!rc)
		return;
	fprintf(stderr, "pingpong: %s\n", tern_strerror(rc));
	exit(1);
}

static char out[1 << 16], in[1 << 16];

/* Posts the receive, sends, waits for both: so the receive is always there first. */
static void exchange(tern *t, uint32_t other, tern_id id_out, tern_id id_in, size_t len,
		     unsigned mode)
{
	tern_op op = TERN_OP;
	must(tern_recv_start(t, &(tern_match){ .rank = other, .id = id_in }, in, sizeof in, NULL,
			     &op));
	must(tern_send_start(t, other, id_out, out, len, mode, &op));
	must(tern_op_wait(t, &op));
}

/* The far end: what came goes back. It posts the next receive before it answers. */
static void echo(tern *t, size_t len, unsigned mode)
{
	tern_op next = TERN_OP, answer = TERN_OP;
	must(tern_recv_start(t, &(tern_match){ .rank = 0, .id = PING }, in, sizeof in, NULL,
			     &next));
	must(tern_barrier(t)); /* now the first may come, in ready mode too */
	for (int i = 0; i < TRIPS; i++) {
		must(tern_op_wait(t, &next));
		memcpy(out, in, len);
		if (i + 1 < TRIPS)
			must(tern_recv_start(t, &(tern_match){ .rank = 0, .id = PING }, in,
					     sizeof in, NULL, &next));
		must(tern_send_start(t, 0, PONG, out, len, mode, &answer));
		must(tern_op_wait(t, &answer));
	}
}

static double seconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void serve(tern *t, size_t len, unsigned mode, const char *name)
{
	uint32_t other = tern_size(t) - 1;
	int wrong = 0;
	must(tern_barrier(t));
	double began = seconds();
	for (int i = 0; i < TRIPS; i++) {
		memset(out, i, len);
		exchange(t, other, PING, other ? PONG : PING, len,
			 mode); /* alone, it comes straight back */
		wrong += memcmp(in, out, len) != 0;
	}
	printf("%-10s %5zu bytes: %d there and back, %d wrong, %.2f us each\n", name, len, TRIPS,
	       wrong, (seconds() - began) / TRIPS * 1e6);
}

int main(void)
{
	static const char *const name[] = { "automatic", "ready", "rendezvous" };
	static const unsigned mode[] = { TERN_SEND_AUTO, TERN_SEND_READY, TERN_SEND_RENDEZVOUS };
	static const size_t len[] = { 8, 4096, sizeof out };
	tern *t;
	must(tern_open(&t, NULL));
	for (unsigned i = 0; i < 9; i++) {
		if (tern_rank(t) == 0)
			serve(t, len[i % 3], mode[i / 3], name[i / 3]);
		else if (tern_rank(t) == tern_size(t) - 1)
			echo(t, len[i % 3], mode[i / 3]);
		else
			must(tern_barrier(t));
	}
	must(tern_barrier(t));
	must(tern_close(t));
	return 0;
}
