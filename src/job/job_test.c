/* SPDX-License-Identifier: BSD-3-Clause */
/* The job's memory: making, mapping, checking, sessions, states. */
#include "job/job.h"

#include <errno.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <tern/tern.h>

#include "base/world.h"
#include "job/stats.h"
#include "lib/check.h"
#include "net/block.h"
#include "net/talk.h"

static struct job job;

static bool says(int rc, const char *word)
{
	return strstr(tern_strerror(rc), word) != NULL;
}

/* Bytes that the file really has. */
static uint64_t file_bytes(void)
{
	struct stat st;
	REQUIRE(fstat(job.fd, &st) == 0);
	return (uint64_t)st.st_blocks * 512;
}

static void job_end(void)
{
	job_unmap(&job);
	job_forget(&job);
}

TEST(a_job_starts_small_and_all_of_that_is_reserved)
{
	check_skip_crowd(TERN_RANKS_MAX);
	static const uint32_t sizes[] = { 1, 2, 3, 64, 256, TERN_RANKS_MAX };
	for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
		struct job_needs needs;
		REQUIRE(job_create(&job, sizes[i], 0) == 0);
		job_needs(sizes[i], &needs);
		CHECK_IS(job.head->committed, needs.start);
		CHECK_IS(file_bytes(), needs.start);
		CHECK(needs.start <= needs.neighbours && needs.neighbours <= needs.all_pairs);
		job_end();
	}
}

TEST(memory_stays_within_what_is_promised)
{
	struct job_needs needs;
	job_needs(64, &needs);
	CHECK(needs.neighbours <= 16 << 20);
	job_needs(256, &needs);
	CHECK(needs.neighbours <= 256 << 20);
}

TEST(what_is_committed_is_in_the_file_and_counted)
{
	REQUIRE(job_create(&job, 4, 0) == 0);
	uint64_t before = file_bytes();
	CHECK_IS(job_commit(&job, job_talk_at(&job, 1, 2), sizeof(struct large_talk), "a test"), 0);
	CHECK_IS(job_commit(&job, job_part_at(&job.pool, 3), job.pool.bytes, "a test"), 0);
	CHECK_IS(file_bytes() - before, sizeof(struct large_talk) + job.pool.bytes);
	CHECK_IS(job.head->committed, file_bytes());
	job_end();
}

TEST(a_spent_budget_is_an_error_that_says_what_was_asked_for)
{
	struct job_needs needs;
	job_needs(4, &needs);
	REQUIRE(job_create(&job, 4, needs.start + 1) == 0);
	uint64_t before = file_bytes();
	int rc = job_commit(&job, job_talk_at(&job, 1, 2), sizeof(struct large_talk),
			    "talking from rank 1 to rank 2");
	CHECK_IS(rc, -ENOMEM);
	CHECK(says(rc, "talking from rank 1 to rank 2") && says(rc, "budget") &&
	      says(rc, "TERN_MEMORY"));
	CHECK_IS(job.head->committed, before);
	CHECK_IS(file_bytes(), before);
	job_end();
}

static void limit_write(const char *name, const char *text)
{
	char path[CGROUP_PATH + 32];
	snprintf(path, sizeof path, "%s/%s", job.cgroup.path[0], name);
	FILE *f = fopen(path, "w");
	REQUIRE(f && fputs(text, f) > 0 && fclose(f) == 0);
}

TEST(a_cgroup_without_room_is_an_error_that_names_it)
{
	REQUIRE(job_create(&job, 4, 0) == 0);
	char *folder = strcpy(job.cgroup.path[0], "/tmp/job_test.XXXXXX");
	REQUIRE(mkdtemp(folder));
	limit_write("memory.max", "1000\n");
	limit_write("memory.current", "1000\n");
	job.cgroup.levels = 1;
	job.cgroup.version = 2;
	atomic_store(&job.trusted, 0);
	int rc = job_commit(&job, job_talk_at(&job, 1, 2), sizeof(struct large_talk), "a test");
	CHECK(rc == -ENOMEM && says(rc, folder) && says(rc, "raise its limit"));
	char command[CGROUP_PATH + 32];
	snprintf(command, sizeof command, "rm -r %s", folder);
	CHECK_IS(system(command), 0);
	job_end();
}

