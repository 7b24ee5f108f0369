/* SPDX-License-Identifier: BSD-3-Clause */
/* `tern top` as lines of text, and as JSON. */
#include <stdio.h>

#include "tools/common/table.h"
#include "tools/watch/top.h"

static const char *const columns[TOP_COLUMNS] = { "rank",  "handled/s", "sent/s",  "bytes/s",
						  "queue", "asleep",    "stalls/s" };

enum { HANDLERS_SHOWN = 10 };

static void head_text(const struct top *t, char *text, size_t room)
{
	const struct job_head *h = t->watch.job.head;
	snprintf(text, room, "job of %d: %u ranks on %u cores, %llu MiB committed%s",
		 (int)t->watch.launcher, h->size, h->cores,
		 (unsigned long long)atomic_load(&h->committed) >> 20,
		 t->counting ? "" : "; TERN_STATS=1 would count handlers, bytes and what is sent");
}

static void columns_text(const struct top *t, char *text, size_t room)
{
	char name[TOP_COLUMNS][16];
	for (int c = 0; c < TOP_COLUMNS; c++)
		snprintf(name[c], sizeof name[c], "%s%s", columns[c], (int)t->sort == c ? "*" : "");
	snprintf(text, room, "%5s %7s %10s %10s %10s %7s %7s %9s  %s", name[TOP_RANK], "pid",
		 name[TOP_HANDLED], name[TOP_SENT], name[TOP_BYTES], name[TOP_QUEUE],
		 name[TOP_ASLEEP], name[TOP_STALLS], "doing");
}

/* "asleep 3 s in tern_recv 0x7 from rank 2" */
static void doing_text(const struct rank_view *s, char *text, size_t room)
{
	char age[32];
	if (s->waits) {
		watch_age(s->wait.since, age, sizeof age);
		snprintf(text, room, "%s %s in %s", watch_state(s), age, s->wait.text);
	} else {
		snprintf(text, room, "%s%s", watch_state(s), s->hold ? " under a hold" : "");
	}
}

/* "0.1": the first worker of rank 0. */
static void worker_text(const struct top_row *r, char *text, size_t room)
{
	char name[24], handled[CELL], doing[128];
	snprintf(name, sizeof name, "%u.%u", r->rank, r->worker);
	cell_short(handled, r->figure[TOP_HANDLED]);
	doing_text(&r->now, doing, sizeof doing);
	snprintf(text, room, "%5s %7s %10s %10s %10s %7s %5.0f %% %9s  %s", name, "worker", handled,
		 "-", "-", "-", 100 * r->figure[TOP_ASLEEP], "-", doing);
}

static void row_text(const struct top *t, const struct top_row *r, char *text, size_t room)
{
	if (r->worker) {
		worker_text(r, text, room);
		return;
	}
	char figure[TOP_COLUMNS][CELL], doing[128], queue[24];
	for (int c = 0; c < TOP_COLUMNS; c++)
		cell_short(figure[c], r->figure[c]);
	doing_text(&r->now, doing, sizeof doing);
	snprintf(queue, sizeof queue, "%s%llu", r->now.queue_exact || !r->now.queue ? "" : ">",
		 (unsigned long long)r->now.queue);
	snprintf(text, room, "%5u %7d %10s %10s %10s %7s %5.0f %% %9s  %s", r->rank,
		 (int)r->now.pid, figure[TOP_HANDLED], t->counting ? figure[TOP_SENT] : "-",
		 r->now.counting ? figure[TOP_BYTES] : "-", queue, 100 * r->figure[TOP_ASLEEP],
		 figure[TOP_STALLS], doing);
}

static void packets_text(const struct top *t, char *text, size_t room)
{
	char sent[CELL], received[CELL], again[CELL], dropped[CELL];
	snprintf(text, room, "packets/s: %s sent, %s received, %s sent again, %s dropped",
		 cell_short(sent, t->packets.sent), cell_short(received, t->packets.received),
		 cell_short(again, t->packets.again), cell_short(dropped, t->packets.dropped));
}

