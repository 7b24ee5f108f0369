/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/stats_print.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include <tern/stats.h>

#include "core/label.h"

/* Every figure of a rank, with the name it has in both forms. */
struct figure {
	const char *name;
	size_t at;
};
static const struct figure figures[] = {
#define FIGURE(name)                                   \
	{                                              \
#name, offsetof(tern_stats_data, name) \
	}
	FIGURE(sent),       FIGURE(handled),       FIGURE(bytes),      FIGURE(timed),
	FIGURE(handler_ns), FIGURE(waits),         FIGURE(yields),     FIGURE(naps),
	FIGURE(sleeps),     FIGURE(slept_ns),      FIGURE(bells),      FIGURE(knocks),
	FIGURE(gates),      FIGURE(room_stalls),   FIGURE(room_ns),    FIGURE(block_stalls),
	FIGURE(block_ns),   FIGURE(deferred_most), FIGURE(queue_most), FIGURE(interrupts),
	FIGURE(claims),
#undef FIGURE
};

/* And those of its packets, whose names begin with "packets_" where they stand among the others. */
static const struct figure packets[] = {
#define FIGURE(name)                                       \
	{                                                  \
#name, offsetof(tern_stats_net_data, name) \
	}
	FIGURE(sent),    FIGURE(received),  FIGURE(again),   FIGURE(doubled), FIGURE(early),
	FIGURE(refused), FIGURE(malformed), FIGURE(foreign), FIGURE(old),     FIGURE(forged),
#undef FIGURE
};

enum {
	FIGURES = sizeof figures / sizeof *figures,
	PACKETS = sizeof packets / sizeof *packets,
	COLUMNS = 4
};

static uint64_t figure_of(const void *data, const struct figure *f)
{
	return *(const uint64_t *)(const void *)((const char *)data + f->at);
}

static tern_stats_net_data packets_of(tern *t)
{
	tern_stats_net_data d = { .size = sizeof d };
	tern_stats_net(t, &d);
	return d;
}

static double mean_ns(const tern_stats_handler_data *h)
{
	return h->timed ? (double)h->ns / (double)h->timed : 0;
}

static bool peer_active(tern *t, uint32_t rank, tern_stats_peer_data *out)
{
	return tern_stats_peer(t, rank, out) == 0 && (out->sent || out->handled);
}

static bool handler_active(tern *t, unsigned id, tern_stats_handler_data *out)
{
	return tern_stats_handler(t, id, out) == 0 && out->count;
}

/* "user 3 (on_greeting)", "msg 1 (told)": a layer's handlers count from 0. */
static void handler_name(tern *t, unsigned id, char text[LABEL_ROOM])
{
	const char *name = tern_stats_handler_name(t, id);
	char number[24];
	label_number(id, number, sizeof number);
	snprintf(text, LABEL_ROOM, name ? "%s (%.40s)" : "%s", number, name);
}

/* -- Text ----------------------------------------------------------------------------------- */

static void text_handlers(FILE *to, tern *t)
{
	tern_stats_handler_data h;
	char name[LABEL_ROOM];
	fprintf(to, "tern:   %-28s %14s %16s %12s %12s\n", "handler", "messages", "bytes",
		"mean ns", "longest ns");
	for (unsigned id = 0; id < TERN_STATS_HANDLERS; id++)
		if (handler_active(t, id, &h)) {
			handler_name(t, id, name);
			fprintf(to,
				"tern:   %-28s %14" PRIu64 " %16" PRIu64 " %12.0f %12" PRIu64 "\n",
				name, h.count, h.bytes, mean_ns(&h), h.longest_ns);
		}
}

static void text_peers(FILE *to, tern *t)
{
	tern_stats_peer_data p;
	fprintf(to, "tern:   %-10s %14s %14s %16s %12s\n", "peer", "sent", "handled", "bytes",
		"queue most");
	for (uint32_t r = 0; r < tern_size(t); r++)
		if (peer_active(t, r, &p))
			fprintf(to,
				"tern:   rank %-5u %14" PRIu64 " %14" PRIu64 " %16" PRIu64
				" %12" PRIu64 "\n",
				r, p.sent, p.handled, p.bytes, p.queue_most);
}

static void text_times(FILE *to, tern *t, uint64_t timed)
{
	tern_stats_time_data b;
	uint64_t below = 0;
	fprintf(to, "tern:   of %" PRIu64 " handlers timed:", timed);
	for (unsigned i = 0; i < TERN_STATS_TIMES; i++) {
		tern_stats_time(t, i, &b);
		below += b.count;
		if (b.count * 50 >= timed && b.count) /* those that matter: 2 % or more */
			fprintf(to, " %.0f %% below %.0f ns;", 100 * (double)below / (double)timed,
				b.to_ns);
	}
	fputc('\n', to);
}

