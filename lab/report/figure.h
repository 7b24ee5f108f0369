/* SPDX-License-Identifier: BSD-3-Clause */
/* The two tables of the report: what is run, and which figures are drawn from it. */
#ifndef TERN_LAB_REPORT_FIGURE_H
#define TERN_LAB_REPORT_FIGURE_H

#include <stdbool.h>
#include <stddef.h>

enum { FIGURE_KEYS = 8, FIGURE_TOLD = 6 };

/* With how many ranks a program runs. */
enum run_counts {
	RUN_EVERY,   /* each number that was asked for */
	RUN_LARGEST, /* the largest power of 2 among them: the figure varies something else */
	RUN_PAIR,    /* 2 */
};

/*
 * A program of apps/, or a subcommand of `tern`. Each number of ranks on each machine is a process
 * of its own, whose output is kept. In the options, 16P is 16 times the ranks.
 */
struct run {
	const char *name, *program;
	const char *options, *quick;         /* on this machine */
	const char *sim_options, *sim_quick; /* on simulated ones */
	const char *machines;                /* their profiles; with --quick the first alone */
	enum run_counts counts;
	bool tool; /* a subcommand: once, on this machine */
	bool logp; /* it predicts, from the parameters of its machine */
};

/* What is measured first, on each machine that something is predicted for. */
enum { RUN_LOGP };
extern const struct run run_table[];
extern const size_t run_count;

enum figure_kind {
	FIGURE_LINES, /* y[0] over x, whole; y[1], the prediction or limit, dashed */
	FIGURE_BARS,  /* a group for each record, a bar for each y */
	FIGURE_STACK, /* a bar for each record, made of all y but the last, which lies beside it */
};

enum figure_as { FIGURE_AS_IT_IS, FIGURE_RATE, FIGURE_SPEEDUP };

struct figure {
	const char *id, *title;
	const char *paper; /* which figure of which paper it answers */
	const char *text;
	const char *group; /* the heading that it begins; NULL: it stands under the one before */
	const char *run;   /* its name if it is not the id; a figure without a run is of --peers */
	enum figure_kind kind;
	const char *only_key, *only; /* records whose only_key is one of these words */
	const char *by, *by_too;     /* keys that name a line or group; by is NULL: variant */
	const char *x, *x_name;      /* without a name, the key */
	const char *y[FIGURE_KEYS], *y_name[FIGURE_KEYS];
	const char *unit;
	double scale;          /* by which y is multiplied; 0: 1 */
	enum figure_as as;     /* RATE: amount over y. SPEEDUP: over x, from the fewest ranks on */
	const char *per;       /* a key that y is divided by */
	bool log;              /* upward; to the right for bars */
	bool last;             /* of records with one name, the last */
	const char *told_name; /* what the paper measured, in the same unit, by name */
	struct {
		const char *name;
		double value;
	} told[FIGURE_TOLD];
};

extern const struct figure figure_table[];
extern const size_t figure_count;

/* What it is drawn from; NULL: the table of --peers. */
const struct run *figure_run(const struct figure *f);

static inline const char *figure_by(const struct figure *f)
{
	return f->by ? f->by : "variant";
}

#endif
