/* SPDX-License-Identifier: BSD-3-Clause */
/* Knocks at a sleeper's port. */
#include "base/kernel.h"

#include <poll.h>
#include <unistd.h>

#include "../../tests/check.h"

enum { KNOCKS = 100, DRAINS_MOST = 1000 };

static bool knocked(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	return poll(&p, 1, 0) > 0;
}

TEST(a_drain_takes_in_knocks_and_ends_however_many_there_are)
{
	uint16_t port;
	int fd = loopback_listen(&port);
	REQUIRE(fd >= 0);
	CHECK(!knocked(fd));
	loopback_drain(fd); /* of nothing */
	loopback_knock(port);
	CHECK(knocked(fd));
	loopback_drain(fd);
	CHECK(!knocked(fd));
	for (int i = 0; i < KNOCKS; i++)
		loopback_knock(port);
	loopback_drain(fd);
	CHECK(knocked(fd)); /* the rest is for the next one */
	int drains = 1;
	for (; drains < DRAINS_MOST && knocked(fd); drains++)
		loopback_drain(fd);
	CHECK_IS(drains, 2);
	close(fd);
}