TEST(a_limit_of_file_size_is_an_error_and_no_signal)
{
	struct rlimit few = { 1 << 20, 1 << 20 };
	REQUIRE(setrlimit(RLIMIT_FSIZE, &few) == 0);
	int rc = job_create(&job, 4, 0);
	CHECK_IS(rc, -EFBIG);
	CHECK(says(rc, "1024 KiB") && says(rc, "ulimit -f"));
}

static void place_once(bool *taken, size_t from, size_t at, size_t to, size_t unit)
{
	REQUIRE(at >= from && at + unit <= to);
	for (size_t i = 0; i < unit / 2048; i++) {
		CHECK(!taken[(at - from) / 2048 + i]);
		taken[(at - from) / 2048 + i] = true;
	}
}

/* Every small talk has half a page of its own, and every large one its place. */
static void talks_lie_apart(void)
{
	bool *taken = calloc((job.heap_at - job.pair_at) / 2048, sizeof *taken);
	REQUIRE(taken);
	for (uint32_t from = 0; from < job.size + job.seats; from++)
		for (uint32_t to = 0; to < job.size; to++) {
			size_t small = job_small_at(&job, from, to), page = small / 4096 * 4096;
			CHECK_IS(page, job_pair_at(&job, to, from));
			place_once(taken, job.pair_at, small, job.talk_at, 2048);
			place_once(taken, job.pair_at, job_talk_at(&job, from, to), job.heap_at,
				   sizeof(struct large_talk));
		}
	free(taken);
}

static void parts_have_room(void)
{
	CHECK(job.pool.bytes >= sizeof(struct pool));
	CHECK(job.seat.bytes >= sizeof(struct job_seat));
	CHECK(job.large.bytes >= sizeof(struct large_block));
	CHECK(job.stats.bytes >= stats_bytes(job.size));
	CHECK(job.spare.bytes >= (job.size + job.seats) * sizeof(struct block));
	CHECK(job.span.bytes >= job.size * sizeof(struct job_span));
	CHECK(job.outbox.bytes >= JOB_OUTBOX);
	CHECK(job.heap_bytes >= job.head->heap);
}

TEST(no_two_parts_overlap)
{
	REQUIRE(job_create(&job, 5, 0) == 0);
	parts_have_room();
	size_t at = (size_t)job.head->committed;
	for (uint32_t m = 0; m < 5 + job.seats; m++, at += job.pool.bytes)
		CHECK_IS(job_part_at(&job.pool, m), at);
	for (uint32_t m = 5; m < 5 + job.seats; m++, at += job.seat.bytes)
		CHECK((char *)job_seat(&job, m) == job.base + at);
	for (uint32_t m = 0; m < 5 + job.seats; m++, at += TERN_POOL_BLOCKS * job.large.bytes)
		CHECK_IS(job_part_at(&job.large, m * TERN_POOL_BLOCKS), at);
	for (uint32_t r = 0; r < 5; r++, at += job.stats.bytes)
		CHECK((char *)job_stats(&job, r) == job.base + at);
	for (uint32_t m = 0; m < 5 + job.seats; m++, at += job.spare.bytes)
		CHECK_IS(job_part_at(&job.spare, m), at);
	CHECK_IS(job.span.at, at);
	at += (5 + job.seats) * job.span.bytes;
	CHECK_IS(job.outbox.at, at);
	at += 5 * job.outbox.bytes;
	for (uint32_t r = 0; r < 5; r++, at += JOB_REGION_BYTES)
		CHECK_IS(job_part_at(&job.region, r), at);
	CHECK(job.pair_at >= at);
	talks_lie_apart();
	for (uint32_t r = 0; r < 5; r++)
		CHECK_IS(job_heap_at(&job, r), job.heap_at + r * job.heap_bytes);
	CHECK_IS(job.bytes, job.heap_at + 5 * job.heap_bytes);
	CHECK((char *)(job.knocker + 5 * job.knocker_row) <= (char *)job.pulse);
	CHECK((char *)(job.pulse + 5) <= job.base + job_part_at(&job.pool, 0));
	job_end();
}

