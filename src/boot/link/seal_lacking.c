/* SPDX-License-Identifier: BSD-3-Clause */
/* What is built without libsodium: nobody makes a tag, because seal_usable() says why not. */
#include <stdio.h>

#include "boot/link/seal.h"

bool seal_usable(char *why, size_t len)
{
	snprintf(why, len, "this build lacks %s", UDP_LACKS);
	return false;
}

void seal_random(void *bytes, size_t len)
{
	(void)bytes, (void)len;
}

void seal_begin(struct seal *s, bool caller, const void *callers, const void *called, size_t len)
{
	(void)s, (void)caller, (void)callers, (void)called, (void)len;
}
