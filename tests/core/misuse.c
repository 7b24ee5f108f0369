/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * misuse: every function that the library exports, with objects that are NULL, and with objects
 * that are closed or freed. None may end the process with a signal. A call that returns a code
 * returns -EINVAL, and the sentence says what was wrong; that of a call that is not inline names
 * it. A row says what it lacks: QUICK calls and those that programs have inline do not look for
 * NULL. `misuse --list` prints the functions of the table, for misuse_test.sh.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tern/async.h>
#include <tern/buf.h>
#include <tern/chan.h>
#include <tern/coll.h>
#include <tern/lock.h>
#include <tern/mem.h>
#include <tern/post.h>
#include <tern/send.h>
#include <tern/sequence.h>
#include <tern/sim.h>
#include <tern/stats.h>
#include <tern/thread.h>

#undef tern_on
#undef tern_hold
#undef tern_release

/* What the calls are given. */
static struct given {
	tern *t;
	tern_team *team;
	tern_chan *to, *from;
	tern_stream *stream;
	tern_op *op;
} g;

/* What else they need. */
static struct tern_msg msg;
static tern_flag flag;
static tern_op op = TERN_OP, *one_op = &op;
static tern_thread thread;
static tern_mutex mutex;
static tern_lock lock;
static tern_out out;
static tern_in in, *ins = &in;
static uint64_t word, words[16];
static char bytes[64];
static uint32_t rank;
static size_t len;
static unsigned number;
static void *memory;
static tern *endpoint;
static tern_team *team;
static tern_chan *chan, *other;
static tern_stream *stream;
static tern_addr addr;
static tern_segment segment;
static tern_envelope envelope;
static const tern_match match = { .id = 1 };
static const tern_part part = { .base = &word, .run = 8 };
static const tern_block block = { .run = 8, .count = 1 };
static const tern_long along = { .src = &word, .len = 8 };
static const tern_neighbor neighbor = { .to = TERN_RANK_NONE, .from = TERN_RANK_NONE };
static const size_t counts[] = { 1 };
static const tern_matrix matrix = { .base = words, .rows = 1, .cols = 1, .element = 8 };
static const tern_work work;
static tern_buf buffer;
static const tern_msg *kept;

static void on_message(tern *t, const tern_msg *m)
{
	(void)t, (void)m;
}

static void on_posts(tern *t, const tern_msg *m, const uint64_t *w, size_t n)
{
	(void)t, (void)m, (void)w, (void)n;
}

static void deferred(tern *t, void *arg)
{
	(void)t, (void)arg;
}

static void on_end(tern *t, int why, void *arg)
{
	(void)t, (void)why, (void)arg;
}

static void on_lost(tern *t, uint32_t r, int why, void *arg)
{
	(void)t, (void)r, (void)why, (void)arg;
}

static int turn(tern *t, void *arg)
{
	(void)t, (void)arg;
	return 0;
}

static int fill(tern *t, tern_out *o, void *arg)
{
	(void)t, (void)o, (void)arg;
	return 0;
}

static int drain(tern *t, tern_incoming *m, void *arg)
{
	(void)t, (void)m, (void)arg;
	return 0;
}

static void procedure(tern *t, tern_in *i, void *arg)
{
	(void)t, (void)i, (void)arg;
}

static uint64_t light(tern *t, const uint64_t w[TERN_WORDS_MAX], void *arg)
{
	(void)arg;
	(void)t;
	return w[0];
}

static void *accept_all(tern *t, uint32_t src, unsigned id, size_t n, void *arg)
{
	(void)t, (void)src, (void)id, (void)n;
	return arg;
}

static void ended(tern *t, uint32_t src, unsigned id, void *data, size_t n, void *arg)
{
	(void)t, (void)src, (void)id, (void)data, (void)n, (void)arg;
}

static void on_packet(tern *t, uint32_t src, unsigned id, unsigned n, const uint64_t *w, void *arg)
{
	(void)t, (void)src, (void)id, (void)n, (void)w, (void)arg;
}

