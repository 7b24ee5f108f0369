/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * On which NUMA node each page of a job's memory would lie. Ranks are told that they are on
 * different nodes, and a page is of the node that was preferred when it came into the file, or of
 * the rank that was acting. So a machine with one node is enough.
 */
#include <linux/mempolicy.h>
#include <sys/syscall.h>

#include <tern/mem.h>

#include "base/numa.h"
#include "endpoint/endpoint.h"
#include "lib/local.h"
#include "net/talk.h"

enum { ASK, TELL, RANKS = 3, PAGE = 4096, HEAP = 1 << 20 };

static struct job *job;
static uint8_t *page_node; /* [page]: plus 1; 0: it is not there */
static int preferred = -1;
static char bytes[TERN_PAYLOAD_MAX];

static int node_of(uint32_t rank)
{
	return (int)rank + 10;
}

/* Pages that have come since the last time are of `node`. */
static void sweep(int node)
{
	off_t at = 0, end;
	while ((at = lseek(job->fd, at, SEEK_DATA)) >= 0) {
		end = lseek(job->fd, at, SEEK_HOLE);
		for (; at < end; at += PAGE)
			if (!page_node[at / PAGE])
				page_node[at / PAGE] = (uint8_t)(node + 1);
	}
}

static uint32_t acting;

static int fake_prefer(int node)
{
	sweep(node < 0 ? preferred : node_of(acting));
	preferred = node;
	return 0;
}

static void ranks_place(void)
{
	local_polled();
	setenv("TERN_GROW", "4", 1);
	local_open(RANKS);
	job = &local[0]->own->group->job;
	page_node = calloc(job->bytes / PAGE + 1, 1);
	REQUIRE(page_node);
	for (uint32_t r = 0; r < RANKS; r++)
		job->rank[r].node = (uint32_t)node_of(r) + 1;
	sweep(0);
	numa_prefer = fake_prefer;
}

static void act(uint32_t rank)
{
	sweep(node_of(acting));
	acting = rank;
}

static void check_pages(size_t at, size_t len, uint32_t rank)
{
	for (size_t page = at / PAGE; page < (at + len) / PAGE; page++)
		CHECK_IS(page_node[page] - 1, node_of(rank));
}

static void ask(tern *t, const tern_msg *m)
{
	CHECK_IS(tern_reply(t, m, TELL, tern_msg_word(m, 0), 1, 2), 0);
}

static void tell(tern *t, const tern_msg *m)
{
	(void)t, (void)m;
}

TEST(rings_lie_near_who_reads_them_and_all_else_near_its_owner)
{
	void *heap[RANKS];
	ranks_place();
	local_on(ASK, ask);
	local_on(TELL, tell);
	for (uint32_t r = 0; r < RANKS; r++) {
		act(r);
		CHECK_IS(tern_request_data(local[r], (r + 1) % RANKS, ASK, bytes, sizeof bytes), 0);
		CHECK_IS(tern_alloc(local[r], HEAP, &heap[r]), 0);
	}
	for (unsigned i = 0; i < 100; i++)
		for (uint32_t r = 0; r < 2 * RANKS; r++) {
			act(r % RANKS);
			if (r < RANKS)
				CHECK_IS(tern_request(local[r], (r + 1) % RANKS, ASK, i, 1, 2), 0);
			else
				(void)!tern_poll(local[acting]);
		}
	act(0);
	for (uint32_t r = 0; r < RANKS; r++) {
		uint32_t to = (r + 1) % RANKS;
		size_t rings = job_talk_at(job, r, to),
		       half = sizeof(((struct large_talk *)0)->requests);
		check_pages(rings, half, to);
		check_pages(rings + half, sizeof(struct large_talk) - half, r);
		check_pages(job_part_at(&job->pool, r), job->pool.bytes, r);
		check_pages((size_t)((char *)heap[r] - job->base), HEAP, r);
	}
	local_close();
	free(page_node);
}

TEST(a_policy_that_the_program_has_chosen_holds)
{
	unsigned long node0 = 1;
	int mode = -1;
	if (numa_node() < 0 || numa_prefer(0) != 0)
		check_skip("the kernel knows no NUMA nodes");
	CHECK_IS(syscall(SYS_get_mempolicy, &mode, NULL, 0, NULL, 0), 0);
	CHECK_IS(mode, MPOL_PREFERRED);
	CHECK_IS(numa_prefer(-1), 0);
	CHECK_IS(syscall(SYS_get_mempolicy, &mode, NULL, 0, NULL, 0), 0);
	CHECK_IS(mode, MPOL_DEFAULT);
	CHECK_IS(numa_prefer(NUMA_NODES_MAX), -EINVAL);
	CHECK_IS(syscall(SYS_set_mempolicy, MPOL_BIND, &node0, 64), 0);
	CHECK_IS(numa_prefer(0), -EBUSY);
	CHECK_IS(syscall(SYS_get_mempolicy, &mode, NULL, 0, NULL, 0), 0);
	CHECK_IS(mode, MPOL_BIND);
}
