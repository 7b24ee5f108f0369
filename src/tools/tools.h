/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The commands of `tern`. Each is a main of its own, and what it returns is the exit status (0
 * good, 2 asked for wrongly). tern.c says which are part of the command and which are programs.
 */
#ifndef TERN_TOOLS_TOOLS_H
#define TERN_TOOLS_TOOLS_H

int run_main(int argc, char **argv);
int info_main(int argc, char **argv);
int top_main(int argc, char **argv);
int why_main(int argc, char **argv);
int trace_main(int argc, char **argv);
int sim_main(int argc, char **argv);

/* What --help prints, from the file help.txt of each folder, or top.txt and why.txt. */
extern const char help_run[], help_info[], help_top[], help_why[], help_trace[], help_sim[];

#endif
