/* SPDX-License-Identifier: BSD-3-Clause */
/* Tags by libsodium. */
#include "boot/link/seal.h"

#include <sodium.h>

_Static_assert(SEAL_KEY == crypto_generichash_KEYBYTES, "keys have one size");
_Static_assert(SEAL_TAG == crypto_generichash_BYTES_MIN, "a tag is BLAKE2b's shortest");

bool seal_usable(char *why, size_t len)
{
	(void)why, (void)len;
	return sodium_init() >= 0;
}

void seal_random(void *bytes, size_t len)
{
	randombytes_buf(bytes, len);
}

static void hash_two(const struct seal *s, const void *a, size_t a_len, const void *b, size_t b_len,
		     uint8_t *out, size_t out_len)
{
	crypto_generichash_state state;
	crypto_generichash_init(&state, s->key, sizeof s->key, out_len);
	crypto_generichash_update(&state, a, a_len);
	crypto_generichash_update(&state, b, b_len);
	crypto_generichash_final(&state, out, out_len);
}

static void tag_make(const struct seal *s, uint64_t number, bool by_caller, const void *frame,
		     size_t len, uint8_t tag[SEAL_TAG])
{
	uint64_t head = number << 1 | by_caller;
	hash_two(s, &head, sizeof head, frame, len, tag, SEAL_TAG);
}

static void seal_tag(struct seal *s, const void *frame, size_t len, uint8_t tag[SEAL_TAG])
{
	tag_make(s, s->sent++, s->caller, frame, len, tag);
}

static bool seal_believes(struct seal *s, const void *frame, size_t len, const uint8_t *tag)
{
	uint8_t right[SEAL_TAG];
	tag_make(s, s->received, !s->caller, frame, len, right);
	if (sodium_memcmp(right, tag, sizeof right) != 0)
		return false;
	s->received++;
	return true;
}

void seal_begin(struct seal *s, bool caller, const void *callers, const void *called, size_t len)
{
	hash_two(s, callers, len, called, len, s->key, sizeof s->key);
	s->caller = caller;
	s->tag = seal_tag;
	s->believes = seal_believes;
}
