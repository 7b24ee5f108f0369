/* SPDX-License-Identifier: BSD-3-Clause */
/* What the library writes under TERN_TRACE, read back by what `tern trace` reads with. */
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "endpoint/record.h"
#include "lib/handed.h"
#include "lib/local.h"
#include "lib/tools_free.h"
#include "tools/trace/file.h"

enum { ASK, ANSWER, TAKE };

static char folder[] = "/tmp/tern-trace-XXXXXX";
static char prefix[64];
static struct track track[2];

static void on_ask(tern *t, const tern_msg *m)
{
	CHECK_IS(tern_reply(t, m, ANSWER, 1, 2, 3), 0);
	CHECK_IS(tern_reply(t, m, ANSWER, 1, 2, 3), -EALREADY);
}

static void on_nothing(tern *t, const tern_msg *m)
{
	(void)t;
	(void)m;
}

static void folder_make(void)
{
	REQUIRE(mkdtemp(folder));
	snprintf(prefix, sizeof prefix, "%s/t", folder);
	setenv("TERN_TRACE", prefix, 1);
}

static char *path_of(uint32_t rank)
{
	static char path[2][80];
	snprintf(path[rank], sizeof path[rank], "%s.%u", prefix, rank);
	return path[rank];
}

static void folder_remove(void)
{
	unlink(path_of(0));
	unlink(path_of(1));
	rmdir(folder);
}

static void pair_open(void)
{
	local_open(2);
	local_on(ASK, on_ask);
	local_on(ANSWER, on_nothing);
	local_on(TAKE, on_nothing);
}

static void tracks_read(void)
{
	for (uint32_t r = 0; r < 2; r++) {
		int rc = track_read(&track[r], path_of(r));
		if (rc)
			printf("    %s\n", tern_strerror(rc));
		REQUIRE(rc == 0);
		CHECK_IS(track[r].head.rank, r);
		CHECK_IS(track[r].head.size, 2);
	}
	CHECK(track[0].head.job == track[1].head.job);
}

static unsigned count(const struct track *t, enum record_kind kind)
{
	unsigned n = 0;
	for (size_t i = 0; i < t->records; i++)
		n += t->record[i].kind == kind;
	return n;
}

static const struct trace_record *find(const struct track *t, enum record_kind kind,
				       uint32_t sequence)
{
	for (size_t i = 0; i < t->records; i++)
		if (t->record[i].kind == kind && t->record[i].sequence == sequence)
			return &t->record[i];
	return NULL;
}

TEST(every_message_is_recorded_where_it_is_sent_and_where_it_is_handled)
{
	char payload[100] = { 0 };
	folder_make();
	pair_open();
	CHECK_IS(tern_request(local[0], 1, ASK), 0);
	CHECK_IS(tern_request(local[0], 1, TAKE, 1), 0);
	CHECK_IS(tern_request(local[0], 1, TAKE, 1, 2, 3, 4, 5, 6), 0);
	CHECK_IS(tern_request_data(local[0], 1, TAKE, payload, sizeof payload, 7), 0);
	void *claimed = handed_claim(local[0], 1, 50);
	REQUIRE(claimed);
	CHECK_IS(tern_commit(local[0], claimed, TAKE), 0);
	CHECK_IS(local_settle(), 6);
	local_close();
	tracks_read();
	const uint32_t bytes[] = { 0, 8, 48, 108, 50 };
	CHECK_IS(count(&track[0], RECORD_REQUEST), 5);
	CHECK_IS(count(&track[1], RECORD_HANDLE), 5);
	for (uint32_t i = 0; i < 5; i++) {
		const struct trace_record *sent = find(&track[0], RECORD_REQUEST, i);
		const struct trace_record *handled = find(&track[1], RECORD_HANDLE, i);
		REQUIRE(sent && handled);
		CHECK_IS(sent->bytes, bytes[i]);
		CHECK_IS(handled->bytes, bytes[i]);
		CHECK_IS(sent->handler, i ? TAKE : ASK);
		CHECK_IS(handled->handler, i ? TAKE : ASK);
		CHECK_IS(sent->peer, 1);
		CHECK_IS(handled->peer, 0);
		CHECK(sent->time <= handled->time);
	}
	CHECK_IS(count(&track[1], RECORD_REPLY), 1);
	CHECK_IS(count(&track[0], RECORD_HANDLE_RE), 1);
	CHECK_IS(count(&track[1], RECORD_RETURN), 5);
	CHECK(track_closed(&track[0]) && track_closed(&track[1]));
	folder_remove();
}

