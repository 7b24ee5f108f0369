/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: TIMEOUT 120 */
/* Memory that is registered with its file, between processes: mapped by ranks of the machine. */
#include <fcntl.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "lib/far.h"
#include "lib/handed.h"
#include "lib/mem_model.h"
#include "lib/ranks.h"
#include "mem/mem.h"
#include "net/ofi/ofi.h"

enum { RANKS = 3, PAGE = 4096, AREA = 6 * PAGE, ADDS = 2000, MANY = 600 };

struct board {
	tern_addr at[MANY];
	unsigned char image[AREA];
	_Atomic uint32_t step, faults;
};

static struct board *board;
static uint64_t seed;
static bool shared, maps; /* the ranks share memory, and can map each other's files */

static void job_run(const char *net, const char *single_copy, void (*rank_main)(void))
{
	seed = check_seed();
	shared = !strcmp(net, "shm");
	maps = shared && !strcmp(single_copy, "1");
	board = ranks_shared(sizeof *board);
	setenv("TERN_NET", net, 1);
	setenv("TERN_SINGLE_COPY", single_copy, 1);
	ranks_run(RANKS, rank_main);
	unsetenv("TERN_NET");
	unsetenv("TERN_SINGLE_COPY");
	munmap(board, sizeof *board);
}

static unsigned char *file_make(size_t skip, size_t bytes, int *fd)
{
	void *p = handed_file(skip, bytes, fd);
	REQUIRE(p);
	return p;
}

/* A file of AREA bytes at board->at[0]. */
static void file_register(tern *t)
{
	int fd;
	void *p = file_make(0, AREA, &fd);
	CHECK_IS(tern_register_fd(t, p, AREA, fd, 0, &board->at[0]), 0);
}

