/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The parameters as a text that other programs read: lines `key = number ...`, in ns; what
 * begins with # is a comment, and keys that a reader does not know are none of its
 * business. A second and a third number are the interval of the first.
 *
 *     profile = 1                  the version of this format
 *     ranks, words                 P; the words of a message in L and burst.*
 *     L                            between neighbours among all ranks
 *     G, G.start                   the gap of a large payload: G.start + G * bytes
 *     burst.N                      the gap in a burst of N
 *     words.N.x, bytes.N.x         for messages of N words, for payloads of N bytes;
 *                                  x is trip, o_s, L, o_r, g
 */
#ifndef TERN_LAB_LOGP_PROFILE_H
#define TERN_LAB_LOGP_PROFILE_H

#include <stdio.h>

#include "lab/logp/model.h"

/* 0, or -EIO if the file did not take it. */
int profile_write(const struct logp_model *m, FILE *to);

#endif
