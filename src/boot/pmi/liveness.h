/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which ranks of a job that is being joined have no process on this node any more.
 *
 * A process manager does not say that a rank has ended before it joined. But it says which ranks it
 * starts on this node, and gives their processes variables by which they can be found. A rank whose
 * process is not there, and has not been for some seconds in which no other one appeared either,
 * has ended. Where processes cannot be seen, nothing is said of any.
 */
#ifndef TERN_BOOT_PMI_LIVENESS_H
#define TERN_BOOT_PMI_LIVENESS_H

#include "boot/pmi/pmi.h"

/* Ranks, for a sentence: "ranks 1, 2, 5". */
struct rank_list {
	uint32_t count;
	size_t len;
	char text[200];
};
void rank_list_add(struct rank_list *n, uint32_t rank);
/* Valid until the thread's next call. */
const char *rank_list_text(const struct rank_list *n, const char *behind);

struct liveness {
	const struct pmi_ops *pmi;
	uint32_t size;
	char mark[2][128]; /* what this job's processes have in their environment */
	bool *expected;    /* one a rank: it is to be on this node, */
	uint8_t *missed;   /* and how many looks have not found it since one did */
	uint64_t since;    /* when one appeared last, ns */
};

/*
 * `neighbours` as in pmi.h, or NULL. False if nothing can be found out here. To be closed in any
 * case.
 */
bool liveness_open(struct liveness *l, const struct pmi_ops *pmi,
		   bool (*neighbours)(char *list, size_t len), uint32_t rank, uint32_t size);
/* 0, or -EOWNERDEAD with a sentence that names ranks that have ended. */
int liveness_check(struct liveness *l);
void liveness_close(struct liveness *l);

#endif
