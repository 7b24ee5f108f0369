/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: TIMEOUT 120 */
/*
 * Jobs of processes that no launcher of Tern's has started and no process manager knows: they join
 * by an allgather of their own, here through memory that they share.
 */
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tern/tern.h>

#include "boot/link/seal.h"
#include "endpoint/endpoint.h"
#include "lib/check.h"
#include "lib/far.h"

enum { RANKS = 4, CARD_MAX = 1024 };

/* Where the processes of one job meet. */
struct table {
	_Atomic uint32_t came, taken;
	char card[RANKS][CARD_MAX];
};

static struct shared {
	struct table table[8];
	_Atomic uint32_t closing, over;
} * shared;

struct member {
	struct table *table;
	uint32_t rank, size;
};

static void meet(_Atomic uint32_t *count, uint32_t all)
{
	atomic_fetch_add(count, 1);
	while (atomic_load(count) < all)
		sched_yield();
}

static int gather(void *arg, const void *mine, void *all, size_t len)
{
	const struct member *m = arg;
	if (len > CARD_MAX)
		return -EMSGSIZE;
	memcpy(m->table->card[m->rank], mine, len);
	meet(&m->table->came, m->size);
	for (uint32_t r = 0; r < m->size; r++)
		memcpy((char *)all + r * len, m->table->card[r], len);
	return 0;
}

static tern_flag got, never;

static void on_token(tern *t, const tern_msg *m)
{
	tern_signal(t, &got, tern_msg_word(m, 0));
}

static tern *member_open(struct member *m)
{
	tern *t;
	tern_options o = {
		.allgather = gather, .allgather_arg = m, .rank = m->rank, .size = m->size
	};
	int rc = tern_open(&t, &o);
	if (rc)
		printf("    rank %u of %u: %s\n", m->rank, m->size, tern_strerror(rc));
	REQUIRE(rc == 0);
	CHECK_IS(tern_rank(t), m->rank);
	CHECK_IS(tern_size(t), m->size);
	CHECK_IS(tern_on(t, 1, on_token), 0);
	return t;
}

static void member_talk(tern *t)
{
	CHECK_IS(tern_barrier(t), 0);
	CHECK_IS(tern_request(t, (tern_rank(t) + 1) % tern_size(t), 1, 1), 0);
	CHECK_IS(tern_wait(t, &got, 1), 0);
	CHECK_IS(tern_barrier(t), 0);
}

