/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: LABELS perf */
/*
 * Counts the instructions of a message, of a put, of a send and of a value in a channel, exactly: a
 * child sends and handles under single-stepping, and the figure is the difference between
 * 2N and N messages, so that whatever happens once is not in it. An empty loop and an empty
 * handler are counted the same way and taken off; a put's arguments, its call and its
 * return are in. Of a channel, N is a leaf, four times over: a lap of its ring, with all that
 * happens between lines and between leaves. The budgets are those of docs/cost.md; they hold
 * for gcc 12 at -O2, and elsewhere the counts are only printed: compilers differ by two or
 * three.
 */
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <unistd.h>

#include <tern/chan.h>
#include <tern/mem.h>
#include <tern/send.h>

#include "chan/pipe.h"
#include "lib/handed.h"
#include "ring/ring.h"

enum {
	SKIPPED = 77,
	MESSAGES = 50,
	BUDGET = 47,
	PUT_BUDGET = 22,  /* and a get's */
	OFF_BUDGET = 45,  /* what a request */
	OFF_PUT = 22,     /* a put */
	OFF_PAYLOAD = 92, /* and a payload of 64 bytes take */
	POLL_ONE = 80,    /* a poll that finds one message and no more */
	POLL_AROUND = 2,  /* from mark() and to it */
	TWO_LINES = 80,   /* a request of 8 words */
	PAYLOADS = TERN_POOL_BLOCKS / 2,
	CHAN_BUDGET = 5,
	ADD_BUDGET = 30,
	RECEIVES = 10000
};

#if !defined(__x86_64__)
int main(void)
{
	puts("skipped: single-stepping is written for x86-64");
	return SKIPPED;
}
#else

#include "stepping.h"

static tern *t[2];
static tern_addr there; /* in the heap of t[1] */
static tern_chan *sending, *receiving;

static void empty_handler(tern *e, const tern_msg *m)
{
	(void)e, (void)m; /* one instruction: ret */
}

static void loop_empty(uint32_t n)
{
	mark();
	for (uint32_t i = 0; i < n; i++)
		__asm__ volatile("");
	mark();
}

static void loop_four(uint32_t n)
{
	mark();
	for (uint32_t i = 0; i < n; i++)
		tern_request(t[0], 1, 1, i, 2, 3, 4);
	mark();
}

static void loop_eight(uint32_t n)
{
	mark();
	for (uint32_t i = 0; i < n; i++)
		tern_request(t[0], 1, 1, i, 2, 3, 4, 5, 6, 7, 8);
	mark();
}

static void loop_one(uint32_t n)
{
	mark();
	for (uint32_t i = 0; i < n; i++)
		tern_request(t[0], 1, 1, i);
	mark();
}

static void loop_none(uint32_t n)
{
	mark();
	for (uint32_t i = 0; i < n; i++)
		tern_request_data(t[0], 1, 1, NULL, 0, i);
	mark();
}

static void loop_put(uint32_t n)
{
	uint64_t word = n;
	mark();
	for (uint32_t i = 0; i < n; i++)
		tern_put(t[0], there, &word, sizeof word);
	mark();
}

/* -- What is complete on return: blocking, and split-phase beside it --------------------- */

static char bytes[TERN_LINE];
static tern_op moved;

static void loop_get(uint32_t n)
{
	mark();
	for (uint32_t i = 0; i < n; i++)
		tern_get(t[0], bytes, there, 8);
	mark();
}

static void loop_put_start(uint32_t n)
{
	mark();
	for (uint32_t i = 0; i < n; i++)
		tern_put_start(t[0], there, bytes, 8, &moved);
	mark();
}

static void loop_get_start(uint32_t n)
{
	mark();
	for (uint32_t i = 0; i < n; i++)
		tern_get_start(t[0], bytes, there, 8, &moved);
	mark();
}

static void loop_put_line(uint32_t n)
{
	mark();
	for (uint32_t i = 0; i < n; i++)
		tern_put(t[0], there, bytes, sizeof bytes);
	mark();
}

