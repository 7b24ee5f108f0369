/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which address of this machine a rank binds to: one, and no more than the job needs. On one
 * machine that is loopback. With several it is the one by which the launcher's ssh came here, else
 * the one that the machine would speak from to the rest of the world, else that of its first
 * interface that is up. TERN_UDP_BIND names another one, or a network, such as 10.1.0.0/16, of
 * which every machine has an address.
 */
#ifndef TERN_BASE_ADDRESS_H
#define TERN_BASE_ADDRESS_H

#include <netinet/in.h>
#include <stdbool.h>

/*
 * `several`: the job has several machines. The port is 0. -EINVAL with a sentence if the setting
 * cannot be followed.
 */
int address_choose(struct sockaddr_in6 *address, bool several);
/*
 * What to say when it could not be bound to, and returns `rc`: "opening a socket: ...", and what to
 * do.
 */
int address_refused(const struct sockaddr_in6 *address, int rc, const char *opening);
/* In numbers, written into `text`. */
const char *address_text(const struct sockaddr_in6 *address, char text[INET6_ADDRSTRLEN]);
/* Of an IPv4 or IPv6 address that lies there. */
socklen_t address_len(const struct sockaddr_in6 *address);

/*
 * A socket of that type, bound to the `len` bytes at `at`, which has `room` for the address that it
 * gets, with all that the kernel has chosen. One of a type that connects listens. -errno.
 */
int socket_bound(int type, struct sockaddr *at, socklen_t len, socklen_t room);

#endif
