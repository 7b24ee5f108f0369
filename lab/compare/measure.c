/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The measuring program, the same for every library: times the rows of the comparison through
 * peer.h, checks every result, and prints a line for each row and round as soon as it has it.
 *
 * A round plays all rows, the next round plays them in the other order. A time is that of the
 * slowest rank. Calls in a row use other buffers each time, and each rank in turn as the root.
 */
#include <math.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "peer.h"

enum {
	ROWS_MOST = 128,
	SIZES_MOST = 16,
	COUNT_MOST = 1 << 20,
	TOTAL_MOST = 16 << 20, /* bytes that one rank gives or gets in a call */
	POOL = 2 * TOTAL_MOST, /* bytes of the buffers for either */
	LINE = 64 / sizeof(double),
	BURSTS = 4,    /* whose instructions are counted */
	CHECKED = 100, /* words */
};

struct operation;

/* What a row's call needs to know. */
struct call {
	const struct operation *op;
	size_t n; /* doubles */
	uint64_t count;
	double salt; /* in the values of a call that is checked */
};

struct operation {
	const char *name;
	void (*needs)(void); /* a call of the back end; NULL: this library has no such row */
	void (*run)(const struct call *c);       /* `count` times */
	uint64_t (*check)(const struct call *c); /* once; how many values are wrong */
	bool pair;   /* between ranks 0 and 1: measured among two only */
	bool sized;  /* has a size other than 8 bytes */
	bool blocks; /* a call moves as many blocks as there are ranks */
	void (*once)(size_t at, size_t n, int root); /* a collective, from `in` to `out` */
	uint64_t (*words)(uint64_t count);  /* or words, of whose answers this is the sum */
	bool one_way;                       /* of the words themselves, at rank 1 */
	void (*move)(double *at, size_t n); /* or a put or get: */
	int from;                           /* the rank that has the values */
};

struct row {
	struct call call;
	double least; /* ns of one call, so far */
};

static double *in, *out;
static double *reach;  /* memory for puts and gets, where the library has them */
static size_t next_at; /* where the next buffers begin */