static void loop_put_line_start(uint32_t n)
{
	mark();
	for (uint32_t i = 0; i < n; i++)
		tern_put_start(t[0], there, bytes, sizeof bytes, &moved);
	mark();
}

static void loop_add(uint32_t n)
{
	uint64_t old;
	mark();
	for (uint32_t i = 0; i < n; i++)
		tern_amo(t[0], there, TERN_AMO_ADD, 1, &old);
	mark();
}

enum { GET, PUT_START, GET_START, PUT_LINE, PUT_LINE_START, ADD, MOVES };
static void (*const move[MOVES])(uint32_t) = { loop_get,      loop_put_start,      loop_get_start,
					       loop_put_line, loop_put_line_start, loop_add };
static const char *const move_name[MOVES] = { "8-byte get",  "  put, started", "  get, started",
					      "64-byte put", "  put, started", "fetch and add" };

static void loop_data(uint32_t n)
{
	static const char data[64];
	mark();
	for (uint32_t i = 0; i < n; i++)
		tern_request_data(t[0], 1, 1, data, sizeof data, i);
	mark();
}

/* -- Sends that find their receives ---------------------------------------------------- */

static tern_id posted, sent;
static tern_op received;

static void post(uint32_t n)
{
	static uint64_t got;
	for (uint32_t i = 0; i < n; i++)
		if (tern_recv_start(t[1], &(tern_match){ .rank = 0, .id = posted++ }, &got,
				    sizeof got, NULL, &received))
			_exit(1);
}

static void loop_send(uint32_t n)
{
	uint64_t word = n;
	mark();
	for (uint32_t i = 0; i < n; i++)
		tern_send(t[0], 1, sent++, &word, sizeof word);
	mark();
}

/* -- Channels ------------------------------------------------------------------------------ */

__attribute__((noinline)) static void loop_chan_put(uint32_t n)
{
	tern_out out = tern_chan_out(sending);
	mark();
	for (uint32_t i = 0; i < n; i++)
		if (tern_chan_put(&out, &(uint64_t){ i }, sizeof(uint64_t)))
			_exit(1);
	mark();
	tern_chan_out_back(&out);
}

__attribute__((noinline)) static void loop_chan_get(uint32_t n)
{
	tern_in in = tern_chan_in(receiving);
	uint64_t value = 0;
	mark();
	for (uint32_t i = 0; i < n; i++) {
		if (tern_chan_get(&in, &value, sizeof value))
			_exit(1);
		__asm__ volatile("" : : "r"(value));
	}
	mark();
	tern_chan_in_back(&in);
}

static void handle_all(void)
{
	mark();
	tern_poll(t[1]);
	mark();
}

/* To the beginning of a leaf: its end must not fall among what is counted. */
static void to_leaf(void)
{
	struct tern_lane *lane = &t[0]->lane[1];
	do {
		tern_request(t[0], 1, 1, 1, 2);
		tern_poll(t[1]);
	} while ((size_t)(lane->tail - lane->base) % (REQUEST_LEAF_LINES * TERN_LINE));
	t[0]->looks = 1; /* each count begins with a look, so that counts can be compared */
}

/* How many messages find room at once. */
static uint32_t rooms(void (*loop)(uint32_t))
{
	return loop == loop_none || loop == loop_data || loop == loop_eight ? PAYLOADS : MESSAGES;
}

