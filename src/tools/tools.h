/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The tern command. Each sub-command is a main of its own: argv[0] is its name,
 * and what it returns is the exit status (0 good, 2 asked for wrongly).
 */
#ifndef TERN_TOOLS_TOOLS_H
#define TERN_TOOLS_TOOLS_H

int run_main(int argc, char **argv);
int info_main(int argc, char **argv);
int perf_main(int argc, char **argv);
int logp_main(int argc, char **argv);
int cost_main(int argc, char **argv);
int top_main(int argc, char **argv);
int why_main(int argc, char **argv);
int trace_main(int argc, char **argv);
int sim_main(int argc, char **argv);
int report_main(int argc, char **argv);

/* What --help prints, from the file help.txt of each folder, or top.txt and why.txt. */
extern const char help_run[], help_info[], help_perf[], help_logp[], help_cost[], help_top[],
	help_why[], help_trace[], help_sim[], help_report[];

#endif
