/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The calls that programs have inline, once more as functions of the library: for languages that do
 * not compile the headers.
 */
#define TERN_INLINE_ /* not static, not inline */
#include <tern/chan.h>
#include <tern/mem.h>
#include <tern/msg.h>
#include <tern/post.h>
