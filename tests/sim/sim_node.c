/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What sim_node_test.sh starts on simulated nodes. Its first argument says what it does; times are
 * in ns, of virtual time:
 *
 *     amo            rank 0 prints how long a fetch-and-add at rank 1 takes
 *     overlap        the same while rank 1 computes for 1 ms, and how long that has computed
 *     crash          all others print the code and the time of the first fetch-and-add that fails
 *     page BYTES     rank 1 prints how long after rank 0 began to send so much a handler has it
 *     threads N      rank 1 prints when each of N threads that compute 1 us is done, and all
 *     block BYTES    rank 1 prints when a thread is done that sends four blocks and computes 10 ns
 *                    after each
 *     send BYTES     each rank prints the packets that it sends for two messages in rendezvous
 *                    mode, the second from heap to heap,
 *     ready BYTES    in ready mode,
 *     request BYTES  and for data that rank 0 has a thread of rank 1 send it
 *     exchange BYTES each rank prints how long each of four exchanges with the other takes
 *     behind BYTES   rank 0 sends so much by rendezvous, and a request behind that, for which rank
 * 1 waits before it receives full N         each rank begins N rendezvous with the other and
 * computes; only then it receives crowd N        rank 0 has N threads of rank 1 wait for each other
 *     limit          rank 0 prints how many threads of its own run at a time
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <tern/mem.h>
#include <tern/send.h>
#include <tern/sim.h>
#include <tern/stats.h>
#include <tern/thread.h>

enum { PAGE, COMPUTE = 0, BLOCKS = 1, MEET = 2, COUNTS = 3, ID = 7, PAGE_MOST = 8192 };

static char page_bytes[PAGE_MOST];
static tern_flag came;
static uint64_t began;

static void must(int rc)
{
	if (!rc)
		return;
	fprintf(stderr, "sim_node: %s\n", tern_strerror(rc));
	exit(1);
}

static void say(uint64_t number)
{
	printf("%llu\n", (unsigned long long)number);
}

/* A cycle is 1 ns in the profiles of the test. */
static void compute(tern *t, uint64_t cycles)
{
	must(tern_sim_work(t, &(tern_work){ .integer = cycles }));
}

static uint64_t fetch_add(tern *t, tern_addr at)
{
	uint64_t old, since = tern_time(t);
	must(tern_amo(t, at, TERN_AMO_ADD, 1, &old));
	return tern_time(t) - since;
}

static tern_addr counter(tern *t)
{
	void *p;
	must(tern_alloc_all(t, sizeof(uint64_t), &p));
	return tern_addr_at(t, 1, p);
}

static void amo(tern *t, bool computing)
{
	tern_addr at = counter(t);
	uint64_t least = UINT64_MAX;
	must(tern_barrier(t));
	uint64_t since = tern_time(t);
	if (tern_rank(t) == 1 && computing) {
		compute(t, 1000000);
		printf("computed %llu\n", (unsigned long long)(tern_time(t) - since));
	}
	for (unsigned i = 0; i < 10 && tern_rank(t) == 0; i++) {
		uint64_t took = fetch_add(t, at);
		least = took < least && (!computing || !i) ? took : least;
	}
	if (tern_rank(t) == 0)
		say(least);
}

static void on_page(tern *t, const tern_msg *m)
{
	say(tern_time(t) - tern_msg_word(m, 0));
	tern_signal(t, &came, 1);
}

static void page(tern *t, size_t bytes)
{
	must(tern_barrier(t));
	if (tern_rank(t) == 0)
		must(tern_request_data(t, 1, PAGE, page_bytes, bytes, tern_time(t)));
	else
		must(tern_wait(t, &came, 1));
}

static uint64_t thread_compute(tern *t, const uint64_t word[TERN_WORDS_MAX], void *arg)
{
	(void)arg;
	(void)word;
	compute(t, 1000);
	printf("%llu ", (unsigned long long)(tern_time(t) - began));
	return 0;
}

static uint64_t thread_blocks(tern *t, const uint64_t word[TERN_WORDS_MAX], void *arg)
{
	(void)arg;
	for (unsigned i = 0; i < 4; i++) {
		must(tern_request_data(t, 0, PAGE, page_bytes, word[0], 0));
		compute(t, 10);
	}
	say(tern_time(t) - began);
	return 0;
}

