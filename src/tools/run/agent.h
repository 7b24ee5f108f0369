/* SPDX-License-Identifier: BSD-3-Clause */
/* `tern run --agent`: the launcher's hand on another host. */
#ifndef TERN_TOOLS_RUN_AGENT_H
#define TERN_TOOLS_RUN_AGENT_H

/*
 * Gets its order through standard input and sends what its ranks write, and how they ended,
 * through standard output. Returns the exit status of its part of the job.
 */
int agent_run(int argc, char **argv);

#endif