/* Memory for statistics, of `size` as they say. */
static void *memory_stats(size_t size)
{
	static union {
		size_t size;
		char room[4096];
	} stats;
	stats.size = size;
	return &stats;
}

static size_t *zero_length(void)
{
	len = 0;
	return &len;
}

/* -- The table ------------------------------------------------------------------------------- */

enum {
	CODE = 0,   /* returns -EINVAL */
	VALUE = 1,  /* returns something else, or nothing */
	QUICK = 2,  /* its count of instructions is pinned: NULL is not looked for */
	INLINE = 4, /* programs have it, or what calls it, inline: likewise */
	PART = 8,   /* of an inline call, with whose arguments alone it makes sense: not called */
	FREE = 16,  /* has no object that could be wrong: not called */
	FREE_NULL = 32, /* takes NULL */
	HANDLE = 64,    /* takes a tern_op */
	UNNAMED = 128,  /* the sentence names what it has in common with others */
};

struct row {
	const char *name;
	int kind;
	int64_t (*call)(void);
};

#define ROW(name, kind, ...)                   \
	static int64_t call_##name(void)       \
	{                                      \
		return (int64_t)(__VA_ARGS__); \
	}
#include "misuse_table.h"
#undef ROW

static const struct row table[] = {
#define ROW(name, kind, ...) { #name, kind, call_##name },
#include "misuse_table.h"
#undef ROW
};

enum { ROWS = sizeof table / sizeof *table };

/* -- Wrong objects --------------------------------------------------------------------------- */

static void must(int rc)
{
	if (rc >= 0)
		return;
	printf("misuse: %s\n", tern_strerror(rc));
	exit(3);
}

static void objects_null(void)
{
	g = (struct given){ 0 };
}

static void objects_closed(void)
{
	tern *t;
	must(tern_open_local(1, &t));
	must(tern_on_with(t, 0, on_message, NULL, NULL));
	must(tern_team_all(t, &g.team));
	must(tern_chan_to(t, 0, 1, &g.to));
	must(tern_chan_from(t, 0, 1, &g.from));
	must(tern_stream_on(t, 0, on_packet, NULL));
	must(tern_stream_open(t, 0, 0, TERN_WAY_AUTO, 0, &g.stream));
	must(tern_chan_close(g.from));
	must(tern_chan_close(g.to));
	must(tern_stream_close(g.stream));
	must(tern_team_free(g.team));
	must(tern_close(t));
	g.t = t;
}

/* Good ones, but for the handle. */
static void objects_open(void)
{
	static char garbage[sizeof op];
	must(tern_open_local(1, &g.t));
	must(tern_on_with(g.t, 0, on_message, NULL, NULL));
	must(tern_async_on(g.t, 0, drain, NULL));
	must(tern_buf_alloc(g.t, 0, 64, 4, 0));
	must(tern_team_all(g.t, &g.team));
	memset(garbage, 0xa5, sizeof garbage);
	g.op = (tern_op *)(void *)garbage;
}

static const struct way {
	const char *name;
	void (*make)(void);
	int skipped; /* kinds of rows that are not called */
	const char *said;
	int only; /* unless 0: kinds of rows that are */
} ways[] = {
	{ "NULL", objects_null, PART | FREE | FREE_NULL | QUICK | INLINE, "NULL", 0 },
	{ "closed", objects_closed, PART | FREE, NULL, 0 },
	{ "a handle without TERN_OP", objects_open, PART | FREE, "not set up", HANDLE },
};

/* -- Calling --------------------------------------------------------------------------------- */

/* Where the child is, so that the next one goes on behind a call that ended it. */
static struct progress {
	int row, wrong, calls;
} * at;

static int row_check(const struct row *r, const struct way *w, int64_t result)
{
	const char *sentence = tern_strerror(-EINVAL);
	int named = !(r->kind & (QUICK | INLINE | UNNAMED));
	if (r->kind & VALUE)
		return 0;
	if (result != -EINVAL) {
		printf("FAIL %s, %s: it returned %lld\n", r->name, w->name, (long long)result);
		return 1;
	}
	if ((w->said ? !strstr(sentence, w->said)
		     : !strstr(sentence, "closed") && !strstr(sentence, "freed")) ||
	    (named && !strstr(sentence, r->name))) {
		printf("FAIL %s, %s: it said: %s\n", r->name, w->name, sentence);
		return 1;
	}
	return 0;
}