TEST(a_descriptor_that_is_no_job_is_refused)
{
	struct job other;
	int fd = memfd_create("test", MFD_CLOEXEC);
	CHECK_IS(job_map(&other, fd), -EINVAL);
	CHECK(says(-EINVAL, "tern run"));
	CHECK_IS(job_map(&other, 999), -EINVAL);
	char page[4096] = { 0 };
	CHECK_IS(write(fd, page, sizeof page), sizeof page);
	CHECK_IS(job_map(&other, fd), -EINVAL);
	close(fd);
}

TEST(a_job_of_another_build_or_size_is_refused)
{
	struct job other;
	REQUIRE(job_create(&job, 3, 0) == 0);
	job.head->stamp++;
	CHECK_IS(job_map(&other, job.fd), -EPROTO);
	CHECK(says(-EPROTO, "another build"));
	job.head->stamp--;
	job.head->size = 4;
	CHECK_IS(job_map(&other, job.fd), -EINVAL);
	job.head->size = 3;
	CHECK_IS(job_map(&other, job.fd), 0);
	atomic_store(&job.rank[2].status, 77);
	CHECK_IS(other.rank[2].status, 77); /* it is the same memory */
	job_unmap(&other);
	job_end();
}

/* As much memory as the head asks for, so that only the head can be wrong. */
TEST(a_head_that_no_job_has_is_refused)
{
	static const struct {
		uint32_t size;
		uint64_t heap;
	} wrong[] = {
		{ 0, 1 << 20 }, { TERN_RANKS_MAX + 1, 0 }, { UINT32_MAX, 0 }, { 2, UINT64_MAX }
	};
	struct job other;
	REQUIRE(job_create(&job, 2, 0) == 0);
	for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
		job.head->size = wrong[i].size;
		job.head->heap = wrong[i].heap;
		CHECK_IS(job_map(&other, job.fd), -EINVAL);
		CHECK(says(-EINVAL, "damaged"));
	}
	job_end();
}

TEST(a_heap_is_no_larger_than_addresses_are)
{
	setenv("TERN_HEAP", "131073G", 1);
	CHECK_IS(job_create(&job, 2, 0), -EINVAL);
	CHECK(says(-EINVAL, "TERN_HEAP"));
}

TEST(a_job_has_1_to_1024_ranks)
{
	CHECK_IS(job_create(&job, 0, 0), -ERANGE);
	CHECK_IS(job_create(&job, TERN_RANKS_MAX + 1, 0), -ERANGE);
}

TEST(a_rank_opens_once_and_again_when_all_have_left)
{
	REQUIRE(job_create(&job, 2, 0) == 0);
	CHECK(job_rank_opens(&job, 0));
	CHECK(!job_rank_opens(&job, 0));
	CHECK(job_rank_opens(&job, 1));
	job_rank_leaves(&job, 0, RANK_CLOSED);
	CHECK_IS(job_rank_state(&job, 0), RANK_CLOSED);
	CHECK(!job_rank_opens(&job, 0));
	job_rank_leaves(&job, 1, RANK_CLOSED);
	CHECK(job_rank_opens(&job, 1));
	CHECK(job_rank_opens(&job, 0));
	CHECK_IS(job_left(&job), 0);
	job_end();
}

