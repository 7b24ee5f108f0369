/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What sim_test.sh starts on simulated machines. Its first argument says what it does:
 *
 *     traffic SEED   every rank computes and sends at random, as SEED says, and prints a digest of
 *                    when it handled what, with its time at the end
 *     work           rank 0 prints how long declared work took, in ns
 *     burn N         rank 0 computes for N ms of CPU time, undeclared, and prints its time, in ns
 *     trip N         rank 0 prints how long a request and its reply of N words, 0 or 1, took to
 *                    the last rank, in ns
 *     trips N        N of them on every pair of ranks
 *     alltoall N     N times, every rank sends one message to each other, and waits for theirs
 *     random N       every rank sends N requests to ranks at random, 8 before it waits for one
 *     halo N         N times, every rank sends to its four neighbours in a closed grid, and waits
 *                    for theirs; of these three, rank 0 prints what every rank of `traffic` does
 *     fan            all others send to rank 0, which does not answer
 *     stuck          every rank waits for what nobody sends
 *     thread         every rank opens with delivery by thread in its options
 *     change         every rank asks for delivery by thread later
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <tern/sim.h>

#include "lib/chance.h"

enum { ASK, ANSWER, TELL, MESSAGES = 200, UNDERWAY = 8 };

static tern_flag answers, never;
static uint64_t digest, handled;

static void must(int rc)
{
	if (!rc)
		return;
	fprintf(stderr, "sim_ranks: %s\n", tern_strerror(rc));
	exit(1);
}

static void note(tern *t, const tern_msg *m)
{
	digest = (digest ^ tern_time(t) ^ (uint64_t)tern_msg_src(m) << 40) *
		 UINT64_C(0x9e3779b97f4a7c15);
	handled++;
}

static void on_ask(tern *t, const tern_msg *m)
{
	note(t, m);
	if (tern_msg_count(m))
		tern_reply(t, m, ANSWER, tern_msg_word(m, 0));
	else
		tern_reply(t, m, ANSWER);
}

static void on_answer(tern *t, const tern_msg *m)
{
	note(t, m);
	tern_signal(t, &answers, 1);
}

static void on_tell(tern *t, const tern_msg *m)
{
	note(t, m);
	tern_signal(t, &answers, 1);
}

static void ask(tern *t, uint32_t dst, unsigned words)
{
	must(words ? tern_request(t, dst, ASK, 1) : tern_request(t, dst, ASK));
	must(tern_wait(t, &answers, 1));
}

static void say(tern *t)
{
	printf("rank %u: %llu handled by %llu, digest %016llx\n", tern_rank(t),
	       (unsigned long long)handled, (unsigned long long)tern_time(t),
	       (unsigned long long)digest);
}

static void traffic(tern *t, uint64_t seed)
{
	struct chance c = { seed * 1000 + tern_rank(t) };
	for (unsigned i = 1; i <= MESSAGES; i++) {
		must(tern_sim_work(t, &(tern_work){ .integer = chance_below(&c, 3000),
						    .loads = chance_below(&c, 1000) }));
		must(tern_request(t, chance_below(&c, tern_size(t)), ASK, i));
	}
	must(tern_wait(t, &answers, MESSAGES));
	must(tern_barrier(t));
	say(t);
}

static void work(tern *t)
{
	uint64_t began = tern_time(t);
	must(tern_sim_work(
		t, &(tern_work){ .integer = 1000, .floating = 100, .loads = 10, .stores = 1 }));
	printf("%llu\n", (unsigned long long)(tern_time(t) - began));
}