static void handler_text(const struct top_handler *h, char *text, size_t room)
{
	char rate[CELL], bytes[CELL];
	if (!h) {
		snprintf(text, room, "%-28s %10s %10s %10s %14s", "handler", "handled/s", "bytes/s",
			 "mean ns", "messages");
		return;
	}
	snprintf(text, room, "%-28s %10s %10s %10.0f %14llu", h->name, cell_short(rate, h->rate),
		 cell_short(bytes, h->byte_rate), h->mean_ns, (unsigned long long)h->messages);
}

void top_show(const struct top *t, uint32_t first, top_emit *emit, void *to)
{
	char text[768];
	head_text(t, text, sizeof text);
	emit(to, TOP_LINE_HEAD, text);
	columns_text(t, text, sizeof text);
	emit(to, TOP_LINE_COLUMNS, text);
	for (uint32_t r = first; r < t->watch.job.size; r++)
		for (const struct top_row *w = &t->row[r], *next = NULL; w;
		     w = next = top_worker(t, &t->row[r], next)) {
			row_text(t, w, text, sizeof text);
			emit(to, w->now.waits ? TOP_LINE_WAITING : TOP_LINE_ROW, text);
		}
	packets_text(t, text, sizeof text);
	if (t->packets.any)
		emit(to, TOP_LINE_PACKETS, text);
	for (unsigned i = 0; i <= t->handlers && t->handlers; i++) {
		handler_text(i ? &t->handler[i - 1] : NULL, text, sizeof text);
		emit(to, i ? TOP_LINE_HANDLER : TOP_LINE_NAMES, text);
	}
}

static void line_print(void *to, enum top_line line, const char *text)
{
	unsigned *handlers = to;
	*handlers += line == TOP_LINE_HANDLER;
	if (*handlers <= HANDLERS_SHOWN)
		puts(text);
}

void top_print(const struct top *t)
{
	unsigned handlers = 0;
	top_show(t, 0, line_print, &handlers);
	fflush(stdout);
}

/* -- JSON --------------------------------------------------------------------------------- */

static void json_row(struct json *j, const struct top *t, const struct top_row *r)
{
	view_json(j, &t->watch, &r->now, r->worker, NULL);
	json_real(j, "handled_per_s", r->figure[TOP_HANDLED]);
	if (t->counting && !r->worker)
		json_real(j, "sent_per_s", r->figure[TOP_SENT]);
	if (r->now.counting && !r->worker)
		json_real(j, "bytes_per_s", r->figure[TOP_BYTES]);
}

static void json_rank(struct json *j, const struct top *t, const struct top_row *r)
{
	json_row(j, t, r);
	json_begin(j, "workers", '[');
	for (const struct top_row *w = NULL; (w = top_worker(t, r, w)); json_end(j, '}'))
		json_row(j, t, w);
	json_end(j, ']');
	json_end(j, '}');
}

static void json_handler(struct json *j, const struct top_handler *h)
{
	json_begin(j, NULL, '{');
	json_whole(j, "id", h->id);
	json_text(j, "name", h->name);
	json_whole(j, "messages", h->messages);
	json_whole(j, "bytes", h->bytes);
	json_real(j, "handled_per_s", h->rate);
	json_real(j, "mean_ns", h->mean_ns);
	json_end(j, '}');
}

void top_json(const struct top *t)
{
	struct json j = { .to = stdout };
	json_begin(&j, NULL, '{');
	json_whole(&j, "job", (uint64_t)t->watch.launcher);
	json_whole(&j, "size", t->watch.job.size);
	json_real(&j, "seconds", t->seconds);
	json_begin(&j, "ranks", '[');
	for (uint32_t r = 0; r < t->watch.job.size; r++)
		json_rank(&j, t, &t->row[r]);
	json_end(&j, ']');
	json_begin(&j, "handlers", '[');
	for (unsigned i = 0; i < t->handlers; i++)
		json_handler(&j, &t->handler[i]);
	json_end(&j, ']');
	json_end(&j, '}');
	fflush(stdout);
}