TEST(a_new_session_begins_with_new_memory)
{
	REQUIRE(job_create(&job, 2, 0) == 0);
	uint64_t start = file_bytes();
	CHECK(job_rank_opens(&job, 0) && job_rank_opens(&job, 1));
	size_t at = job_talk_at(&job, 0, 1);
	CHECK_IS(job_commit(&job, at, sizeof(struct large_talk), "a test"), 0);
	memset(job.base + at, 0xff, sizeof(struct large_talk));
	atomic_store(&job.heed[1], 1);
	atomic_store(&job.head->arrived, 1);
	struct job_rank *r = &job.rank[1];
	atomic_store(&r->stored, 1);
	atomic_store(&r->offer[0].ready, 1);
	atomic_store(&r->offer[1].ready, 1);
	job_rank_leaves(&job, 0, RANK_CLOSED);
	job_rank_leaves(&job, 1, RANK_CLOSED);
	CHECK_IS(file_bytes(), start);
	CHECK_IS(job.head->committed, start);
	CHECK_IS(job_commit(&job, at, sizeof(struct large_talk), "a test"), 0);
	for (size_t i = 0; i < sizeof(struct large_talk); i++)
		CHECK_IS(job.base[at + i], 0);
	CHECK(job.heed[1] == 0 && job.head->arrived == 0);
	CHECK(r->stored == 0 && r->offer[0].ready == 0 && r->offer[1].ready == 0);
	job_end();
}

TEST(a_rank_that_ended_is_gone_or_dead_and_everybody_is_woken)
{
	REQUIRE(job_create(&job, 3, 0) == 0);
	for (uint32_t r = 0; r < 3; r++)
		CHECK(job_rank_opens(&job, r));
	job_rank_leaves(&job, 1, RANK_CLOSED);
	job_rank_ended(&job, 1, 0);
	CHECK_IS(job_rank_state(&job, 1), RANK_GONE);
	CHECK_IS(job_left(&job), 1);
	job_rank_ended(&job, 2, SIGKILL);
	CHECK_IS(job_rank_state(&job, 2), RANK_DEAD);
	CHECK_IS(job.rank[2].status, SIGKILL);
	CHECK_IS(job_left(&job), 2);
	CHECK_IS(job.rank[0].bell, BELL_RUNG);
	job_rank_leaves(&job, 0, RANK_CLOSED); /* the dead do not come back in the next session */
	CHECK(job_rank_opens(&job, 0));
	CHECK(!job_rank_opens(&job, 2));
	CHECK_IS(job_left(&job), 2);
	job_end();
}

TEST(a_rank_that_ends_without_having_closed_is_dead_whatever_its_status)
{
	REQUIRE(job_create(&job, 3, 0) == 0);
	CHECK(job_rank_opens(&job, 0) && job_rank_opens(&job, 1));
	job_rank_ended(&job, 1, 0);
	CHECK_IS(job_rank_check(&job, 1), -EOWNERDEAD);
	CHECK(strstr(tern_strerror(-EOWNERDEAD), "without tern_close()"));
	job_rank_ended(&job, 2, 0); /* it has never been in the job */
	CHECK_IS(job_rank_check(&job, 2), -ESHUTDOWN);
	job_end();
}

/* Its last function is still to run: whoever ends the ranks gives it time for that. */
TEST(when_a_job_ends_whoever_asks_for_a_rank_that_lives_goes_on_and_for_a_dead_one_ends)
{
	struct job_end end;
	int status;
	REQUIRE(job_create(&job, 2, 0) == 0);
	CHECK(job_rank_opens(&job, 0) && job_rank_opens(&job, 1));
	job_end_write(&job, 0, 42, &end);
	for (int dead = 0; dead < 2; dead++) {
		fflush(stdout);
		pid_t child = fork();
		REQUIRE(child >= 0);
		if (child == 0)
			_exit(job_rank_check(&job, 1) == 0 ? 7 : 8);
		REQUIRE(waitpid(child, &status, 0) == child);
		CHECK(WIFEXITED(status));
		CHECK_IS(WEXITSTATUS(status), dead ? 42 : 7);
		job_rank_ended(&job, 1, SIGKILL);
	}
	job_end();
}

TEST(a_rank_that_ends_after_it_closed_is_counted_once)
{
	REQUIRE(job_create(&job, 2, 0) == 0);
	CHECK(job_rank_opens(&job, 0) && job_rank_opens(&job, 1));
	job_rank_leaves(&job, 0, RANK_CLOSED);
	job_rank_ended(&job, 0, 0);
	CHECK_IS(job_left(&job), 1);
	job_end();
}

