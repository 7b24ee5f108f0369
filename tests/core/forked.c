/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A child of a rank's process uses the endpoint that it has inherited, by every call there is: each
 * is refused at once, with a sentence. It writes to heaps and puts into channels, which reaches
 * nobody. It ends with exit(), or becomes another program. Meanwhile its parent goes on, and misses
 * nothing.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tern/async.h>
#include <tern/buf.h>
#include <tern/chan.h>
#include <tern/lock.h>
#include <tern/mem.h>
#include <tern/send.h>
#include <tern/sequence.h>
#include <tern/stats.h>
#include <tern/thread.h>

#include "lib/handed.h"

enum { COUNT, IN_HANDLER, MESSAGES = 1000, VALUES = 4000 };

static tern *t;
static uint32_t me, n, next;
static uint64_t counted, failures;
static _Atomic uint64_t never;
static uint64_t *heap;
static tern_addr there;
static tern_chan *to, *from;

static void must(int rc)
{
	if (rc >= 0)
		return;
	fprintf(stderr, "forked: rank %u: %s\n", me, tern_strerror(rc));
	exit(1);
}

static void refused(const char *call, int rc)
{
	if (rc == -EPERM && strstr(tern_strerror(rc), "forked"))
		return;
	fprintf(stderr, "rank %u: in the child %s returned %d: %s\n", me, call, rc,
		tern_strerror(rc));
	failures++;
}

#define REFUSED(call) refused(#call, call)
#define REFUSED_NULL(call) refused(#call, (errno = 0, (call) ? 0 : -errno))

static void on_count(tern *e, const tern_msg *m)
{
	(void)e, (void)m;
	counted++;
}

static void nothing(tern *e, void *arg)
{
	(void)e, (void)arg;
}

static void lost(tern *e, uint32_t rank, int why, void *arg)
{
	(void)e, (void)rank, (void)why, (void)arg;
}

static int turn(tern *e, void *arg)
{
	(void)e, (void)arg;
	return 0;
}

static void messages(void)
{
	uint64_t word = 1;
	tern_op op = TERN_OP, *ops[] = { &op };
	size_t which;
	REFUSED(tern_request(t, next, COUNT));
	REFUSED(tern_request(t, next, COUNT, 1, 2, 3));
	REFUSED(tern_request_array(t, next, COUNT, 1, &word));
	REFUSED(tern_request_data(t, next, COUNT, &word, sizeof word));
	REFUSED_NULL(handed_claim(t, next, 8));
	REFUSED(tern_abandon(t, &word));
	REFUSED(tern_poll(t));
	REFUSED(tern_poll_requests(t));
	REFUSED(tern_poll_replies(t));
	REFUSED(tern_barrier(t));
	REFUSED(tern_wait(t, &never, 1));
	REFUSED(tern_forgive(t, next));
	REFUSED(tern_lost_on(t, lost, NULL));
	REFUSED(tern_on(t, 5, on_count));
	REFUSED(tern_defer(t, nothing, NULL));
	REFUSED(tern_delivery_set(t, TERN_DELIVERY_POLL));
	REFUSED(tern_op_test(t, &op));
	REFUSED(tern_op_wait(t, &op));
	REFUSED(tern_op_wait_any(t, ops, 1, &which));
	tern_attach(t);
	tern_hold(t);
	tern_hold(t);
	tern_release(t);
	tern_release(t);
}