static double now(void)
{
	struct timespec t;
	clock_gettime(CLOCK_MONOTONIC, &t);
	return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

/* -- Buffers ----------------------------------------------------------------------- */

/* The same place in `in` and `out`, with room for n doubles; another one each time. */
static size_t place(size_t n)
{
	size_t all = POOL / sizeof(double), step = (n + LINE - 1) / LINE * LINE;
	if (next_at + step > all)
		next_at = 0;
	next_at += step;
	return next_at - step;
}

static double value(int rank, size_t i, double salt)
{
	return rank + (double)(i % 61) + salt;
}

static void fill(double *at, size_t n, int rank, double salt)
{
	for (size_t i = 0; i < n; i++)
		at[i] = value(rank, i, salt);
}

static void poison(double *at, size_t n)
{
	for (size_t i = 0; i < n; i++)
		at[i] = -1;
}

static uint64_t differ(const double *at, size_t n, int rank, double salt)
{
	uint64_t wrong = 0;
	for (size_t i = 0; i < n; i++)
		wrong += at[i] != value(rank, i, salt);
	return wrong;
}

static uint64_t sums_differ(const double *at, size_t n, double salt)
{
	int ranks = peer_ranks();
	uint64_t wrong = 0;
	for (size_t i = 0; i < n; i++)
		wrong += at[i] != ranks * value(0, i, salt) + ranks * (ranks - 1) / 2;
	return wrong;
}

/* -- Operations: many calls to be timed, and one to be checked ------------------------- */

static uint64_t sum_below(uint64_t n)
{
	return n * (n - 1) / 2;
}

/* Rank 1's sum. */
static uint64_t words_play(uint64_t count)
{
	uint64_t sum = 0;
	if (peer_rank() == 0)
		peer_words_send(count);
	else
		sum = peer_words_take(count);
	peer_barrier();
	return sum;
}

static void words_run(const struct call *c)
{
	c->op->words(c->count);
}

/* An answer is one more than its word. */
static uint64_t words_check(const struct call *c)
{
	uint64_t sum = c->op->words(CHECKED);
	return peer_rank() == c->op->one_way && sum != sum_below(CHECKED + !c->op->one_way);
}

static void stream_run(const struct call *c)
{
	size_t apart = (c->n + LINE - 1) / LINE * LINE;
	peer_stream(peer_rank() ? out : in, c->n, apart, POOL / sizeof(double) / apart, c->count);
}

static uint64_t stream_check(const struct call *c)
{
	double *at = (peer_rank() ? out : in) + place(c->n);
	if (peer_rank())
		poison(at, c->n);
	else
		fill(at, c->n, 0, c->salt);
	peer_stream(at, c->n, c->n, 1, 1);
	return differ(at, c->n, 0, c->salt);
}

static void moves_run(const struct call *c)
{
	for (uint64_t i = 0; i < c->count && peer_rank() == 0; i++)
		c->op->move(reach + place(c->n), c->n);
}

/* One rank has the values, and the other one must have them in the end. */
static uint64_t moves_check(const struct call *c)
{
	int from = c->op->from;
	if (peer_rank() == from)
		fill(reach, c->n, from, c->salt);
	else
		poison(reach, c->n);
	peer_barrier();
	if (peer_rank() == 0)
		c->op->move(reach, c->n);
	peer_barrier();
	return differ(reach, c->n, from, c->salt);
}

static void barrier_run(const struct call *c)
{
	for (uint64_t i = 0; i < c->count; i++)
		peer_barrier();
}

/* A late rank: whoever has passed the barrier must find that this rank had come. */
static uint64_t barrier_check(const struct call *c)
{
	int late = (int)c->salt % peer_ranks();
	struct timespec nap = { 0, 2000000 };
	if (peer_rank() == late)
		nanosleep(&nap, NULL);
	double came = now();
	peer_barrier();
	double passed = now(), last = peer_max(came);
	return passed < last;
}

/* Collectives: what one call does with the buffers at a place. */
static void broadcast_once(size_t at, size_t n, int root)
{
	peer_broadcast(root, in + at, n);
}

static void reduce_once(size_t at, size_t n, int root)
{
	peer_reduce(root, in + at, out + at, n);
}

static void allreduce_once(size_t at, size_t n, int root)
{
	(void)root;
	peer_allreduce(in + at, out + at, n);
}

static void allgather_once(size_t at, size_t n, int root)
{
	(void)root;
	peer_allgather(in + at, n, out + at);
}

static void alltoall_once(size_t at, size_t n, int root)
{
	(void)root;
	peer_alltoall(in + at, out + at, n);
}

static size_t blocks_of(const struct call *c)
{
	return c->op->blocks ? (size_t)peer_ranks() : 1;
}

static void collective_run(const struct call *c)
{
	for (uint64_t i = 0; i < c->count; i++)
		c->op->once(place(c->n * blocks_of(c)), c->n, (int)(i % (uint64_t)peer_ranks()));
}

static uint64_t broadcast_check(const struct call *c)
{
	int root = (int)c->salt % peer_ranks();
	size_t at = place(c->n);
	if (peer_rank() == root)
		fill(in + at, c->n, root, c->salt);
	else
		poison(in + at, c->n);
	broadcast_once(at, c->n, root);
	return differ(in + at, c->n, root, c->salt);
}

/* Of a sum at one rank, or at all. */
static uint64_t sum_check(const struct call *c)
{
	int root = (int)c->salt % peer_ranks();
	size_t at = place(c->n);
	fill(in + at, c->n, peer_rank(), c->salt);
	poison(out + at, c->n);
	c->op->once(at, c->n, root);
	return c->op->once == reduce_once && peer_rank() != root
		       ? 0
		       : sums_differ(out + at, c->n, c->salt);
}

/*
 * A block of each rank, for all ranks or one for each: that from rank a to rank b is then of the
 * number a * ranks + b.
 */
static uint64_t blocks_check(const struct call *c)
{
	int ranks = peer_ranks(), own = peer_rank();
	bool each = c->op->once == alltoall_once;
	size_t at = place(c->n * (size_t)ranks);
	uint64_t wrong = 0;
	for (int r = 0; r < (each ? ranks : 1); r++)
		fill(in + at + c->n * (size_t)r, c->n, each ? own * ranks + r : own, c->salt);
	poison(out + at, c->n * (size_t)ranks);
	c->op->once(at, c->n, 0);
	for (int r = 0; r < ranks; r++)
		wrong += differ(out + at + c->n * (size_t)r, c->n, each ? r * ranks + own : r,
				c->salt);
	return wrong;
}

#define NEEDS(call) .needs = (void (*)(void))(call)
static const struct operation operations[] = {
	{ "round-trip", NEEDS(peer_trips), words_run, words_check, .pair = true,
	  .words = peer_trips },
	{ "send-receive", NEEDS(peer_send_trips), words_run, words_check, .pair = true,
	  .words = peer_send_trips },
	{ "rate", NEEDS(peer_words_send), words_run, words_check, .pair = true, .words = words_play,
	  .one_way = true },
	{ "bandwidth", NEEDS(peer_stream), stream_run, stream_check, .pair = true, .sized = true },
	{ "put", NEEDS(peer_put), moves_run, moves_check, .pair = true, .sized = true,
	  .move = peer_put },
	{ "get", NEEDS(peer_get), moves_run, moves_check, .pair = true, .sized = true,
	  .move = peer_get, .from = 1 },
	{ "barrier", NEEDS(peer_broadcast), barrier_run, barrier_check },
	{ "broadcast", NEEDS(peer_broadcast), collective_run, broadcast_check, .sized = true,
	  .once = broadcast_once },
	{ "reduce", NEEDS(peer_reduce), collective_run, sum_check, .sized = true,
	  .once = reduce_once },
	{ "allreduce", NEEDS(peer_allreduce), collective_run, sum_check, .sized = true,
	  .once = allreduce_once },
	{ "allgather", NEEDS(peer_allgather), collective_run, blocks_check, .sized = true,
	  .blocks = true, .once = allgather_once },
	{ "alltoall", NEEDS(peer_alltoall), collective_run, blocks_check, .sized = true,
	  .blocks = true, .once = alltoall_once },
};
enum { OPERATIONS = sizeof operations / sizeof *operations };

/* -- Rows -------------------------------------------------------------------------- */

static struct row rows[ROWS_MOST];
static unsigned n_rows;

static void row_add(const struct operation *op, size_t bytes)
{
	size_t ranks = (size_t)peer_ranks();
	if (!op->needs || (op->pair && ranks != 2) ||
	    bytes * (op->blocks ? ranks : 1) > TOTAL_MOST || n_rows == ROWS_MOST)
		return;
	rows[n_rows++] = (struct row){ .call = { .op = op, .n = bytes / sizeof(double) } };
}

/* Whether the word stands in a list with commas. */
static bool listed(const char *list, const char *word)
{
	size_t n = strlen(word);
	for (const char *at = list; (at = strstr(at, word)); at += n)
		if ((at == list || at[-1] == ',') && (!at[n] || at[n] == ','))
			return true;
	return false;
}

/*
 * The operations in `only`, or all. One size of those that have none, which is shown as 8 bytes, or
 * 0 for the barrier.
 */
static void rows_add(const size_t *sizes, unsigned n, const char *only)
{
	for (unsigned o = 0; o < OPERATIONS; o++) {
		if (only && !listed(only, operations[o].name))
			continue;
		for (unsigned i = 0; i < n && operations[o].sized; i++)
			row_add(&operations[o], sizes[i]);
		if (!operations[o].sized)
			row_add(&operations[o], operations[o].pair ? sizeof(double) : 0);
	}
}

/* Nanoseconds of one call at the slowest rank. */
static double row_time(const struct row *row)
{
	peer_barrier();
	double began = now();
	row->call.op->run(&row->call);
	return peer_max(now() - began) / (double)row->call.count;
}

/*
 * The least time of one call: few calls at first, four times as many until they take long enough.
 */
static double row_first(struct row *row, double ns)
{
	double least = INFINITY, each;
	row->call.count = 1;
	for (;;) {
		each = row_time(row);
		least = each < least ? each : least;
		if (each * (double)row->call.count >= ns / 4 || row->call.count >= COUNT_MOST / 4)
			return least;
		row->call.count *= 4;
	}
}

/*
 * So many calls that they take about `ns`, by the least time known of one: another program may have
 * taken a core meanwhile. Every rank computes the same number.
 */
static uint64_t row_count(const struct row *row, double ns)
{
	double count = ns / row->least;
	return count < 1 ? 1 : count > COUNT_MOST ? COUNT_MOST : (uint64_t)count;
}

static bool row_play(struct row *row, unsigned round, double ns)
{
	row->call.salt = round + 1;
	if (round == 0)
		row->least = row_first(row, ns);
	row->call.count = row_count(row, ns);
	double each = row_time(row);
	row->least = each < row->least ? each : row->least;
	bool right = peer_max((double)row->call.op->check(&row->call)) == 0;
	if (peer_rank() == 0) {
		printf("%s,%d,%zu,%.1f,%s\n", row->call.op->name, peer_ranks(),
		       row->call.n * sizeof(double), each, right ? "yes" : "no");
		fflush(stdout);
	}
	return right;
}

/* -- The program ------------------------------------------------------------------- */

static unsigned sizes_read(char *list, size_t *sizes)
{
	unsigned n = 0;
	for (char *s = strtok(list, ","); s && n < SIZES_MOST; s = strtok(NULL, ","))
		sizes[n++] = strtoull(s, NULL, 10);
	return n;
}

static bool buffers_open(void)
{
	in = peer_buffer ? peer_buffer(POOL) : malloc(POOL);
	out = peer_buffer ? peer_buffer(POOL) : malloc(POOL);
	if (!in || !out)
		return false;
	for (size_t i = 0; i < POOL / sizeof(double); i++)
		in[i] = out[i] = 1;
	if (peer_memory && peer_ranks() == 2) {
		reach = peer_memory(POOL);
		poison(reach, POOL / sizeof(double));
	}
	return true;
}

/* -- Instructions ------------------------------------------------------------------ */

/*
 * run.sh has callgrind count what runs within these two alone. So they are not inlined, and their
 * call is not the last thing that they do: that would become a jump, which leaves them.
 */
__attribute__((noinline)) static void counted_send(uint64_t count)
{
	peer_words_send(count);
	__asm__ volatile("");
}

__attribute__((noinline)) static uint64_t counted_take(uint64_t count)
{
	uint64_t sum = peer_words_take(count);
	__asm__ volatile("");
	return sum;
}

/* A file that one rank makes and the other waits for: a signal past the library. */
static void mark_set(const char *folder, const char *what, int i)
{
	char path[512];
	snprintf(path, sizeof path, "%s/%s%d", folder, what, i);
	FILE *f = fopen(path, "w");
	if (f)
		fclose(f);
}

static void mark_await(const char *folder, const char *what, int i)
{
	const struct timespec nap = { 0, 1000000 };
	char path[512];
	snprintf(path, sizeof path, "%s/%s%d", folder, what, i);
	while (access(path, F_OK))
		nanosleep(&nap, NULL);
}

/*
 * PEER_BURST messages at a time. Rank 0 sends when rank 1 has left the library, and rank 1 takes
 * when all have been sent: so nobody counts instructions of a wait, or of waking somebody. The
 * first two bursts, of words_play(), are not counted: they bind symbols and fill caches of
 * the library.
 */
static bool count_play(const char *folder)
{
	bool right = true;
	words_play(10 * CHECKED);
	words_play(10 * CHECKED);
	for (int i = 0; i < BURSTS; i++) {
		uint64_t sum = 0;
		peer_barrier();
		if (peer_rank() == 0) {
			mark_await(folder, "ready", i);
			counted_send(PEER_BURST);
			mark_set(folder, "sent", i);
		} else {
			mark_set(folder, "ready", i);
			mark_await(folder, "sent", i);
			sum = counted_take(PEER_BURST);
		}
		right &= peer_max(peer_rank() == 1 && sum != sum_below(PEER_BURST)) == 0;
	}
	if (peer_rank() == 0)
		printf("counted,2,%d,%d,%s\n", PEER_BURST, BURSTS * PEER_BURST,
		       right ? "yes" : "no");
	return right;
}

static bool rows_play(unsigned rounds, double ns)
{
	bool right = true;
	for (unsigned k = 0; k < rounds; k++)
		for (unsigned i = 0; i < n_rows; i++)
			right &= row_play(&rows[k % 2 ? n_rows - 1 - i : i], k, ns);
	return right;
}

/*
 * ROUNDS MICROSECONDS SIZE,... [OPERATION,...]: each row takes about so many microseconds in a
 * round. `start`: begins and ends. `count FOLDER`: sends and takes what is to be counted; the
 * folder is empty.
 */
int main(int argc, char **argv)
{
	size_t sizes[SIZES_MOST];
	bool right = true;
	peer_open(&argc, &argv);
	if (argc == 3 && strcmp(argv[1], "count") == 0) {
		right = count_play(argv[2]);
	} else if (argc == 4 || argc == 5) {
		if (!buffers_open()) {
			fprintf(stderr, "compare: no memory: 96 MiB for each rank\n");
			return 2;
		}
		rows_add(sizes, sizes_read(argv[3], sizes), argc == 5 ? argv[4] : NULL);
		right = rows_play((unsigned)atoi(argv[1]), atof(argv[2]) * 1000);
	} else if (argc != 2 || strcmp(argv[1], "start") != 0) {
		fprintf(stderr, "usage: start | count FOLDER | ROUNDS MICROSECONDS SIZE,... "
				"[OPERATION,...]\n");
		return 2;
	}
	peer_close();
	return right ? 0 : 1;
}
