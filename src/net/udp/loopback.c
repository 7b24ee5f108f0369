/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/udp/loopback.h"

#include <errno.h>
#include <net/if.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/address.h"
#include "base/error.h"

static bool is_loopback(const struct sockaddr_in6 *a)
{
	const struct sockaddr_in *four = (const struct sockaddr_in *)(const void *)a;
	return a->sin6_family == AF_INET6 ? IN6_IS_ADDR_LOOPBACK(&a->sin6_addr)
					  : ntohl(four->sin_addr.s_addr) >> 24 == 127;
}

/* Where the kernel does not say, it is taken to be up. */
static bool interface_down(const char *name)
{
	struct ifreq r = { 0 };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	strncpy(r.ifr_name, name, sizeof r.ifr_name - 1);
	bool down = fd >= 0 && ioctl(fd, SIOCGIFFLAGS, &r) == 0 && !(r.ifr_flags & IFF_UP);
	if (fd >= 0)
		close(fd);
	return down;
}

int loopback_check(const struct sockaddr_in6 *address)
{
	char text[INET6_ADDRSTRLEN];
	if (!is_loopback(address) || !interface_down("lo"))
		return 0;
	return error_set(
		-ENETDOWN,
		"opening a UDP socket at %s: the loopback interface is down, so nothing would "
		"arrive; set it up "
		"(ip link set lo up), or use shared memory (TERN_NET=shm)",
		address_text(address, text));
}

void loopback_warn(const struct job *job, uint32_t rank, const struct card *card,
		   const struct sockaddr_in6 *own)
{
	char text[INET6_ADDRSTRLEN], host[TERMS_HOST_MOST + 1] = "";
	gethostname(host, sizeof host - 1);
	const struct terms *t = &card->front.terms;
	bool elsewhere = strncmp(t->host, host, sizeof t->host - 1) != 0;
	if (job_here(job, rank) || !is_loopback(&card->address) || (is_loopback(own) && !elsewhere))
		return;
	error_warn("rank %u on %.*s has the address %s, which only its own machine reaches: set "
		   "TERN_UDP_BIND there to an "
		   "address of a network that the machines share",
		   rank, TERMS_HOST_MOST, t->host, address_text(&card->address, text));
}