static void memory(void)
{
	static char bytes[1 << 20];
	uint64_t word = 1, four[4] = { 0 };
	tern_lock lock = { 0 };
	tern_op op = TERN_OP;
	tern_addr a;
	tern_segment segment;
	const tern_part far = { .addr = there, .run = 8 }, near = { .base = &word, .run = 8 };
	for (size_t len = 1; len <= sizeof bytes; len *= 2) {
		REFUSED(tern_put(t, there, bytes, len));
		REFUSED(tern_get(t, bytes, there, len));
	}
	REFUSED(tern_put_start(t, there, &word, 8, &op));
	REFUSED(tern_get_start(t, &word, there, 8, &op));
	REFUSED(tern_put_parts(t, &far, 1, &near, 1));
	REFUSED(tern_get_parts(t, &near, 1, &far, 1));
	REFUSED(tern_put_request(t, there, COUNT, &word, 8));
	REFUSED(tern_store(t, there, &word, 8));
	REFUSED(tern_put_signal(t, there, &word, 8,
				&(tern_change){ .word = there, .what = TERN_AMO_ADD, .value = 1 }));
	REFUSED(tern_put_signal_start(
		t, there, &word, 8,
		&(tern_change){ .word = there, .what = TERN_AMO_ADD, .value = 1 }, &op));
	REFUSED(tern_lock_take(t, &lock));
	REFUSED(tern_lock_try(t, &lock));
	REFUSED(tern_lock_release(t, &lock));
	REFUSED(tern_wait_word(t, four, TERN_WORD_EQ, 0));
	REFUSED(tern_wait_word_for(t, four, TERN_WORD_EQ, 0, 0));
	REFUSED(tern_store_sync(t, 1));
	REFUSED(tern_store_sync_for(t, 1, 0));
	REFUSED(tern_store_sync_all(t));
	REFUSED(tern_amo(t, there, TERN_AMO_ADD, 1, (uint64_t *)NULL));
	REFUSED(tern_cas(t, there, 1, 2, (uint32_t *)NULL));
	REFUSED(tern_copy_start(t, there, there, 8, &op));
	REFUSED(tern_get_when_start(t, &word, there, 8, &(tern_when){ .flag = there, .least = 0 },
				    &op));
	REFUSED(tern_block_get_start(t, &word, 0, next,
				     &(tern_block){ .name = 0, .run = 8, .count = 1 }, &op));
	REFUSED(tern_segment_put_start(t, (tern_segment)next << 48, &word, 8, &op));
	REFUSED(tern_segment_put_start(t, (tern_segment)next << 48, four, 32, &op));
	REFUSED(tern_segment_open(t, bytes, 8, NULL, NULL, &segment));
	REFUSED(tern_segment_shorten(t, 1, 1));
	REFUSED(tern_segment_close(t, 1));
	REFUSED(tern_register(t, bytes, 8, &a));
	REFUSED(tern_register_fd(t, bytes, 8, 0, 0, &a));
	REFUSED(tern_unregister(t, there));
	REFUSED(tern_block_name(t, 0, NULL, 0));
	REFUSED_NULL(handed_alloc(t, 8));
	REFUSED_NULL(handed_alloc_all(t, 8));
	REFUSED(tern_free(t, heap));
	REFUSED(tern_free_all(t, heap));
	REFUSED(tern_flush(t));
}

static void layers(void)
{
	uint64_t word = 1;
	tern_op op = TERN_OP;
	tern_mutex mutex = { 0 };
	tern_stats_data stats;
	tern_stream *stream;
	tern_chan *c, *d;
	REFUSED(tern_send(t, next, 1, &word, 8));
	REFUSED(tern_send_start(t, next, 1, &word, 8, 0, &op));
	REFUSED(tern_recv(t, next, 1, &word, 8, NULL));
	REFUSED(tern_recv_start(t, &(tern_match){ .rank = next, .id = 1 }, &word, 8, NULL, &op));
	REFUSED(tern_probe(t, &(tern_match){ .rank = next, .id = 1 }, NULL));
	REFUSED(tern_op_cancel(t, &op));
	REFUSED(tern_buf_alloc(t, 1, 64, 4, 0));
	REFUSED(tern_buf_send(t, next, 0, &word, 8));
	REFUSED_NULL(handed_buf(t, 0, TERN_BUF_NOWAIT, NULL, NULL));
	REFUSED(tern_buf_send_start(t, next, 0, &word, 8, 0, &op));
	REFUSED(tern_buf_close(t, 0));
	REFUSED(tern_chan_to(t, next, 77, &c));
	REFUSED(tern_chan_from(t, next, 77, &c));
	REFUSED(tern_async_start(t, turn, NULL, &op));
	REFUSED(tern_async_chan(t, TERN_ASYNC_PROGRAM, &c, &d));
	REFUSED(tern_async_get_start(t, &word, there, 8, &op));
	REFUSED(tern_mutex_take(t, &mutex));
	REFUSED(tern_thread_yield(t));
	REFUSED(tern_stream_open(t, next, 0, TERN_WAY_PLAIN, 0, &stream));
	REFUSED(tern_sequence_send(t, next, 0, &word, 8, TERN_WAY_PLAIN));
	REFUSED(tern_stats(t, &stats));
}

