/* SPDX-License-Identifier: BSD-3-Clause */
/* Derives the keys of each pair of ranks; seals datagrams and opens them. */
#include "net/guard/guard.h"

#include <errno.h>
#include <sodium.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "job/exchange.h"

enum {
	VERSION = 2,
	REPLAY_BITS = 1024,
	KEY = 32,
	ONCE = 64,   /* keys for one datagram made at a time */
	BRIEF = 128, /* bytes up to which SipHash is quicker than Poly1305 */
	BRIEF_KEY = crypto_shorthash_siphashx24_KEYBYTES,
};

_Static_assert(KEY == crypto_kx_SESSIONKEYBYTES && KEY == crypto_kx_PUBLICKEYBYTES,
	       "keys have one size");
_Static_assert(PACKET_TAG == crypto_onetimeauth_BYTES, "a tag is Poly1305's");
_Static_assert(PACKET_TAG == crypto_aead_chacha20poly1305_IETF_ABYTES, "and the AEAD's");

struct head {
	uint8_t version, services;
	uint16_t rank;
	uint32_t session;
	uint64_t counter;
};
_Static_assert(sizeof(struct head) == DATAGRAM_HEAD, "its layout is what travels");

_Static_assert(KEY == crypto_onetimeauth_KEYBYTES, "and so do keys for one datagram");
_Static_assert(PACKET_TAG == crypto_shorthash_siphashx24_BYTES, "a tag has one size");

/* Keys for the datagrams of one batch of counters. */
struct once {
	uint64_t batch; /* counter / ONCE, plus 1; 0: none yet */
	unsigned char key[ONCE][KEY];
};

/* What one of a pair sends to the other. */
struct direction {
	unsigned char key[KEY], brief[BRIEF_KEY]; /* the second for brief datagrams */
	/* It names the session to whoever has the key, and tells others nothing of it. */
	uint32_t session;
	struct once once;
};

struct pair {
	struct direction send, receive;
	uint64_t counter;                /* of the last datagram sent */
	uint64_t newest;                 /* of those received */
	uint64_t seen[REPLAY_BITS / 64]; /* and of those before it, by counter */
};

struct keys {
	enum guard_mode mode;
	unsigned char public_key[KEY], secret[KEY];
	const struct job *job;
	struct pair **pair; /* one a rank */
	uint32_t size;
};

int guard_new(void **out, struct job *job, const struct site *site, enum guard_mode mode,
	      unsigned char public_key[32])
{
	int rc = guard_mode_read(&mode);
	if (rc)
		return rc;
	if (sodium_init() < 0)
		return error_set(-ENOTSUP,
				 "libsodium does not start: has this process no random bytes?");
	struct keys *k = calloc(1, sizeof *k);
	struct pair **pair = calloc(site->size, sizeof(struct pair *));
	if (!k || !pair) {
		free(k);
		free(pair);
		return error_set(-ENOMEM, "opening the network of rank %u: no memory", site->rank);
	}
	*k = (struct keys){ .mode = mode, .job = job, .pair = pair, .size = site->size };
	crypto_kx_keypair(k->public_key, k->secret);
	memcpy(public_key, k->public_key, KEY);
	*out = k;
	return 0;
}

enum guard_mode guard_mode(const void *keys)
{
	return ((const struct keys *)keys)->mode;
}

static void guard_close(struct packet_net *n)
{
	struct keys *k = n->keys;
	for (uint32_t r = 0; r < k->size; r++)
		if (k->pair[r]) {
			sodium_memzero(k->pair[r], sizeof *k->pair[r]);
			memory_free(k->pair[r]);
		}
	free(k->pair);
	sodium_memzero(k, sizeof *k);
	free(k);
}

/* `half`: what the pair has agreed on, which is mixed with the job's key and forgotten. */
static void direction_make(struct direction *d, unsigned char half[KEY], const struct job *job)
{
	unsigned char hash[crypto_generichash_BYTES_MIN];
	crypto_generichash(d->key, KEY, half, KEY, job->head->key, KEY);
	sodium_memzero(half, KEY);
	crypto_generichash(d->brief, BRIEF_KEY, (const unsigned char *)"brief", 5, d->key, KEY);
	crypto_generichash(hash, sizeof hash, (const unsigned char *)"session", 7, d->key, KEY);
	memcpy(&d->session, hash, sizeof d->session);
}

