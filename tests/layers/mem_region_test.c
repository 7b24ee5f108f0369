/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: TIMEOUT 120 RUN_SERIAL */
/*
 * Registered memory between processes, by the kernel's copy and by messages: copies
 * among third parties, atomics, handlers, unregistering, pages that go.
 */
#include "lib/handed.h"
#include "mem_region.h"

/* -- Copies -------------------------------------------------------------------------------- */

/* Sources lie in the first half, targets in the second and apart: many are under way at once. */
static void copy_among_all(tern *t, struct chance *c, tern_op *op)
{
	size_t used[RANKS][2];
	for (uint32_t r = 0; r < RANKS; r++)
		used[r][0] = used[r][1] = AREA / 2;
	for (int i = 0; i < 150; i++) {
		uint32_t from = chance_below(c, RANKS), to = chance_below(c, RANKS);
		int k = (int)chance_below(c, 2), l = (int)chance_below(c, 2);
		size_t len = model_length(c, chance_one_in(c, 5) ? MOST : 3000);
		size_t src = chance_below(c, (uint32_t)(AREA / 2 - len)),
		       dst = used[to][l] + chance_below(c, 9);
		if (dst + len > AREA)
			continue;
		used[to][l] = dst + len;
		CHECK_IS(tern_copy_start(t, board->at[to][l] + dst, board->at[from][k] + src, len,
					 op),
			 0);
		memcpy(board->image[to][l] + dst, board->image[from][k] + src, len);
	}
}

static void copies(void)
{
	tern *t = ranks_open();
	struct chance c = { seed };
	tern_op op = TERN_OP;
	areas_make(t);
	for (unsigned n = 0; n < rounds; n++) {
		if (tern_rank(t) == n % RANKS) {
			copy_among_all(t, &c, &op);
			if (n % 2) {
				CHECK_IS(tern_flush(t), 0);
				CHECK_IS(op.pending, 0);
			}
			CHECK_IS(tern_op_wait(t, &op), 0);
		} else {
			c.state += n;
		}
		areas_check(t);
	}
	CHECK_IS(tern_close(t), 0);
}

TEST(memory_of_third_parties_is_copied_whatever_it_is)
{
	seed = check_seed();
	rounds = check_scaled(12);
	job_run("1", RANKS, copies);
}

TEST(memory_of_third_parties_is_copied_by_messages_too)
{
	seed = check_seed();
	rounds = check_scaled(12);
	job_run("0", RANKS, copies);
}

/* -- Atomics ------------------------------------------------------------------------------- */

static unsigned char odd[72] __attribute__((aligned(8)));
static _Atomic bool enough;

static void *add_beside(void *arg)
{
	_Atomic uint64_t *word = arg;
	uint64_t n = 0;
	while (!atomic_load(&enough) || n < 1000) {
		atomic_fetch_add(word, 1);
		n++;
	}
	return (void *)(uintptr_t)n;
}