/*
 * Puts until it is told, which is at the end of the ring's leaf at the latest; closing is refused,
 * too.
 */
static void channel(void)
{
	tern_out out = tern_chan_out(to);
	tern_in in = tern_chan_in(from);
	uint64_t v = 0;
	int rc = 0;
	for (int i = 0; i < VALUES && !rc; i++)
		rc = tern_chan_put(&out, &(uint64_t){ 666 }, sizeof(uint64_t));
	refused("tern_chan_put", rc);
	for (int i = rc = 0; i < VALUES && !rc; i++)
		rc = tern_chan_get(&in, &v, sizeof v);
	refused("tern_chan_get", rc);
	REFUSED(tern_chan_put(&out, &v, 8));
	REFUSED(tern_chan_close(to));
}

static void child(int round)
{
	if (round == 0) {
		execlp("true", "true", (char *)NULL);
		_exit(1);
	}
	*heap = 666;
	messages();
	memory();
	layers();
	channel();
	REFUSED(tern_close(t));
	exit(failures ? 1 : 0);
}

static void fork_in_handler(tern *e, const tern_msg *m)
{
	int status;
	pid_t pid = fork();
	if (!pid) {
		t = e;
		REFUSED(tern_reply(e, m, COUNT));
		REFUSED(tern_request(e, next, COUNT));
		_exit(failures ? 1 : 0);
	}
	waitpid(pid, &status, 0);
	failures += status != 0;
	must(tern_reply(e, m, COUNT));
}

/* The parent's part of a round: what it sends and gets is whole. */
static void round_of(int round)
{
	int status;
	uint64_t v = 0;
	tern_out out = tern_chan_out(to);
	tern_in in = tern_chan_in(from);
	pid_t pid = fork();
	if (!pid)
		child(round);
	for (int i = 0; i < MESSAGES; i++) {
		must(tern_request(t, next, COUNT));
		must(tern_chan_put(&out, &(uint64_t){ (uint64_t)i }, sizeof(uint64_t)));
		must(tern_chan_get(&in, &v, sizeof v));
		failures += v != (uint64_t)i;
	}
	tern_chan_out_back(&out);
	tern_chan_in_back(&in);
	*heap = (uint64_t)round;
	waitpid(pid, &status, 0);
	failures += status != 0 || *heap != (uint64_t)round;
	must(tern_barrier(t));
}

int main(void)
{
	enum { ROUNDS = 3 };
	must(tern_open(&t, NULL));
	must(tern_on(t, COUNT, on_count));
	must(tern_on(t, IN_HANDLER, fork_in_handler));
	must(tern_buf_alloc(t, 0, 64, 4, 0));
	me = tern_rank(t);
	n = tern_size(t);
	next = (me + 1) % n;
	heap = handed_alloc_all(t, 2 << 20);
	must(heap ? 0 : -errno);
	there = tern_addr_at(t, next, heap);
	must(tern_chan_to(t, next, 1, &to));
	must(tern_chan_from(t, (me + n - 1) % n, 1, &from));
	must(tern_barrier(t));
	for (int round = 0; round < ROUNDS; round++)
		round_of(round);
	must(tern_request(t, next, IN_HANDLER));
	must(tern_barrier(t));
	while (counted < ROUNDS * MESSAGES + 1)
		must(tern_poll(t));
	must(tern_barrier(t));
	must(tern_close(t));
	if (failures || counted != ROUNDS * MESSAGES + 1)
		printf("rank %u: %llu failures, %llu messages\n", me, (unsigned long long)failures,
		       (unsigned long long)counted);
	return failures || counted != ROUNDS * MESSAGES + 1;
}