TEST(a_bell_that_is_rung_twice_is_rung)
{
	REQUIRE(job_create(&job, 2, 0) == 0);
	CHECK_IS(job.rank[1].bell, BELL_QUIET);
	job_ring(&job, 1);
	job_ring(&job, 1);
	CHECK_IS(job.rank[1].bell, BELL_RUNG);
	CHECK_IS(job.rank[0].bell, BELL_QUIET);
	job_end();
}

TEST(who_rings_all_rings_no_worker_that_is_not_there)
{
	REQUIRE(job_create(&job, 2, 0) == 0 && job.seats);
	job_ring_all(&job);
	CHECK_IS(job.rank[1].bell, BELL_RUNG);
	CHECK_IS(*job_bell(&job, 2), BELL_QUIET);
	job_end();
}

TEST(what_c_would_not_take_for_a_name_is_none)
{
	static const char good[] = "az_AZ_09", bad[] = "/:@[`{";
	CHECK(job_name_in(good) == good && !job_name_in("0a") && !job_name_in("&"));
	for (const char *c = bad; *c; c++)
		CHECK(!job_name_in((char[]){ 'a', *c, 0 }));
}

TEST(a_renewal_that_its_rank_did_not_finish_counts_nobody_twice)
{
	REQUIRE(job_create(&job, 3, 0) == 0);
	for (uint32_t r = 0; r < 3; r++)
		CHECK(job_rank_opens(&job, r));
	job_rank_leaves(&job, 0, RANK_CLOSED);
	job_rank_leaves(&job, 1, RANK_CLOSED);
	/* Rank 2 leaves last and is killed when rank 0 is expected again, and has opened. */
	job.rank[2].state = RANK_CLOSED;
	job.head->phase |= 3 << 16;
	job.rank[0].state = RANK_OPEN;
	job_rank_ended(&job, 2, SIGKILL);
	CHECK_IS(job_left(&job), 1);
	CHECK(!job_renewing(&job));
	job.heed[0] = 1;
	CHECK(job_rank_opens(&job, 1));
	job_rank_leaves(&job, 1, RANK_CLOSED);
	CHECK_IS(job.heed[0], 1); /* the session of rank 0 goes on */
	job_end();
}

/* As the keeper of `tern run` does, which does not know when its ranks began. */
TEST(whoever_watches_the_ranks_waits_for_no_renewal_whose_rank_has_ended)
{
	siginfo_t how;
	REQUIRE(job_create(&job, 2, 0) == 0);
	pid_t pid = fork();
	if (pid == 0)
		_exit(3);
	REQUIRE(waitid(P_PID, (id_t)pid, &how, WEXITED | WNOWAIT) == 0);
	CHECK(job_rank_opens(&job, 0) && job_rank_opens(&job, 1));
	job_rank_leaves(&job, 0, RANK_CLOSED);
	job.rank[1].pid = pid;
	job.rank[1].state = RANK_CLOSED;
	job.head->phase |= 2 << 16;
	job.watches = true;
	job_renewed(&job);
	CHECK_IS(job_rank_state(&job, 0), RANK_EXPECTED);
	CHECK_IS(job_rank_state(&job, 1), RANK_GONE);
	CHECK_IS(waitpid(pid, NULL, 0), pid);
	job_end();
}

/* Ranks of other machines may still be in a barrier that it had not passed. */
TEST(a_rank_that_has_ended_stays_in_the_session_in_which_it_ended)
{
	static const uint32_t machine[2] = { 0, 1 };
	REQUIRE(job_create(&job, 2, 0) == 0);
	job_spread(&job, machine, 0, 2);
	uint64_t first = job.head->session;
	CHECK(job_rank_opens(&job, 0));
	job.rank[0].passed = 3;
	job_rank_leaves(&job, 0, RANK_CLOSED);
	job_rank_ended(&job, 0, 0);
	CHECK_IS(job_rank_session(&job, 0), first + 1);
	CHECK_IS(job.rank[0].passed_before, 3);
	job_end();
}

