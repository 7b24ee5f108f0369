/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: TIMEOUT 240 */
/*
 * A rank opens and closes its endpoint again and again, and uses one layer in each session. What it
 * has taken from the system after some sessions is what it has after many.
 */
#include <dirent.h>
#include <malloc.h>
#include <string.h>
#include <tern/buf.h>
#include <tern/chan.h>
#include <tern/coll.h>
#include <tern/post.h>
#include <tern/send.h>

#include "lib/net_traffic.h"

enum { RANKS = 3, SESSIONS = 600, PART = 6 };
enum { MAPPED_KIB = 1024, HEAP_BYTES = 16 << 10 }; /* that may be the allocator's own */

static void (*session)(tern *t);

/* What this process has taken: private mappings, memory from malloc(), descriptors. */
struct taken {
	uint64_t mapped, heap, fds;
};

static struct taken taken_now(void)
{
	struct taken now = { .heap = 0 };
	char line[512];
	FILE *maps = fopen("/proc/self/maps", "r");
	DIR *fds = opendir("/proc/self/fd");
	REQUIRE(maps && fds);
	while (fgets(line, sizeof line, maps)) {
		unsigned long long from, end;
		char rights[8];
		if (sscanf(line, "%llx-%llx %7s", &from, &end, rights) == 3 && rights[3] == 'p')
			now.mapped += (end - from) >> 10;
	}
	while (readdir(fds))
		now.fds++;
	fclose(maps);
	closedir(fds);
	now.heap = mallinfo2().uordblks;
	return now;
}

static void sessions(void)
{
	struct taken first = { .heap = 0 };
	unsigned last = check_scaled(SESSIONS);
	atomic_store(&check_failures, 0);
	for (unsigned i = 1; i <= last; i++) {
		tern *t = ranks_open();
		session(t);
		CHECK_IS(tern_barrier(t), 0);
		CHECK_IS(tern_close(t), 0);
		if (i == last / PART)
			first = taken_now();
	}
	struct taken end = taken_now();
	if (!CHECK(end.mapped <= first.mapped + MAPPED_KIB && end.heap <= first.heap + HEAP_BYTES &&
		   end.fds <= first.fds))
		printf("    from session %u to %u: mapped %llu to %llu KiB, malloc() %llu to %llu, "
		       "%llu to %llu descriptors\n",
		       last / PART, last, (unsigned long long)first.mapped,
		       (unsigned long long)end.mapped, (unsigned long long)first.heap,
		       (unsigned long long)end.heap, (unsigned long long)first.fds,
		       (unsigned long long)end.fds);
}

static void leaks_nothing(const char *net, void (*uses)(tern *t))
{
	session = uses;
	setenv("TERN_NET", net, 1);
	ranks_run(RANKS, sessions);
	unsetenv("TERN_NET");
}

static uint32_t next_of(const tern *t)
{
	return (tern_rank(t) + 1) % tern_size(t);
}

static uint32_t last_of(const tern *t)
{
	return (tern_rank(t) + tern_size(t) - 1) % tern_size(t);
}

static void opens_alone(tern *t)
{
	(void)t;
}

static void makes_teams(tern *t)
{
	tern_team *all, *half;
	uint64_t one = 1, sum;
	REQUIRE(tern_team_all(t, &all) == 0);
	REQUIRE(tern_team_split(all, (int)tern_rank(t) % 2, 0, &half) == 0);
	CHECK_IS(tern_team_allreduce(all, &one, &sum, 1, TERN_TYPE_UINT64, TERN_REDUCE_SUM), 0);
	CHECK_IS(tern_team_free(half), 0); /* the other one is left to tern_close() */
}

static void on_nothing(tern *t, const tern_msg *m)
{
	(void)t;
	(void)m;
}

static void sends(tern *t)
{
	static char here[100000], there[100000];
	tern_op op = TERN_OP;
	REQUIRE(tern_on(t, 0, on_nothing) == 0 && tern_on(t, 1, on_nothing) == 0);
	CHECK_IS(tern_request(t, next_of(t), 0, 1), 0);
	CHECK_IS(tern_request_data(t, next_of(t), 0, here, 8000, 1), 0);
	CHECK_IS(tern_post(t, next_of(t), 1, 1), 0);
	CHECK_IS(tern_send_start(t, next_of(t), 3, here, sizeof here, 0, &op), 0);
	CHECK_IS(tern_recv(t, last_of(t), 3, there, sizeof there, NULL), 0);
	CHECK_IS(tern_op_wait(t, &op), 0);
}

static void moves_memory(tern *t)
{
	static char here[100000];
	tern_addr at, own;
	void *p;
	REQUIRE(tern_alloc_all(t, sizeof here, &p) == 0);
	at = tern_addr_at(t, next_of(t), p);
	CHECK_IS(tern_put(t, at, here, sizeof here), 0);
	CHECK_IS(tern_get(t, here, at, sizeof here), 0);
	CHECK_IS(tern_register(t, here, sizeof here, &own), 0);
	CHECK_IS(tern_unregister(t, own), 0);
}

static void opens_channels(tern *t)
{
	tern_chan *out, *in;
	CHECK_IS(tern_buf_alloc(t, 5, 1000, 8, 0), 0);
	REQUIRE(tern_chan_to(t, next_of(t), 3, &out) == 0);
	REQUIRE(tern_chan_from(t, last_of(t), 3, &in) == 0);
	CHECK_IS(tern_chan_close(out), 0);
	CHECK_IS(tern_chan_close(in), 0);
	CHECK_IS(tern_buf_close(t, 5), 0);
}

static void opens_workers(tern *t)
{
	tern *worker;
	REQUIRE(tern_worker_open(t, &worker) == 0);
	CHECK_IS(tern_close(worker), 0);
}

static void each_layer(const char *net)
{
	leaks_nothing(net, opens_alone);
	leaks_nothing(net, makes_teams);
	leaks_nothing(net, sends);
	leaks_nothing(net, moves_memory);
	leaks_nothing(net, opens_channels);
}

TEST(sessions_on_shared_memory_leave_nothing_behind)
{
	if (check_sanitized())
		check_skip("a sanitizer keeps what was freed");
	each_layer("shm");
	leaks_nothing("shm", opens_workers);
}

TEST(sessions_over_udp_leave_nothing_behind)
{
	if (check_sanitized())
		check_skip("a sanitizer keeps what was freed");
	if (!traffic_usable("udp"))
		check_skip("this build has no such network");
	each_layer("udp");
}
