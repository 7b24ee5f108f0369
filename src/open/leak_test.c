/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: TIMEOUT 120 ONE_MODE */
/*
 * Memory of sessions that use a layer. Where there is none, a call says so, and nothing else
 * breaks. What an endpoint has taken it gives back when it closes: the process has no more after
 * many sessions than after some. The first sessions fill the ring of what was freed and can still
 * be read (memory_bury()). tests/launch/reopen_leak_test.c does the same with processes.
 */
#include <errno.h>
#include <malloc.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <tern/async.h>
#include <tern/buf.h>
#include <tern/chan.h>
#include <tern/post.h>
#include <tern/send.h>
#include <tern/sequence.h>
#include <tern/thread.h>

#include "lib/local.h"
#include "net/udp/udp.h"

enum { WARM = 40, SESSIONS = 20, PAGE = 4096, FEW = 100, LONG = 100000, TYPE = 3, KIND = 4 };

static unsigned char here[LONG], there[LONG];

/* Private mappings, and memory from malloc(). */
struct taken {
	uint64_t mapped, heap;
};

static struct taken taken_now(void)
{
	struct taken now = { .heap = mallinfo2().uordblks };
	char line[512];
	FILE *maps = fopen("/proc/self/maps", "re");
	REQUIRE(maps != NULL);
	while (fgets(line, sizeof line, maps)) {
		unsigned long long from, end;
		char rights[8];
		if (sscanf(line, "%llx-%llx %7s", &from, &end, rights) == 3 && rights[3] == 'p' &&
		    !strstr(line, "[heap]"))
			now.mapped += end - from;
	}
	fclose(maps);
	return now;
}

/* Less than a page, or a few bytes, in each session. */
static void leaks_nothing(int (*uses)(void))
{
	struct taken first = { .heap = 0 };
#ifdef CHECK_SANITIZED
	check_skip("a sanitizer keeps what is freed");
#endif
	local_polled();
	for (unsigned i = 0; i < WARM + SESSIONS; i++) {
		if (i == WARM)
			first = taken_now();
		local_open(3);
		CHECK_IS(uses(), 0);
		local_settle_transfers();
		local_close();
	}
	struct taken end = taken_now();
	if (!CHECK(end.mapped < first.mapped + SESSIONS * PAGE) ||
	    !CHECK(end.heap < first.heap + SESSIONS * FEW))
		printf("    mapped %llu to %llu bytes, malloc() %llu to %llu\n",
		       (unsigned long long)first.mapped, (unsigned long long)end.mapped,
		       (unsigned long long)first.heap, (unsigned long long)end.heap);
}

/* What a session does, until a call fails. */
#define TRY(call)                        \
	do {                             \
		int try_code = (call);   \
		if (try_code)            \
			return try_code; \
	} while (0)

static int handlers_on(void)
{
	for (uint32_t r = 0; r < 3; r++)
		TRY(tern_on(local[r], 1, note_request));
	return 0;
}

static int messages(void)
{
	TRY(handlers_on());
	for (uint32_t r = 0; r < 3; r++) {
		TRY(tern_request(local[r], (r + 1) % 3, 1, 1));
		TRY(tern_request_data(local[r], (r + 2) % 3, 1, here, TERN_REQUEST_MAX));
	}
	return 0;
}

TEST(messages_leave_nothing)
{
	leaks_nothing(messages);
}

/* An operation that was started, and may end after the call that failed behind it. */
static tern_op op;

static int sends(void)
{
	op = (tern_op)TERN_OP;
	for (size_t len = 8; len <= LONG; len *= 50) {
		const tern_match match = { .rank = 0, .id = 5 };
		TRY(tern_recv_start(local[1], &match, there, len, NULL, &op));
		TRY(tern_send(local[0], 1, 5, here, len));
		TRY(tern_op_wait(local[1], &op));
		TRY(tern_send_start(local[1], 2, 6, here, 8, 0, NULL)); /* never received */
	}
	const tern_match match = { .rank = 0, .id = 5 };
	const tern_part halves[] = { { .base = there, .run = 4 }, { .base = here, .run = 4 } };
	TRY(tern_recv_parts_start(local[1], &match, halves, 2, NULL, &op));
	TRY(tern_send(local[0], 1, 5, here, 8));
	TRY(tern_op_wait(local[1], &op));
	return 0;
}