TEST(every_process_maps_the_memory_at_a_multiple_of_two_megabytes)
{
	for (uint32_t size = 1; size < 40; size += 3) {
		struct job j, other;
		REQUIRE(job_create(&j, size, 0) == 0);
		REQUIRE(job_map(&other, j.fd) == 0);
		for (uint32_t r = 0; r < size; r++) {
			CHECK_IS((uintptr_t)(j.base + job_heap_at(&j, r)) % (2 << 20), 0);
			CHECK_IS((uintptr_t)(other.base + job_heap_at(&other, r)) % (2 << 20), 0);
		}
		CHECK(j.base != other.base);
		job_unmap(&other);
		job_unmap(&j);
		job_forget(&j);
	}
}

/* Bytes of the job's memory that a core dump of this process has. */
static uint64_t dump_bytes(void)
{
	char line[512];
	uint64_t sum = 0;
	unsigned long long kib = 0;
	bool ours = false;
	FILE *f = fopen("/proc/self/smaps", "r");
	REQUIRE(f != NULL);
	while (fgets(line, sizeof line, f)) {
		if (strstr(line, "-") && strstr(line, " ") && strchr(line, ':') &&
		    strstr(line, "memfd:tern"))
			ours = true;
		else if (sscanf(line, "Size: %llu kB", &kib) == 1)
			continue;
		else if (strncmp(line, "VmFlags:", 8) == 0) {
			sum += ours && !strstr(line, " dd") ? kib << 10 : 0;
			ours = false;
		}
	}
	fclose(f);
	return sum;
}

TEST(a_core_dump_has_what_the_process_uses_and_not_more_than_64_mib)
{
	struct job_needs needs;
	REQUIRE(job_create(&job, 8, UINT64_C(200) << 20) == 0);
	job_needs(8, &needs);
	CHECK_IS(dump_bytes(), needs.start);
	CHECK_IS(job_commit(&job, job_talk_at(&job, 1, 2), sizeof(struct large_talk), "x"), 0);
	CHECK_IS(dump_bytes(), needs.start + sizeof(struct large_talk));
	job_dump(&job, job_talk_at(&job, 2, 1), sizeof(struct large_talk));
	CHECK_IS(dump_bytes(), needs.start + 2 * sizeof(struct large_talk));
	CHECK_IS(job_commit(&job, job_heap_at(&job, 3), 100 << 20, "x"), 0);
	CHECK(dump_bytes() > needs.start + 3 * sizeof(struct large_talk));
	CHECK(dump_bytes() <= 64 << 20);
	job_end();
}

TEST(a_core_dump_has_all_if_that_is_wanted_and_what_else_is_wanted_is_refused)
{
	setenv("TERN_CORE", "all", 1);
	setenv("TERN_HEAP", "16M", 1);
	REQUIRE(job_create(&job, 8, 0) == 0);
	CHECK_IS(dump_bytes(), job.bytes);
	job_end();
	setenv("TERN_CORE", "some", 1);
	CHECK_IS(job_create(&job, 8, 0), -EINVAL);
	CHECK(says(-EINVAL, "TERN_CORE") && says(-EINVAL, "own or all"));
}

TEST(too_few_addresses_are_an_error_whose_advice_helps)
{
#ifdef CHECK_SANITIZED
	check_skip("a sanitizer needs more addresses than this leaves");
#endif
	struct rlimit most = { .rlim_cur = UINT64_C(4) << 30, .rlim_max = RLIM_INFINITY };
	REQUIRE(setrlimit(RLIMIT_AS, &most) == 0);
	int rc = job_create(&job, 8, 0);
	CHECK_IS(rc, -ENOMEM);
	CHECK(says(rc, "ulimit -v") && says(rc, "TERN_HEAP=64M"));
	setenv("TERN_HEAP", "64M", 1);
	REQUIRE(job_create(&job, 8, 0) == 0);
	job_end();
}
