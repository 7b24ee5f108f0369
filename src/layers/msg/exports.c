/* SPDX-License-Identifier: BSD-3-Clause */
/* The calls that programs have inline, as functions of the library; see open/exports.c. */
#include <tern/mem.h>

#undef TERN_INLINE_
#define TERN_INLINE_
#include <tern/send.h>