TEST(sends_and_receives_leave_nothing)
{
	leaks_nothing(sends);
}

static int buffers(void)
{
	tern_buf got;
	for (unsigned type = TYPE; type < TYPE + 3; type++)
		TRY(tern_buf_alloc(local[1], type, 5000, 4, 0));
	for (unsigned type = TYPE; type < TYPE + 3; type++) {
		TRY(tern_buf_send(local[0], 1, type, here, 5000));
		TRY(tern_buf_send(local[2], 1, type, here, 10));
		TRY(tern_buf_recv(local[1], type, 0, &got));
		TRY(tern_buf_free(local[1], got.data));
	}
	TRY(tern_buf_close(local[1], TYPE));
	return 0;
}

TEST(typed_messages_leave_nothing)
{
	leaks_nothing(buffers);
}

static int memory(void)
{
	tern_addr heap, own;
	void *p;
	op = (tern_op)TERN_OP;
	TRY(tern_alloc(local[1], LONG, &p));
	TRY(tern_addr_of(local[1], p, &heap));
	TRY(tern_register(local[2], there, LONG, &own));
	TRY(tern_put_start(local[0], heap, here, LONG, &op));
	TRY(tern_copy_start(local[0], own, heap, LONG, &op));
	TRY(tern_op_wait(local[0], &op));
	TRY(tern_store(local[0], heap, here, 100));
	return 0;
}

TEST(memory_leaves_nothing)
{
	leaks_nothing(memory);
}

static int channels(void)
{
	tern_chan *to, *from, *open;
	TRY(tern_chan_to(local[0], 1, 7, &to));
	TRY(tern_chan_from(local[1], 0, 7, &from));
	TRY(tern_chan_to(local[1], 2, 8, &open)); /* never closed */
	TRY(tern_chan_close(to));
	TRY(tern_chan_close(from));
	return 0;
}

TEST(channels_leave_nothing)
{
	leaks_nothing(channels);
}

static void *accept(tern *t, uint32_t from, unsigned id, size_t len, void *arg)
{
	(void)t, (void)from, (void)id, (void)len, (void)arg;
	return there;
}

static void block_end(tern *t, uint32_t from, unsigned id, void *data, size_t len, void *arg)
{
	(void)t, (void)from, (void)id, (void)data, (void)len, (void)arg;
}

static void packet(tern *t, uint32_t from, unsigned id, unsigned n, const uint64_t *words,
		   void *arg)
{
	(void)t, (void)from, (void)id, (void)n, (void)words, (void)arg;
}

static int sequences(void)
{
	static const uint64_t words[4];
	tern_stream *s;
	TRY(tern_sequence_on(local[1], KIND, accept, block_end, NULL));
	TRY(tern_stream_on(local[1], KIND, packet, NULL));
	for (enum tern_way way = TERN_WAY_FULL; way <= TERN_WAY_PLAIN; way++) {
		TRY(tern_sequence_send(local[0], 1, KIND, here, 5000, way));
		TRY(tern_stream_open(local[0], 1, KIND, way, 4, &s));
		TRY(tern_stream_put(s, 4, words));
		TRY(tern_stream_close(s));
	}
	return 0;
}

TEST(blocks_and_streams_leave_nothing)
{
	leaks_nothing(sequences);
}

static uint64_t nothing(tern *t, const uint64_t word[TERN_WORDS_MAX], void *arg)
{
	(void)arg;
	(void)t, (void)word;
	return 0;
}

static int threads(void)
{
	for (uint32_t r = 0; r < 3; r++)
		TRY(tern_thread_on(local[r], 1, nothing, NULL));
	for (uint32_t r = 0; r < 3; r++) {
		const tern_spawn_args args = { .rank = r, .id = 1, .data = here, .len = 1000 };
		TRY(tern_spawn(local[0], r, 1, NULL, NULL));
		TRY(tern_spawn_with(local[0], &args));
	}
	return 0;
}

