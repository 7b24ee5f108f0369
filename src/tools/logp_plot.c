/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Left, a point for each prediction: measured across, predicted upwards, both by powers of
 * ten, with a band of 15 % around the diagonal. Right, the parameters of one message as
 * bars. Colours are the reader's: light or dark follows what the viewer prefers.
 */
#include "tools/logp_plot.h"

#include <errno.h>
#include <math.h>

enum { LEFT = 70, TOP = 64, SIDE = 340, BARS_LEFT = 560, BARS_WIDE = 250, BAR = 26, BAR_APART = 46 };

static const char style[] =
	"<style>\n"
	"  svg { color-scheme: light dark; --paper: #fff; --ink: #1b1f24; --faint: #6b7280; --rule: #e2e5e9;\n"
	"    --band: #dbeafe; --near: #2563eb; --far: #c2410c; --bar: #2563eb; }\n"
	"  @media (prefers-color-scheme: dark) { svg { --paper: #14171b; --ink: #e6e8eb; --faint: #9aa1ab;\n"
	"    --rule: #2b3036; --band: #1d2b45; --near: #7aa7ff; --far: #fb923c; --bar: #7aa7ff; } }\n"
	"  text { font: 12px system-ui, sans-serif; fill: var(--ink) }\n"
	"  .title { font-size: 14px; font-weight: 600 }\n"
	"  .faint { fill: var(--faint) }\n"
	"  .middle { text-anchor: middle } .end { text-anchor: end }\n"
	"  .rule { stroke: var(--rule) } .diagonal { stroke: var(--faint); stroke-dasharray: 4 4 }\n"
	"  .near { fill: var(--near) } .far { fill: var(--far) }\n"
	"</style>\n";

/* -- Predictions against measurements ----------------------------------------------------- */

struct scale {
	int least, most; /* powers of ten */
};

/* Whole decades around everything that is shown. */
static struct scale scale_make(const struct logp_outcome *o)
{
	double least = INFINITY, most = 0;
	for (unsigned i = 0; i < LOGP_PATTERNS; i++) {
		const struct logp_forecast *f = &o->forecast[i];
		if (!isfinite(forecast_error(f)))
			continue;
		least = fmin(least, fmin(f->predicted, f->measured.median));
		most = fmax(most, fmax(f->predicted, f->measured.median));
	}
	if (!(least > 0 && most > 0 && isfinite(least)))
		return (struct scale){ 2, 4 };
	struct scale s = { (int)floor(log10(least)), (int)ceil(log10(most)) };
	s.most += s.most == s.least;
	return s;
}

/* How far along the side a time lies; never outside. */
static double scale_at(struct scale s, double ns)
{
	double at = (log10(ns) - s.least) / (s.most - s.least);
	return SIDE * fmin(fmax(at, 0), 1);
}

static void axis_label(char *label, size_t len, int power)
{
	static const char *const units[] = { "ns", "us", "ms", "s" };
	int unit = power < 0 ? 0 : power / 3 > 3 ? 3 : power / 3;
	snprintf(label, len, "%g %s", pow(10, power - 3 * unit), units[unit]);
}

static void draw_axes(struct scale s, FILE *to)
{
	char label[24];
	for (int power = s.least; power <= s.most; power++) {
		double at = scale_at(s, pow(10, power));
		axis_label(label, sizeof label, power);
		fprintf(to, "<path class=\"rule\" d=\"M%d %.1fh%dM%.1f %dv%d\"/>\n", LEFT, TOP + SIDE - at,
			SIDE, LEFT + at, TOP, SIDE);
		fprintf(to, "<text class=\"faint end\" x=\"%d\" y=\"%.1f\">%s</text>\n", LEFT - 8,
			TOP + SIDE - at + 4, label);
		fprintf(to, "<text class=\"faint middle\" x=\"%.1f\" y=\"%d\">%s</text>\n", LEFT + at,
			TOP + SIDE + 18, label);
	}
	fprintf(to, "<text class=\"faint middle\" x=\"%d\" y=\"%d\">measured</text>\n", LEFT + SIDE / 2,
		TOP + SIDE + 40);
	fprintf(to,
		"<text class=\"faint middle\" transform=\"translate(%d %d) rotate(-90)\">predicted</text>\n",
		16, TOP + SIDE / 2);
}