/* Rank 0 has the words; a thread of its process adds to the first with C11 atomics meanwhile. */
static void atomics(void)
{
	tern *t = ranks_open();
	uint32_t me = tern_rank(t);
	_Atomic uint64_t *words = (_Atomic uint64_t *)(void *)(odd + 8);
	pthread_t beside;
	void *added = NULL;
	tern_op op = TERN_OP;
	uint64_t old = 0, olds[64];
	if (me == 0) {
		REQUIRE(tern_register(t, odd + 4, 64, &board->at[0][1]) == 0);
		REQUIRE(pthread_create(&beside, NULL, add_beside, (void *)words) == 0);
	}
	CHECK_IS(tern_barrier(t), 0);
	tern_addr a = board->at[0][1] + 4; /* aligned, though its region is not */
	for (unsigned i = 0; i < rounds; i++) {
		CHECK_IS(tern_amo(t, a, TERN_AMO_ADD, 1, &old), 0);
		for (int k = 0; k < 10; k++)
			CHECK_IS(tern_amo_start(t, a, TERN_AMO_ADD, 1, &olds[k], &op), 0);
		CHECK_IS(tern_amo(t, a + 8, TERN_AMO_ADD, 0.25, (double *)NULL), 0);
		CHECK_IS(tern_amo_start(t, a + 16, TERN_AMO_ADD, 1, (uint32_t *)NULL, &op), 0);
		CHECK_IS(tern_amo(t, a + 20, TERN_AMO_MAX, i * RANKS + me, (uint32_t *)NULL), 0);
		for (uint64_t now = 0;; now = old) {
			CHECK_IS(tern_cas(t, a + 24, now, now + 1, &old), 0);
			if (old == now)
				break;
		}
		CHECK_IS(tern_op_wait(t, &op), 0);
		for (int k = 1; k < 10; k++)
			CHECK(olds[k] > olds[k - 1]);
	}
	int rc = tern_amo(t, a + 4, TERN_AMO_ADD, 1, &old);
	CHECK_IS(rc, -EINVAL);
	CHECK_IS(tern_amo(t, a + 2, TERN_AMO_ADD, 1, (uint32_t *)NULL), -EINVAL);
	CHECK_IS(tern_amo(t, a + 64, TERN_AMO_ADD, 1, &old), -EFAULT);
	CHECK_IS(tern_barrier(t), 0);
	if (me == 0) {
		atomic_store(&enough, true);
		pthread_join(beside, &added);
		double sum;
		memcpy(&sum, (void *)(words + 1), sizeof sum);
		CHECK_IS(words[0], 11 * RANKS * rounds + (uintptr_t)added);
		CHECK(sum == 0.25 * RANKS * rounds);
		CHECK_IS((uint32_t)words[2], RANKS * rounds);
		CHECK_IS(words[2] >> 32, (rounds - 1) * RANKS + RANKS - 1);
		CHECK_IS(words[3], RANKS * rounds);
		for (int i = 40; i < 72; i++)
			CHECK(odd[i] == 0);
	}
	CHECK_IS(tern_close(t), 0);
}

TEST(atomics_on_another_process_add_up_with_those_of_its_own_threads)
{
	rounds = check_scaled(500);
	job_run("1", RANKS, atomics);
}

/* -- Unregistering ------------------------------------------------------------------------- */

enum { STALE_TURNS = 6 };
static unsigned char secret[AREA];

/* Once the owner has its memory back, nobody writes to it any more. */
static void take_memory_back(tern *t, tern_addr a)
{
	while (atomic_load(&board->word[0]) < (tern_size(t) - 1) * 3) /* let some be under way */
		CHECK(tern_poll(t) >= 0);
	CHECK_IS(tern_unregister(t, a), 0);
	memset(area[1], 0x55, AREA);
	atomic_store(&board->word[1], 1);
	for (uint64_t until = clock_ns() + 20000000; clock_ns() < until;)
		CHECK(tern_poll(t) >= 0);
	for (size_t i = 0; i < AREA; i++)
		if (!CHECK(area[1][i] == 0x55))
			break;
	CHECK_IS(tern_unregister(t, a), -EINVAL);
}

static void put_until_refused(tern *t, tern_addr a)
{
	tern_op op = TERN_OP;
	int rc = 0;
	for (unsigned i = 0; !rc; i++) {
		if (i % 3 == 0)
			rc = tern_put(t, a, secret, AREA);
		for (int k = 0; k < 20 && !rc; k++)
			rc = tern_put_start(t, a + 100, secret, AREA - 200, &op);
		int ended = tern_op_wait(t, &op);
		rc = rc ? rc : ended;
		atomic_fetch_add(&board->word[0], 1);
	}
	CHECK_IS(rc, -EFAULT);
	CHECK(names(rc, "rank 0"));
	CHECK_IS(op.pending, 0);
	CHECK_IS(tern_put(t, a, secret, 1), -EFAULT);
	CHECK_IS(tern_get(t, secret, a, 1), -EFAULT);
	CHECK_IS(tern_amo(t, a, TERN_AMO_ADD, 1, (uint64_t *)NULL), -EFAULT);
}

