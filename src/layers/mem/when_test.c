/* SPDX-License-Identifier: BSD-3-Clause */
/* Getting a value when it is ready. Owners that die: tests/death/mem_death_test.c. */
#include <errno.h>
#include <sys/mman.h>

#include "lib/handed.h"
#include "lib/local.h"
#include "lib/mem_model.h"
#include "mem/mem.h"

enum { RANKS = 5, BYTES = 10000 };

/* Of rank 0. */
static unsigned char *bytes;
static _Atomic uint64_t *flag;
static tern_addr bytes_at, flag_at;
/* Of whoever asks. */
static unsigned char here[BYTES + 128], image[BYTES + 128];

static void ranks_open(void)
{
	struct chance c = { 3 };
	local_open(RANKS);
	bytes = handed_alloc(local[0], BYTES);
	flag = handed_alloc(local[0], 64);
	REQUIRE(bytes && flag);
	model_scatter(bytes, BYTES, &c);
	bytes_at = handed_addr(local[0], bytes);
	flag_at = handed_addr(local[0], flag);
	memset(here, 0xee, sizeof here);
	memset(image, 0xee, sizeof image);
}

static void check_here(void)
{
	CHECK(model_same(here, image, sizeof here));
}

TEST(a_value_that_is_ready_comes_at_once)
{
	ranks_open();
	tern_op op = TERN_OP;
	atomic_store(flag, 5);
	static const size_t lengths[] = { 1, 8, 63, 4096, TERN_PAYLOAD_MAX };
	for (int i = 0; i < 5; i++)
		for (uint64_t least = 0; least <= 5; least += 5)
			for (uint32_t r = 0; r < 2; r++) { /* the owner too */
				memset(here, 0xee, sizeof here);
				memset(image, 0xee, sizeof image);
				CHECK_IS(tern_get_when_start(
						 local[r], here + 64, bytes_at + 3, lengths[i],
						 &(tern_when){ .flag = flag_at, .least = least },
						 &op),
					 0);
				CHECK_IS(tern_op_wait(local[r], &op), 0);
				memcpy(image + 64, bytes + 3, lengths[i]);
				check_here();
			}
	local_close();
}

TEST(a_value_that_is_not_ready_is_held_and_comes_as_it_is_when_the_flag_is_reached)
{
	static _Atomic uint64_t done;
	ranks_open();
	tern_op op = { .flag = &done };
	CHECK_IS(tern_get_when_start(local[1], here + 64, bytes_at, 100,
				     &(tern_when){ .flag = flag_at, .least = 3 }, &op),
		 0);
	local_settle();
	CHECK_IS(op.pending, 1);
	check_here();
	bytes[7]++; /* what counts is what is there when it is ready */
	atomic_store(flag, 2);
	local_settle();
	CHECK_IS(op.pending, 1);
	check_here();
	CHECK_IS(tern_amo(local[2], flag_at, TERN_AMO_ADD, 5, (uint64_t *)NULL),
		 0); /* past it is as good */
	local_settle();
	CHECK_IS(op.pending, 0);
	CHECK_IS(atomic_load(&done), 1);
	memcpy(image + 64, bytes, 100);
	check_here();
	CHECK_IS(tern_op_wait(local[1], &op), 0);
	local_close();
}

TEST(what_is_out_of_range_too_long_or_split_between_ranks_is_refused)
{
	ranks_open();
	tern_op op = TERN_OP;
	void *other = handed_alloc(local[2], 64);
	REQUIRE(other);
	tern_addr other_at = handed_addr(local[2], other);
	CHECK_IS(tern_get_when_start(local[1], here, bytes_at, 8,
				     &(tern_when){ .flag = other_at, .least = 0 }, &op),
		 -EINVAL);
	CHECK_IS(tern_get_when_start(local[1], here, bytes_at, TERN_PAYLOAD_MAX + 1,
				     &(tern_when){ .flag = flag_at, .least = 0 }, &op),
		 -EMSGSIZE);
	CHECK_IS(tern_get_when_start(local[1], here, TERN_ADDR_NONE, 8,
				     &(tern_when){ .flag = flag_at, .least = 0 }, &op),
		 -EFAULT);
	CHECK_IS(tern_get_when_start(local[1], here, bytes_at, 8,
				     &(tern_when){ .flag = TERN_ADDR_NONE, .least = 0 }, &op),
		 -EFAULT);
	CHECK_IS(tern_get_when_start(local[1], here, bytes_at + (64 << 20), 8,
				     &(tern_when){ .flag = flag_at, .least = 0 }, &op),
		 -EFAULT);
	CHECK_IS(tern_get_when_start(local[1], here, handed_at(bytes_at, RANKS), 8,
				     &(tern_when){ .flag = flag_at, .least = 0 }, &op),
		 -ERANGE);
	CHECK_IS(op.pending, 0);
	int rc = tern_get_when_start(local[1], here, bytes_at, 8,
				     &(tern_when){ .flag = flag_at + 4, .least = 0 },
				     &op); /* a flag that is not aligned */
	if (!rc)
		rc = tern_op_wait(local[1], &op);
	CHECK(rc < 0);
	check_here();
	local_close();
}

