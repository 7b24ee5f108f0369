/* SPDX-License-Identifier: BSD-3-Clause */
/* The processes that descend from this one, however they were started. */
#ifndef TERN_TOOLS_RUN_TREE_H
#define TERN_TOOLS_RUN_TREE_H

/* Makes orphans among the descendants children of this process: none can leave the family. */
void tree_adopt(void);

/* Sends `signal` to every descendant; returns to how many it could be sent. */
unsigned tree_signal(int signal);

/*
 * Kills every descendant and returns when none is left, or when those left may not
 * be killed by this user. The caller has SIGCHLD blocked.
 */
void tree_end(void);

#endif
