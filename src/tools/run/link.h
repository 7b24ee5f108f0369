/* SPDX-License-Identifier: BSD-3-Clause */
/* `tern run --link`: what stands among the launcher's ranks for the ranks of a host. */
#ifndef TERN_TOOLS_RUN_LINK_H
#define TERN_TOOLS_RUN_LINK_H

/*
 * The first of `words` names a host, the others are a command that leads to its agent. Runs it, and carries frames between it and the launcher, which
 * is at the other end of `control`; text of the agent's ranks goes to our own outputs and our
 * input to rank 0. Returns the status that the agent told.
 */
int link_run(int control, char **words);

#endif