static void on_silent(tern *t, const tern_msg *m)
{
	(void)m;
	tern_signal(t, &came, 1);
}

static void threads(tern *t, unsigned n)
{
	tern_thread thread[16];
	must(tern_barrier(t));
	began = tern_time(t);
	for (unsigned i = 0; i < n && tern_rank(t) == 1; i++)
		must(tern_thread_start(t, 1, COMPUTE, &thread[i]));
	for (unsigned i = 0; i < n && tern_rank(t) == 1; i++)
		must(tern_thread_join(t, &thread[i], NULL));
	if (tern_rank(t) == 1)
		say(tern_time(t) - began);
}

static void blocks(tern *t, size_t bytes)
{
	tern_thread thread;
	must(tern_on(t, PAGE, on_silent));
	must(tern_barrier(t));
	began = tern_time(t);
	if (tern_rank(t) == 1) {
		must(tern_thread_start(t, 1, BLOCKS, &thread, bytes));
		must(tern_thread_join(t, &thread, NULL));
	} else {
		must(tern_wait(t, &came, 4));
	}
}

/* Packets that this rank has sent so far. */
static uint64_t packets(tern *t)
{
	tern_stats_net_data s = { .size = sizeof s };
	must(tern_stats_net(t, &s));
	return s.sent;
}

static void sends(tern *t, size_t bytes, unsigned mode)
{
	tern_op op = { 0 };
	void *heap;
	must(tern_alloc(t, PAGE_MOST, &heap));
	must(tern_barrier(t));
	uint64_t before = packets(t);
	for (unsigned i = 0; i < 2; i++) {
		void *data = i ? heap : page_bytes;
		if (tern_rank(t) == 0) {
			must(tern_send_start(t, 1, ID, data, bytes, mode, &op));
			must(tern_op_wait(t, &op));
		} else {
			must(tern_recv(t, 0, ID, data, bytes, NULL));
		}
	}
	say(packets(t) - before);
}

static uint64_t thread_answers(tern *t, const uint64_t word[TERN_WORDS_MAX], void *arg)
{
	(void)arg;
	tern_op left = { 0 };
	must(tern_put_request_start(t, word[0], PAGE, page_bytes, word[1], &left, NULL));
	must(tern_op_wait(t, &left));
	return 0;
}

static void request(tern *t, size_t bytes)
{
	tern_thread thread;
	tern_addr to;
	void *heap;
	must(tern_alloc(t, PAGE_MOST, &heap));
	must(tern_addr_of(t, heap, &to));
	must(tern_on(t, PAGE, on_silent));
	must(tern_thread_on(t, BLOCKS, thread_answers, NULL));
	must(tern_barrier(t));
	uint64_t before = packets(t);
	if (tern_rank(t) == 0) {
		must(tern_thread_start(t, 1, BLOCKS, &thread, to, bytes));
		must(tern_thread_join(t, &thread, NULL));
		must(tern_wait(t, &came, 1));
	} else {
		compute(t, 100000); /* all of that takes less */
	}
	say(packets(t) - before);
	compute(t, 100000); /* rank 1 has counted before it hears of the next barrier */
}

static void exchange(tern *t, size_t bytes)
{
	char *to = malloc(bytes), *from = calloc(bytes, 1);
	uint32_t other = tern_rank(t) ^ 1;
	for (unsigned i = 0; i < 4 && to && from; i++) {
		tern_op op = { 0 };
		must(tern_barrier(t));
		uint64_t since = tern_time(t);
		must(tern_send_start(t, other, ID, from, bytes, 0, &op));
		must(tern_recv(t, other, ID, to, bytes, NULL));
		must(tern_op_wait(t, &op));
		printf("rank %u: %llu\n", tern_rank(t), (unsigned long long)(tern_time(t) - since));
	}
	free(from);
	free(to);
}

static void behind(tern *t, size_t bytes)
{
	tern_op op = { 0 };
	must(tern_on(t, PAGE, on_silent));
	must(tern_barrier(t));
	if (tern_rank(t) == 0) {
		must(tern_send_start(t, 1, ID, page_bytes, bytes, TERN_SEND_RENDEZVOUS, &op));
		must(tern_request(t, 1, PAGE));
		must(tern_op_wait(t, &op));
	} else {
		must(tern_wait(t, &came, 1));
		must(tern_recv(t, 0, ID, page_bytes, bytes, NULL));
	}
}