static unsigned descriptors(void)
{
	unsigned n = 0;
	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

/* How often this process maps a test's file. */
static unsigned mappings(void)
{
	char line[512];
	unsigned n = 0;
	FILE *f = fopen("/proc/self/maps", "re");
	REQUIRE(f);
	while (fgets(line, sizeof line, f))
		n += strstr(line, "memfd:tern-test") != NULL;
	fclose(f);
	return n;
}

static void step_wait(uint32_t step)
{
	while (atomic_load(&board->step) < step)
		sched_yield();
}

static bool names(int rc, const char *word)
{
	return CHECK(strstr(tern_strerror(rc), word));
}

/* -- Everything that can be done with it ----------------------------------------------------- */

static void area_use(tern *t, tern_addr a, struct chance *c)
{
	unsigned char bytes[AREA];
	size_t len = model_length(c, AREA), at = chance_below(c, (uint32_t)(AREA - len + 1));
	model_scatter(bytes, len, c);
	CHECK_IS(tern_put(t, a + at, bytes, len), 0);
	memcpy(board->image + at, bytes, len);
	CHECK_IS(tern_get(t, bytes, a, AREA), 0);
	CHECK(model_same(bytes, board->image, AREA));
}

/* A pointer, and what is stored through it, where there can be one. */
static void area_point(tern *t, tern_addr a)
{
	unsigned char *p = NULL, byte;
	int rc = tern_addr_local(t, a, AREA, (void **)&p);
	CHECK_IS(rc, maps ? 0 : -EXDEV);
	CHECK_IS(tern_addr_local(t, a, AREA + 1, (void **)&p), shared ? -EFAULT : rc);
	if (rc)
		return;
	board->image[PAGE + 1] = p[PAGE + 1] = (unsigned char)(p[PAGE + 1] + 1);
	CHECK_IS(tern_get(t, &byte, a + PAGE + 1, 1), 0);
	CHECK_IS(byte, p[PAGE + 1]);
}

static void all_use_it(void)
{
	tern *t = ranks_open();
	uint32_t me = tern_rank(t);
	struct chance c = { seed + me };
	unsigned char *p = NULL;
	uint64_t old;
	int fd;
	if (me == 0) {
		p = file_make(2 * PAGE, AREA, &fd);
		CHECK_IS(tern_register_fd(t, p, AREA, fd, 2 * PAGE, &board->at[0]), 0);
		close(fd); /* the library has its own */
	}
	CHECK_IS(tern_barrier(t), 0);
	for (unsigned n = 0; n < check_scaled(60); n++) {
		if (n % RANKS == me) {
			area_use(t, board->at[0], &c);
			if (me)
				area_point(t, board->at[0]);
		}
		CHECK_IS(tern_barrier(t), 0);
		if (p)
			CHECK(model_same(p, board->image, AREA));
		CHECK_IS(tern_barrier(t), 0);
	}
	CHECK_IS(tern_amo(t, board->at[0], TERN_AMO_STORE, 0, &old), 0);
	CHECK_IS(tern_barrier(t), 0);
	for (int i = 0; i < ADDS; i++)
		CHECK_IS(tern_amo(t, board->at[0], TERN_AMO_ADD, 1, &old), 0);
	CHECK_IS(tern_barrier(t), 0);
	CHECK_IS(tern_get(t, &old, board->at[0], 8), 0);
	CHECK_IS(old, RANKS * ADDS);
	CHECK_IS(tern_barrier(t), 0);
	CHECK_IS(tern_close(t), 0);
	CHECK_IS(mappings(), me == 0);
}

TEST(memory_with_its_file_is_used_by_all_ranks_of_the_machine)
{
	job_run("shm", "1", all_use_it);
}

TEST(it_is_used_as_other_memory_where_descriptors_cannot_be_had)
{
	job_run("shm", "0", all_use_it);
}

TEST(it_is_used_over_udp)
{
	far_use(NULL);
	job_run("udp", "1", all_use_it);
}

TEST(it_is_used_over_libfabric)
{
	char why[256];
	if (ofi_ops.usable(why, sizeof why))
		job_run("ofi", "1", all_use_it);
	else
		printf("    no libfabric: %s\n", why);
}

/* -- Without its owner ------------------------------------------------------------------------- */

static void owner_is_away(void)
{
	tern *t = ranks_open();
	if (tern_rank(t) == 0) {
		int fd;
		unsigned char *p = file_make(0, AREA, &fd);
		CHECK_IS(tern_register_fd(t, p, AREA, fd, 0, &board->at[0]), 0);
		CHECK_IS(tern_barrier(t), 0);
		step_wait(1); /* and does not poll */
		CHECK_IS(*(_Atomic uint64_t *)(void *)p, 7);
	} else {
		CHECK_IS(tern_barrier(t), 0);
		if (tern_rank(t) == 1) {
			CHECK_IS(tern_amo(t, board->at[0], TERN_AMO_ADD, 3, (uint64_t *)NULL), 0);
			CHECK_IS(tern_amo(t, board->at[0], TERN_AMO_ADD, 4, (uint64_t *)NULL), 0);
			atomic_store(&board->step, 1);
		}
	}
	CHECK_IS(tern_barrier(t), 0);
	CHECK_IS(tern_close(t), 0);
}

TEST(atomics_on_mapped_memory_do_not_need_its_owner)
{
	job_run("shm", "1", owner_is_away);
}

static void owner_dies(void)
{
	tern *t = ranks_open();
	uint32_t me = tern_rank(t);
	uint64_t word = 5;
	int rc;
	for (uint32_t r = 0; r < RANKS; r++)
		CHECK_IS(tern_forgive(t, r), 0);
	if (me == 0)
		file_register(t);
	CHECK_IS(tern_barrier(t), 0);
	void *p = me ? handed_local(t, board->at[0], 8) : NULL;
	if (me) {
		CHECK(p);
		CHECK_IS(tern_put(t, board->at[0], &word, 8), 0);
		atomic_fetch_add(&board->step, 1);
		do
			rc = tern_put(t, board->at[0], &word, 8);
		while (!rc);
		CHECK_IS(rc, -EOWNERDEAD);
		CHECK_IS(tern_amo(t, board->at[0], TERN_AMO_ADD, 1, &word), -EOWNERDEAD);
		CHECK_IS(tern_addr_local(t, board->at[0], 8, &p), -EOWNERDEAD);
		CHECK_IS(*(uint64_t *)p, 5); /* who has a pointer can still look */
		CHECK_IS(tern_close(t), 0);
		CHECK_IS(mappings(), 0);
		return;
	}
	step_wait(RANKS - 1);
	raise(SIGKILL);
}

TEST(a_rank_that_dies_takes_its_memory_out_of_reach)
{
	maps = true;
	board = ranks_shared(sizeof *board);
	ranks_start(RANKS, 0, owner_dies);
	CHECK_IS(ranks_reap(RANKS, 0), 1);
	ranks_end();
	munmap(board, sizeof *board);
}

/* -- Unregistering ----------------------------------------------------------------------------- */

static void it_ends(void)
{
	tern *t = ranks_open();
	uint32_t me = tern_rank(t);
	unsigned had = descriptors();
	static unsigned char bytes[AREA];
	int fd = -1, rc = 0;
	unsigned char *p = NULL;
	tern_addr old = TERN_ADDR_NONE;
	for (unsigned n = 0; n < check_scaled(10); n++) {
		if (me == 0) {
			p = file_make(0, AREA, &fd);
			CHECK_IS(tern_register_fd(t, p, AREA, fd, 0, &board->at[0]), 0);
			close(fd);
			atomic_store(&board->step, 0);
		}
		CHECK_IS(tern_barrier(t), 0);
		if (me == 0) {
			while (atomic_load(&board->step) < 10 * RANKS)
				CHECK(tern_poll(t) >= 0);
			CHECK_IS(tern_unregister(t, board->at[0]), 0);
			memset(p, 0x55, AREA);
			CHECK_IS(tern_barrier(t), 0);
			CHECK(p[0] == 0x55 && !memcmp(p, p + 1, AREA - 1));
			munmap(p, AREA);
			continue;
		}
		if (n)
			CHECK_IS(tern_put(t, old, bytes, 1), -EFAULT);
		do {
			rc = tern_put(t, board->at[0], bytes, AREA);
			atomic_fetch_add(&board->step, 1);
		} while (!rc);
		CHECK_IS(rc, -EFAULT);
		old = board->at[0];
		CHECK(mappings() <= 2); /* what was unregistered is unmapped at the next use */
		CHECK_IS(tern_barrier(t), 0);
	}
	CHECK_IS(descriptors(), had);
	CHECK_IS(tern_barrier(t), 0);
	CHECK_IS(tern_close(t), 0);
	CHECK_IS(mappings(), 0);
}

TEST(memory_that_is_unregistered_is_left_alone_and_unmapped)
{
	job_run("shm", "1", it_ends);
	job_run("shm", "0", it_ends);
}

/* Those of other regions than the one that is used next, too. */
static void many_end(void)
{
	enum { ENDING = 8 };
	tern *t = ranks_open();
	uint32_t me = tern_rank(t);
	for (unsigned n = 0; n < 3; n++) {
		int fd = -1;
		unsigned char *p = me ? NULL : file_make(0, AREA, &fd);
		for (unsigned i = 0; p && i < ENDING; i++)
			CHECK_IS(tern_register_fd(t, p, AREA, fd, 0, &board->at[i]), 0);
		CHECK_IS(tern_barrier(t), 0);
		for (unsigned i = 0; me && i < ENDING; i++)
			CHECK(handed_local(t, board->at[i], AREA));
		if (me)
			CHECK_IS(mappings(), ENDING);
		CHECK_IS(tern_barrier(t), 0);
		for (unsigned i = 0; p && i < ENDING; i++)
			CHECK_IS(tern_unregister(t, board->at[i]), 0);
		if (p)
			CHECK_IS(tern_register_fd(t, p, AREA, fd, 0, &board->at[0]), 0);
		CHECK_IS(tern_barrier(t), 0);
		if (me) {
			CHECK(handed_local(t, board->at[0], AREA));
			CHECK_IS(mappings(), 1);
		}
		CHECK_IS(tern_barrier(t), 0);
		if (p) {
			CHECK_IS(tern_unregister(t, board->at[0]), 0);
			munmap(p, AREA);
			close(fd);
		}
	}
	CHECK_IS(tern_close(t), 0);
	CHECK_IS(mappings(), 0);
}

TEST(what_was_unregistered_is_unmapped_when_something_else_is_mapped)
{
	job_run("shm", "1", many_end);
}

/* -- Where it cannot be mapped ----------------------------------------------------------------- */

static bool wrong_file, no_descriptors;

/* The kernel says no to pidfd_getfd() from now on. */
static void descriptors_refuse(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_pidfd_getfd, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { sizeof filter / sizeof *filter, filter };
	REQUIRE(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0);
	REQUIRE(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) == 0);
}

