/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Left, a point for each prediction: measured across, predicted upwards, on logarithmic
 * scales, with a band of 15 % around the diagonal; what lies outside is hollow. Right, the
 * parameters of one message as bars. Colours are the reader's: light or dark follows what
 * the viewer prefers.
 */
#include "lab/logp/run.h"

#include <math.h>
#include <string.h>

#include "tools/common/svg.h"

enum {
	LEFT = 76,
	TOP = 64,
	SIDE = 340,
	BARS_LEFT = 560,
	BARS_WIDE = 240,
	BAR = 22,
	BAR_APART = 38,
	LEGEND_TOP = 330,
	LEGEND_APART = 22,
};

static const char light[] =
	"--band: #eaf1fd; --bar: #2563eb; --c0: #2563eb; --c1: #0d9488; --c2: #b45309; --c3: "
	"#9333ea";
static const char dark[] =
	"--band: #1b2535; --bar: #7aa7ff; --c0: #7aa7ff; --c1: #2dd4bf; --c2: #fbbf24; --c3: "
	"#c98bff";
static const char style[] =
	"  .diagonal { stroke: var(--faint); stroke-dasharray: 4 4 }\n"
	"  circle { stroke-width: 2 } .far { fill: var(--paper) }\n"
	"  .c0 { stroke: var(--c0) } .c0.near { fill: var(--c0) } .c1 { stroke: var(--c1) } "
	".c1.near { fill: var(--c1) }\n"
	"  .c2 { stroke: var(--c2) } .c2.near { fill: var(--c2) } .c3 { stroke: var(--c3) } "
	".c3.near { fill: var(--c3) }\n";

/* What has a colour of its own; everything else has the last. */
static const char *const kinds[] = { "burst", "all-to-all", "ring", "payload" };

enum { KINDS = sizeof kinds / sizeof *kinds };

/* -- Predictions against measurements ----------------------------------------------------- */

struct scale {
	double least, most; /* ns */
};

/* With some room around everything that is shown. */
static struct scale scale_make(const struct logp_outcome *o)
{
	struct scale s = { INFINITY, 0 };
	for (unsigned i = 0; i < LOGP_PATTERNS; i++) {
		const struct logp_forecast *f = &o->forecast[i];
		if (!isfinite(forecast_error(f)))
			continue;
		s.least = fmin(s.least, fmin(f->predicted, f->measured.median));
		s.most = fmax(s.most, fmax(f->predicted, f->measured.median));
	}
	if (!(s.least > 0 && s.most > 0 && isfinite(s.least)))
		return (struct scale){ 100, 10000 };
	return (struct scale){ s.least / 1.5, s.most * 1.5 };
}

/* How far along the side a time lies; never outside. */
static double scale_at(struct scale s, double ns)
{
	double at = log(ns / s.least) / log(s.most / s.least);
	return SIDE * fmin(fmax(at, 0), 1);
}

static void draw_tick(struct scale s, double ns, FILE *to)
{
	double at = scale_at(s, ns);
	char label[24];
	if (ns < s.least || ns > s.most)
		return;
	snprintf(label, sizeof label, ns < 1000 ? "%.0f ns" : "%.0f us",
		 ns < 1000 ? ns : ns / 1000);
	fprintf(to, "<path class=\"rule\" d=\"M%d %.1fh%dM%.1f %dv%d\"/>\n", LEFT, TOP + SIDE - at,
		SIDE, LEFT + at, TOP, SIDE);
	svg_text(to, "faint end", LEFT - 8, TOP + SIDE - at + 4, "%s", label);
	svg_text(to, "faint middle", LEFT + at, TOP + SIDE + 18, "%s", label);
}

static void draw_axes(struct scale s, FILE *to)
{
	for (double decade = 1; decade <= s.most; decade *= 10) {
		draw_tick(s, decade, to);
		draw_tick(s, 2 * decade, to);
		draw_tick(s, 5 * decade, to);
	}
	svg_text(to, "faint middle", LEFT + SIDE / 2.0, TOP + SIDE + 42, "measured");
	fprintf(to,
		"<text class=\"faint middle\" transform=\"translate(%d %d) "
		"rotate(-90)\">predicted</text>\n",
		16, TOP + SIDE / 2);
}