static void full(tern *t, unsigned n)
{
	static char data[1024];
	uint32_t other = !tern_rank(t);
	tern_op op = { 0 };
	must(tern_barrier(t));
	for (unsigned i = 0; i < n; i++)
		must(tern_send_start(t, other, ID, page_bytes, sizeof data, TERN_SEND_RENDEZVOUS,
				     &op));
	must(tern_sim_work(t, &(tern_work){ .integer = 1000 }));
	for (unsigned i = 0; i < n; i++)
		must(tern_recv(t, other, ID, data, sizeof data, NULL));
	must(tern_op_wait(t, &op));
}

static unsigned met;

/* Until all that are to meet have begun. */
static uint64_t thread_meet(tern *t, const uint64_t word[TERN_WORDS_MAX], void *arg)
{
	(void)arg;
	met++;
	while (met < word[0])
		must(tern_thread_yield(t));
	return 0;
}

static void crowd(tern *t, unsigned n)
{
	tern_thread thread[16];
	for (unsigned i = 0; i < n && tern_rank(t) == 0; i++)
		must(tern_thread_start(t, 1, MEET, &thread[i], n));
	for (unsigned i = 0; i < n && tern_rank(t) == 0; i++)
		must(tern_thread_join(t, &thread[i], NULL));
}

static unsigned most;

static uint64_t thread_counts(tern *t, const uint64_t word[TERN_WORDS_MAX], void *arg)
{
	(void)word, (void)arg;
	for (unsigned i = 0; i < 50; i++) {
		unsigned now = tern_thread_self(t).threads;
		most = now > most ? now : most;
		must(tern_thread_yield(t));
	}
	return 0;
}

/* More threads than can run at a time. */
static void limit(tern *t)
{
	tern_thread thread[40];
	must(tern_thread_on(t, COUNTS, thread_counts, NULL));
	for (unsigned i = 0; i < 40; i++)
		must(tern_thread_start(t, 0, COUNTS, &thread[i]));
	for (unsigned i = 0; i < 40; i++)
		must(tern_thread_join(t, &thread[i], NULL));
	say(most);
}

/* Until rank 1 is gone; when that was noticed, and with which code. */
static void crash(tern *t)
{
	uint64_t old;
	int rc = 0;
	tern_addr at = counter(t);
	while (!rc && tern_rank(t) != 1)
		rc = tern_amo(t, at, TERN_AMO_ADD, 1, &old);
	for (; tern_rank(t) == 1;)
		compute(t, 1000), tern_poll(t);
	printf("%d at %llu\n", rc, (unsigned long long)tern_time(t));
	must(tern_close(t));
	exit(0);
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	unsigned n = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
	tern *t;
	must(tern_open(&t, NULL));
	must(tern_on(t, PAGE, on_page));
	must(tern_thread_on(t, COMPUTE, thread_compute, NULL));
	must(tern_thread_on(t, BLOCKS, thread_blocks, NULL));
	must(tern_thread_on(t, MEET, thread_meet, NULL));
	must(tern_barrier(t));
	if (strcmp(what, "amo") == 0)
		amo(t, false);
	else if (strcmp(what, "overlap") == 0)
		amo(t, true);
	else if (strcmp(what, "crash") == 0)
		crash(t);
	else if (strcmp(what, "page") == 0)
		page(t, n);
	else if (strcmp(what, "threads") == 0)
		threads(t, n);
	else if (strcmp(what, "block") == 0)
		blocks(t, n);
	else if (strcmp(what, "send") == 0)
		sends(t, n, TERN_SEND_RENDEZVOUS);
	else if (strcmp(what, "request") == 0)
		request(t, n);
	else if (strcmp(what, "exchange") == 0)
		exchange(t, n);
	else if (strcmp(what, "behind") == 0)
		behind(t, n);
	else if (strcmp(what, "full") == 0)
		full(t, n);
	else if (strcmp(what, "crowd") == 0)
		crowd(t, n);
	else if (strcmp(what, "limit") == 0 && tern_rank(t) == 0)
		limit(t);
	else if (strcmp(what, "ready") == 0)
		sends(t, n, TERN_SEND_READY);
	must(tern_barrier(t));
	must(tern_close(t));
	return 0;
}
