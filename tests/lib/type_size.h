/* SPDX-License-Identifier: BSD-3-Clause */
/* Bytes of an element of a tern_type that reductions know. */
#ifndef TYPE_SIZE_H
#define TYPE_SIZE_H

#include <tern/coll.h>

static inline size_t type_size(enum tern_type type)
{
	static const uint8_t sizes[TERN_TYPES] = {
		[TERN_TYPE_INT8] = 1,          [TERN_TYPE_INT16] = 2,
		[TERN_TYPE_INT32] = 4,         [TERN_TYPE_INT64] = 8,
		[TERN_TYPE_UINT8] = 1,         [TERN_TYPE_UINT16] = 2,
		[TERN_TYPE_UINT32] = 4,        [TERN_TYPE_UINT64] = 8,
		[TERN_TYPE_FLOAT] = 4,         [TERN_TYPE_DOUBLE] = 8,
		[TERN_TYPE_COMPLEX_FLOAT] = 8, [TERN_TYPE_COMPLEX_DOUBLE] = 16,
		[TERN_TYPE_INT64_AT] = 16,     [TERN_TYPE_UINT64_AT] = 16,
		[TERN_TYPE_DOUBLE_AT] = 16,
	};
	return sizes[type];
}

#endif
