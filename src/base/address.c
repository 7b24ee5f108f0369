/* SPDX-License-Identifier: BSD-3-Clause */
/* Looks up the interfaces of this machine, and checks what TERN_UDP_BIND names. */
#include "base/address.h"

#include <arpa/inet.h>
#include <errno.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/error.h"
#include "base/setting.h"

enum { BACKLOG = 1024 };

static struct sockaddr *sockaddr_of(struct sockaddr_in6 *a)
{
	return (struct sockaddr *)(void *)a;
}

static struct sockaddr_in *sockaddr_in_of(struct sockaddr_in6 *a)
{
	return (struct sockaddr_in *)(void *)a;
}

socklen_t address_len(const struct sockaddr_in6 *address)
{
	return address->sin6_family == AF_INET6 ? sizeof(struct sockaddr_in6)
						: sizeof(struct sockaddr_in);
}

static const unsigned char *address_bytes(struct sockaddr_in6 *a)
{
	return a->sin6_family == AF_INET6 ? a->sin6_addr.s6_addr
					  : (const unsigned char *)&sockaddr_in_of(a)->sin_addr;
}

const char *address_text(const struct sockaddr_in6 *address, char text[INET6_ADDRSTRLEN])
{
	struct sockaddr_in6 copy = *address;
	return inet_ntop(copy.sin6_family, address_bytes(&copy), text, INET6_ADDRSTRLEN);
}

static bool address_read(struct sockaddr_in6 *a, const char *text)
{
	*a = (struct sockaddr_in6){ .sin6_family = AF_INET6 };
	if (inet_pton(AF_INET6, text, &a->sin6_addr) == 1)
		return true;
	*a = (struct sockaddr_in6){ .sin6_family = AF_INET };
	return inet_pton(AF_INET, text, &sockaddr_in_of(a)->sin_addr) == 1;
}

static unsigned address_bits(const struct sockaddr_in6 *a)
{
	return a->sin6_family == AF_INET6 ? 128 : 32;
}

/* Of one family, and equal in the first bits. */
static bool address_in_subnet(struct sockaddr_in6 *a, struct sockaddr_in6 *network, unsigned bits)
{
	const unsigned char *x = address_bytes(a), *y = address_bytes(network);
	if (a->sin6_family != network->sin6_family || memcmp(x, y, bits / 8) != 0)
		return false;
	return bits % 8 == 0 || (x[bits / 8] ^ y[bits / 8]) >> (8 - bits % 8) == 0;
}

static bool address_is_loopback(struct sockaddr_in6 *a)
{
	return a->sin6_family == AF_INET6 ? IN6_IS_ADDR_LOOPBACK(&a->sin6_addr)
					  : address_bytes(a)[0] == 127;
}

/* Bound to it, a socket has every address of the machine. */
static bool address_is_any(struct sockaddr_in6 *a)
{
	struct sockaddr_in6 zero = { .sin6_family = a->sin6_family };
	return address_in_subnet(a, &zero, address_bits(a));
}

/* -- This machine's addresses -------------------------------------------------------------- */

struct subnet {
	struct sockaddr_in6 network;
	unsigned bits; /* 0 of family 0: any but loopback */
};

static bool address_wanted(struct sockaddr_in6 *a, struct subnet *w)
{
	if (w->network.sin6_family)
		return address_in_subnet(a, &w->network, w->bits);
	return !address_is_loopback(a) &&
	       !(a->sin6_family == AF_INET6 && IN6_IS_ADDR_LINKLOCAL(&a->sin6_addr));
}

static bool interface_address(const struct ifaddrs *i, struct sockaddr_in6 *a)
{
	if (!i->ifa_addr || !(i->ifa_flags & IFF_UP) ||
	    (i->ifa_addr->sa_family != AF_INET && i->ifa_addr->sa_family != AF_INET6))
		return false;
	*a = (struct sockaddr_in6){ 0 };
	memcpy(a, i->ifa_addr,
	       i->ifa_addr->sa_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof *a);
	return true;
}

static bool address_find(struct sockaddr_in6 *address, struct subnet *w)
{
	struct ifaddrs *all;
	bool found = false;
	if (getifaddrs(&all) != 0)
		return false;
	for (const struct ifaddrs *i = all; i && !found; i = i->ifa_next)
		found = interface_address(i, address) && address_wanted(address, w);
	freeifaddrs(all);
	return found;
}

