/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What makes frames of a wire believed: a tag (keyed BLAKE2b) that whoever has the key can make,
 * over the frame, its number and its direction. Frames are no secret.
 */
#ifndef TERN_BOOT_LINK_SEAL_H
#define TERN_BOOT_LINK_SEAL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SEAL_KEY = 32, SEAL_TAG = 16 };

/*
 * Calls go through the seal, so that what passes frames without tags, as the launcher does, links
 * no library for them. Whoever ends a wire wipes the key.
 */
struct seal {
	bool caller;             /* which end of the wire this is */
	uint8_t key[SEAL_KEY];   /* the job's, then this wire's */
	uint64_t sent, received; /* frames with a tag; those that were believed, of the latter */
	/* The tag of the next frame that goes out; NULL: frames have none. */
	void (*tag)(struct seal *s, const void *frame, size_t len, uint8_t tag[SEAL_TAG]);
	/* Whether a frame that came in is the next one, and of whoever has the key. */
	bool (*believes)(struct seal *s, const void *frame, size_t len, const uint8_t *tag);
};

/* Whether this build has what it takes; if not, why and what to do. */
bool seal_usable(char *why, size_t len);

void seal_random(void *bytes, size_t len);

/* Begins, with a key of this wire alone, made from the job's and from what both ends have said. */
void seal_begin(struct seal *s, bool caller, const void *callers, const void *called, size_t len);

#endif
