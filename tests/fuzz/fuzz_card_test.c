/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The card of a rank on another machine: its terms, its key, its address. A rank that has read it
 * may send there or refuse to, but every call ends, with success or with a sentence.
 */
#include "fuzz.h"

#include <errno.h>
#include <sys/socket.h>
#include <unistd.h>

#include <tern/tern.h>

#include "job/exchange.h"
#include "net/udp/socket.h"
#include "open/nets.h"

enum { ME, PEER, RANKS, HANDLER = 1, CALLS = 20 };

/* Nothing leaves this process: the address may be anybody's. */
ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
	size_t len = 0;
	(void)fd, (void)flags;
	for (size_t i = 0; i < m->msg_iovlen; i++)
		len += m->msg_iov[i].iov_len;
	return (ssize_t)len;
}

static void nothing(tern *t, const tern_msg *m)
{
	(void)t, (void)m;
}

static void ends_well(int rc)
{
	REQUIRE(rc >= 0 || *tern_strerror(rc));
}

static void number_set(const char *name, unsigned number)
{
	char text[16];
	snprintf(text, sizeof text, "%u", number);
	setenv(name, text, 1);
}

static void environment_set(const struct job *j)
{
	number_set("TERN_RANK", ME);
	number_set("TERN_SIZE", RANKS);
	number_set("TERN_JOB_FD", (unsigned)j->fd);
	setenv("TERN_NET", "udp", 1);
	setenv("TERN_HEAP", "1M", 1);
}

/*
 * A card that would do, which the input then writes over from some byte on: few inputs would guess
 * the terms.
 */
static void card_make(struct rank_status *b, const uint8_t *bytes, size_t len)
{
	struct card card = { 0 };
	size_t at = fuzz_byte(&bytes, &len);
	terms_write(&card.front.terms, false, "udp", "");
	card.front.terms.services = 7;
	card.front.terms.protects = 1;
	card.address.sin6_family = AF_INET6;
	card.address.sin6_addr = in6addr_loopback;
	card.address.sin6_port = htons(9);
	memset(card.front.key, 9, sizeof card.front.key);
	*b = (struct rank_status){
		.rank = PEER, .serial = 1, .session = 1, .state = RANK_OPEN, .published = 1
	};
	memcpy(b->card, &card, sizeof card);
	at = at < sizeof b->card ? at : 0;
	memcpy(b->card + at, bytes, len < sizeof b->card - at ? len : sizeof b->card - at);
}

static void talk(tern *t, struct job *j)
{
	struct rank_status b;
	ends_well(tern_on(t, HANDLER, nothing));
	tern_hold(t); /* so that nothing waits for an answer */
	for (int i = 0; i < CALLS; i++)
		ends_well(tern_request_data(t, PEER, HANDLER, "some bytes", 10, i));
	tern_release(t);
	for (int i = 0; i < CALLS; i++)
		ends_well(tern_poll(t));
	rank_status_lost(&b, PEER); /* and it is gone: nobody waits for its acknowledgement */
	rank_status_take(j, &b);
	ends_well(tern_close(t));
}

static void fuzz_one(const uint8_t *bytes, size_t len)
{
	static const uint32_t where[RANKS] = { 0, 1 };
	static const uint8_t key[JOB_KEY] = { 1 };
	struct job job;
	struct rank_status b;
	char why[200];
	tern *t = NULL;
	setenv("TERN_HEAP", "1M", 1);
	for (int i = 0; net_table[i]; i++)
		if (strcmp(net_table[i]->name, "udp") == 0 &&
		    !net_table[i]->usable(why, sizeof why))
			return;
	REQUIRE(job_create(&job, RANKS, 0) == 0);
	job_spread(&job, where, 0, 2);
	job_identify(&job, 1, key);
	card_make(&b, bytes, len);
	rank_status_take(&job, &b);
	environment_set(&job);
	int rc = tern_open(&t, NULL);
	ends_well(rc);
	if (!rc)
		talk(t, &job);
	job_unmap(&job);
	job_forget(&job);
}

FUZZ_TARGET(card, 300)
