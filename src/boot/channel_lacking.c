/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections between machines in a build without what protects them: none, and they say why. */
#include <errno.h>
#include <stdio.h>

#include "boot/channel.h"

bool channel_usable(char *why, size_t len)
{
	snprintf(why, len, "this build lacks %s", UDP_LACKS);
	return false;
}

int channel_listen(struct sockaddr_in6 *address)
{
	(void)address;
	return -ENOTSUP;
}

int channel_call(struct channel *c, const struct sockaddr_in6 *to, const struct job *job,
		 uint64_t silence)
{
	(void)c, (void)to, (void)job, (void)silence;
	return -ENOTSUP;
}

int channel_accept(struct channel *c, int listener, const struct job *job, uint64_t silence)
{
	(void)c, (void)listener, (void)job, (void)silence;
	return -ENOTSUP;
}

void channel_close(struct channel *c)
{
	c->fd = -1;
}

bool channel_room(const struct channel *c)
{
	(void)c;
	return false;
}

void channel_send(struct channel *c, const struct rank_status *b)
{
	(void)c, (void)b;
}

int channel_flush(struct channel *c)
{
	(void)c;
	return -ENOTSUP;
}

bool channel_waits(const struct channel *c)
{
	(void)c;
	return false;
}

int channel_receive(struct channel *c, struct rank_status *b)
{
	(void)c, (void)b;
	return -ENOTSUP;
}

/* cost: protection setup */