static void it_is_copied(void)
{
	tern *t = ranks_open();
	uint32_t me = tern_rank(t);
	uint64_t word = 5;
	void *q;
	int fd;
	if (me == 0) {
		unsigned char *p = file_make(0, AREA, &fd);
		CHECK_IS(tern_register_fd(t, p, AREA, fd, 0, &board->at[0]), 0);
		if (wrong_file) /* as if the descriptor were another file's by now */
			atomic_fetch_add(&region_find(mem_of(t), board->at[0], 1)->inode, 1);
	} else if (no_descriptors) {
		descriptors_refuse();
	}
	CHECK_IS(tern_barrier(t), 0);
	if (me) {
		struct chance c = { seed };
		CHECK_IS(tern_addr_local(t, board->at[0], 8, &q), -EXDEV);
		CHECK_IS(mappings(), 0);
		if (me == 1)
			area_use(t, board->at[0], &c);
	}
	CHECK_IS(tern_barrier(t), 0);
	CHECK_IS(tern_put(t, board->at[0], &word, 8), 0);
	CHECK_IS(tern_barrier(t), 0);
	CHECK_IS(tern_amo(t, board->at[0], TERN_AMO_ADD, 1, &word), 0);
	CHECK_IS(tern_barrier(t), 0);
	CHECK_IS(tern_get(t, &word, board->at[0], 8), 0);
	CHECK_IS(word, 5 + RANKS);
	CHECK_IS(tern_barrier(t), 0);
	CHECK_IS(tern_close(t), 0);
}

