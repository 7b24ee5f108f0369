/* SPDX-License-Identifier: BSD-3-Clause */
/* What an agent of `tern run --hosts` hears from its launcher, once it has started its ranks. */
#include "fuzz.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <tern/tern.h>

/*
 * Where an agent reads and writes, so that the text of an input does not end up on this program's
 * output.
 */
static int fuzz_null(void)
{
	static int fd = -1;
	if (fd < 0)
		fd = open("/dev/null", O_RDWR | O_CLOEXEC);
	return fd;
}
#undef STDIN_FILENO
#undef STDOUT_FILENO
#undef STDERR_FILENO
#define STDIN_FILENO fuzz_null()
#define STDOUT_FILENO fuzz_null()
#define STDERR_FILENO fuzz_null()
#include "tools/run/agent.c"

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
	int input[2];
	uint64_t told[RANKS / 2] = { 0 };
	REQUIRE(pipe2(input, O_CLOEXEC | O_NONBLOCK) == 0);
	struct agent a = { .keeper = -1, .deaths = -1, .out = -1, .err = -1, .input = input[1] };
	a.relay = (struct status_relay){
		.job = *machine(), .ranks = RANKS / 2, .told = told, .fd = -1
	};
	keepalive_begin(&a.silence, 0);
	wire_open(&a.wire, bytes_from(bytes, len), dup(fuzz_null()));
	while (agent_listen(&a))
		status_relay_tell(&a.relay, &a.wire);
	for (uint32_t r = 0; r < RANKS / 2; r++)
		REQUIRE(job_rank_state(machine(), r) == RANK_EXPECTED);
	wire_close(&a.wire);
	free(a.pending.bytes);
	input_close(&a);
	close(input[0]);
}

FUZZ_TARGET(agent, 1000)