TEST(threads_leave_nothing)
{
	leaks_nothing(threads);
}

static int posts(void)
{
	TRY(handlers_on());
	for (unsigned i = 0; i < 100; i++)
		TRY(tern_post(local[0], i % 3, 1, i));
	TRY(tern_post_flush(local[0]));
	return 0;
}

TEST(posts_leave_nothing)
{
	leaks_nothing(posts);
}

/* -- Over packets ------------------------------------------------------------------------------ */

static int (*const uses_of[])(void) = {
	messages, sends, buffers, memory, channels, sequences, threads, posts,
};

static void each_over_udp(const char *fault, void (*test)(int (*uses)(void)))
{
	char why[200];
	if (!udp_ops.usable(why, sizeof why))
		check_skip(why);
	setenv("TERN_NET", "udp", 1);
	setenv("TERN_FAULT", fault, 1);
	for (unsigned i = 0; i < sizeof uses_of / sizeof *uses_of; i++)
		test(uses_of[i]);
}

TEST(over_udp_nothing_is_left)
{
	each_over_udp("", leaks_nothing);
}

TEST(where_packets_overtake_each_other_nothing_is_left)
{
	each_over_udp("reorder=0.3,duplicate=0.2,seed=1", leaks_nothing);
}

#ifndef CHECK_SANITIZED /* which has a malloc() of its own */
/* -- No memory --------------------------------------------------------------------------------- */

static long left = -1; /* allocations until one fails; negative: none does */

static bool lacks(void)
{
	return left >= 0 && left-- == 0;
}

void *__libc_malloc(size_t bytes);
void *__libc_calloc(size_t count, size_t bytes);

void *malloc(size_t bytes)
{
	return lacks() ? NULL : __libc_malloc(bytes);
}

void *calloc(size_t count, size_t bytes)
{
	return lacks() ? NULL : __libc_calloc(count, bytes);
}

void *mmap(void *at, size_t len, int rights, int flags, int fd, off_t from)
{
	if (lacks()) {
		errno = ENOMEM;
		return MAP_FAILED;
	}
	return (void *)syscall(SYS_mmap, at, len, rights, flags, fd, from);
}

/* One session, in which the n-th allocation fails; false when it has fewer. */
static bool lacks_once(int (*uses)(void), long n)
{
	local_polled();
	left = n;
	int rc = tern_open_local(3, local);
	local_size = 3;
	bool opened = rc == 0;
	if (opened)
		rc = uses();
	bool fewer = left >= 0;
	left = -1;
	if (!CHECK(rc == 0 || rc == -ENOMEM))
		printf("    allocation %ld, %s: %s\n", n, opened ? "in use" : "opening",
		       tern_strerror(rc));
	if (opened) {
		local_settle();
		local_close();
	}
	return !fewer;
}

static void lacks_each(int (*uses)(void))
{
	long n = 0;
	while (lacks_once(uses, n))
		n++;
	printf("    each of %ld allocations failed\n", n);
	CHECK(n > 10);
}

TEST(messages_say_that_there_is_no_memory)
{
	lacks_each(messages);
}

TEST(sends_say_that_there_is_no_memory)
{
	lacks_each(sends);
}

TEST(buffers_say_that_there_is_no_memory)
{
	lacks_each(buffers);
}

TEST(transfers_say_that_there_is_no_memory)
{
	lacks_each(memory);
}

TEST(channels_say_that_there_is_no_memory)
{
	lacks_each(channels);
}

TEST(sequences_say_that_there_is_no_memory)
{
	lacks_each(sequences);
}

TEST(threads_say_that_there_is_no_memory)
{
	lacks_each(threads);
}

TEST(posts_say_that_there_is_no_memory)
{
	lacks_each(posts);
}

TEST(over_udp_it_is_said_that_there_is_no_memory)
{
	each_over_udp("", lacks_each);
}
#endif