TEST(a_kernel_that_gives_no_descriptor_copies_it)
{
	no_descriptors = true;
	job_run("shm", "1", it_is_copied);
	no_descriptors = false;
}

TEST(a_descriptor_that_is_another_files_is_not_mapped)
{
	wrong_file = true;
	job_run("shm", "1", it_is_copied);
	wrong_file = false;
}

/* -- Workers and children ------------------------------------------------------------------ */

static void worker_and_child(void)
{
	tern *t = ranks_open(), *w = NULL;
	uint32_t me = tern_rank(t);
	uint64_t word = 1;
	void *q;
	int status;
	if (me == 0)
		file_register(t);
	CHECK_IS(tern_barrier(t), 0);
	if (me) {
		CHECK_IS(tern_worker_open(t, &w), 0);
		CHECK_IS(tern_amo(w, board->at[0], TERN_AMO_ADD, 1, &word), 0);
		CHECK(handed_local(w, board->at[0], AREA) && handed_local(t, board->at[0], AREA));
		CHECK_IS(mappings(), 2); /* each has its own */
		CHECK_IS(tern_close(w), 0);
		CHECK_IS(mappings(), 1);
		pid_t child = fork();
		if (child == 0)
			_exit(tern_addr_local(t, board->at[0], 8, &q) < 0 &&
					      tern_put(t, board->at[0], &word, 8) < 0
				      ? 0
				      : 1);
		CHECK(waitpid(child, &status, 0) == child && status == 0);
	}
	CHECK_IS(tern_barrier(t), 0);
	CHECK_IS(tern_get(t, &word, board->at[0], 8), 0);
	CHECK_IS(word, RANKS - 1);
	CHECK_IS(tern_barrier(t), 0);
	CHECK_IS(tern_close(t), 0);
}

TEST(workers_map_it_and_children_of_a_fork_do_not_use_it)
{
	job_run("shm", "1", worker_and_child);
}

/* -- Many -------------------------------------------------------------------------------------- */

static void many_at_once(void)
{
	tern *t = ranks_open();
	uint32_t me = tern_rank(t);
	struct chance c = { seed };
	int fd = -1;
	unsigned char *p = me ? NULL : file_make(0, (size_t)MANY * PAGE, &fd);
	for (unsigned i = 0; p && i < MANY; i++)
		CHECK_IS(tern_register_fd(t, p + i * PAGE, PAGE, fd, i * PAGE, &board->at[i]), 0);
	for (unsigned round = 1; round < 6; round++) {
		CHECK_IS(tern_barrier(t), 0);
		for (unsigned i = 0; me == 1 && i < MANY; i++)
			CHECK_IS(tern_put(t, board->at[i] + i % PAGE, &(uint64_t){ round * i }, 8),
				 i % PAGE > PAGE - 8 ? -EFAULT : 0);
		CHECK_IS(tern_barrier(t), 0);
		for (unsigned i = 0; p && i < MANY; i++) {
			uint64_t word;
			memcpy(&word, p + i * PAGE + i % PAGE, 8);
			CHECK_IS(word, round * i);
			if (chance_one_in(&c, 2))
				continue;
			CHECK_IS(tern_unregister(t, board->at[i]), 0);
			CHECK_IS(tern_register_fd(t, p + i * PAGE, PAGE, fd, i * PAGE,
						  &board->at[i]),
				 0);
		}
	}
	if (me == 1)
		CHECK(mappings() >= MANY / 2 && mappings() <= 2 * MANY);
	CHECK_IS(tern_close(t), 0);
	CHECK_IS(mappings(), me == 0);
}

