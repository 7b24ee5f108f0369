/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The heat map: nodes in their grid, coloured by how busy their processors are, and between them
 * the links, one for each direction, coloured by how busy these are. Networks without a grid show
 * the nodes alone, in rows. A row has the number of its first node, and a column what is to be
 * added for the number of a node in it.
 */
#include <stdlib.h>
#include <string.h>

#include "tools/common/svg.h"
#include "tools/sim/figures.h"

enum { MARGIN = 24, TOP = 60, LEGEND = 44, SIDE_MOST = 44, SIDE_LEAST = 10, ACROSS = 960 };
enum { HEADS = 40, HEAD = 10, HEAD_APART = 34, LEFT = MARGIN + HEADS };

static const char style[] =
	"  rect { stroke: var(--faint); stroke-opacity: .5; stroke-width: .5 }\n"
	"  .head { font-size: 10px }\n";

struct map {
	const struct figures *f;
	FILE *to;
	bool grid;
	uint32_t width, height;
	double side; /* from node to node */
};

/*
 * Nine colours of viridis, in equal steps of how they are perceived: equal differences of load look
 * equally large, without colour too, and to those who see few colours.
 */
static const uint8_t viridis[][3] = { { 68, 1, 84 },    { 71, 44, 122 },  { 59, 81, 139 },
				      { 44, 113, 142 }, { 33, 144, 141 }, { 39, 173, 129 },
				      { 92, 200, 99 },  { 170, 220, 50 }, { 253, 231, 37 } };
enum { COLOURS = sizeof viridis / sizeof *viridis };

static const char *heat_colour(double share, char text[32])
{
	double at = (share < 0 ? 0 : share > 1 ? 1 : share) * (COLOURS - 1), rgb[3];
	unsigned i = at < COLOURS - 1 ? (unsigned)at : COLOURS - 2;
	for (unsigned k = 0; k < 3; k++)
		rgb[k] = viridis[i][k] + (at - i) * (viridis[i + 1][k] - viridis[i][k]);
	snprintf(text, 32, "#%02x%02x%02x", (unsigned)rgb[0], (unsigned)rgb[1], (unsigned)rgb[2]);
	return text;
}

static double place(const struct map *m, uint32_t node, double *y)
{
	*y = TOP + m->side * (node / m->width);
	return LEFT + m->side * (node % m->width);
}

static void draw_node(const struct map *m, uint32_t node, const double busy[USE_WORK + 1])
{
	char colour[32];
	double y, x = place(m, node, &y), time = m->f->time / 100;
	double all = busy[USE_SEND] + busy[USE_RECEIVE] + busy[USE_WORK], share = all / m->f->time;
	svg_bar(m->to, heat_colour(share, colour), x, y, m->side * 0.6, m->side * 0.6,
		"node %u: busy %.1f %%: sends %.1f, receives %.1f, computes %.1f", node, all / time,
		busy[USE_SEND] / time, busy[USE_RECEIVE] / time, busy[USE_WORK] / time);
}

/* Numbers of rows and columns, as many as do not touch. */
static void draw_heads(const struct map *m)
{
	uint32_t rows = (uint32_t)(HEAD / m->side) + 1;
	uint32_t columns = (uint32_t)(HEAD_APART / m->side) + 1;
	for (uint32_t i = 0; i < m->height; i += rows)
		svg_text(m->to, "faint end head", LEFT - 10, TOP + m->side * (i + 0.3) + 3.5, "%u",
			 i * m->width);
	for (uint32_t i = 0; i < m->width; i += columns)
		svg_text(m->to, "faint middle head", LEFT + m->side * (i + 0.3), TOP - 10, "+%u",
			 i);
}

/* A link lies in the gap behind its node, or, of a circle's end, at the margin. */
static void draw_link(const struct map *m, const struct use_row *row)
{
	char colour[32];
	uint32_t w = m->width, fx = row->from % w, fy = row->from / w, tx = row->to % w;
	double y, x = place(m, row->from, &y), s = m->side;
	double busy = (double)row->use.busy / 1e6 / m->f->time;
	bool across = fy == row->to / w;
	bool back = across ? (tx + 1) % w == fx && !(w == 2 && tx > fx)
			   : (row->to / w + 1) % m->height == fy &&
				     !(m->height == 2 && row->to / w > fy);
	double wide = across ? s * 0.3 : s * 0.2, high = across ? s * 0.2 : s * 0.3;
	if (across)
		x += back ? -0.35 * s : 0.65 * s, y += back ? 0.32 * s : 0.08 * s;
	else
		y += back ? -0.35 * s : 0.65 * s, x += back ? 0.32 * s : 0.08 * s;
	svg_bar(m->to, heat_colour(busy, colour), x, y, wide, high,
		"link from %u to %u: busy %.1f %%, %.3f us waited for it, at most %.3f", row->from,
		row->to, 100 * busy, (double)row->use.waited / 1e6, (double)row->use.longest / 1e6);
}

static void draw_parts(const struct map *m)
{
	const struct figures *f = m->f;
	for (size_t i = 0; i < f->rows;) {
		const struct use_row *row = &f->row[i];
		double busy[USE_WORK + 1] = { 0 };
		if (row->part == USE_LINK && m->grid)
			draw_link(m, row);
		if (row->part > USE_WORK) {
			i++;
			continue;
		}
		for (; i < f->rows && f->row[i].part <= USE_WORK && f->row[i].from == row->from;
		     i++)
			busy[f->row[i].part] = (double)f->row[i].use.busy / 1e6;
		draw_node(m, row->from, busy);
	}
}

static void draw_legend(const struct map *m, double y)
{
	char colour[32];
	for (int i = 0; i <= 10; i++)
		svg_bar(m->to, heat_colour(i / 10.0, colour), MARGIN + 14 * i, y, 14, 12, "%d %%",
			10 * i);
	svg_text(m->to, "faint", MARGIN + 14 * 11 + 10, y + 11, "0 to 100 %% of the time busy");
}

int figures_heat(const void *figures, FILE *to)
{
	const struct figures *f = figures;
	struct map m = { .f = f, .to = to, .width = f->width };
	m.grid = strcmp(f->network, "mesh") == 0 || strcmp(f->network, "torus") == 0;
	m.height = (f->nodes + m.width - 1) / m.width;
	m.side = (double)ACROSS / m.width;
	m.side = m.side > SIDE_MOST ? SIDE_MOST : m.side < SIDE_LEAST ? SIDE_LEAST : m.side;
	double wide = LEFT + MARGIN + m.side * m.width, high = TOP + m.side * m.height;
	svg_begin(to, (int)(wide < 420 ? 420 : wide), (int)high + LEGEND,
		  "How busy the parts of a simulated machine were", style);
	svg_text(to, "title", MARGIN, 26, "%u nodes of %s (%s), %.3f us", f->nodes, f->profile,
		 f->network, f->time);
	draw_heads(&m);
	draw_parts(&m);
	draw_legend(&m, high + 14);
	return svg_end(to);
}
