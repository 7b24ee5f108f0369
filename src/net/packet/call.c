/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The wire's descriptor calls a program that computes, by its signal. It does so for every
 * datagram, so whoever polls turns it off first, and it is turned on by whoever goes: a burst costs
 * one signal, or a few.
 */
#include <fcntl.h>

#include "base/world.h"
#include "net/packet/packet.h"

static bool call_whom(struct packet_net *n, int fd, const struct sleep *s)
{
	struct f_owner_ex owner = { .type = F_OWNER_TID, .pid = s->thread };
	if (n->call.thread == s->thread && n->call.signal == s->signal)
		return true;
	if (fcntl(fd, F_SETOWN_EX, &owner) != 0 || fcntl(fd, F_SETSIG, s->signal) != 0)
		return false;
	n->call.thread = s->thread;
	n->call.signal = s->signal;
	return true;
}

static bool call_set(int fd, bool on)
{
	int flags = fcntl(fd, F_GETFL);
	return flags >= 0 && fcntl(fd, F_SETFL, on ? flags | O_ASYNC : flags & ~O_ASYNC) == 0;
}

bool call_on(struct packet_net *n, const struct sleep *s)
{
	int fd = n->wire->ops->descriptor(n->wire);
	n->call.on = n->wire->calls && call_whom(n, fd, s) && call_set(fd, true);
	return n->call.on;
}

void call_off(struct packet_net *n)
{
	if (!n->call.on)
		return;
	n->call.on = false;
	call_set(n->wire->ops->descriptor(n->wire), false);
}

/* cost: base setup */
