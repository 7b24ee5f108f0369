/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What this library was built from. Programs, `tern run` and tern-link share memory and send each
 * other frames whose meaning any source file may change, so they work together only if all were
 * built from the same text; cmake/Stamp.cmake makes the number, for nobody to forget.
 */
#ifndef TERN_BASE_STAMP_H
#define TERN_BASE_STAMP_H

#include <stdint.h>

extern const uint32_t build_stamp;

#endif