static void unregister(void)
{
	tern *t = ranks_open();
	tern_addr old, now;
	areas_make(t);
	old = board->at[0][1];
	if (tern_rank(t) == 0)
		take_memory_back(t, old);
	else
		put_until_refused(t, old);
	CHECK_IS(tern_barrier(t), 0);
	for (int i = 0; i < STALE_TURNS;
	     i++) { /* other memory in its place: the old address stays refused */
		if (tern_rank(t) == 0)
			CHECK_IS(tern_register(t, area[1], AREA, &board->at[0][1]), 0);
		CHECK_IS(tern_barrier(t), 0);
		now = board->at[0][1];
		CHECK(now != old);
		if (tern_rank(t) != 0) {
			CHECK_IS(tern_put(t, old, secret, 1), -EFAULT);
			CHECK_IS(tern_get(t, secret, now, 1), 0);
			CHECK_IS(secret[0], 0x55);
		}
		CHECK_IS(tern_barrier(t), 0);
		if (tern_rank(t) == 0)
			CHECK_IS(tern_unregister(t, now), 0);
	}
	CHECK_IS(tern_barrier(t), 0);
	CHECK_IS(tern_close(t), 0);
}

TEST(memory_that_is_unregistered_is_its_owners_alone)
{
	seed = 1;
	for (unsigned n = check_scaled(5); n; n--)
		job_run("1", RANKS, unregister);
}

TEST(memory_that_is_unregistered_is_its_owners_alone_when_messages_carry_the_data)
{
	seed = 1;
	for (unsigned n = check_scaled(5); n; n--)
		job_run("0", RANKS, unregister);
}

/* The same between threads of one process, which could touch it without asking. */
static tern_addr thread_at;

static void nothing(tern *t)
{
	(void)t;
}

static void unregister_among_threads(tern *t)
{
	static unsigned char source[AREA];
	if (tern_rank(t) == 0) {
		memset(area[1], 0, AREA);
		CHECK_IS(tern_register(t, area[1], AREA, &thread_at), 0);
	}
	CHECK_IS(tern_barrier(t), 0);
	if (tern_rank(t) == 0) {
		take_memory_back(t, thread_at);
	} else {
		int rc = 0;
		for (unsigned i = 0; !rc; i++) {
			/* Each its half: they must not race with each other. */
			rc = tern_put(t, thread_at + (tern_rank(t) - 1) * (AREA / 2), source,
				      i % 2 ? AREA / 2 : 60000);
			atomic_fetch_add(&board->word[0], 1);
		}
		CHECK_IS(rc, -EFAULT);
	}
	CHECK_IS(tern_barrier(t), 0);
}

TEST(memory_that_is_unregistered_is_its_owners_alone_among_threads_too)
{
	area[1] = malloc(AREA);
	REQUIRE(area[1]);
	for (unsigned n = check_scaled(20); n; n--) {
		board = ranks_shared(sizeof *board);
		ranks_run_threads(3, nothing, unregister_among_threads);
		munmap(board, sizeof *board);
	}
}

TEST(a_rank_has_16384_regions_and_says_when_there_are_no_more)
{
	enum { MANY = 16384 };
	static char bytes[MANY + 1];
	static tern_addr a[MANY + 1];
	tern *t = NULL;
	REQUIRE(tern_open(&t, NULL) == 0);
	for (int i = 0; i < MANY; i++)
		CHECK_IS(tern_register(t, &bytes[i], 1, &a[i]), 0);
	int rc = tern_register(t, &bytes[MANY], 1, &a[MANY]);
	CHECK_IS(rc, -ENOBUFS);
	CHECK(names(rc, "rank 0"));
	for (int i = 0; i < MANY; i++) {
		CHECK_IS(tern_put(t, a[i], &(char){ (char)i }, 1), 0);
		if (i % 512 == 0)
			CHECK(handed_addr(t, &bytes[i]) == a[i]);
	}
	for (int i = 0; i < MANY; i++)
		CHECK_IS(bytes[i], (char)i);
	CHECK_IS(tern_unregister(t, a[7]), 0);
	CHECK(handed_addr(t, &bytes[7]) == TERN_ADDR_NONE);
	CHECK_IS(tern_register(t, &bytes[MANY], 1, &a[MANY]), 0);
	CHECK_IS(tern_register(t, NULL, 1, &a[7]), -EINVAL);
	CHECK_IS(tern_register(t, bytes, 0, &a[7]), -EINVAL);
	CHECK_IS(tern_register(t, bytes, (size_t)1 << 40, &a[7]), -EINVAL);
	CHECK_IS(tern_unregister(t, TERN_ADDR_NONE), -EINVAL);
	CHECK_IS(tern_unregister(t, handed_at(a[0], 1)), -EINVAL);
	CHECK_IS(tern_close(t), 0);
}

