/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections between machines in a build without what protects them: none, and they say why. */
#include <errno.h>
#include <stdio.h>

#include "boot/link/connection.h"

bool connection_usable(char *why, size_t len)
{
	snprintf(why, len, "this build lacks %s", UDP_LACKS);
	return false;
}

int connection_listen(struct sockaddr_in6 *address)
{
	(void)address;
	return -ENOTSUP;
}

int connection_call(struct connection *c, const struct sockaddr_in6 *to, const struct job *job,
		    uint64_t silence)
{
	(void)c, (void)to, (void)job, (void)silence;
	return -ENOTSUP;
}

int connection_accept(struct connection *c, int listener, const struct job *job, uint64_t silence)
{
	(void)c, (void)listener, (void)job, (void)silence;
	return -ENOTSUP;
}

void connection_close(struct connection *c)
{
	c->fd = -1;
}

bool connection_room(const struct connection *c)
{
	(void)c;
	return false;
}

void connection_send(struct connection *c, const struct rank_status *b)
{
	(void)c, (void)b;
}

int connection_flush(struct connection *c)
{
	(void)c;
	return -ENOTSUP;
}

bool connection_waits(const struct connection *c)
{
	(void)c;
	return false;
}

int connection_receive(struct connection *c, struct rank_status *b)
{
	(void)c, (void)b;
	return -ENOTSUP;
}

/* cost: protection setup */