static void child_run(void)
{
	void (*const loop[])(uint32_t) = { loop_empty, loop_four, loop_one,  loop_none, loop_data,
					   loop_eight, loop_put,  loop_send, loop_send };
	enum { LOOPS = sizeof loop / sizeof *loop };
	if (tern_open_local(2, t) || tern_on(t[0], 1, empty_handler) ||
	    tern_on(t[1], 1, empty_handler))
		_exit(1);
	there = handed_addr(t[1], handed_alloc(t[1], sizeof bytes));
	if (tern_put(t[0], there, &there, sizeof there)) /* finds memcpy for the others, too */
		_exit(1);
	if (tern_request_data(t[0], 1, 1, &there, sizeof there)) /* commits the blocks */
		_exit(1);
	if (tern_chan_to(t[0], 1, 1, &sending) || tern_chan_from(t[1], 0, 1, &receiving))
		_exit(1);
	to_leaf();
	ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	raise(SIGSTOP);
	for (int i = 0; i < LOOPS; i++)
		for (uint32_t few = rooms(loop[i]), n = few; n <= 2 * few; n += few) {
			to_leaf();
			if (loop[i] == loop_send)
				post(i == LOOPS - 1 && n == MESSAGES
					     ? RECEIVES
					     : n); /* the last are among many */
			loop[i](n);
			handle_all();
		}
	for (int i = 0; i < MOVES; i++)
		for (uint32_t n = MESSAGES; n <= 2 * MESSAGES; n += MESSAGES) {
			move[i](n);
			handle_all();
		}
	to_leaf();
	loop_four(1);
	handle_all();
	for (int i = 0; i < PIPE_LEAVES; i++)
		for (uint32_t n = LEAF_WORDS; n <= 2 * LEAF_WORDS; n += LEAF_WORDS) {
			loop_chan_put(n);
			loop_chan_get(n);
		}
	_exit(0);
}

struct count {
	double send, handle; /* instructions a message */
};

static struct count count_loop(pid_t child, double messages)
{
	long send[2], handle[2];
	for (int twice = 0; twice < 2; twice++) {
		run_to_mark(child);
		send[twice] = steps_to_mark(child);
		run_to_mark(child);
		handle[twice] = steps_to_mark(child);
	}
	return (struct count){ (double)(send[1] - send[0]) / messages,
			       (double)(handle[1] - handle[0]) / messages };
}

/* All of a poll that finds one message, with its call and without the handler's ret. */
static double count_poll(pid_t child)
{
	run_to_mark(child);
	steps_to_mark(child);
	run_to_mark(child);
	return (double)steps_to_mark(child) - POLL_AROUND - 1;
}

/* A put and a get, each with its loop, on the average of a lap. */
static struct count count_lap(pid_t child)
{
	struct count sum = { 0, 0 };
	for (int i = 0; i < PIPE_LEAVES; i++) {
		struct count leaf = count_loop(child, LEAF_WORDS);
		sum.send += leaf.send / PIPE_LEAVES;
		sum.handle += leaf.handle / PIPE_LEAVES;
	}
	return sum;
}

static double report(const char *what, struct count c, struct count loop)
{
	double send = c.send - loop.send;
	double handle = c.handle - 1; /* the handler's ret */
	printf("%-15s %6.2f to send, %6.2f to take in, %6.2f together\n", what, send, handle,
	       send + handle);
	return send + handle;
}

#if __GNUC__ == 12 && !defined(__clang__) && defined(__OPTIMIZE__) &&      \
	!defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && \
	!defined(TERN_NO_INLINE)
#define BUDGETS_HOLD 1
#else
#define BUDGETS_HOLD 0
#endif

static int over(const char *what, double count, double least, double most)
{
	if (count >= least && count <= most)
		return 0;
	printf("FAIL: %s takes %.2f instructions; docs/cost.md allows %.2f\n", what, count, most);
	return 1;
}

/* Statistics are compiled in and are off here: not one instruction may be theirs. */
static int verdict_off(double four, double put, double payload)
{
#if BUDGETS_HOLD
	return over("a 4-word request that nobody counts", four, 20, OFF_BUDGET) |
	       over("an 8-byte put that nobody counts", put, 10, OFF_PUT) |
	       over("a payload that nobody counts", payload, 50, OFF_PAYLOAD);
#else
	(void)four, (void)put, (void)payload;
	return 0;
#endif
}

/* Two lines cost no block. */
static int verdict_eight(double eight)
{
#if BUDGETS_HOLD
	return over("an 8-word request", eight, 60, TWO_LINES);
#else
	(void)eight;
	return 0;
#endif
}

/* How much more a split-phase call may take than the blocking one. */
#define STARTED 1.2
enum { PADDING = 1 }; /* a nop that aligns a label of a started get */

