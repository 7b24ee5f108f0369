/* SPDX-License-Identifier: BSD-3-Clause */
/* Instructions of this very program: their text, and what they touch. */
#ifndef TERN_LAB_COST_DECODE_H
#define TERN_LAB_COST_DECODE_H

#include <sys/user.h>

#include "lab/cost/cost.h"

/* Memory that peers share, from its first byte to the one behind its last. */
struct cost_shared {
	uintptr_t from, to;
};

struct decoder;

struct decoder *decoder_open(void); /* NULL: Capstone refuses */
void decoder_close(struct decoder *d);

/* The kind of the instruction that a process with these registers is about to execute. */
enum cost_kind decoder_kind(struct decoder *d, const struct user_regs_struct *regs,
			    const struct cost_shared *shared);

enum { DECODED_TEXT = 200 };
void decoder_text(struct decoder *d, uintptr_t at, char text[DECODED_TEXT]);

#endif
