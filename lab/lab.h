/* SPDX-License-Identifier: BSD-3-Clause */
/* The laboratory's commands, each a program of its own: see tools/tools.h. */
#ifndef TERN_LAB_LAB_H
#define TERN_LAB_LAB_H

int perf_main(int argc, char **argv);
int logp_main(int argc, char **argv);
int cost_main(int argc, char **argv);
int report_main(int argc, char **argv);

/* What --help prints, from the file help.txt of each folder. */
extern const char help_perf[], help_logp[], help_cost[], help_report[];

#endif