/* `ranks` processes of which each does `job`; how many have failed. */
static unsigned processes(uint32_t ranks, void (*job)(uint32_t rank))
{
	unsigned failed = 0;
	int status;
	pid_t pid[RANKS];
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	REQUIRE(shared != MAP_FAILED);
	/* What the links' guards leave behind comes to us, and not to whoever started the test. */
	REQUIRE(prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
	fflush(stdout);
	for (uint32_t r = 0; r < ranks; r++)
		if ((pid[r] = fork()) == 0) {
			job(r);
			fflush(stdout);
			_exit(check_failures != 0);
		}
	for (uint32_t r = 0; r < ranks; r++)
		failed += waitpid(pid[r], &status, 0) != pid[r] || status != 0;
	return failed;
}

static void one_job(uint32_t rank)
{
	struct member m = { &shared->table[0], rank, RANKS };
	tern *t = member_open(&m);
	member_talk(t);
	CHECK_IS(tern_close(t), 0);
}

TEST(processes_join_by_an_allgather_of_their_own)
{
	CHECK_IS(processes(RANKS, one_job), 0);
	while (waitpid(-1, NULL, 0) > 0)
		;
}

/* Halves, then all in reverse, then all again, and two at once. */
static void several_jobs(uint32_t rank)
{
	struct member half = { &shared->table[rank % 2], rank / 2, RANKS / 2 },
		      all = { &shared->table[2], RANKS - 1 - rank, RANKS },
		      again = { &shared->table[3], rank, RANKS },
		      beside = { &shared->table[4 + rank / 2], rank % 2, RANKS / 2 };
	tern *t = member_open(&half);
	member_talk(t);
	CHECK_IS(tern_close(t), 0);
	t = member_open(&all);
	member_talk(t);
	CHECK_IS(tern_close(t), 0);
	t = member_open(&again);
	tern *u = member_open(&beside);
	member_talk(t);
	member_talk(u);
	CHECK_IS(tern_close(t), 0);
	member_talk(u);
	CHECK_IS(tern_close(u), 0);
}

TEST(each_call_makes_another_job_of_other_processes)
{
	CHECK_IS(processes(RANKS, several_jobs), 0);
	while (waitpid(-1, NULL, 0) > 0)
		;
}

/* The ranks go on until the test has seen both processes of the link end. */
static void close_and_stay(uint32_t rank)
{
	struct member m = { &shared->table[0], rank, 2 };
	tern *t = member_open(&m);
	member_talk(t);
	atomic_fetch_add(&shared->closing, 1);
	CHECK_IS(tern_close(t), 0);
	while (!atomic_load(&shared->over))
		sched_yield();
}

TEST(the_link_of_a_job_ends_when_every_rank_has_closed_it)
{
	pid_t pid[2];
	shared = mmap(NULL, sizeof *shared, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	REQUIRE(shared != MAP_FAILED && prctl(PR_SET_CHILD_SUBREAPER, 1) == 0);
	fflush(stdout);
	for (uint32_t r = 0; r < 2; r++)
		if ((pid[r] = fork()) == 0) {
			close_and_stay(r);
			fflush(stdout);
			_exit(check_failures != 0);
		}
	pid_t guard = waitpid(-1, NULL, 0); /* nobody else ends before `over` */
	CHECK(guard > 0 && guard != pid[0] && guard != pid[1]);
	CHECK_IS(atomic_load(&shared->closing), 2);
	atomic_store(&shared->over, 1);
	for (int r = 0; r < 2; r++) {
		int status = -1;
		CHECK_IS(waitpid(pid[r], &status, 0), pid[r]);
		CHECK_IS(status, 0);
	}
}

static void one_dies(uint32_t rank)
{
	struct member m = { &shared->table[0], rank, RANKS };
	tern *t = member_open(&m);
	member_talk(t);
	if (rank == 2)
		raise(SIGKILL);
	int rc = tern_wait(t, &never, 1);
	CHECK_IS(rc, -EOWNERDEAD);
	CHECK(strstr(tern_strerror(rc), "rank 2 is dead") != NULL);
	meet(&shared->closing, RANKS - 1);
	CHECK_IS(tern_close(t), 0);
}

TEST(a_rank_that_dies_is_told_of)
{
	CHECK_IS(processes(RANKS, one_dies), 1);
	while (waitpid(-1, NULL, 0) > 0)
		;
}

/* Each rank as if on a machine of its own. */
static void close_apart(uint32_t rank)
{
	char machine[16];
	struct job j;
	struct member m = { &shared->table[0], rank, 2 };
	snprintf(machine, sizeof machine, "machine%u", rank);
	setenv("TERN_MACHINE", machine, 1);
	setenv("TERN_UDP_BIND", "127.0.0.1", 1);
	tern *t = member_open(&m);
	member_talk(t);
	REQUIRE(job_map(&j, dup(t->own->group->job.fd)) == 0);
	CHECK_IS(j.head->asked, 0);
	CHECK_IS(tern_close(t), 0);
	CHECK_IS(j.head->asked, 1); /* the link has been asked to say so, and given time for it */
}

TEST(whoever_closes_has_the_other_machines_told)
{
	char why[200];
	if (!seal_usable(why, sizeof why))
		check_skip(why);
	far_need("udp");
	CHECK_IS(processes(2, close_apart), 0);
	while (waitpid(-1, NULL, 0) > 0)
		;
}

static int refuse(void *arg, const void *mine, void *all, size_t len)
{
	(void)mine, (void)all, (void)len;
	return *(int *)arg;
}

static void check_refused(const tern_options *o, int code, const char *words)
{
	tern *t = NULL;
	int rc = tern_open(&t, o);
	CHECK_IS(rc, code);
	if (!strstr(tern_strerror(rc), words))
		printf("    %s\n", tern_strerror(rc));
	CHECK(strstr(tern_strerror(rc), words) != NULL);
	CHECK(!t);
}

TEST(what_does_not_fit_is_refused_with_a_sentence)
{
	int says = -EHOSTDOWN;
	tern_options o = { .allgather = refuse, .allgather_arg = &says, .rank = 1, .size = 2 };
	check_refused(&o, -EHOSTDOWN, "tern_options.allgather, by which 2 ranks were to join");
	says = 17;
	check_refused(&o, -EPROTO, "returned 17");
	o.rank = 2;
	check_refused(&o, -EINVAL, "rank 2 and size 2");
	o.rank = o.size = 0;
	check_refused(&o, -EINVAL, "rank 0 and size 0");
	o.size = TERN_RANKS_MAX + 1;
	check_refused(&o, -ERANGE, "it may have 1024");
	o.allgather = NULL;
	check_refused(&o, -EINVAL, "which is NULL");
	/* One alone calls nobody. */
	o = (tern_options){ .allgather = refuse, .allgather_arg = &says, .rank = 0, .size = 1 };
	tern *t;
	REQUIRE(tern_open(&t, &o) == 0);
	CHECK_IS(tern_size(t), 1);
	CHECK_IS(tern_close(t), 0);
}