/* The third word of SSH_CONNECTION; it may be another machine's, handed on with the environment. */
static bool address_of_ssh(struct sockaddr_in6 *a)
{
	char text[64];
	struct subnet w = { .bits = 0 };
	const char *value = getenv("SSH_CONNECTION");
	if (!value || sscanf(value, "%*s %*s %63s", text) != 1 || !address_read(a, text) ||
	    address_is_loopback(a))
		return false;
	w.network = *a;
	w.bits = address_bits(a);
	return address_find(a, &w);
}

/*
 * Nothing is sent: connecting asks the kernel for the route to an address that nobody has (RFC
 * 5737).
 */
static bool address_of_route(struct sockaddr_in6 *a)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons(9),
				  .sin_addr = { htonl(0xc0000201) } };
	socklen_t len = sizeof *a;
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	*a = (struct sockaddr_in6){ 0 };
	bool found = fd >= 0 && connect(fd, (struct sockaddr *)(void *)&to, sizeof to) == 0 &&
		     getsockname(fd, sockaddr_of(a), &len) == 0 && !address_is_loopback(a);
	if (fd >= 0)
		close(fd);
	a->sin6_port = 0; /* in the same place in both families */
	return found;
}

static void address_by_itself(struct sockaddr_in6 *a, bool several)
{
	struct subnet any = { .bits = 0 };
	if (several && (address_of_ssh(a) || address_of_route(a) || address_find(a, &any)))
		a->sin6_port = 0;
	else
		address_read(a, "127.0.0.1");
}

/* -- The setting --------------------------------------------------------------------------- */

/* "10.1.0.0/16". */
static bool subnet_read(struct subnet *w, const char *text)
{
	char address[64], rest;
	if (sscanf(text, "%63[^/]/%u%c", address, &w->bits, &rest) != 2 ||
	    !address_read(&w->network, address))
		return false;
	return w->bits <= address_bits(&w->network);
}

/*
 * `tern run` and other launchers carry the setting to all machines, and each has an address of its
 * own.
 */
int address_refused(const struct sockaddr_in6 *address, int rc, const char *opening)
{
	char text[INET6_ADDRSTRLEN];
	return error_set(
		rc, "%s at %s: %s%s", opening, address_text(address, text), strerror(-rc),
		rc == -EADDRNOTAVAIL
			? "; TERN_UDP_BIND names an address that this machine has not: where "
			  "several "
			  "have the setting, name their network, such as 10.1.0.0/16"
			: "");
}

int address_choose(struct sockaddr_in6 *address, bool several)
{
	const char *text = setting_text(SETTING_UDP_BIND);
	struct subnet w;
	if (strcmp(text, "auto") == 0) {
		address_by_itself(address, several);
		return 0;
	}
	if (address_read(address, text)) {
		if (!several || !address_is_any(address))
			return 0;
		return error_set(
			-EINVAL,
			"TERN_UDP_BIND is '%s', by which other machines cannot reach this one: "
			"name a network "
			"such as 10.1.0.0/16",
			text);
	}
	if (!subnet_read(&w, text))
		return error_set(
			-EINVAL,
			"TERN_UDP_BIND is '%s', which is neither auto, nor an address in numbers, "
			"nor a "
			"network such as 10.1.0.0/16",
			text);
	if (!address_find(address, &w))
		return error_set(
			-EINVAL,
			"TERN_UDP_BIND is '%s', and no interface here has an address of it", text);
	address->sin6_port = 0;
	return 0;
}

/* -- Sockets ------------------------------------------------------------------------------- */

int socket_bound(int type, struct sockaddr *at, socklen_t len, socklen_t room)
{
	bool connects = (type & 0xf) != SOCK_DGRAM;
	int fd = socket(at->sa_family, type | SOCK_CLOEXEC, 0);
	if (fd >= 0 && bind(fd, at, len) == 0 && (!connects || listen(fd, BACKLOG) == 0) &&
	    getsockname(fd, at, &room) == 0)
		return fd;
	int rc = -errno;
	if (fd >= 0)
		close(fd);
	return rc;
}
