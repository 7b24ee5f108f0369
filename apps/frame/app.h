/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the programs of apps/ have in common. A program defines `app`: its options, its variants and
 * five functions. The frame has main(): it reads the options, plays each variant several rounds,
 * times them, has every round's result compared with a serial one, and prints a table or JSON.
 *
 * Every rank calls every function of a program. Options are the same at all ranks, so all of them
 * refuse the same sizes.
 */
#ifndef TERN_APPS_FRAME_APP_H
#define TERN_APPS_FRAME_APP_H

#include <stddef.h>
#include <stdint.h>
#include <tern/coll.h>

#include "frame/number.h"

enum { APP_FIGURES = 32 };

/* An option that takes a whole number, or a list of them: then each value is played. */
struct app_option {
	const char *name; /* without dashes; NULL: behind the last */
	const char *what;
	uint64_t *value; /* the default before; in a run the value of that run */
	uint64_t least, most;
	const char **text; /* instead of a number: a file's name, NULL unless given */
};

/* A way to write the program; all of them give the same result. */
struct app_variant {
	const char *name, *what;
};

/* Parameters of LogP in seconds, from `tern logp --profile`, for messages of few words. */
struct app_logp {
	double overhead_send, latency, overhead_receive, gap;
	double byte; /* G: for each byte of a payload */
};

struct app_job {
	tern *t;
	tern_team *team; /* all ranks */
	uint32_t rank, size;
	unsigned variant;            /* in reset, run, wrong and predict */
	double amount;               /* units that a round does; open or run sets it */
	const struct app_logp *logp; /* in predict */
};

struct app {
	const char *name, *what; /* `what` is the text of --help: lines */
	const struct app_option *options;
	const struct app_variant *variants;
	const char *unit; /* of the amount: "Mflop" is printed as Mflop/s */
	/* For each combination of sizes: refuses them, or allocates and makes the input. */
	void (*open)(struct app_job *j);
	void (*reset)(struct app_job *j); /* before a round */
	void (*run)(struct app_job *j);   /* the round: what is timed */
	/* How many elements of this rank differ from the serial result, by app_differs(). */
	uint64_t (*wrong)(struct app_job *j);
	double (*predict)(struct app_job *j); /* seconds, or NaN; may be NULL */
	void (*close)(struct app_job *j);
	/* Why this variant cannot be played here, the same at all ranks, or NULL; may be NULL. */
	const char *(*lacks)(struct app_job *j);
};

/* In a program's `app`: what it has under the usual names. */
#define APP_FUNCTIONS                                                                       \
	.options = options, .variants = variants, .open = open, .reset = reset, .run = run, \
	.wrong = wrong, .close = close

extern const struct app app;

/* -- For programs ---------------------------------------------------------------------- */

/* A call of Tern that failed ends the job with its sentence. */
void app_must(struct app_job *j, int rc);
/* All ranks refuse the options alike: one sentence, status 2. Does not return. */
__attribute__((noreturn, format(printf, 2, 3))) void app_refuse(struct app_job *j,
								const char *format, ...);
/*
 * Memory of this rank, cleared; that of app_shared() is of tern_alloc_all().
 * Sizes are doubles, so that no product wraps; more than the machine has is refused.
 */
void *app_memory(struct app_job *j, double bytes);
void *app_shared(struct app_job *j, double bytes);
void app_memory_free(struct app_job *j, void *p);
void app_shared_free(struct app_job *j, void *p);

/* A figure of this round, at rank 0; the median over the rounds is reported. */
void app_figure(struct app_job *j, const char *name, double value);
/* Computation, for a simulated machine. */
void app_work(struct app_job *j, uint64_t integer, uint64_t floating, uint64_t memory);
double app_seconds(struct app_job *j); /* of this rank's clock, virtual if it is simulated */

/*
 * In `wrong`: 1 if an element of this rank, `name`[i], is not what it should be; a real number may
 * be off by `within`. app_wrong() is for what no one value shows. The first is printed.
 */
uint64_t app_differs(const char *name, uint64_t i, double is, double should, double within);
uint64_t app_differs_word(const char *name, uint64_t i, uint64_t is, uint64_t should);
__attribute__((format(printf, 1, 2))) uint64_t app_wrong(const char *format, ...);

/*
 * How messages are served from now on, at every rank. app_interrupt_lacks() says why interrupts
 * cannot be had, as on a simulated machine; NULL if they can.
 */
void app_delivery(struct app_job *j, enum tern_delivery d);
const char *app_interrupt_lacks(struct app_job *j);

/* Of n things in blocks, rank r has app_first(n, r) to app_first(n, r + 1) - 1. */
uint64_t app_first(const struct app_job *j, uint64_t n, uint32_t rank);
uint32_t app_owner(const struct app_job *j, uint64_t n, uint64_t i);
struct app_grid app_grid(const struct app_job *j);

/*
 * The style of the SCMP thesis before it had send and receive: a thread at the owner of `from` puts
 * `len` bytes to `to`, memory of this rank. app_requests_wait() waits for all that were started.
 */
void app_requests_open(struct app_job *j);
void app_request(struct app_job *j, tern_addr to, tern_addr from, size_t len);
void app_requests_wait(struct app_job *j);

/* -- Within the frame ------------------------------------------------------------------ */

struct app_settings {
	uint64_t repeat;
	int json, plain, progress, spoil;
	const char *logp, *variants;
};

/* The values of each option, and the settings; 0, or the status to end with. */
int app_options_read(struct app_job *j, int argc, char **argv, struct app_settings *s);
/* Sets the options to the i-th combination of values; 0 if there is none. */
int app_options_set(uint64_t i);
int app_variant_wanted(const struct app_settings *s, unsigned variant);
const char *app_logp_read(const char *path, struct app_logp *logp); /* NULL, or what is wrong */

/* Before a round's comparison; `spoiled`: the first value of this rank counts as wrong. */
void app_wrong_begin(int spoiled);
/* At every rank, if the round has mistakes: the first rank that has one prints its sentence. */
void app_wrong_report(struct app_job *j, uint64_t all);

struct app_result {
	const char *variant;
	uint32_t ranks;
	unsigned rounds, figures;
	double seconds, low, high; /* median, and the middle half of the rounds */
	double amount, predicted, messages;
	uint64_t wrong;
	struct {
		const char *name;
		double value;
	} figure[APP_FIGURES];
};

void app_report_begin(const struct app_settings *s);
void app_report(const struct app_settings *s, const struct app_result *r);
void app_report_skipped(const struct app_settings *s, const char *variant, const char *why);
void app_report_end(const struct app_settings *s);
__attribute__((format(printf, 2, 3))) void app_progress(const struct app_settings *s,
							const char *format, ...);

#endif
