/* SPDX-License-Identifier: BSD-3-Clause */
/* TERN_CHECK: a sum over data that is under way, and a pattern in buffers that are free. */
#include <string.h>

#include "typed/typed.h"

enum { PATTERN = 0xb5 };

uint64_t check_sum(const char *data, size_t len)
{
	uint64_t sum = len, word;
	size_t i = 0;
	for (; i + sizeof word <= len; i += sizeof word) {
		memcpy(&word, data + i, sizeof word);
		sum = (sum ^ word) * UINT64_C(0x9e3779b97f4a7c15);
		sum ^= sum >> 29;
	}
	for (; i < len; i++)
		sum = (sum ^ (unsigned char)data[i]) * UINT64_C(0x100000001b3);
	return sum;
}

void check_fill(char *buffer, size_t len)
{
	memset(buffer, PATTERN, len);
}

bool check_filled(const char *buffer, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)buffer[i] != PATTERN)
			return false;
	return true;
}
