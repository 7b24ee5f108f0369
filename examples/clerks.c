/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Rank 0 counts primes with the threads of all ranks. Each thread is a clerk with a worker, whose
 * number it sends along when it asks for work. Rank 0 answers when it has some, with a request that
 * names that worker, so the task lands at the thread that asked and not at its rank.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <tern/tern.h>

enum { READY, TASK }; /* handlers */
enum { THREADS = 3, TASKS = 100, EACH = 500, CLERKS_MOST = THREADS * TERN_RANKS_MAX };

struct clerk {
	pthread_t thread;
	tern *worker;
	uint64_t first, last; /* of the task; nothing between them: there are no more */
	tern_flag tasks;
};

/* At rank 0: clerks that have nothing to do, in the order in which they asked. */
static struct idle {
	uint32_t worker;
	uint64_t clerk; /* its address, at its own rank */
} idle[CLERKS_MOST];
static uint64_t asked, primes;
static tern_flag ready;

static void must(int rc)
{
	if (!rc)
		return;
	fprintf(stderr, "clerks: %s\n", tern_strerror(rc));
	exit(1);
}

/* The words: the worker, its clerk, and what its last task has found. */
static void on_ready(tern *t, const tern_msg *m)
{
	idle[asked++ % CLERKS_MOST] =
		(struct idle){ (uint32_t)tern_msg_word(m, 0), tern_msg_word(m, 1) };
	primes += tern_msg_word(m, 2);
	tern_signal(t, &ready, 1);
}

/* Runs on the thread of the clerk. */
static void on_task(tern *t, const tern_msg *m)
{
	struct clerk *d = (struct clerk *)(uintptr_t)tern_msg_word(m, 0);
	d->first = tern_msg_word(m, 1);
	d->last = tern_msg_word(m, 2);
	tern_signal(t, &d->tasks, 1);
}

static uint64_t count(uint64_t first, uint64_t last)
{
	uint64_t found = 0;
	for (uint64_t n = first < 2 ? 2 : first; n < last; n++) {
		uint64_t k = 2;
		while (k * k <= n && n % k)
			k++;
		found += k * k > n;
	}
	return found;
}

static void *work(void *arg)
{
	struct clerk *d = arg;
	uint64_t found = 0;
	do {
		must(tern_request(d->worker, 0, READY, tern_worker_id(d->worker), (uintptr_t)d,
				  found));
		must(tern_wait(d->worker, &d->tasks, 1));
		found = count(d->first, d->last);
	} while (d->first < d->last);
	return NULL;
}

static void hand_out(tern *t)
{
	uint64_t clerks = (uint64_t)THREADS * tern_size(t);
	for (uint64_t i = 0; i < TASKS + clerks; i++) {
		must(tern_wait(t, &ready, 1));
		struct idle d = idle[i % CLERKS_MOST];
		uint64_t first = i * EACH, last = i < TASKS ? first + EACH : first;
		must(tern_request(t, d.worker, TASK, d.clerk, first, last));
	}
	printf("%u primes below %u\n", (unsigned)primes, TASKS * EACH);
}

int main(void)
{
	static struct clerk clerk[THREADS];
	tern *t;
	must(tern_open(&t, NULL));
	must(tern_on(t, READY, on_ready));
	must(tern_on(t, TASK, on_task));
	for (int i = 0; i < THREADS; i++) {
		must(tern_worker_open(t, &clerk[i].worker));
		pthread_create(&clerk[i].thread, NULL, work, &clerk[i]);
	}
	if (tern_rank(t) == 0)
		hand_out(t);
	must(tern_barrier(t)); /* no other rank serves its endpoint before, and none needs to */
	for (int i = 0; i < THREADS; i++) {
		pthread_join(clerk[i].thread, NULL);
		must(tern_close(clerk[i].worker));
	}
	must(tern_close(t));
	return 0;
}
