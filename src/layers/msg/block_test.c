/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Blocks of named memory that their owner sends as messages, and the tables as a person reads them.
 */
#include <errno.h>
#include <pthread.h>
#include <sys/mman.h>
#include <tern/mem.h>
#include <tern/send.h>

#include "lib/chance.h"
#include "lib/local.h"
#include "lib/rows.h"
#include "msg/msg.h"

enum { ID = 0x123, NAME = 4, AREA = 200000 };

static unsigned char area[AREA], in[AREA];
static void *where = area;

static void begin(uint32_t ranks)
{
	chance_fill(area, AREA, 1);
	local_open(ranks);
	CHECK_IS(tern_block_name(local[1], NAME, &where, AREA), 0);
}

static void block(size_t offset, size_t stride, size_t run, size_t count)
{
	tern_envelope env = { 0 };
	memset(in, 0xee, AREA);
	CHECK_IS(tern_block_ask(local[0], 1,
				&(tern_block){ .name = NAME,
					       .offset = offset,
					       .stride = stride,
					       .run = run,
					       .count = count },
				ID),
		 0);
	CHECK_IS(tern_recv(local[0], 1, ID, in, AREA, &env), 0);
	CHECK(env.src == 1 && env.id == ID && env.len == run * count);
	for (size_t i = 0; i < count; i++)
		CHECK(memcmp(in + i * run, area + offset + i * stride, run) == 0);
	CHECK(run * count == AREA || in[run * count] == 0xee);
	local_settle_transfers();
	CHECK_IS(msg_of(local[1])->sends.used, 0);
}

TEST(a_block_of_named_memory_comes_as_a_message)
{
	begin(2);
	block(0, 0, 8, 1);
	block(100, 50, 8, 3);
	block(7, 100, 33, 100);
	block(1, 1000, 999, 199);
	block(0, 2, 1, 1000);
	block(0, 0, AREA, 1);
	block(AREA - 1, 0, 1, 1);
	block(0, AREA / 2, AREA / 2, 2);
	block(5, 0, 10, 10); /* the same again and again */
	local_close();
}

TEST(a_block_may_be_received_in_parts_and_by_a_receive_that_was_posted_before)
{
	tern_op ro = TERN_OP;
	const tern_part column = ROWS(in, 8, 1000, 16);
	begin(2);
	memset(in, 0xee, AREA);
	CHECK_IS(tern_recv_parts_start(local[0], &(tern_match){ .rank = 1, .id = ID }, &column, 1,
				       NULL, &ro),
		 0);
	CHECK_IS(
		tern_block_ask(
			local[0], 1,
			&(tern_block){
				.name = NAME, .offset = 3, .stride = 100, .run = 8, .count = 1000 },
			ID),
		0);
	CHECK_IS(tern_op_wait(local[0], &ro), 0);
	for (size_t i = 0; i < 1000; i++)
		CHECK(memcmp(in + i * 16, area + 3 + i * 100, 8) == 0 && in[i * 16 + 8] == 0xee);
	local_close();
}

TEST(a_block_is_read_when_the_receive_is_there)
{
	begin(2);
	CHECK_IS(tern_block_ask(local[0], 1,
				&(tern_block){ .name = NAME, .stride = 2, .run = 1, .count = 10 },
				ID),
		 0);
	CHECK_IS(tern_block_ask(
			 local[0], 1,
			 &(tern_block){ .name = NAME, .stride = 2, .run = 1, .count = 50000 }, ID),
		 0);
	local_settle_transfers();
	chance_fill(area, AREA, 77);
	for (int i = 0; i < 2; i++) {
		tern_envelope env;
		CHECK_IS(tern_recv(local[0], 1, ID, in, AREA, &env), 0);
		for (size_t b = 0; b < env.len; b++)
			if (!CHECK(in[b] == area[2 * b]))
				break;
	}
	local_close();
}