TEST(nothing_is_recorded_unless_it_is_asked_for)
{
	folder_make();
	unsetenv("TERN_TRACE");
	pair_open();
	CHECK_IS(tern_request(local[0], 1, TAKE, 1), 0);
	CHECK_IS(local_settle(), 1);
	local_close();
	CHECK(access(path_of(0), F_OK) != 0);
	folder_remove();
}

TEST(a_wait_that_is_over_before_it_begins_is_none)
{
	_Atomic uint64_t flag = 1;
	folder_make();
	pair_open();
	CHECK_IS(tern_wait(local[0], &flag, 1), 0);
	local_close();
	tracks_read();
	CHECK_IS(track[0].records, 1);
	folder_remove();
}

static _Atomic uint64_t signalled;

static void on_signal(tern *t, const tern_msg *m)
{
	(void)m;
	tern_signal(t, &signalled, 1);
}

TEST(what_ends_a_wait_is_handled_inside_it)
{
	folder_make();
	pair_open();
	local_on(TAKE, on_signal);
	CHECK_IS(tern_request(local[1], 0, TAKE, 1), 0);
	CHECK_IS(tern_wait(local[0], &signalled, 1), 0);
	local_close();
	tracks_read();
	REQUIRE(track[0].records == 5);
	const uint8_t kinds[] = { RECORD_WAIT, RECORD_HANDLE, RECORD_RETURN, RECORD_WAITED,
				  RECORD_CLOSE };
	for (int i = 0; i < 5; i++)
		CHECK_IS(track[0].record[i].kind, kinds[i]);
	CHECK_IS(track[0].record[0].handler, WAIT_FLAG);
	folder_remove();
}

TEST(a_wait_of_many_steps_is_one)
{
	static tern_flag never;
	folder_make();
	pair_open();
	CHECK_IS(tern_wait_for(local[0], &never, 1, 1000000), -ETIMEDOUT);
	local_close();
	tracks_read();
	CHECK_IS(count(&track[0], RECORD_WAIT), 1);
	CHECK_IS(count(&track[0], RECORD_WAITED), 1);
	folder_remove();
}

TEST(a_full_ring_is_written_out_and_nothing_is_lost)
{
	enum { MANY = 20000 };
	folder_make();
	pair_open();
	for (uint32_t i = 0; i < MANY; i++) {
		CHECK_IS(tern_request(local[0], 1, TAKE, i), 0);
		if (i % 100 == 0)
			local_settle();
	}
	local_settle();
	local_close();
	tracks_read();
	CHECK_IS(count(&track[0], RECORD_REQUEST), MANY);
	CHECK_IS(count(&track[1], RECORD_HANDLE), MANY);
	CHECK_IS(count(&track[1], RECORD_DROPPED), 0);
	folder_remove();
}

/*
 * A pipe that is not emptied in time stands for a disk that is slow: this rank's events go into it.
 */
static int pipe_make(uint32_t rank)
{
	REQUIRE(mkfifo(path_of(rank), 0600) == 0);
	int fd = open(path_of(rank), O_RDWR | O_NONBLOCK);
	REQUIRE(fd >= 0);
	return fd;
}

static size_t pipe_empty(int fd, char *to, size_t room)
{
	size_t had = 0;
	ssize_t got;
	while (had < room && (got = read(fd, to + had, room - had)) > 0)
		had += (size_t)got;
	return had;
}

static uint64_t dropped(const struct track *t)
{
	uint64_t n = 0;
	for (size_t i = 0; i < t->records; i++)
		if (t->record[i].kind == RECORD_DROPPED)
			n += t->record[i].sequence;
	return n;
}

