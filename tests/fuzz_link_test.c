/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A launcher's end of `tern run --hosts`: a link hears what comes from its host, and the keeper
 * what links pass on. An input says which of them hears it.
 */
#include "fuzz.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <tern/tern.h>

/*
 * Where links read and write, so that the text of an input does not end up on this program's
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
#include "job/exchange.h"
#include "tools/run/hosts.h"
#include "tools/run/link.c"

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

static void link_hears(const uint8_t *bytes, size_t len)
{
	struct link l = { .host = "there" };
	const char *text;
	keepalive_begin(&l.silence, 0);
	wire_open(&l.agent, bytes_from(bytes, len), dup(fuzz_null()));
	wire_open(&l.launcher, -1, dup(fuzz_null())); /* the launcher says nothing */
	while (link_round(&l))
		;
	REQUIRE(link_noise(&l, &text) <= NOISE);
	wire_close(&l.agent);
	wire_close(&l.launcher);
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

static void launcher_hears(const uint8_t *bytes, size_t len)
{
	static char list[] = "a,b", ssh[] = "sh", program[] = "true";
	char *words[] = { program, NULL };
	struct run_options o = {
		.total = RANKS, .ranks = RANKS, .hosts = list, .shell = ssh, .program = words
	};
	struct hosts h;
	int other[2];
	signal(SIGPIPE, SIG_IGN); /* a keeper has all signals blocked */
	REQUIRE(hosts_open(&h, &o) == 0);
	REQUIRE(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, other) == 0);
	REQUIRE(hosts_begin(&h, 0, bytes_from(bytes, len), &o) == 0 &&
		hosts_begin(&h, 1, other[0], &o) == 0);
	for (int i = 0; i < 10; i++)
		hosts_serve(&h);
	hosts_close(&h);
	told_check(other[1]);
}

static void fuzz_one(const uint8_t *bytes, size_t len)
{
	if (fuzz_byte(&bytes, &len) & 1)
		launcher_hears(bytes, len);
	else
		link_hears(bytes, len);
}

FUZZ_TARGET(link, 1000)
