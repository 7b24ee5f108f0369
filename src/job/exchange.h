/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * How ranks learn what they must know of each other before they can talk: each publishes
 * a card, and looks at those of others when it needs them. Nobody waits: a rank that has not opened
 * yet has no card, and what is sent to it stays where it is. The cards lie in the job's memory;
 * those of ranks on other machines are brought there as status records (status record.h).
 */
#ifndef TERN_JOB_EXCHANGE_H
#define TERN_JOB_EXCHANGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct job;

/* `len` is at most JOB_CARD_BYTES, and the same at every rank. Once in a session. */
void boot_publish(struct job *j, uint32_t rank, const void *card, size_t len);

/* False if `rank` has not published its card in this session. */
bool boot_look(const struct job *j, uint32_t rank, void *card, size_t len);

#endif
