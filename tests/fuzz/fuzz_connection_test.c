/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What comes to the links of machines: bytes of whoever has found the port, and status records of
 * one that has the key and is wrong.
 */
#include "fuzz.h"

#include <sys/socket.h>
#include <unistd.h>

#include "boot/link/connection.h"
#include "job/exchange.h"

enum { RANKS = 4 };

/* Nothing of an input before: the ranks of the other machine would stay dead for ever. */
static void job_as_new(struct job *j)
{
	job_session_begin(j, 1);
	for (uint32_t r = 0; r < RANKS; r++) {
		atomic_store(&j->rank[r].state, RANK_EXPECTED);
		atomic_store(&j->rank[r].told, 0);
		atomic_store(&j->rank[r].serial, 0);
		atomic_store(&j->card[r].published, 0);
	}
}

static struct job *machine(void)
{
	static const uint32_t where[RANKS] = { 0, 0, 1, 1 };
	static struct job job;
	if (!job.base) {
		REQUIRE(job_create(&job, RANKS, 0) == 0);
		job_spread(&job, where, 0, 2);
	}
	job_as_new(&job);
	return &job;
}

/* job_rank_check() ends the process of a rank whose job has ended, and this process is none. */
static void end_forget(struct job *j)
{
	struct job_end end;
	REQUIRE(!job_end_read(j, &end) || (end.rank < RANKS && end.status <= 255));
	atomic_store(&j->head->end, 0);
}

/* Nothing of it may be believed, however it is cut. */
static void stranger(const uint8_t *bytes, size_t len)
{
	struct connection c = { .fd = -1 };
	struct rank_status b;
	int pair[2];
	REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair) == 0);
	c.fd = pair[0];
	wire_open(&c.wire, c.fd, c.fd);
	c.wire.most = sizeof b;
	REQUIRE(send(pair[1], bytes, len, MSG_NOSIGNAL) == (ssize_t)len);
	connection_flush(&c);
	REQUIRE(connection_receive(&c, &b) <= 0);
	connection_close(&c);
	close(pair[1]);
}

/* Ranks of this machine stay what they are, and whoever has ended stays so. */
static void status_records(const uint8_t *bytes, size_t len)
{
	struct job *j = machine();
	char card[JOB_CARD_BYTES];
	while (len) {
		struct rank_status b = { .rank = 0 };
		size_t part;
		const uint8_t *at = fuzz_part(&bytes, &len, &part);
		memcpy(&b, at, part < sizeof b ? part : sizeof b);
		uint32_t rank = b.rank < RANKS ? b.rank : 0;
		bool ended = job_rank_state(j, rank) >= RANK_GONE;
		rank_status_take(j, &b);
		REQUIRE(job_rank_state(j, 0) == RANK_EXPECTED &&
			job_rank_state(j, 1) == RANK_EXPECTED);
		REQUIRE(!ended || job_rank_state(j, rank) >= RANK_GONE);
		REQUIRE(job_left(j) <= RANKS / 2);
		card_read(j, rank, card, sizeof card);
		end_forget(j);
		job_rank_check(j, rank);
		job_rank_passed(j, rank);
		rank_status_read(j, rank, &b);
	}
}

static void fuzz_one(const uint8_t *bytes, size_t len)
{
	char why[200];
	if (fuzz_byte(&bytes, &len) & 1)
		status_records(bytes, len);
	else if (seal_usable(why, sizeof why))
		stranger(bytes, len);
}

FUZZ_TARGET(connection, 2000)