/* The square is cut to itself, so the band may leave it. */
static void draw_band(struct scale s, FILE *to)
{
	double decade = (double)SIDE / (s.most - s.least);
	double above = log10(1.15) * decade, below = -log10(0.85) * decade;
	fprintf(to, "<clipPath id=\"square\"><path d=\"M%d %dh%dv%dh-%dz\"/></clipPath>\n", LEFT, TOP, SIDE,
		SIDE, SIDE);
	fprintf(to,
		"<path clip-path=\"url(#square)\" fill=\"var(--band)\" d=\"M%d %.1fl%d -%dv%.1fl-%d %dz\"/>\n",
		LEFT, TOP + SIDE - above, SIDE, SIDE, above + below, SIDE, SIDE);
	fprintf(to, "<path class=\"diagonal\" d=\"M%d %dl%d -%d\"/>\n", LEFT, TOP + SIDE, SIDE, SIDE);
}

static void draw_point(struct scale s, const struct logp_forecast *f, FILE *to)
{
	double error = forecast_error(f);
	if (!isfinite(error))
		return;
	fprintf(to,
		"<circle class=\"%s\" cx=\"%.1f\" cy=\"%.1f\" r=\"4.5\"><title>%s, %u %s: predicted %.0f ns, measured "
		"%.0f ns (%+.1f %%)</title></circle>\n",
		fabs(error) <= 15 ? "near" : "far", LEFT + scale_at(s, f->measured.median),
		TOP + SIDE - scale_at(s, f->predicted), f->pattern->name, f->size, f->pattern->unit,
		f->predicted, f->measured.median, error);
}

static void draw_forecasts(const struct logp_outcome *o, FILE *to)
{
	struct scale s = scale_make(o);
	fprintf(to, "<text class=\"title\" x=\"%d\" y=\"34\">Predicted against measured</text>\n", LEFT);
	fprintf(to, "<text class=\"faint\" x=\"%d\" y=\"52\">the band is 15 %% to either side</text>\n",
		LEFT);
	draw_band(s, to);
	draw_axes(s, to);
	for (unsigned i = 0; i < LOGP_PATTERNS; i++)
		draw_point(s, &o->forecast[i], to);
}

/* -- The parameters -------------------------------------------------------------------------- */

static void draw_bar(unsigned at, const char *name, double ns, double most, FILE *to)
{
	double y = TOP + 16 + at * BAR_APART, wide = BARS_WIDE * ns / most;
	fprintf(to, "<text class=\"end\" x=\"%d\" y=\"%.1f\">%s</text>\n", BARS_LEFT - 10, y + 17, name);
	fprintf(to, "<rect x=\"%d\" y=\"%.1f\" width=\"%.1f\" height=\"%d\" rx=\"3\" fill=\"var(--bar)\"/>\n",
		BARS_LEFT, y, fmax(wide, 1), BAR);
	fprintf(to, "<text class=\"faint\" x=\"%.1f\" y=\"%.1f\">%.*f ns</text>\n",
		BARS_LEFT + fmax(wide, 1) + 8, y + 17,
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
	fprintf(to, "<text class=\"title\" x=\"%d\" y=\"34\">Parameters</text>\n", BARS_LEFT);
	fprintf(to, "<text class=\"faint\" x=\"%d\" y=\"52\">a message of %u words; P = %u ranks</text>\n",
		BARS_LEFT, m->words, m->ranks);
	for (unsigned i = 0; i < n; i++)
		draw_bar(i, logp_names[shown[i]], s->is[shown[i]].median, most, to);
	if (isfinite(m->per_byte.median))
		fprintf(to,
			"<text x=\"%d\" y=\"%d\" class=\"end\">G</text><text class=\"faint\" x=\"%d\" y=\"%d\">%.3f ns for "
			"each byte of a large payload</text>\n",
			BARS_LEFT - 10, TOP + 33 + (int)n * BAR_APART, BARS_LEFT,
			TOP + 33 + (int)n * BAR_APART, m->per_byte.median);
}

int plot_write(const struct logp_outcome *o, FILE *to)
{
	fputs("<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 900 470\" role=\"img\" "
	      "aria-label=\"LogP parameters, and predictions against measurements\">\n",
	      to);
	fputs(style, to);
	fputs("<rect width=\"900\" height=\"470\" fill=\"var(--paper)\"/>\n", to);
	draw_forecasts(o, to);
	draw_parameters(&o->model, to);
	fputs("</svg>\n", to);
	return fflush(to) || ferror(to) ? -EIO : 0;
}