static double cpu_seconds(void)
{
	struct timespec now;
	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

static void burn(tern *t, unsigned ms)
{
	uint64_t began = tern_time(t);
	for (double end = cpu_seconds() + ms / 1e3; cpu_seconds() < end;)
		;
	printf("%llu\n", (unsigned long long)(tern_time(t) - began));
}

/* The others come to their next barrier meanwhile, so the first trips meet messages of that. */
static void trip(tern *t, unsigned words)
{
	uint64_t least = UINT64_MAX;
	for (unsigned i = 0; i < 20; i++) {
		uint64_t began = tern_time(t);
		ask(t, tern_size(t) - 1, words);
		uint64_t took = tern_time(t) - began;
		least = took < least ? took : least;
	}
	printf("%llu\n", (unsigned long long)least);
}

static void trips(tern *t, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		ask(t, tern_rank(t) ^ 1, 1);
	must(tern_barrier(t));
	if (tern_rank(t) == 0)
		printf("%u ranks, %u trips each\n", tern_size(t), n);
}

static void alltoall(tern *t, unsigned n)
{
	uint32_t size = tern_size(t);
	for (unsigned i = 0; i < n; i++) {
		for (uint32_t k = 1; k < size; k++)
			must(tern_request(t, (tern_rank(t) + k) % size, TELL, i));
		must(tern_wait(t, &answers, size - 1));
	}
}

static void at_random(tern *t, unsigned n)
{
	struct chance c = { tern_rank(t) };
	for (unsigned i = 0; i < n; i++) {
		must(tern_request(t, chance_below(&c, tern_size(t)), ASK, i));
		if (i >= UNDERWAY)
			must(tern_wait(t, &answers, 1));
	}
	must(tern_wait(t, &answers, n < UNDERWAY ? n : UNDERWAY));
}

/* Rows of the largest power of two whose square is not more than the ranks. */
static void halo(tern *t, unsigned n)
{
	uint32_t size = tern_size(t), width = 1, me = tern_rank(t);
	while (4 * width * width <= size)
		width *= 2;
	uint32_t row = me / width * width, column = me - row;
	const uint32_t to[4] = { row + (column + 1) % width, row + (column + width - 1) % width,
				 (me + width) % size, (me + size - width) % size };
	for (unsigned i = 0; i < n; i++) {
		for (unsigned k = 0; k < 4; k++)
			must(tern_request(t, to[k], TELL, i));
		must(tern_wait(t, &answers, 4));
	}
}

static void patterned(tern *t, void (*pattern)(tern *t, unsigned n), unsigned n)
{
	pattern(t, n);
	must(tern_barrier(t));
	if (tern_rank(t) == 0)
		say(t);
}

static void fan(tern *t)
{
	if (tern_rank(t) == 0)
		must(tern_wait(t, &answers, (tern_size(t) - 1) * MESSAGES));
	for (unsigned i = 0; i < MESSAGES && tern_rank(t); i++)
		must(tern_request(t, 0, TELL, i));
}

int main(int argc, char **argv)
{
	const char *what = argc > 1 ? argv[1] : "";
	unsigned n = argc > 2 ? (unsigned)atoi(argv[2]) : 1;
	tern *t;
	bool threaded = strcmp(what, "thread") == 0;
	must(tern_open(&t, threaded ? &(tern_options){ .delivery = TERN_DELIVERY_THREAD } : NULL));
	must(tern_on(t, ASK, on_ask));
	must(tern_on(t, ANSWER, on_answer));
	must(tern_on(t, TELL, on_tell));
	must(tern_barrier(t));
	if (strcmp(what, "traffic") == 0)
		traffic(t, n);
	else if (strcmp(what, "trips") == 0)
		trips(t, n);
	else if (strcmp(what, "alltoall") == 0)
		patterned(t, alltoall, n);
	else if (strcmp(what, "random") == 0)
		patterned(t, at_random, n);
	else if (strcmp(what, "halo") == 0)
		patterned(t, halo, n);
	else if (strcmp(what, "fan") == 0)
		fan(t);
	else if (tern_rank(t) == 0 && strcmp(what, "work") == 0)
		work(t);
	else if (tern_rank(t) == 0 && strcmp(what, "burn") == 0)
		burn(t, n);
	else if (tern_rank(t) == 0 && strcmp(what, "trip") == 0)
		trip(t, n);
	else if (strcmp(what, "stuck") == 0)
		must(tern_wait(t, &never, 1));
	else if (strcmp(what, "change") == 0)
		must(tern_delivery_set(t, TERN_DELIVERY_THREAD));
	must(tern_barrier(t));
	must(tern_close(t));
	return 0;
}
