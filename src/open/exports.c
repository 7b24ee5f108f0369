/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The calls that programs have inline, once more as functions of the library: for languages that do
 * not compile the headers. Layers have an exports.c of their own.
 */
#define TERN_INLINE_ /* not static, not inline */
#include <tern/op.h>
#include <tern/tern.h>