TEST(a_file_that_takes_nothing_costs_events_and_never_blocks)
{
	enum { MANY = 40000, PIPE_MOST = 1 << 22 };
	static char text[PIPE_MOST];
	folder_make();
	int fd = pipe_make(0);
	pair_open();
	for (uint32_t i = 0; i < MANY; i++) {
		CHECK_IS(tern_request(local[0], 1, TAKE, i), 0);
		if (i % 100 == 0)
			local_settle();
	}
	local_settle();
	size_t had = pipe_empty(fd, text, sizeof text);
	if (fcntl(fd, F_SETPIPE_SZ, 1 << 20) < 0)
		check_skip("a pipe cannot be made larger here");
	/*
	 * The ring is full, and the pipe takes everything again: now, or after a pause if a write
	 * has taken long.
	 */
	unsigned asked = 0;
	for (size_t before = had; had == before;
	     had += pipe_empty(fd, text + had, sizeof text - had)) {
		CHECK_IS(tern_request(local[0], 1, ASK), 0);
		local_settle();
		usleep(asked++ ? 10000 : 0);
	}
	unlink(path_of(0));
	int copy = open(path_of(0), O_WRONLY | O_CREAT, 0600);
	CHECK(write(copy, text, had) == (ssize_t)had);
	local_close();
	had = pipe_empty(fd, text, sizeof text);
	CHECK(write(copy, text, had) == (ssize_t)had);
	tracks_read();
	uint64_t lost = dropped(&track[0]), lost_there = dropped(&track[1]);
	CHECK(lost > 0);
	uint64_t known = count(&track[0], RECORD_REQUEST) + lost;
	CHECK(asked == 1 ? known == MANY + 1
			 : known > MANY + asked); /* what was asked for in vain was answered, too */
	CHECK_IS(find(&track[0], RECORD_REQUEST, MANY + asked - 1) != NULL,
		 1);    /* counted on, whatever was dropped */
	if (lost_there) /* a busy machine may not write a file as fast, either */
		CHECK(count(&track[1], RECORD_HANDLE) + lost_there >= MANY + asked);
	else
		CHECK_IS(count(&track[1], RECORD_HANDLE), MANY + asked);
	folder_remove();
}

TEST(a_full_disk_is_an_error_of_opening)
{
	folder_make();
	if (mknod(path_of(1), S_IFCHR | 0600, makedev(1, 7)) != 0) /* as /dev/full */
		check_skip("no devices can be made here");
	CHECK_IS(tern_open_local(2, local), -ENOSPC);
	CHECK(strstr(tern_strerror(-ENOSPC), "t.1 cannot be written") != NULL);
	folder_remove();
}

TEST(a_trace_follows_no_link_and_is_its_users_alone)
{
	struct stat st;
	folder_make();
	REQUIRE(symlink("/tmp/tern-trace-nothing", path_of(1)) == 0);
	CHECK_IS(tern_open_local(2, local), -ELOOP);
	CHECK(strstr(tern_strerror(-ELOOP), "t.1 cannot be written: it is a symbolic link"));
	CHECK(access("/tmp/tern-trace-nothing", F_OK) != 0);
	unlink(path_of(1));
	pair_open();
	local_close();
	for (uint32_t r = 0; r < 2; r++)
		CHECK(stat(path_of(r), &st) == 0 && (st.st_mode & 07777) == 0600);
	folder_remove();
}

TEST(a_limit_of_file_size_costs_the_trace_and_not_the_rank)
{
	enum { MANY = 40000 };
	struct rlimit few = { 100000, 100000 };
	folder_make();
	pair_open();
	REQUIRE(setrlimit(RLIMIT_FSIZE, &few) == 0);
	for (uint32_t i = 0; i < MANY; i++) {
		CHECK_IS(tern_request(local[0], 1, TAKE, i), 0);
		if (i % 100 == 0)
			local_settle();
	}
	local_settle();
	local_close();
	tracks_read(); /* up to there */
	CHECK(count(&track[0], RECORD_REQUEST) > 1000);
	CHECK(count(&track[0], RECORD_REQUEST) < MANY);
	folder_remove();
}