/* -- Pages that go ------------------------------------------------------------------------- */

enum { PAGES = 8 };

static void pages(void)
{
	tern *t = ranks_open();
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	unsigned char *p = NULL;
	if (tern_rank(t) == 0) {
		p = mmap(NULL, PAGES * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS,
			 -1, 0);
		REQUIRE(p != MAP_FAILED);
		memset(p, 1, PAGES * page);
		REQUIRE(tern_register(t, p, PAGES * page, &board->at[0][0]) == 0);
		munmap(p + 2 * page, page);
		mprotect(p + 4 * page, page, PROT_READ);
		mprotect(p + 5 * page, page, PROT_NONE);
		/* Remapped, with other contents: followed by its address. */
		REQUIRE(mmap(p + 6 * page, page, PROT_READ | PROT_WRITE,
			     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED);
		memset(p + 6 * page, 6, page);
	}
	CHECK_IS(tern_barrier(t), 0);
	tern_addr a = board->at[0][0];
	if (tern_rank(t) == 1) {
		unsigned char *bytes = malloc(PAGES * page);
		REQUIRE(bytes);
		tern_op op = TERN_OP;
		int rc = tern_get(t, bytes, a, PAGES * page);
		CHECK_IS(rc, -EFAULT);
		CHECK(names(rc, "rank 0"));
		CHECK_IS(tern_get_start(t, bytes, a + 2 * page - 1, 2, &op), 0);
		CHECK_IS(tern_op_wait(t, &op), -EFAULT);
		rc = tern_put(t, a + 2 * page + 5, bytes, 1);
		CHECK_IS(rc, -EFAULT);
		CHECK(names(rc, "rank 0"));
		CHECK_IS(tern_get(t, bytes, a, 2 * page), 0); /* the others are as good as ever */
		CHECK_IS(bytes[2 * page - 1], 1);
		CHECK_IS(tern_get(t, bytes, a + 4 * page, page), 0); /* it may be read */
		CHECK_IS(tern_put(t, a + 4 * page, bytes, page), -EFAULT);
		CHECK_IS(tern_put(t, a + 4 * page, bytes, 8), -EFAULT);
		CHECK_IS(tern_amo(t, a + 4 * page, TERN_AMO_ADD, 1, (uint64_t *)NULL), -EFAULT);
		CHECK_IS(tern_amo(t, a + 2 * page, TERN_AMO_ADD, 1, (uint64_t *)NULL), -EFAULT);
		CHECK_IS(tern_get(t, bytes, a + 5 * page, 1), -EFAULT);
		CHECK_IS(tern_get(t, bytes, a + 6 * page, page), 0);
		CHECK(bytes[0] == 6 && bytes[page - 1] == 6);
		CHECK_IS(tern_put(t, a + 6 * page, "z", 1), 0);
	}
	CHECK_IS(tern_barrier(t), 0);
	if (p) {
		CHECK_IS(p[6 * page], 'z');
		CHECK_IS(p[4 * page], 1);
		CHECK_IS(tern_unregister(t, a), 0);
	}
	CHECK_IS(tern_close(t), 0);
}

TEST(a_page_that_is_gone_fails_the_operation_and_one_that_was_remapped_is_followed)
{
	job_run("1", 2, pages);
}

TEST(a_page_that_is_gone_fails_the_operation_by_message_and_the_owner_goes_on)
{
	job_run("0", 2, pages);
}

/* -- Everything else between processes ----------------------------------------------------- */

static unsigned ends;

static size_t count_end(tern *t, void *base, void *info)
{
	(void)t;
	(void)base;
	(void)info;
	ends++;
	return 0;
}

/*
 * Everybody fills a part of everybody's segment, waits for a value of its neighbour, asks for a
 * named block, stores.
 */
static void all_calls(tern *t, unsigned round)
{
	uint32_t me = tern_rank(t), n = tern_size(t), next = (me + 1) % n;
	enum { PART = 20000 };
	static unsigned char room[16 * PART], part[PART];
	static void *named = room;
	tern_op op = TERN_OP;
	tern_segment *s = (tern_segment *)(void *)board->image[0][0];
	uint64_t *flag = handed_alloc(t, 64), got = 0, block[4] = { 0 };
	REQUIRE(flag);
	CHECK_IS(flag[0] + flag[1], 0); /* this session's, and zero */
	ends = 0;
	memset(part, (int)(me + round), PART);
	CHECK_IS(tern_segment_open(t, room, n * PART, count_end, NULL, &s[me]), 0);
	board->at[me][0] = handed_addr(t, flag);
	CHECK_IS(tern_register(t, &flag[2], 8, &board->at[me][1]), 0);
	CHECK_IS(tern_block_name(t, 3, &named, sizeof room), 0);
	CHECK_IS(tern_barrier(t), 0);
	if (next != me) { /* registered by another process */
		void *p = NULL;
		CHECK_IS(tern_addr_local(t, board->at[next][1], 8, &p), -EXDEV);
		CHECK(!p);
	}
	CHECK_IS(tern_get_when_start(t, &got, board->at[next][0] + 8, 8,
				     &(tern_when){ .flag = board->at[next][0], .least = 1 }, &op),
		 0);
	for (uint32_t r = 0; r < n; r++)
		CHECK_IS(tern_segment_put_start(t, s[(me + r) % n] + me * PART, part, PART, &op),
			 0);
	flag[1] = 1000 + me;
	CHECK_IS(tern_amo(t, board->at[me][0], TERN_AMO_ADD, 1, (uint64_t *)NULL), 0);
	CHECK_IS(tern_op_wait(t, &op), 0);
	CHECK_IS(got, 1000 + next);
	CHECK_IS(tern_barrier(t), 0);
	CHECK_IS(ends, 1);
	for (uint32_t i = 0; i < n * PART; i++)
		CHECK(room[i] == (unsigned char)(i / PART + round));
	CHECK_IS(tern_block_get_start(
			 t, block, 1, next,
			 &(tern_block){
				 .name = 3, .offset = 5, .stride = PART, .run = 1, .count = n },
			 NULL),
		 0);
	for (uint32_t r = 0; r < n; r++)
		CHECK_IS(((unsigned char *)block)[r], (unsigned char)(r + round));
	CHECK_IS(tern_store(t, board->at[next][1], &got, 8), 0);
	CHECK_IS(tern_store_sync(t, 8), 0);
	CHECK_IS(flag[2], 1000 + me);
	CHECK_IS(tern_store_sync_all(t), 0);
}

static void sessions(void)
{
	for (unsigned i = 0; i < rounds; i++) {
		tern *t = ranks_open();
		all_calls(t, i);
		CHECK_IS(tern_barrier(t), 0);
		CHECK_IS(tern_close(t), 0);
	}
}

TEST(segments_names_whens_and_stores_work_between_processes_session_after_session)
{
	rounds = check_scaled(40);
	job_run("1", RANKS, sessions);
}

TEST(segments_names_whens_and_stores_work_between_processes_by_messages)
{
	rounds = check_scaled(40);
	job_run("0", RANKS, sessions);
}

/* Rank 1 puts into rank 0's private memory and gets it back, with no heap left to go through. */
static void move_without_heap(void)
{
	enum { BYTES = 100000 };
	static unsigned char mine[BYTES], back[BYTES];
	tern *t = NULL;
	struct chance c = { 11 };
	REQUIRE(tern_open(&t, NULL) == 0);
	while (handed_alloc(t, 64 << 10))
		;
	if (tern_rank(t) == 0)
		CHECK_IS(tern_register(t, mine, BYTES, &board->at[0][1]), 0);
	CHECK_IS(tern_barrier(t), 0);
	if (tern_rank(t) == 1) {
		model_scatter(mine, BYTES, &c);
		CHECK_IS(tern_put(t, board->at[0][1], mine, BYTES), 0);
		CHECK_IS(tern_get(t, back, board->at[0][1], BYTES), 0);
		CHECK(memcmp(mine, back, BYTES) == 0);
		memcpy(board->image[0][0], mine, BYTES);
	}
	CHECK_IS(tern_barrier(t), 0);
	CHECK(memcmp(mine, board->image[0][0], BYTES) == 0);
	CHECK_IS(tern_close(t), 0);
}

TEST(messages_carry_the_data_where_the_heap_has_no_room_for_bounces)
{
	setenv("TERN_HEAP", "1M", 1);
	job_run("0", 2, move_without_heap);
}