TEST(more_requests_than_the_owner_has_places_for_are_all_answered_in_the_end)
{
	enum { EACH = 40, ASKERS = RANKS - 1 }; /* 160 for 64 places */
	static uint64_t got[ASKERS][EACH];
	ranks_open();
	tern_op op[ASKERS] = { TERN_OP };
	uint64_t *numbers = (uint64_t *)(void *)bytes;
	for (uint64_t i = 0; i < EACH; i++)
		numbers[i] = 1000 + i;
	for (uint32_t a = 0; a < ASKERS; a++)
		for (uint64_t i = 0; i < EACH; i++)
			CHECK_IS(tern_get_when_start(
					 local[a + 1], &got[a][i], bytes_at + 8 * i, 8,
					 &(tern_when){ .flag = flag_at, .least = i + 1 }, &op[a]),
				 0);
	CHECK(ASKERS * EACH > TERN_WHEN_MAX);
	for (int i = 0; i < 1000; i++)
		for (uint32_t r = 0; r < RANKS; r++)
			tern_poll(local[r]);
	for (uint32_t a = 0; a < ASKERS; a++)
		CHECK_IS(op[a].pending, EACH); /* none is ready, none is lost */
	for (uint64_t n = 1; n <= EACH; n++) {
		atomic_store(flag, n);
		for (uint32_t a = 0; a < ASKERS; a++)
			while (op[a].pending > EACH - n)
				for (uint32_t r = 0; r < RANKS; r++)
					tern_poll(local[r]);
	}
	for (uint32_t a = 0; a < ASKERS; a++) {
		CHECK_IS(tern_op_wait(local[a + 1], &op[a]), 0);
		for (uint64_t i = 0; i < EACH; i++)
			CHECK_IS(got[a][i], 1000 + i);
	}
	local_close();
}

TEST(a_rank_waits_for_so_many_values_at_a_time_and_does_other_things_meanwhile)
{
	static uint64_t got[TERN_WHEN_MAX], more;
	ranks_open();
	tern_op op = TERN_OP, other = TERN_OP;
	tern_segment s;
	for (unsigned i = 0; i < TERN_WHEN_MAX;
	     i++) /* its own flag: nobody else would ever raise it */
		CHECK_IS(tern_get_when_start(local[0], &got[i], bytes_at + 8 * i, 8,
					     &(tern_when){ .flag = flag_at, .least = 1 }, &op),
			 0);
	CHECK_IS(tern_get_when_start(local[0], &more, bytes_at, 8,
				     &(tern_when){ .flag = flag_at, .least = 1 }, &op),
		 -EAGAIN);
	CHECK_IS(tern_segment_open(local[1], here + 64, 10, NULL, NULL, &s), 0);
	CHECK_IS(tern_segment_put_start(local[0], s, bytes, 10, &other), 0);
	CHECK_IS(tern_op_wait(local[0], &other), 0);
	CHECK_IS(tern_flush(local[0]), 0); /* does not wait for them */
	memcpy(image + 64, bytes, 10);
	check_here();
	CHECK_IS(op.pending, TERN_WHEN_MAX);
	atomic_store(flag, 1);
	CHECK_IS(tern_op_wait(local[0], &op), 0);
	CHECK(memcmp(got, bytes, sizeof got) == 0);
	CHECK_IS(tern_get_when_start(local[0], &more, bytes_at, 8,
				     &(tern_when){ .flag = flag_at, .least = 1 }, NULL),
		 0);
	CHECK(memcmp(&more, bytes, 8) == 0);
	local_close();
}

TEST(memory_that_goes_while_a_request_is_held_ends_it_with_an_error)
{
	ranks_open();
	tern_op op = TERN_OP;
	tern_addr a;
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	REQUIRE(page != MAP_FAILED);
	REQUIRE(tern_register(local[0], page, 8192, &a) == 0);
	CHECK_IS(tern_get_when_start(local[1], here + 64, a + 100, 8,
				     &(tern_when){ .flag = flag_at, .least = 1 }, &op),
		 0); /* the data goes */
	CHECK_IS(tern_get_when_start(local[1], here + 64, bytes_at, 8,
				     &(tern_when){ .flag = a, .least = 1 }, &op),
		 0); /* the flag goes */
	local_settle();
	CHECK_IS(op.pending, 2);
	CHECK_IS(tern_unregister(local[0], a), 0);
	munmap(page, 8192);
	atomic_store(flag, 1);
	local_settle();
	int rc = tern_op_wait(local[1], &op);
	CHECK_IS(rc, -EFAULT);
	CHECK_IS(op.pending, 0);
	check_here();
	local_close();
}

/* Held already, and asked for later. */
TEST(a_flag_that_its_owner_has_unmapped_is_an_error_though_it_is_registered)
{
#ifndef __x86_64__
	check_skip("under an emulator the kernel does not refuse what is not mapped");
#endif
	ranks_open();
	tern_addr a;
	char *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	REQUIRE(page != MAP_FAILED);
	REQUIRE(tern_register(local[0], page, 4096, &a) == 0);
	for (int i = 0; i < 2; i++) {
		tern_op op = TERN_OP;
		CHECK_IS(tern_get_when_start(local[1], here + 64, bytes_at, 8,
					     &(tern_when){ .flag = a, .least = 1 }, &op),
			 0);
		local_settle();
		munmap(page, 4096);
		CHECK_IS(tern_op_wait(local[1], &op), -EFAULT);
	}
	check_here();
	CHECK_IS(tern_unregister(local[0], a), 0);
	local_close();
}
