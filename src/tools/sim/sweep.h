/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The runs of `tern sim --sweep`: the first key goes across, the second has a line for each value.
 */
#ifndef TERN_TOOLS_SIM_SWEEP_H
#define TERN_TOOLS_SIM_SWEEP_H

#include "tools/sim/sim.h"

struct sweeps {
	const struct sim_options *o;
	struct figures run[SWEEP_VALUES][SWEEP_VALUES]; /* [line][across], without their rows */
	unsigned lines, across;
	bool nodes; /* go across: what counts is speed-up */
};

/* How much quicker a run is than the first of its line. */
double sweep_speedup(const struct sweeps *s, unsigned line, unsigned across);
/* The value of the second key, as "key=value"; "": there is none. */
void sweep_line_name(const struct sweeps *s, unsigned line, char *text, size_t len);

/* Draws speed-up or time, as SVG; for file_write(). */
int sim_sweep_plot(const void *sweeps, FILE *to);

#endif