/* Nothing in a job without packets. */
static void text_packets(FILE *to, tern *t)
{
	tern_stats_net_data d = packets_of(t);
	const char *before = "tern:   packets:";
	for (int i = 0; i < PACKETS; i++)
		if (figure_of(&d, &packets[i])) {
			fprintf(to, "%s %" PRIu64 " %s", before, figure_of(&d, &packets[i]),
				packets[i].name);
			before = ",";
		}
	if (*before == ',')
		fputc('\n', to);
}

static void text(FILE *to, tern *t, const tern_stats_data *d)
{
	fprintf(to, "tern: rank %u of %u\n", tern_rank(t), tern_size(t));
	for (int i = 0; i < FIGURES; i++)
		fprintf(to, "%s%-14s %12" PRIu64 "%s",
			i % COLUMNS ? "  " : "tern:   ", figures[i].name, figure_of(d, &figures[i]),
			i % COLUMNS == COLUMNS - 1 || i == FIGURES - 1 ? "\n" : "");
	text_packets(to, t);
	text_handlers(to, t);
	text_peers(to, t);
	if (d->timed)
		text_times(to, t, d->timed);
}

/* -- JSON ------------------------------------------------------------------------------------ */

static void json_handlers(FILE *to, tern *t)
{
	tern_stats_handler_data h;
	const char *comma = "";
	char name[LABEL_ROOM];
	for (unsigned id = 0; id < TERN_STATS_HANDLERS; id++)
		if (handler_active(t, id, &h)) {
			handler_name(t, id, name);
			fprintf(to,
				"%s{\"id\": %u, \"name\": \"%s\", \"messages\": %" PRIu64
				", \"bytes\": %" PRIu64 ", \"timed\": %" PRIu64 ", \"ns\": %" PRIu64
				", \"longest_ns\": %" PRIu64 "}",
				comma, id, name, h.count, h.bytes, h.timed, h.ns, h.longest_ns);
			comma = ", ";
		}
}

static void json_peers(FILE *to, tern *t)
{
	tern_stats_peer_data p;
	const char *comma = "";
	for (uint32_t r = 0; r < tern_size(t); r++)
		if (peer_active(t, r, &p)) {
			fprintf(to,
				"%s{\"rank\": %u, \"sent\": %" PRIu64 ", \"sent_bytes\": %" PRIu64
				", \"requests\": %" PRIu64 ", \"replies\": %" PRIu64
				", \"bytes\": %" PRIu64 ", \"queue_most\": %" PRIu64 "}",
				comma, r, p.sent, p.sent_bytes, p.requests, p.replies, p.bytes,
				p.queue_most);
			comma = ", ";
		}
}

static void json_times(FILE *to, tern *t)
{
	tern_stats_time_data b;
	const char *comma = "";
	for (unsigned i = 0; i < TERN_STATS_TIMES; i++)
		if (tern_stats_time(t, i, &b) == 0 && b.count) {
			fprintf(to,
				"%s{\"from_ns\": %.1f, \"to_ns\": %.1f, \"count\": %" PRIu64 "}",
				comma, b.from_ns, b.to_ns, b.count);
			comma = ", ";
		}
}

static void json_packets(FILE *to, tern *t)
{
	tern_stats_net_data d = packets_of(t);
	for (int i = 0; i < PACKETS; i++)
		fprintf(to, ", \"packets_%s\": %" PRIu64, packets[i].name,
			figure_of(&d, &packets[i]));
}

static void json(FILE *to, tern *t, const tern_stats_data *d)
{
	fprintf(to, "{\"rank\": %u, \"size\": %u", tern_rank(t), tern_size(t));
	for (int i = 0; i < FIGURES; i++)
		fprintf(to, ", \"%s\": %" PRIu64, figures[i].name, figure_of(d, &figures[i]));
	json_packets(to, t);
	fputs(", \"handlers\": [", to);
	json_handlers(to, t);
	fputs("], \"peers\": [", to);
	json_peers(to, t);
	fputs("], \"times\": [", to);
	json_times(to, t);
	fputs("]}\n", to);
}

void stats_print(tern *t, bool as_json)
{
	tern_stats_data d;
	char *page = NULL;
	size_t len = 0;
	FILE *to = open_memstream(&page, &len);
	if (!to)
		return;
	tern_stats(t, &d);
	(as_json ? json : text)(to, t, &d);
	if (fclose(to) == 0)
		fwrite(page, 1, len,
		       stderr); /* one call, so that the tables of several ranks do not mix */
	free(page);
}