TEST(a_rank_may_ask_itself_for_a_block)
{
	begin(2);
	CHECK_IS(
		tern_block_ask(
			local[1], 1,
			&(tern_block){
				.name = NAME, .offset = 10, .stride = 20, .run = 10, .count = 100 },
			ID),
		0);
	CHECK_IS(tern_recv(local[1], 1, ID, in, AREA, NULL), 0);
	for (size_t i = 0; i < 100; i++)
		CHECK(memcmp(in + i * 10, area + 10 + i * 20, 10) == 0);
	local_close();
}

TEST(what_is_not_published_is_not_agreed_to)
{
	begin(2);
	int rc = tern_block_ask(
		local[0], 1, &(tern_block){ .name = NAME + 1, .stride = 1, .run = 1, .count = 1 },
		ID);
	CHECK_IS(rc, -ENOENT);
	CHECK(sentence_has(rc, "rank 1") && sentence_has(rc, "5"));
	CHECK_IS(
		tern_block_ask(
			local[0], 1,
			&(tern_block){ .name = TERN_BLOCKS_MAX, .stride = 1, .run = 1, .count = 1 },
			ID),
		-ENOENT);
	CHECK_IS(tern_block_ask(
			 local[0], 1,
			 &(tern_block){
				 .name = NAME, .offset = AREA, .stride = 1, .run = 1, .count = 1 },
			 ID),
		 -ENOENT);
	CHECK_IS(tern_block_ask(local[0], 1,
				&(tern_block){ .name = NAME, .stride = 1, .run = AREA, .count = 2 },
				ID),
		 -ENOENT);
	CHECK_IS(tern_block_ask(local[0], 1,
				&(tern_block){ .name = NAME,
					       .offset = 1,
					       .stride = AREA / 2,
					       .run = AREA / 2,
					       .count = 2 },
				ID),
		 -ENOENT);
	CHECK_IS(
		tern_block_ask(
			local[0], 1,
			&(tern_block){ .name = NAME, .stride = SIZE_MAX / 2, .run = 1, .count = 4 },
			ID),
		-ENOENT);
	CHECK_IS(tern_block_ask(local[0], 1,
				&(tern_block){ .name = NAME,
					       .offset = SIZE_MAX,
					       .stride = 1,
					       .run = 1,
					       .count = 1 },
				ID),
		 -ENOENT);
	CHECK_IS(tern_block_ask(local[0], 1,
				&(tern_block){ .name = NAME, .run = SIZE_MAX / 4, .count = 8 }, ID),
		 -ENOENT);
	CHECK_IS(tern_block_ask(local[0], 0,
				&(tern_block){ .name = NAME, .stride = 1, .run = 1, .count = 1 },
				ID),
		 -ENOENT);
	CHECK_IS(tern_block_name(local[1], NAME, NULL, 0), 0);
	CHECK_IS(tern_block_ask(local[0], 1,
				&(tern_block){ .name = NAME, .stride = 1, .run = 1, .count = 1 },
				ID),
		 -ENOENT);
	local_settle_transfers();
	CHECK_IS(tern_probe(local[0], &(tern_match){ .rank = TERN_RANK_ANY, .any = TERN_ID_ANY },
			    NULL),
		 0);
	CHECK_IS(msg_of(local[1])->sends.used, 0);
	local_close();
}

TEST(a_rank_with_too_many_sends_does_not_agree)
{
	tern_op so = TERN_OP;
	begin(2);
	for (int i = 0; i < TERN_SENDS_MAX; i++)
		CHECK_IS(tern_send_start(local[1], 0, 1, area, 8, TERN_SEND_RENDEZVOUS, &so), 0);
	CHECK_IS(tern_block_ask(local[0], 1,
				&(tern_block){ .name = NAME, .stride = 1, .run = 1, .count = 1 },
				ID),
		 -EAGAIN);
	CHECK_IS(tern_recv(local[0], 1, 1, in, 8, NULL), 0);
	local_settle_transfers();
	CHECK_IS(tern_block_ask(local[0], 1,
				&(tern_block){ .name = NAME, .stride = 1, .run = 1, .count = 1 },
				ID),
		 0);
	local_close();
}

