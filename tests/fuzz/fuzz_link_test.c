/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A launcher's end of `tern run --hosts`: what comes from a host, while its remote shell runs or
 * when it has ended, and what the other hosts are told of it.
 */
#include "fuzz.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <tern/tern.h>

/*
 * Where the launcher reads and writes, so that the text of an input does not end up on this
 * program's output.
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
#include "job/exchange.h"
#include "lib/tools_free.h"
#include "tools/run/hosts.c"
#include "tools/run/output.c"

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

/*
 * What another host is told of this one's ranks must be what its agent takes; else one host could
 * end another.
 */
static void told_check(int fd)
{
	struct wire w;
	struct frame f;
	struct rank_status b;
	int32_t number;
	wire_open(&w, fd, fd);
	while (wire_read(&w))
		while (wire_next(&w, &f)) {
			if (f.type != FRAME_RANK_STATUS) {
				REQUIRE(f.type == FRAME_ORDER ||
					(f.type == FRAME_FABRIC && frame_number(&f, &number)));
				continue;
			}
			REQUIRE(f.len == sizeof b);
			memcpy(&b, f.data, sizeof b);
			REQUIRE(b.rank < RANKS / 2);
		}
	wire_close(&w);
}

static void fuzz_one(const uint8_t *bytes, size_t len)
{
	static char list[] = "a,b", ssh[] = "sh", program[] = "true";
	char *words[] = { program, NULL };
	struct run_options o = {
		.total = RANKS, .ranks = RANKS, .hosts = list, .shell = ssh, .program = words
	};
	bool ended = fuzz_byte(&bytes, &len) & 1;
	struct hosts h;
	struct output output;
	int other[2], code;
	signal(SIGPIPE, SIG_IGN); /* a keeper has all signals blocked */
	REQUIRE(hosts_open(&h, &o, &output) == 0 &&
		output_open(&output, 2, 0, 2, false, NULL) == 0);
	REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, other) == 0);
	REQUIRE(hosts_begin(&h, 0, getpid(), bytes_from(bytes, len), dup(fuzz_null()), &o) == 0 &&
		hosts_begin(&h, 1, getpid(), other[0], dup(other[0]), &o) == 0);
	for (int i = 0; !ended && i < 10; i++)
		hosts_serve(&h);
	hosts_left(&h, 0, 0);
	REQUIRE(hosts_ended(&h, 0, &code) && !hosts_ended(&h, 0, &code));
	hosts_close(&h);
	told_check(other[1]);
	while (!output_finished(&output))
		;
	for (unsigned i = 0; i < output.channels; i++) {
		close(output.channel[i].ready);
		free(output.channel[i].text.bytes);
	}
	free(output.stream);
}

FUZZ_TARGET(link, 1000)