static int verdict_moves(double put, const double count[MOVES])
{
#if BUDGETS_HOLD
	return over("a started put", count[PUT_START], put, STARTED * put) |
	       over("a started get", count[GET_START], count[GET], STARTED * count[GET] + PADDING) |
	       over("a started put of 64 bytes", count[PUT_LINE_START], count[PUT_LINE],
		    STARTED * count[PUT_LINE]) |
	       over("an 8-byte get", count[GET], 10, PUT_BUDGET) |
	       over("a fetch and add", count[ADD], 10, ADD_BUDGET);
#else
	(void)put, (void)count;
	return 0;
#endif
}

/* A payload of 0 bytes takes about as much as another, and a poll of one message not much. */
static int verdict_small(double none, double payload, double poll)
{
#if BUDGETS_HOLD
	return over("a poll that finds one message", poll, 40, POLL_ONE) |
	       over("a payload of 0 bytes at NULL", none, 40, 1.1 * payload);
#else
	(void)none, (void)payload, (void)poll;
	return 0;
#endif
}

/* How much more a message may take that has many receives to find its own among. */
#define MATCHING 1.3

static int verdict(double four, double put, struct count chan, double matching)
{
#if BUDGETS_HOLD
	if (matching > MATCHING || matching < 0.9)
		printf("FAIL: among %d receives a message takes %.2f times as much as alone\n",
		       RECEIVES, matching);
	return matching > MATCHING || matching < 0.9 ||
	       over("a 4-word request", four, 20, BUDGET) |
		       over("an 8-byte put", put, 10, PUT_BUDGET) |
		       over("a put into a channel", chan.send, 3, CHAN_BUDGET) |
		       over("a get from a channel", chan.handle, 3, CHAN_BUDGET);
#else
	(void)four, (void)put, (void)chan, (void)matching, (void)over;
	puts("skipped: the budgets are for gcc 12 at -O2");
	return SKIPPED;
#endif
}

/* Parent and child take turns: on one core that is several times as fast as between two. */
static void pin(void)
{
	cpu_set_t here;
	CPU_ZERO(&here);
	CPU_SET(sched_getcpu(), &here);
	sched_setaffinity(0, sizeof here, &here);
}

int main(void)
{
	pin();
	pid_t child = fork();
	int status;
	if (child == 0)
		child_run();
	waitpid(child, &status, 0);
	if (!WIFSTOPPED(status)) {
		puts("skipped: this machine does not let a process trace its child");
		return SKIPPED;
	}
	struct count loop = count_loop(child, MESSAGES);
	double four = report("4-word request", count_loop(child, MESSAGES), loop);
	report("1-word request", count_loop(child, MESSAGES), loop);
	double none = report("0-byte payload", count_loop(child, PAYLOADS), loop);
	double payload = report("64-byte payload", count_loop(child, PAYLOADS), loop);
	double eight = report("8-word request", count_loop(child, PAYLOADS), loop);
	double put = count_loop(child, MESSAGES).send - loop.send;
	printf("%-15s %6.2f\n", "8-byte put", put);
	double alone = report("8-byte send", count_loop(child, MESSAGES), loop);
	double among = report("  among 10,000", count_loop(child, MESSAGES), loop);
	double moves[MOVES];
	for (int i = 0; i < MOVES; i++) {
		moves[i] = count_loop(child, MESSAGES).send - loop.send;
		printf("%-15s %6.2f\n", move_name[i], moves[i]);
	}
	double poll = count_poll(child);
	printf("%-15s %6.2f\n", "poll of one", poll);
	struct count chan = count_lap(child);
	chan.send -= loop.send;
	chan.handle -= loop.send;
	printf("%-15s %6.3f to put, %6.3f to get\n", "channel value", chan.send, chan.handle);
	kill(child, SIGKILL);
	waitpid(child, &status, 0);
	int off = verdict_off(four, put, payload) | verdict_eight(eight) |
		  verdict_small(none, payload, poll) | verdict_moves(put, moves);
	return verdict(four, put, chan, among / alone) | off;
}
#endif