TEST(many_files_are_mapped_and_none_is_taken_for_another)
{
	job_run("shm", "1", many_at_once);
}

/* -- Grants ------------------------------------------------------------------------------------ */

static void granted(void)
{
	tern *t = ranks_open();
	uint32_t me = tern_rank(t);
	uint64_t word = 9;
	unsigned char *p = NULL;
	void *q;
	int fd;
	if (me == 0) {
		p = file_make(0, AREA, &fd);
		CHECK_IS(tern_register_fd(t, p, AREA, fd, 0, &board->at[0]), 0);
		CHECK_IS(tern_grant(t, 1, p + PAGE, 16), 0);
	}
	CHECK_IS(tern_barrier(t), 0);
	tern_addr a = board->at[0];
	if (me) {
		CHECK_IS(tern_get(t, &word, a, 8), 0);
		CHECK_IS(mappings(), me == 1 ? 3 : 1); /* the granted page is one of its own */
		CHECK_IS(tern_addr_local(t, a, 8, &q), -EXDEV);
		CHECK_IS(tern_addr_local(t, a + PAGE, 16, &q), me == 1 ? 0 : -EXDEV);
		if (me == 1)
			*(uint64_t *)q = 77;
		CHECK_IS(tern_put(t, a + 8 * (size_t)me, &(uint64_t){ me }, 8), 0);
		CHECK_IS(tern_amo(t, a, TERN_AMO_ADD, 1, &word), 0);
	}
	CHECK_IS(tern_barrier(t), 0);
	if (me == 0) {
		const uint64_t *words = (const uint64_t *)(void *)p;
		CHECK(words[0] == 2 && words[1] == 1 && words[2] == 2);
		CHECK_IS(words[PAGE / 8], 77);
		CHECK_IS(tern_revoke(t, 1, p + PAGE, 16), 0);
	}
	CHECK_IS(tern_barrier(t), 0);
	if (me == 1) {
		CHECK_IS(tern_addr_local(t, a + PAGE, 16, &q), -EXDEV);
		CHECK_IS(mappings(), 1);
	}
	CHECK_IS(tern_barrier(t), 0);
	CHECK_IS(tern_close(t), 0);
}

TEST(memory_of_a_file_is_mapped_to_be_read_where_nothing_is_granted)
{
	setenv("TERN_GRANT", "1", 1);
	job_run("shm", "1", granted);
	unsetenv("TERN_GRANT");
}

/* -- Misuse ------------------------------------------------------------------------------------ */

TEST(what_cannot_be_registered_with_a_file_is_refused_with_a_sentence)
{
	tern *t = NULL;
	tern_addr a = 12;
	int fd, both[2];
	REQUIRE(tern_open(&t, NULL) == 0);
	unsigned char *p = file_make(0, AREA, &fd);
	unsigned had = descriptors();
	CHECK_IS(tern_register_fd(t, p, AREA, -1, 0, &a), -EBADF);
	names(-EBADF, "descriptor -1");
	CHECK_IS(tern_register_fd(t, p, AREA, fd, 100, &a), -EINVAL);
	names(-EINVAL, "offset 100");
	CHECK_IS(tern_register_fd(t, p, AREA + 1, fd, 0, &a), -ERANGE);
	names(-ERANGE, "make it longer");
	CHECK_IS(tern_register_fd(t, p, AREA, fd, PAGE, &a), -ERANGE);
	CHECK_IS(tern_register_fd(t, p, AREA, fd, UINT64_MAX / PAGE * PAGE, &a), -ERANGE);
	CHECK_IS(tern_register_fd(t, NULL, AREA, fd, 0, &a), -EINVAL);
	REQUIRE(pipe(both) == 0);
	CHECK_IS(tern_register_fd(t, p, PAGE, both[0], 0, &a), -EACCES);
	close(both[0]);
	close(both[1]);
	CHECK_IS(a, 12);
	CHECK_IS(descriptors(), had);
	CHECK_IS(tern_register_fd(t, p, AREA, fd, 0, &a), 0);
	CHECK_IS(descriptors(), had + 1);
	CHECK(handed_addr(t, p + 5) == a + 5);
	CHECK_IS(tern_close(t), 0);
	CHECK(descriptors() <= had); /* the endpoint's own are closed, too */
}
