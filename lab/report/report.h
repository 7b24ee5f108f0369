/* SPDX-License-Identifier: BSD-3-Clause */
/* Inside `tern report`: its options, the runs, and the page. */
#ifndef TERN_LAB_REPORT_REPORT_H
#define TERN_LAB_REPORT_REPORT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "lab/report/data.h"
#include "lab/report/figure.h"

enum { COUNTS_MOST = 16, FIGURES_MOST = 64, JOBS_MOST = 1024, FOLDER_MOST = 400 };
enum { COMMAND = 1024, WORDS_MOST = 64, IDENTITY = 512 };

struct counts {
	const char *option;
	uint32_t at[COUNTS_MOST];
	unsigned n;
	bool given;
};

struct report_options {
	struct counts ranks, sim;
	bool quick, fresh, list;
	const char *output, *data, *apps, *peers, *points;
	uint32_t patience; /* seconds */
	bool chosen[FIGURES_MOST];
	bool some; /* of the figures were chosen, by --only */
};

enum job_state { JOB_WAITING, JOB_KEPT, JOB_DONE, JOB_FAILED };

/* One process, whose output is kept in a file. */
struct job {
	const struct run *run;
	char machine[32]; /* simulated; "": this one */
	uint32_t ranks;   /* 0: a subcommand */
	enum job_state state;
	double seconds;
	char place[IDENTITY]; /* the machine that it was run on, or the simulated one */
	char what[96];        /* for people */
	char file[512];       /* that its output is kept in */
	char command[COMMAND];
	char why[640]; /* it failed */
};

struct jobs {
	const struct report_options *o;
	struct job job[JOBS_MOST];
	unsigned n, failed;
};

/* points.c: draws the points of a file on standard output; 0, or a negative code with its sentence.
 */
int points_plot(const char *path);

/* -- The runs: play.c ------------------------------------------------------------------------- */

/* Why a run cannot be had in this build, for the page; NULL if it can. */
const char *run_lacks(const struct run *run);
/* The runs that the chosen figures need. */
void jobs_plan(struct jobs *s, const struct report_options *o);
/* Whether every program is there; otherwise refused, with a sentence. */
bool jobs_check(const struct jobs *s);
/* Runs what is not there yet, and prints a line for each. */
void jobs_play(struct jobs *s);

/* -- This machine, and the command: identity.c ------------------------------------------------- */

/* The processor, its cores, and the system. */
void machine_identity(char *text, size_t len);
/* The path of the command tern, which the runs are started by. */
const char *command_path(void);

/* -- One picture: plot.c ---------------------------------------------------------------------- */

/*
 * The picture of the records and the list of its colours; false if none of the records can be
 * drawn.
 */
bool plot_write(const struct figure *f, const struct data *d, const char *caption, FILE *to);

/* -- The page: page.c ------------------------------------------------------------------------- */

int page_write(const void *jobs, FILE *to);

#endif
