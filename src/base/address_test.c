/* SPDX-License-Identifier: BSD-3-Clause */
/* Addresses: which one a machine is bound by, and what is refused. */
#include "base/address.h"

#include <errno.h>
#include <sys/socket.h>
#include <tern/tern.h>
#include <unistd.h>

#include "lib/check.h"

static const char *chosen(const char *setting, bool several)
{
	static char text[INET6_ADDRSTRLEN];
	struct sockaddr_in6 a;
	setenv("TERN_UDP_BIND", setting, 1);
	int rc = address_choose(&a, several);
	if (rc)
		return tern_strerror(rc);
	CHECK_IS(a.sin6_port, 0);
	int fd = socket(a.sin6_family, SOCK_DGRAM, 0);
	CHECK(fd >= 0 &&
	      bind(fd, (struct sockaddr *)(void *)&a, address_len(&a)) == 0); /* one of ours */
	close(fd);
	return address_text(&a, text);
}

TEST(one_machine_needs_loopback_only)
{
	CHECK(strcmp(chosen("auto", false), "127.0.0.1") == 0);
}

TEST(an_address_and_a_network_can_be_named)
{
	CHECK(strcmp(chosen("127.0.0.1", true), "127.0.0.1") == 0);
	CHECK(strcmp(chosen("127.0.0.0/8", true), "127.0.0.1") == 0);
	CHECK(strcmp(chosen("127.0.0.0/31", true), "127.0.0.1") == 0);
}

TEST(several_machines_use_an_address_that_is_here)
{
	unsetenv("SSH_CONNECTION");
	CHECK(*chosen("auto", true));
	setenv("SSH_CONNECTION", "203.0.113.7 1 203.0.113.8 22",
	       1); /* handed on from another machine */
	CHECK(strcmp(chosen("auto", true), "203.0.113.8") != 0);
	setenv("SSH_CONNECTION", "nonsense", 1);
	CHECK(*chosen("auto", true));
}

TEST(what_cannot_be_followed_is_refused_by_name)
{
	CHECK(strstr(chosen("localhost", true), "TERN_UDP_BIND is 'localhost'"));
	CHECK(strstr(chosen("10.0.0.0/33", true), "such as"));
	CHECK(strstr(chosen("10.0.0.0/8x", true), "such as"));
	CHECK(strstr(chosen("203.0.113.0/24", true), "no interface here"));
	CHECK(strstr(chosen("0.0.0.0", true), "such as"));
	CHECK(strstr(chosen("::", true), "such as"));
}

TEST(an_address_of_another_machine_is_refused_with_what_to_do)
{
	struct sockaddr_in6 a;
	setenv("TERN_UDP_BIND", "203.0.113.8", 1);
	CHECK_IS(address_choose(&a, true), 0);
	int rc = address_refused(&a, -EADDRNOTAVAIL, "opening a socket");
	CHECK_IS(rc, -EADDRNOTAVAIL);
	CHECK(strstr(tern_strerror(rc), "opening a socket at 203.0.113.8"));
	CHECK(strstr(tern_strerror(rc), "TERN_UDP_BIND") &&
	      strstr(tern_strerror(rc), "10.1.0.0/16"));
	rc = address_refused(&a, -EMFILE, "opening a socket");
	CHECK(!strstr(tern_strerror(rc), "TERN_UDP_BIND"));
}