TEST(a_file_that_cannot_be_made_is_an_error_that_names_it)
{
	setenv("TERN_TRACE", "/nowhere/at/all", 1);
	CHECK_IS(tern_open_local(2, local), -ENOENT);
	CHECK(strstr(tern_strerror(-ENOENT), "/nowhere/at/all.0 cannot be written") != NULL);
}

TEST(a_trace_without_an_end_can_be_read_up_to_where_it_was_cut)
{
	folder_make();
	pair_open();
	CHECK_IS(tern_request(local[0], 1, TAKE, 1), 0);
	local_settle();
	local_close();
	struct stat st;
	REQUIRE(stat(path_of(1), &st) == 0 && track_read(&track[1], path_of(1)) == 0);
	size_t whole = track[1].records;
	CHECK(whole > 1 && !track[1].cut);
	track_free(&track[1]);
	REQUIRE(truncate(path_of(1), st.st_size - (off_t)sizeof(struct trace_record) + 5) == 0);
	tracks_read();
	CHECK(track[1].cut && !track_closed(&track[1]));
	CHECK_IS(track[1].records, whole - 1);
	folder_remove();
}

TEST(handlers_are_named_in_the_file_and_a_name_that_was_cut_off_is_none)
{
	folder_make();
	pair_open();
	local_close();
	REQUIRE(track_read(&track[0], path_of(0)) == 0);
	CHECK(strcmp(track[0].name[TAKE], "on_nothing") == 0);
	CHECK(strcmp(track[0].name[TERN_HANDLER_MAX], "on_served") == 0);
	CHECK(!*track[0].name[TERN_HANDLER_MAX - 1]);
	CHECK_IS(track[0].records, 1); /* that it has closed */
	track_free(&track[0]);
	REQUIRE(truncate(path_of(0), sizeof(struct trace_head) + sizeof(struct trace_record) + 5) ==
		0);
	REQUIRE(track_read(&track[0], path_of(0)) == 0);
	CHECK(track[0].cut);
	CHECK_IS(track[0].records, 0);
	track_free(&track[0]);
	folder_remove();
}

static void refused(const char *bytes, size_t n, const char *why)
{
	FILE *f = fopen(path_of(0), "w");
	REQUIRE(f);
	fwrite(bytes, 1, n, f);
	fclose(f);
	int rc = track_read(&track[0], path_of(0));
	CHECK(rc < 0 && strstr(tern_strerror(rc), path_of(0)) && strstr(tern_strerror(rc), why));
	track_free(&track[0]);
}

TEST(a_file_that_is_no_trace_is_refused_with_its_name_and_the_reason)
{
	struct {
		struct trace_head head;
		struct trace_record record[2];
	} file = { .head = { .record_bytes = sizeof(struct trace_record), .rank = 0, .size = 2 } };
	folder_make();
	memcpy(file.head.magic, TRACE_MAGIC, sizeof file.head.magic);
	refused("", 0, "is empty");
	refused("#!/bin/sh\n", 10, "is not a trace");
	refused((char *)&file, 100, "truncated");
	file.record[0].kind = RECORD_KINDS;
	refused((char *)&file, sizeof file, "record 0 is of no known kind");
	file.record[0].kind = RECORD_REQUEST;
	file.record[0].peer = 2;
	refused((char *)&file, sizeof file, "record 0 names a rank");
	file.record[0].peer = 1;
	file.record[0].time = 9;
	refused((char *)&file, sizeof file, "record 1 is older");
	file.head.record_bytes = 32;
	refused((char *)&file, sizeof file, "records of 32 bytes");
	file.head = (struct trace_head){ .record_bytes = sizeof(struct trace_record),
					 .rank = 5,
					 .size = 2 };
	memcpy(file.head.magic, TRACE_MAGIC, sizeof file.head.magic);
	refused((char *)&file, sizeof file, "rank 5 of 2");
	folder_remove();
}