TEST(a_rank_that_has_left_is_not_asked)
{
	begin(3);
	CHECK_IS(tern_block_ask(local[0], 1,
				&(tern_block){ .name = NAME, .stride = 1, .run = 1, .count = 1 },
				ID),
		 0);
	local_close_one(1);
	int rc = tern_block_ask(
		local[0], 1, &(tern_block){ .name = NAME, .stride = 1, .run = 1, .count = 1 }, ID);
	CHECK_IS(rc, -ESHUTDOWN);
	CHECK(sentence_has(rc, "rank 1"));
	local_close();
}

TEST(many_blocks_of_one_id_come_in_the_order_they_were_asked_for)
{
	begin(2);
	for (size_t i = 0; i < 100; i++)
		CHECK_IS(tern_block_ask(local[0], 1,
					&(tern_block){ .name = NAME,
						       .offset = i,
						       .run = i % 2 ? 1 : 10000,
						       .count = 1 },
					ID),
			 0);
	for (size_t i = 0; i < 100; i++) {
		tern_envelope env;
		CHECK_IS(tern_recv(local[0], 1, ID, in, AREA, &env), 0);
		CHECK_IS(env.len, i % 2 ? 1 : 10000);
		CHECK(memcmp(in, area + i, env.len) == 0);
	}
	local_close();
}

TEST(a_rank_that_asks_for_blocks_without_end_leaves_room_for_the_sends_of_the_rank_it_asks)
{
	tern_op op = TERN_OP;
	int rc = 0;
	begin(2);
	for (unsigned i = 0; i < TERN_SENDS_MAX && !rc; i++)
		rc = tern_block_ask(
			local[0], 1,
			&(tern_block){ .name = NAME, .stride = 1, .run = 1, .count = 1 }, ID);
	CHECK_IS(rc, -EAGAIN);
	CHECK_IS(tern_send_start(local[1], 0, ID + 1, area, 8, TERN_SEND_RENDEZVOUS, &op), 0);
	CHECK_IS(tern_recv(local[0], 1, ID, in, AREA, NULL), 0); /* one less */
	local_settle_transfers();
	CHECK_IS(tern_block_ask(local[0], 1,
				&(tern_block){ .name = NAME, .stride = 1, .run = 1, .count = 1 },
				ID),
		 0);
	local_close();
}

static int nested;

static void ask_nested(tern *t, void *arg)
{
	(void)arg;
	nested = tern_block_ask(
		t, 2, &(tern_block){ .name = NAME, .stride = 1, .run = 1, .count = 1 }, ID);
}

TEST(a_deferred_function_may_ask_while_the_program_does)
{
	begin(3);
	nested = 1;
	CHECK_IS(tern_defer(local[0], ask_nested, NULL), 0);
	CHECK_IS(tern_block_ask(local[0], 1,
				&(tern_block){ .name = NAME, .stride = 1, .run = 1, .count = 1 },
				ID),
		 0);
	local_settle_transfers();
	CHECK_IS(nested, -ENOENT); /* rank 2 has no such name */
	CHECK_IS(tern_probe(local[0], &(tern_match){ .rank = 1, .id = ID }, NULL), 1);
	local_close();
}

/* -- The tables, printed ----------------------------------------------------------------------- */

static char text[100000];

static void read_back(int fd)
{
	ssize_t n = pread(fd, text, sizeof text - 1, 0);
	REQUIRE(n >= 0);
	text[n] = '\0';
}

/* Whether one line has all of these words. */
static bool line_with(const char *a, const char *b, const char *c, const char *d)
{
	for (char *line = text; *line;) {
		size_t len = strcspn(line, "\n");
		char copy[1000];
		snprintf(copy, sizeof copy, "%.*s", (int)len, line);
		if (strstr(copy, a) && strstr(copy, b) && strstr(copy, c) && strstr(copy, d))
			return true;
		line += len + (line[len] == '\n');
	}
	printf("    no line has '%s', '%s', '%s' and '%s' in:\n%s", a, b, c, d, text);
	return false;
}

static unsigned lines(void)
{
	unsigned n = 0;
	for (char *at = text; (at = strchr(at, '\n')); at++)
		n++;
	return n;
}