static bool pair_derive(const struct keys *k, struct pair *p, const unsigned char theirs[KEY],
			bool client)
{
	unsigned char receive[KEY], send[KEY];
	int rc = client ? crypto_kx_client_session_keys(receive, send, k->public_key, k->secret,
							theirs)
			: crypto_kx_server_session_keys(receive, send, k->public_key, k->secret,
							theirs);
	if (rc != 0)
		return false; /* no public key at all */
	direction_make(&p->send, send, k->job);
	direction_make(&p->receive, receive, k->job);
	return true;
}

static bool guard_open(struct packet_net *n, uint32_t rank)
{
	struct keys *k = n->keys;
	unsigned char theirs[KEY]; /* which a card begins with */
	if (k->pair[rank])
		return true;
	struct pair *p =
		card_read(n->job, rank, theirs, sizeof theirs) ? memory_new(1, sizeof *p) : NULL;
	if (!p)
		return false;
	if (!pair_derive(k, p, theirs, n->net.site->rank < rank)) {
		memory_free(p);
		return false;
	}
	k->pair[rank] = p;
	return true;
}

static void nonce_of(unsigned char nonce[12], uint64_t counter)
{
	memset(nonce, 0, 12);
	memcpy(nonce, &counter, sizeof counter);
}

static const unsigned char *once_key(struct direction *d, uint64_t counter)
{
	struct once *o = &d->once;
	unsigned char nonce[12];
	uint64_t batch = counter / ONCE + 1;
	if (o->batch != batch) {
		nonce_of(nonce, batch);
		crypto_stream_chacha20_ietf(&o->key[0][0], sizeof o->key, nonce, d->key);
		o->batch = batch;
	}
	return o->key[counter % ONCE];
}

static void seal_auth(struct pair *p, struct packet *k)
{
	if (k->parts == 1 && k->end - k->at <= BRIEF) {
		crypto_shorthash_siphashx24(k->end, k->at, (size_t)(k->end - k->at), p->send.brief);
		return;
	}
	const unsigned char *key = once_key(&p->send, p->counter);
	crypto_onetimeauth_state s;
	crypto_onetimeauth_init(&s, key);
	for (int i = 0; i < k->parts; i++)
		crypto_onetimeauth_update(&s, k->part[i].iov_base, k->part[i].iov_len);
	crypto_onetimeauth_final(&s, k->end);
}

static void seal_encrypt(const struct pair *p, struct packet *k)
{
	unsigned char nonce[12], *body = k->at + DATAGRAM_HEAD;
	nonce_of(nonce, p->counter);
	crypto_aead_chacha20poly1305_ietf_encrypt_detached(body, k->end, NULL, body,
							   (size_t)(k->end - body), k->at,
							   DATAGRAM_HEAD, NULL, nonce, p->send.key);
}

static void guard_seal(struct packet_net *n, struct packet *k)
{
	const struct keys *keys = n->keys;
	struct pair *p = keys->pair[k->path->rank];
	struct head h = { .version = (uint8_t)(VERSION << 4 | keys->mode),
			  .services = (uint8_t)n->services,
			  .rank = (uint16_t)n->net.site->rank,
			  .session = p->send.session,
			  .counter = ++p->counter };
	memcpy(k->at, &h, sizeof h);
	if (keys->mode == GUARD_NONE)
		return;
	if (keys->mode == GUARD_ENCRYPT)
		seal_encrypt(p, k);
	else
		seal_auth(p, k);
	k->part[k->parts - 1].iov_len += PACKET_TAG;
}

/* -- What arrives ------------------------------------------------------------------------- */