/* The square is cut to itself, so the band may leave it. */
static void draw_band(struct scale s, FILE *to)
{
	double e = SIDE / log(s.most / s.least);
	double above = log(1.15) * e, below = -log(0.85) * e;
	fprintf(to, "<clipPath id=\"square\"><path d=\"M%d %dh%dv%dh-%dz\"/></clipPath>\n", LEFT,
		TOP, SIDE, SIDE, SIDE);
	fprintf(to,
		"<path clip-path=\"url(#square)\" fill=\"var(--band)\" d=\"M%d %.1fl%d "
		"-%dv%.1fl-%d %dz\"/>\n",
		LEFT, TOP + SIDE - above, SIDE, SIDE, above + below, SIDE, SIDE);
}

static unsigned pattern_kind(const struct logp_pattern *p)
{
	unsigned kind = 0;
	while (kind + 1 < KINDS && strcmp(kinds[kind], p->name) != 0)
		kind++;
	return kind;
}

static void draw_point(struct scale s, const struct logp_forecast *f, FILE *to)
{
	double error = forecast_error(f);
	char classes[16];
	if (!isfinite(error))
		return;
	snprintf(classes, sizeof classes, "c%u %s", pattern_kind(f->pattern),
		 fabs(error) <= 15 ? "near" : "far");
	svg_dot(to, classes, LEFT + scale_at(s, f->measured.median),
		TOP + SIDE - scale_at(s, f->predicted), 4,
		"%s, %u %s: predicted %.0f ns, measured %.0f ns (%+.1f %%)", f->pattern->name,
		f->size, f->pattern->unit, f->predicted, f->measured.median, error);
}

static void draw_legend(FILE *to)
{
	static const char *const classes[KINDS] = { "c0 near", "c1 near", "c2 near", "c3 near" };
	for (unsigned i = 0; i < KINDS; i++) {
		unsigned y = LEGEND_TOP + i * LEGEND_APART;
		svg_dot(to, classes[i], BARS_LEFT + 4, y, 4, "%s", kinds[i]);
		svg_text(to, "", BARS_LEFT + 18, y + 4, "%s", kinds[i]);
	}
}

static void draw_forecasts(const struct logp_outcome *o, FILE *to)
{
	struct scale s = scale_make(o);
	svg_text(to, "title", LEFT, 34, "Predicted against measured");
	svg_text(to, "faint", LEFT, 52, "the band is 15 %% to either side");
	draw_band(s, to);
	draw_axes(s, to);
	fprintf(to, "<path class=\"diagonal\" d=\"M%d %dl%d -%d\"/>\n", LEFT, TOP + SIDE, SIDE,
		SIDE);
	for (unsigned i = 0; i < LOGP_PATTERNS; i++)
		draw_point(s, &o->forecast[i], to);
	draw_legend(to);
}

/* -- The parameters -------------------------------------------------------------------------- */

static void draw_bar(unsigned at, const char *name, double ns, double most, FILE *to)
{
	double y = TOP + 16 + at * BAR_APART, wide = fmax(BARS_WIDE * ns / most, 1);
	svg_text(to, "end", BARS_LEFT - 10, y + 15, "%s", name);
	svg_bar(to, "var(--bar)", BARS_LEFT, y, wide, BAR, "%s", name);
	svg_text(to, "faint", BARS_LEFT + wide + 8, y + 15, "%.*f ns",
		 ns < 10    ? 2
		 : ns < 100 ? 1
			    : 0,
		 ns);
}

static void draw_parameters(const struct logp_model *m, FILE *to)
{
	static const enum logp_name shown[] = { LOGP_SEND, LOGP_LATENCY, LOGP_RECEIVE, LOGP_GAP };
	const struct logp_size *s = model_size(m, false, m->words);
	double most = 1;
	unsigned n = sizeof shown / sizeof *shown;
	for (unsigned i = 0; i < n; i++)
		most = fmax(most, s->is[shown[i]].median);
	svg_text(to, "title", BARS_LEFT, 34, "Parameters");
	svg_text(to, "faint", BARS_LEFT, 52, "a message of %u words; P = %u ranks", m->words,
		 m->ranks);
	for (unsigned i = 0; i < n; i++)
		draw_bar(i, logp_names[shown[i]], s->is[shown[i]].median, most, to);
	if (!isfinite(m->per_byte.median))
		return;
	svg_text(to, "end", BARS_LEFT - 10, TOP + 31 + n * BAR_APART, "G");
	svg_text(to, "faint", BARS_LEFT, TOP + 31 + n * BAR_APART,
		 "%.3f ns for each byte of a large payload", m->per_byte.median);
}

int logp_plot_write(const void *outcome, FILE *to)
{
	const struct logp_outcome *o = outcome;
	svg_begin(to, 900, 470, "LogP parameters, and predictions against measurements", light,
		  dark, style);
	draw_forecasts(o, to);
	draw_parameters(&o->model, to);
	return svg_end(to);
}