TEST(what_is_under_way_is_printed_with_a_line_for_each)
{
	static const tern_part halves[2] = { { .base = in, .run = 50000 },
					     { .base = in + 50000, .run = 50000 } };
	tern_op op = TERN_OP;
	begin(3);
	int fd = memfd_create("tables", 0);
	REQUIRE(fd >= 0);
	CHECK_IS(tern_send_start(local[0], 1, 0xa1, area, 12345, 0, &op), 0);  /* in use */
	CHECK_IS(tern_send_start(local[0], 1, 0xa3, area, 100000, 0, &op), 0); /* in progress */
	CHECK_IS(tern_recv_start(local[0], &(tern_match){ .rank = 2, .id = 0xb1 }, in, 321, NULL,
				 &op),
		 0); /* in use */
	CHECK_IS(tern_recv_start(local[0],
				 &(tern_match){ .rank = TERN_RANK_ANY, .id = 0xbb2, .any = ~0xff0 },
				 in, 654, NULL, &op),
		 0);
	CHECK_IS(tern_send(local[2], 0, 0xc1, area, 99), 0);                  /* buffered */
	CHECK_IS(tern_send_start(local[2], 0, 0xc2, area, 98765, 0, &op), 0); /* asks */
	CHECK_IS(tern_recv_parts_start(local[1], &(tern_match){ .rank = 0, .id = 0xa3 }, halves, 2,
				       NULL, &op),
		 0);
	tern_poll(local[1]);
	tern_poll(local[0]);
	msg_print(msg_of(local[0]), fd);
	read_back(fd);
	CHECK(line_with("send", "0xa1", "rank 1", "12345") &&
	      line_with("0xa1", "in use", "no receive has matched it", ""));
	CHECK(line_with("send", "0xa3", "rank 1", "100000") &&
	      line_with("0xa3", "in progress", "", ""));
	CHECK(line_with("receive", "0xb1", "rank 2", "321") && line_with("0xb1", "in use", "", ""));
	CHECK(line_with("receive", "0xbb2", "any rank", "654") &&
	      line_with("0xbb2", "0xff0", "in use", ""));
	CHECK(line_with("0xc1", "rank 2", "99", "buffered"));
	CHECK(line_with("0xc2", "rank 2", "98765", "RTS"));
	CHECK_IS(lines(), 7); /* and a heading */
	int rc = ftruncate(fd, 0);
	CHECK_IS(rc, 0);
	CHECK_IS(lseek(fd, 0, SEEK_SET), 0);
	msg_print(msg_of(local[1]), fd);
	read_back(fd);
	CHECK(line_with("rank 1", "receive", "0xa3", "in progress"));
	CHECK(line_with("0xa3", "rank 0", "100000", ""));
	close(fd);
	local_close();
}

static void *answer_late(void *arg)
{
	struct timespec nap = { .tv_sec = 1, .tv_nsec = 300000000 };
	tern *t = arg;
	nanosleep(&nap, NULL);
	CHECK_IS(tern_send(t, 0, 0xdad, &(uint64_t){ 1 }, sizeof(uint64_t)), 0);
	return NULL;
}

TEST(a_wait_that_takes_long_prints_what_is_under_way_to_stderr)
{
	tern_op op = TERN_OP;
	uint64_t word;
	pthread_t thread;
	setenv("TERN_STUCK", "1", 1);
	begin(2);
	int fd = memfd_create("stuck", 0);
	REQUIRE(fd >= 0 && dup2(fd, 2) == 2);
	CHECK_IS(tern_send_start(local[0], 1, 0xa1, area, AREA, 0, &op), 0);
	REQUIRE(pthread_create(&thread, NULL, answer_late, local[1]) == 0);
	CHECK_IS(tern_recv(local[0], 1, 0xdad, &word, sizeof word, NULL), 0);
	pthread_join(thread, NULL);
	read_back(fd);
	CHECK(line_with("rank 0", "waited", "in tern_recv 0xdad from rank 1", ""));
	CHECK(line_with("rank 0", "send", "0xa1", "rank 1"));
	CHECK(line_with("rank 0", "receive", "0xdad", "in use"));
	local_close();
}