static void child_run(const struct way *w)
{
	w->make();
	for (; at->row < ROWS; at->row++) {
		const struct row *r = &table[at->row];
		if (r->kind & w->skipped || (w->only && !(r->kind & w->only)))
			continue;
		op = g.op ? *g.op : (tern_op)TERN_OP;
		out = (tern_out){ .chan = g.to };
		in = (tern_in){ .chan = g.from };
		at->calls++;
		at->wrong += row_check(r, w, r->call());
		fflush(stdout);
	}
	_exit(0);
}

static void way_run(const struct way *w)
{
	*at = (struct progress){ 0 };
	while (at->row < ROWS) {
		int status;
		pid_t child = fork();
		if (child == 0)
			child_run(w);
		if (child < 0 || waitpid(child, &status, 0) != child)
			exit(3);
		if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
			break;
		printf("FAIL %s, %s: it ended the process with %s %d\n", table[at->row].name,
		       w->name, WIFSIGNALED(status) ? "signal" : "status",
		       WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
		fflush(stdout);
		at->wrong++;
		at->row++;
	}
	printf("%s: %d calls, %d wrong\n", w->name, at->calls, at->wrong);
	fflush(stdout);
}

/* Of an endpoint that is open: handles and payloads that are NULL, and a worker that is closed. */
static int handles_null(void)
{
	int wrong = 0;
	tern_op *none = NULL;
	tern *worker;
	objects_open();
	struct given open = g;
	objects_closed(); /* whose memory nobody else has by now */
	tern *closed = g.t;
	g = open;
	must(tern_worker_open(g.t, &worker));
	must(tern_close(worker));
	const struct {
		const char *call;
		int rc;
	} calls[] = {
		{ "tern_op_test", tern_op_test(g.t, NULL) },
		{ "tern_op_wait", tern_op_wait(g.t, NULL) },
		{ "tern_op_wait_for", tern_op_wait_for(g.t, NULL, 0) },
		{ "tern_op_wait_any", tern_op_wait_any(g.t, &none, 1, &len) },
		{ "tern_op_wait_any without a list", tern_op_wait_any(g.t, NULL, 1, &len) },
		{ "tern_request_data", tern_request_data(g.t, 0, 0, NULL, 10) },
		{ "tern_request_data of 8 words",
		  tern_request_data(g.t, 0, 0, NULL, 10, 1, 2, 3, 4, 5, 6, 7, 8) },
		{ "tern_reply to NULL at a closed endpoint", tern_reply(closed, NULL, 0, 1) },
		{ "tern_request at a closed worker", tern_request(worker, 0, 0, 1) },
		{ "tern_flush at a closed worker", tern_flush(worker) },
		{ "tern_close of a closed worker", tern_close(worker) },
	};
	for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
		if (calls[i].rc != -EINVAL) {
			printf("FAIL %s: it returned %d\n", calls[i].call, calls[i].rc);
			wrong++;
		}
	return wrong;
}

/* With TERN_CHECK, for misuse_test.sh: the process ends, and standard error says why. */
static void inline_null(void)
{
	objects_open();
	tern_request(NULL, 0, 0, 1);
}

int main(int argc, char **argv)
{
	int wrong = 0;
	if (argc > 1 && strcmp(argv[1], "--list") == 0) {
		for (int i = 0; i < ROWS; i++)
			puts(table[i].name);
		return 0;
	}
	if (argc > 1 && strcmp(argv[1], "--inline") == 0) {
		inline_null();
		return 0;
	}
	at = mmap(NULL, sizeof *at, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (at == MAP_FAILED)
		return 3;
	for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
		way_run(&ways[i]);
		wrong += at->wrong;
	}
	return wrong + handles_null() != 0;
}
