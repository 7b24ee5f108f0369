/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Datagrams as they come off the socket: nothing that the key was not used on is let through,
 * whatever is in it.
 */
#include "fuzz.h"

#include "job/exchange.h"
#include "net/guard/guard.h"
#include "net/udp/socket.h"

enum { RANKS = 3, MODES = 3, BODY = 20, SEALED = BODY + DATAGRAM_HEAD + PACKET_TAG };

static struct job job[MODES];
static struct site site[RANKS];
static struct packet_net net[MODES][RANKS];

static void guards_open(void)
{
	static const char *const modes[MODES] = { "none", "auth", "encrypt" };
	for (unsigned m = 0; m < MODES; m++) {
		REQUIRE(job_create(&job[m], RANKS, 0) == 0);
		setenv("TERN_PROTECT", modes[m], 1);
		for (uint32_t r = 0; r < RANKS; r++) {
			struct card card = { 0 };
			struct packet_net *n = &net[m][r];
			site[r] = (struct site){ .rank = r, .size = RANKS };
			*n = (struct packet_net){ .net = { .site = &site[r] },
						  .job = &job[m],
						  .pulse = &job[m].pulse[r],
						  .guard = &guard_ops };
			REQUIRE(guard_new(&n->keys, &job[m], &site[r], GUARD_AUTH,
					  card.front.key) == 0);
			card_publish(&job[m], r, &card, sizeof card);
		}
	}
}

/* A good datagram from rank 0 to rank 1. */
static size_t sealed(struct packet_net *from, uint8_t *bytes)
{
	static struct packet k;
	static struct path path; /* large */
	path.net = from;
	path.rank = 1;
	k.path = &path;
	k.at = k.bytes + PACKET_FRONT - DATAGRAM_HEAD;
	k.end = k.bytes + PACKET_FRONT + BODY;
	k.part[0] = (struct iovec){ k.at, (size_t)(k.end - k.at) };
	k.parts = 1;
	REQUIRE(guard_ops.open(from, 1));
	guard_ops.seal(from, &k);
	memcpy(bytes, k.at, k.part[0].iov_len);
	return k.part[0].iov_len;
}

/* Whether rank 1 lets it through. */
static bool opened(unsigned mode, uint8_t *bytes, size_t len)
{
	struct datagram d = { .bytes = bytes, .len = len };
	struct arrival a;
	uint32_t from;
	bool through = guard_ops.unseal(&net[mode][1], &d, &from, &a) == SEAL_GOOD;
	REQUIRE(!through ||
		(from < RANKS && from != 1 && a.at >= bytes && a.at + a.len <= bytes + len));
	return through;
}

/* A good one in which bytes are changed: where, and by what. */
static void changed_take(unsigned mode, const uint8_t *bytes, size_t len)
{
	uint8_t good[SEALED], changed[SEALED];
	size_t whole = sealed(&net[mode][0], good);
	memcpy(changed, good, whole);
	while (len >= 2) {
		unsigned at = fuzz_byte(&bytes, &len);
		changed[at % whole] ^= (uint8_t)fuzz_byte(&bytes, &len);
	}
	uint8_t differ = 0; /* without memcmp(), in which libFuzzer would see the good one and bring
			       it itself */
	for (size_t i = 0; i < whole; i++)
		differ |= good[i] ^ changed[i];
	bool through = opened(mode, changed, whole);
	REQUIRE(mode == 0 || through == !differ); /* without protection anything goes */
}

static void any_take(unsigned mode, const uint8_t *bytes, size_t len)
{
	uint8_t *copy = malloc(len ? len : 1); /* it may be decrypted in place */
	memcpy(copy, bytes, len);
	REQUIRE(!opened(mode, copy, len) || mode == 0);
	free(copy);
}

static void fuzz_one(const uint8_t *bytes, size_t len)
{
	unsigned how = fuzz_byte(&bytes, &len);
	if (!job[0].base)
		guards_open();
	(how < 128 ? any_take : changed_take)(how % MODES, bytes, len);
}

FUZZ_TARGET(guard, 5000)
