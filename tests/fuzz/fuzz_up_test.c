/* SPDX-License-Identifier: BSD-3-Clause */
/* What tern-link hears from a launcher, `tern run --hosts`, once it has started its ranks. */
#include "fuzz.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <tern/tern.h>

#include "tools/run/up.c"

enum { RANKS = 4 };

/* A descriptor from which the input can be read, and then its end. */
static int bytes_from(const uint8_t *bytes, size_t len)
{
	int fd[2];
	REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fd) == 0);
	REQUIRE(write(fd[1], bytes, len) == (ssize_t)len);
	close(fd[1]);
	return fd[0];
}

static struct job *machine(void)
{
	static const uint32_t where[RANKS] = { 0, 0, 1, 1 };
	static struct job job;
	if (!job.base) {
		REQUIRE(job_create(&job, RANKS, 0) == 0);
		job_spread(&job, where, 0, 2);
	}
	return &job;
}

/* Whatever the launcher says, ranks of this host are what they are. */
static void fuzz_one(const uint8_t *bytes, size_t len)
{
	int input[2], signal;
	uint64_t told[RANKS] = { 0 };
	REQUIRE(pipe2(input, O_CLOEXEC | O_NONBLOCK) == 0);
	struct up u = { .job = machine(), .told = told, .notice = -1, .input = input[1] };
	keepalive_begin(&u.silence, 0);
	wire_open(&u.wire, bytes_from(bytes, len), open("/dev/null", O_WRONLY | O_CLOEXEC));
	while (up_serve(&u))
		while (up_signal(&u, &signal))
			REQUIRE(signal >= 0 && signal < SIGRTMIN);
	for (uint32_t r = 0; r < RANKS / 2; r++)
		REQUIRE(job_rank_state(machine(), r) == RANK_EXPECTED);
	wire_close(&u.wire);
	free(u.pending.bytes);
	input_close(&u);
	close(input[0]);
}

FUZZ_TARGET(up, 1000)
