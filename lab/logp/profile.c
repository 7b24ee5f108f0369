/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes the file of parameters. */
#include "lab/logp/profile.h"

#include <errno.h>
#include <math.h>

enum { VERSION = 1 };

static void write_estimate(FILE *to, const char *key, const struct series_estimate *e)
{
	if (isfinite(e->median))
		fprintf(to, "%s = %.6g %.6g %.6g\n", key, e->median, e->low, e->high);
}

static void write_size(FILE *to, const struct logp_size *s)
{
	char key[32];
	for (unsigned i = 0; i < LOGP_NAMES; i++) {
		snprintf(key, sizeof key, "%s.%u.%s", s->bytes ? "bytes" : "words", s->size,
			 logp_names[i]);
		write_estimate(to, key, &s->is[i]);
	}
}

int profile_write(const struct logp_model *m, FILE *to)
{
	char key[32];
	fputs("# LogP parameters, by `tern logp`; nanoseconds: median, and its 95 % interval.\n",
	      to);
	fprintf(to, "profile = %d\nranks = %u\nwords = %u\n", VERSION, m->ranks, m->words);
	write_estimate(to, "L", &m->latency);
	write_estimate(to, "G", &m->per_byte);
	if (isfinite(m->large_gap))
		fprintf(to, "G.start = %.6g\n", m->large_gap);
	for (unsigned i = 0; i < LOGP_BURSTS; i++) {
		snprintf(key, sizeof key, "burst.%u", logp_bursts[i]);
		write_estimate(to, key, &m->burst[i]);
	}
	for (unsigned i = 0; i < m->n; i++)
		write_size(to, &m->size[i]);
	return fflush(to) || ferror(to) ? -EIO : 0;
}