static bool replayed(const struct pair *p, uint64_t counter)
{
	if (counter > p->newest)
		return false;
	return p->newest - counter >= REPLAY_BITS ||
	       p->seen[counter % REPLAY_BITS / 64] >> counter % 64 & 1;
}

static void replay_note(struct pair *p, uint64_t counter)
{
	uint64_t ahead = counter > p->newest ? counter - p->newest : 0;
	for (uint64_t i = 1; i < ahead && i <= REPLAY_BITS; i++)
		p->seen[(p->newest + i) % REPLAY_BITS / 64] &=
			~(UINT64_C(1) << (p->newest + i) % 64);
	p->seen[counter % REPLAY_BITS / 64] |= UINT64_C(1) << counter % 64;
	p->newest += ahead;
}

static bool open_auth(struct pair *p, const struct datagram *d, uint64_t counter)
{
	size_t len = d->len - PACKET_TAG;
	unsigned char tag[PACKET_TAG];
	if (len <= BRIEF) {
		crypto_shorthash_siphashx24(tag, d->bytes, len, p->receive.brief);
		return crypto_verify_16(tag, d->bytes + len) == 0;
	}
	return crypto_onetimeauth_verify(d->bytes + len, d->bytes, len,
					 once_key(&p->receive, counter)) == 0;
}

static bool open_encrypted(struct pair *p, const struct datagram *d, uint64_t counter)
{
	unsigned char nonce[12], *body = d->bytes + DATAGRAM_HEAD;
	nonce_of(nonce, counter);
	return crypto_aead_chacha20poly1305_ietf_decrypt_detached(
		       body, NULL, body, d->len - DATAGRAM_HEAD - PACKET_TAG,
		       d->bytes + d->len - PACKET_TAG, d->bytes, DATAGRAM_HEAD, nonce,
		       p->receive.key) == 0;
}

static bool authentic(const struct keys *k, struct pair *p, const struct datagram *d,
		      uint64_t counter)
{
	return k->mode == GUARD_NONE ||
	       (k->mode == GUARD_AUTH ? open_auth : open_encrypted)(p, d, counter);
}

/* What it is, is counted. */
static enum seal broken(struct packet_net *n, enum pulse_count what)
{
	packet_count(n, what, 1);
	return SEAL_BROKEN;
}

static enum seal guard_unseal(struct packet_net *n, struct datagram *d, uint32_t *rank,
			      struct arrival *a)
{
	struct keys *k = n->keys;
	struct head h;
	size_t tag = k->mode == GUARD_NONE ? 0 : PACKET_TAG;
	if (d->len < sizeof h + tag)
		return broken(n, PULSE_PACKETS_MALFORMED);
	memcpy(&h, d->bytes, sizeof h);
	bool another = d->from && d->from != h.rank + 1u; /* than the wire says */
	if (h.version != (VERSION << 4 | k->mode) || h.services != n->services ||
	    h.rank >= k->size || h.rank == n->net.site->rank || another)
		return broken(n, PULSE_PACKETS_FOREIGN);
	*rank = h.rank;
	if ((n->unmets && unmet_keeps(n, h.rank)) || !(k->pair[h.rank] || guard_open(n, h.rank)))
		return SEAL_UNMET;
	struct pair *p = k->pair[h.rank];
	if (h.session != p->receive.session || replayed(p, h.counter))
		return broken(n, PULSE_PACKETS_OLD);
	if (!authentic(k, p, d, h.counter))
		return broken(n, PULSE_PACKETS_FORGED);
	/* Where packets may overtake each other, the missing one comes later. */
	if (h.counter != p->newest + 1 && n->confirms && !n->wire->overtakes) {
		silence_missed(n, h.rank);
		return SEAL_BROKEN; /* and so is all that follows, because this one is not noted */
	}
	replay_note(p, h.counter);
	*a = (struct arrival){ d->bytes + sizeof h, d->len - sizeof h - tag, d->bytes, d->pinned };
	return SEAL_GOOD;
}

const struct guard_ops guard_ops = {
	.open = guard_open,
	.seal = guard_seal,
	.unseal = guard_unseal,
	.close = guard_close,
};
