/* SPDX-License-Identifier: BSD-3-Clause */
/* What `tern sim` was asked for, and a run of it. */
#ifndef TERN_TOOLS_SIM_SIM_H
#define TERN_TOOLS_SIM_SIM_H

#include "tools/sim/figures.h"
#include "tools/sim/pattern.h"

enum { PROFILE_TEXT = 1024, SWEEP_VALUES = 32, SWEEPS = 2, NODES_MOST = 1 << 20 };

/* A key that takes several values; "n" is the number of nodes. */
struct sweep {
	char key[PROFILE_NAME];
	char value[SWEEP_VALUES][PROFILE_NAME];
	unsigned n;
};

struct sim_options {
	uint32_t nodes;
	const char *profile, *csv, *heat, *trace, *plot;
	bool profiles, keys, survive, explain, speed, json;
	char set[PROFILE_TEXT];        /* ",key=value" for each */
	const struct pattern *pattern; /* NULL: a program */
	uint32_t rounds, bytes;
	struct sweep sweep[SWEEPS];
	unsigned sweeps;
	char **program;
};

/* The machine of one run: the profile with all that was set. */
struct sim_run {
	uint32_t nodes;
	char profile[PROFILE_TEXT + 256];
};

/*
 * Plays the pattern or runs the program, `quiet` if its output is not wanted. The figures are for
 * figures_free(). 0, or a code with a sentence; > 0: the status of the program, which failed.
 */
int sim_once(const struct sim_options *o, const struct sim_run *run, bool quiet, struct figures *f);

/* Becomes the program's job: returns only the status of what went wrong. */
int sim_start(const struct sim_options *o, const struct sim_run *run);
/* Says what is wrong; the status to end with. */
int sim_refuse(int rc);

/* Every combination of the sweeps, as a table or JSON, and a picture. */
int sim_sweep_main(const struct sim_options *o);

#endif
