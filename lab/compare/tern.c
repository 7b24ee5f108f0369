/* SPDX-License-Identifier: BSD-3-Clause */
/* The back end for Tern. */
#include <stdio.h>
#include <stdlib.h>
#include <tern/coll.h>
#include <tern/mem.h>
#include <tern/send.h>

#include "peer.h"

enum { ASK, ANSWER, WORD };             /* handlers */
enum { PING = 1, PONG, STREAM, ENDED }; /* ids of messages */

static tern *t;
static tern_team *team;
static tern_flag asked, answered, taken;
static uint64_t answers, words; /* sums */

static void must(int rc)
{
	if (!rc)
		return;
	fprintf(stderr, "compare: rank %d: %s\n", peer_rank(), tern_strerror(rc));
	exit(1);
}

static void on_ask(tern *at, const tern_msg *m)
{
	tern_reply(at, m, ANSWER, tern_msg_word(m, 0) + 1);
	tern_signal(at, &asked, 1);
}

static void on_answer(tern *at, const tern_msg *m)
{
	answers += tern_msg_word(m, 0);
	tern_signal(at, &answered, 1);
}

static void on_word(tern *at, const tern_msg *m)
{
	words += tern_msg_word(m, 0);
	tern_signal(at, &taken, 1);
}

void peer_open(int *argc, char ***argv)
{
	(void)argc;
	(void)argv;
	must(tern_open(&t, NULL));
	must(tern_on(t, ASK, on_ask));
	must(tern_on(t, ANSWER, on_answer));
	must(tern_on(t, WORD, on_word));
	must(tern_team_all(t, &team));
}

void peer_close(void)
{
	must(tern_team_free(team));
	must(tern_barrier(t));
	must(tern_close(t));
}

int peer_rank(void)
{
	return t ? (int)tern_rank(t) : -1;
}

int peer_ranks(void)
{
	return (int)tern_size(t);
}

/* -- Collectives ------------------------------------------------------------------- */

void peer_barrier(void)
{
	must(tern_team_barrier(team));
}

void peer_broadcast(int root, double *data, size_t n)
{
	must(tern_team_broadcast(team, (uint32_t)root, data, n * sizeof *data));
}

void peer_reduce(int root, const double *in, double *out, size_t n)
{
	must(tern_team_reduce(team, (uint32_t)root, in, out, n, TERN_TYPE_DOUBLE, TERN_REDUCE_SUM));
}

void peer_allreduce(const double *in, double *out, size_t n)
{
	must(tern_team_allreduce(team, in, out, n, TERN_TYPE_DOUBLE, TERN_REDUCE_SUM));
}

void peer_allgather(const double *in, size_t n, double *out)
{
	must(tern_team_allgather(team, in, out, n * sizeof *in));
}

void peer_alltoall(const double *in, double *out, size_t n)
{
	must(tern_team_alltoall(team, in, out, n * sizeof *in));
}

double peer_max(double value)
{
	double most;
	must(tern_team_allreduce(team, &value, &most, 1, TERN_TYPE_DOUBLE, TERN_REDUCE_MAX));
	return most;
}

/* -- Between two ranks ------------------------------------------------------------- */

uint64_t peer_trips(uint64_t count)
{
	answers = 0;
	if (peer_rank() == 1)
		must(tern_wait(t, &asked, count));
	for (uint64_t i = 0; i < count && peer_rank() == 0; i++) {
		must(tern_request(t, 1, ASK, i));
		must(tern_wait(t, &answered, 1));
	}
	return answers;
}

uint64_t peer_send_trips(uint64_t count)
{
	uint64_t word, sum = 0;
	for (uint64_t i = 0; i < count && peer_rank() < 2; i++) {
		if (peer_rank() == 1) {
			must(tern_recv(t, 0, PING, &word, sizeof word, NULL));
			must(tern_send(t, 0, PONG, &(uint64_t){ word + 1 }, sizeof(uint64_t)));
		} else {
			must(tern_send(t, 1, PING, &i, sizeof i));
			must(tern_recv(t, 1, PONG, &word, sizeof word, NULL));
			sum += word;
		}
	}
	return sum;
}

void peer_words_send(uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		must(tern_request(t, 1, WORD, i));
}

/* `words` is 0 between two calls: the first word may come before this rank's call. */
uint64_t peer_words_take(uint64_t count)
{
	must(tern_wait(t, &taken, count));
	uint64_t sum = words;
	words = 0;
	return sum;
}

static void stream_start(double *at, size_t n, tern_op *op)
{
	size_t len = n * sizeof *at;
	if (peer_rank() == 0)
		must(tern_send_start(t, 1, STREAM, at, len, TERN_SEND_AUTO, op));
	else
		must(tern_recv_start(t, &(tern_match){ .rank = 0, .id = STREAM }, at, len, NULL,
				     op));
}

void peer_stream(double *data, size_t n, size_t apart, size_t places, uint64_t count)
{
	tern_op op[PEER_WINDOW] = { 0 };
	uint64_t word = 0;
	if (peer_rank() > 1)
		return;
	for (uint64_t i = 0; i < count; i++) {
		must(tern_op_wait(t, &op[i % PEER_WINDOW]));
		stream_start(data + i % places * apart, n, &op[i % PEER_WINDOW]);
	}
	for (unsigned i = 0; i < PEER_WINDOW; i++)
		must(tern_op_wait(t, &op[i]));
	if (peer_rank() == 0)
		must(tern_recv(t, 1, ENDED, &word, sizeof word, NULL));
	else
		must(tern_send(t, 0, ENDED, &word, sizeof word));
}

/* -- Memory of the other rank ------------------------------------------------------ */

double *peer_memory(size_t bytes)
{
	void *p;
	must(tern_alloc_all(t, bytes, &p));
	return p;
}

/* In the setting `heap`, memory that other ranks reach. */
double *peer_buffer(size_t bytes)
{
	return getenv("COMPARE_HEAP") ? peer_memory(bytes) : malloc(bytes);
}

void peer_put(double *at, size_t n)
{
	must(tern_put(t, tern_addr_at(t, 1, at), at, n * sizeof *at));
}

void peer_get(double *at, size_t n)
{
	must(tern_get(t, at, tern_addr_at(t, 1, at), n * sizeof *at));
}
