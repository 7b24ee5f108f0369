/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tern sim --explain: where the time of a simulated run went. The part that is busy for the largest
 * share of the time bounds the run: no run of the same traffic is quicker than its busiest part. If
 * none is busy half of the time, nodes wait for packets that are under way: latency.
 */
#include "tools/sim/figures.h"

const char *vertex_name(uint32_t vertex, char *text, size_t len)
{
	if (vertex >> VERTEX_LEVEL)
		snprintf(text, len, "switch %u.%u", vertex >> VERTEX_LEVEL,
			 vertex & ((1u << VERTEX_LEVEL) - 1));
	else
		snprintf(text, len, "node %u", vertex);
	return text;
}

/* The busiest of a kind, in words. */
static void busiest(const struct load *l, char *text, size_t len)
{
	char from[32], to[32];
	vertex_name(l->from, from, sizeof from);
	if (l->from == l->to)
		snprintf(text, len, "%s", from);
	else
		snprintf(text, len, "%s to %s", from, vertex_name(l->to, to, sizeof to));
}

static void load_row(const struct figures *f, const struct load *l, const char *name, FILE *to)
{
	char where[80];
	if (!l->parts)
		return;
	busiest(l, where, sizeof where);
	fprintf(to, "%-10s %7.1f %% %7.1f %% %11.3f %10.3f us %8u  %s\n", name,
		100 * l->most / f->time, 100 * l->busy / f->time / (double)l->parts,
		l->waited / f->time / (double)l->parts, l->longest, l->deepest, where);
}

static void packet_rows(const struct figures *f, FILE *to)
{
	const double n = (double)f->packets;
	const double waits =
		f->load[LIMIT_IN].waited + f->load[LIMIT_LINK].waited + f->load[LIMIT_OUT].waited;
	const struct {
		const char *name;
		double us;
	} rows[] = {
		{ "sending it", f->part[USE_SEND] },
		{ "waiting for controllers", f->load[LIMIT_CONTROLLER].waited },
		{ "waiting to enter the network", f->load[LIMIT_IN].waited },
		{ "waiting for links", f->load[LIMIT_LINK].waited },
		{ "waiting to leave the network", f->load[LIMIT_OUT].waited },
		{ "travelling", f->flight - waits },
		{ "waiting for the receiver", f->inbox.waited },
		{ "receiving it", f->part[USE_RECEIVE] },
	};
	double all = 0;
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		all += rows[i].us;
	fprintf(to, "\na packet takes %.3f us from send to receipt, on the average:\n", all / n);
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
		if (rows[i].us > 0)
			fprintf(to, "  %-30s %10.3f us %6.1f %%\n", rows[i].name, rows[i].us / n,
				100 * rows[i].us / all);
}

static void verdict(const struct figures *f, FILE *to)
{
	double share;
	char where[80];
	enum limit limit = figures_limit(f, &share);
	if (limit == LIMIT_LATENCY) {
		fprintf(to,
			"\nbottleneck: latency. No part is busy half of the time; the busiest is "
			"for %.1f %% of it.\n",
			100 * share);
		return;
	}
	busiest(&f->load[limit], where, sizeof where);
	fprintf(to, "\nbottleneck: %s%s%s%s, %s, which is busy for %.1f %% of the time",
		limit_name[limit], limit == LIMIT_CONTROLLER ? " (" : "",
		limit == LIMIT_CONTROLLER ? f->controller : "",
		limit == LIMIT_CONTROLLER ? ")" : "", where, 100 * share);
	if (limit == LIMIT_PROCESSOR) {
		double all = f->load[limit].busy / 100;
		fprintf(to,
			"; all together send for %.0f %% of that, receive for %.0f %%, compute "
			"for %.0f %%",
			f->part[USE_SEND] / all, f->part[USE_RECEIVE] / all,
			f->part[USE_WORK] / all);
	}
	fputs(".\n", to);
}

void figures_explain(const struct figures *f, FILE *to)
{
	fprintf(to, "%u nodes of %s (%s): %.3f us, %llu packets, %llu events\n", f->nodes,
		f->profile, f->network, f->time, (unsigned long long)f->packets,
		(unsigned long long)f->events);
	if (!f->packets)
		return;
	fprintf(to, "\n%-10s %9s %9s %11s %13s %8s  %s\n", "", "busiest", "mean", "mean queue",
		"longest", "deepest", "the busiest");
	for (int i = 0; i < LIMIT_PARTS; i++)
		load_row(f, &f->load[i], limit_name[i], to);
	load_row(f, &f->inbox, "inbox", to);
	packet_rows(f, to);
	verdict(f, to);
}
