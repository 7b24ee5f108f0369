/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes and reads the file of parameters. */
#include "lab/logp/profile.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"

enum { VERSION = 1, LINE = 256 };

/* -- Writing ------------------------------------------------------------------------ */

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

/* -- Reading ------------------------------------------------------------------------ */

/* One number, or three. */
static bool read_estimate(const char *text, struct series_estimate *e)
{
	double v[3];
	unsigned n = 0;
	char *end;
	for (; n < 3; n++, text = end) {
		v[n] = strtod(text, &end);
		if (end == text)
			break;
	}
	if ((n != 1 && n != 3) || text[strspn(text, " \t\r\n")] || !isfinite(v[0]))
		return false;
	*e = (struct series_estimate){ v[0], n == 3 ? v[1] : v[0], n == 3 ? v[2] : v[0] };
	return true;
}

static struct logp_size *size_find(struct logp_model *m, bool bytes, uint32_t size)
{
	for (unsigned i = 0; i < m->n; i++)
		if (m->size[i].bytes == bytes && m->size[i].size == size)
			return &m->size[i];
	if (m->n == LOGP_SIZES_MOST)
		return NULL;
	struct logp_size *s = &m->size[m->n++];
	*s = (struct logp_size){ .bytes = bytes, .size = size };
	for (unsigned i = 0; i < LOGP_NAMES; i++)
		s->is[i] = (struct series_estimate){ NAN, NAN, NAN };
	return s;
}

/* `rest` is what stands behind "words." or "bytes.": a number, a dot, a name. */
static bool take_size(struct logp_model *m, bool bytes, const char *rest, struct series_estimate e)
{
	char *name;
	unsigned long size = strtoul(rest, &name, 10);
	if (name == rest || *name != '.' || size > UINT32_MAX)
		return false;
	for (unsigned i = 0; i < LOGP_NAMES; i++)
		if (strcmp(name + 1, logp_names[i]) == 0) {
			struct logp_size *s = size_find(m, bytes, (uint32_t)size);
			if (s)
				s->is[i] = e;
			return s != NULL;
		}
	return true;
}

static bool take_burst(struct logp_model *m, const char *rest, struct series_estimate e)
{
	unsigned long n = strtoul(rest, NULL, 10);
	for (unsigned i = 0; i < LOGP_BURSTS; i++)
		if (logp_bursts[i] == n)
			m->burst[i] = e;
	return true;
}

static bool take_whole(uint32_t *to, double value, uint32_t least, uint32_t most)
{
	if (!(value >= least && value <= most) || value != floor(value))
		return false;
	*to = (uint32_t)value;
	return true;
}

static bool take(struct logp_model *m, const char *key, struct series_estimate e)
{
	uint32_t version;
	if (strcmp(key, "profile") == 0)
		return take_whole(&version, e.median, VERSION, VERSION);
	if (strcmp(key, "ranks") == 0)
		return take_whole(&m->ranks, e.median, 2, 1u << 20);
	if (strcmp(key, "words") == 0)
		return take_whole(&m->words, e.median, 0, 8);
	if (strcmp(key, "L") == 0)
		m->latency = e;
	else if (strcmp(key, "G") == 0)
		m->per_byte = e;
	else if (strcmp(key, "G.start") == 0)
		m->large_gap = e.median;
	else if (strncmp(key, "burst.", 6) == 0)
		return take_burst(m, key + 6, e);
	else if (strncmp(key, "words.", 6) == 0 || strncmp(key, "bytes.", 6) == 0)
		return take_size(m, key[0] == 'b', key + 6, e);
	return true;
}

/* The text is cut up. */
static bool read_line(struct logp_model *m, char *line)
{
	struct series_estimate e;
	line[strcspn(line, "#\n")] = '\0';
	line += strspn(line, " \t\r");
	char *equals = strchr(line, '=');
	if (!*line)
		return true;
	if (!equals || !read_estimate(equals + 1, &e))
		return false;
	line[strcspn(line, " \t=")] = '\0';
	return take(m, line, e);
}

static void model_clear(struct logp_model *m)
{
	const struct series_estimate none = { NAN, NAN, NAN };
	*m = (struct logp_model){ .per_byte = none, .large_gap = NAN, .latency = none };
	for (unsigned i = 0; i < LOGP_BURSTS; i++)
		m->burst[i] = none;
}

static const char *model_missing(const struct logp_model *m)
{
	const struct logp_size *s = model_size(m, false, m->words);
	if (!m->ranks)
		return "ranks";
	if (isnan(m->latency.median))
		return "L";
	for (unsigned i = 0; i < LOGP_BURSTS; i++)
		if (isnan(m->burst[i].median))
			return "burst.*";
	for (unsigned i = 0; i < LOGP_NAMES; i++)
		if (!s || isnan(s->is[i].median))
			return "words.*";
	return NULL;
}

int profile_read(struct logp_model *m, FILE *from, const char *name)
{
	char line[LINE];
	model_clear(m);
	for (unsigned n = 1; fgets(line, sizeof line, from); n++)
		if (!read_line(m, line))
			return error_set(
				-EINVAL,
				"%s, line %u: `key = number` or `key = number low high` is needed, "
				"with a number that the key can have",
				name, n);
	const char *missing = model_missing(m);
	if (missing)
		return error_set(-EINVAL, "%s is not a whole profile: it has no %s", name, missing);
	return 0;
}
