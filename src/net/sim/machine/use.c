/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of what the parts of a simulated machine were used for. */
#include "net/sim/machine/use.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/setting.h"
#include "net/sim/machine/network.h"

const char *const use_name[USE_PARTS] = { "send", "receive", "work",  "controller",
					  "in",   "out",     "inbox", "link" };

struct use *use_node(const struct machine *m, uint32_t node, enum use_part part)
{
	return &m->use[(size_t)node * USE_NODE + part];
}

struct use *use_link(const struct machine *m, uint32_t link)
{
	return &m->use[(size_t)m->shared->nodes * USE_NODE + link];
}

void use_each(struct machine *m, void (*each)(void *to, const struct use_row *row), void *to)
{
	const uint32_t nodes = m->shared->nodes;
	const uint32_t links = m->net->links ? m->net->links(nodes) : 0;
	if (m->net->observe)
		m->net->observe(m);
	for (uint32_t i = 0; i < nodes * USE_NODE; i++)
		if (m->use[i].packets)
			each(to, &(struct use_row){ i % USE_NODE, i / USE_NODE, i / USE_NODE,
						    m->use[i] });
	for (uint32_t i = 0; i < links; i++) {
		struct use_row row = { .part = USE_LINK, .use = *use_link(m, i) };
		if (row.use.packets && m->net->ends(m, i, &row.from, &row.to))
			each(to, &row);
	}
}

static void vertex_write(FILE *to, uint32_t vertex)
{
	if (vertex >> VERTEX_LEVEL)
		fprintf(to, "s%u.%u", vertex >> VERTEX_LEVEL, vertex & ((1u << VERTEX_LEVEL) - 1));
	else
		fprintf(to, "%u", vertex);
}

struct writing {
	FILE *to;
	double time; /* ps */
};

static void row_write(void *to, const struct use_row *row)
{
	const struct writing *w = to;
	const struct use *u = &row->use;
	fprintf(w->to, "%s,", use_name[row->part]);
	vertex_write(w->to, row->from);
	fputc(',', w->to);
	vertex_write(w->to, row->to);
	fprintf(w->to, ",%.6f,%.6f,%.6f,%llu,%u,%.4f,%.4f\n", (double)u->busy / 1e6,
		(double)u->waited / 1e6, (double)u->longest / 1e6, (unsigned long long)u->packets,
		u->deepest, (double)u->busy / w->time, (double)u->waited / w->time);
}

void use_write(struct machine *m, FILE *to)
{
	const struct shared *s = m->shared;
	struct writing w = { to, s->ended ? (double)s->ended : 1 };
	fprintf(to,
		"# profile=%s network=%s controller=%s nodes=%u width=%u time_us=%.6f events=%llu "
		"packets=%llu flight_us=%.6f switches=%llu cpu_us=%.0f\n",
		m->profile.name, m->profile.network, m->profile.controller, s->nodes, m->width,
		(double)s->ended / 1e6, (unsigned long long)s->happened,
		(unsigned long long)s->delivered, (double)s->flight / 1e6,
		(unsigned long long)s->switches, (double)s->cpu / 1e3);
	fputs("part,from,to,busy_us,waited_us,longest_us,packets,deepest,utilisation,mean_queue\n",
	      to);
	use_each(m, row_write, &w);
}

void use_end(struct machine *m)
{
	const char *name = setting_text(SETTING_SIM_USE);
	if (!*name)
		return;
	char *text = NULL;
	size_t len = 0;
	FILE *to = open_memstream(&text, &len);
	if (to)
		use_write(m, to);
	int fd = !to || fclose(to) ? -1 : file_private(name, O_TRUNC);
	if (fd < 0 || file_append(fd, text, len) != (ssize_t)len || close(fd))
		error_warn("TERN_SIM_USE: writing %s: %s", name, file_why(errno));
	free(text);
}
