/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What ranks must have in common to talk over a network of packets: the network itself, the
 * services that are added to it, and how its datagrams are protected. Each rank chooses for itself,
 * by its settings and by what its machine has; so each says on its card what it chose, and a rank
 * that chose otherwise is lost to the others, with a sentence, instead of waited for.
 */
#ifndef TERN_NET_PACKET_TERMS_H
#define TERN_NET_PACKET_TERMS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { TERMS_NET_MOST = 40, TERMS_HOST_MOST = 40 };

struct terms {
	char net[TERMS_NET_MOST];   /* as TERN_NET would say it, with the provider that was found */
	char host[TERMS_HOST_MOST]; /* for sentences; nothing is decided by it */
	uint8_t services;           /* packet_net.services */
	uint8_t protects;           /* enum guard_mode */
};

/* How datagrams are protected. */
enum guard_mode { GUARD_NONE, GUARD_AUTH, GUARD_ENCRYPT };

/* What TERN_PROTECT says, into *mode, which stays as it is for auto; -EINVAL with a sentence. */
int guard_mode_read(enum guard_mode *mode);

/* What every card begins with. */
struct card_front {
	unsigned char key[32]; /* the guard's, and first */
	struct terms terms;
};

struct job;
struct packet_net;

/* Of a rank that has `net` and, if `local`, shared memory before it. */
void terms_write(struct terms *t, bool local, const char *net, const char *provider);
/* For a rank that has shared memory alone: those with another network are to know. */
void terms_publish_local(struct job *job, uint32_t rank);

/* n->terms has been written, but for the services, and n->met has memory. */
void terms_open(struct packet_net *n);

/* False if `rank` has shown a card with other terms. */
bool terms_fit(struct packet_net *n, uint32_t rank);
/* Looks at cards that have come since; when it wants to be asked again, ns. */
uint64_t terms_review(struct packet_net *n);
/* 0, or -EPROTO with a sentence that names the rank and what differs. */
int terms_check(const struct packet_net *n, uint32_t rank);

#endif
