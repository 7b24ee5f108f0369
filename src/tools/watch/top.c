/* SPDX-License-Identifier: BSD-3-Clause */
/* `tern top`: looks at the ranks of a job twice, makes rates of the differences, and shows them. */
#include "tools/watch/top.h"

#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/world.h"
#include "tools/common/table.h"
#include "tools/tools.h"

enum { HANDLERS_SHOWN = 10, LINES_UNKNOWN = 24 };

bool top_begin(struct top *t)
{
	t->before = calloc(watch_most(&t->watch), sizeof *t->before);
	t->now = calloc(watch_most(&t->watch), sizeof *t->now);
	if (t->before && t->now)
		return true;
	fprintf(stderr, "tern top: no memory for a job of %u ranks\n", t->watch.job.size);
	top_close(t);
	return false;
}

void top_close(struct top *t)
{
	free(t->before);
	free(t->now);
	watch_close(&t->watch);
}

bool top_over(const struct top *t)
{
	for (uint32_t r = 0; r < t->watch.job.size; r++)
		if (job_rank_state(&t->watch.job, r) < RANK_GONE)
			return false;
	return true;
}

/* -- Handlers ------------------------------------------------------------------------------ */

static void handler_sum(const struct top *t, unsigned id, struct top_handler *out)
{
	*out = (struct top_handler){ .id = id };
	for (uint32_t r = 0; r < t->watch.job.size; r++) {
		const struct stats *s = watch_stats(&t->watch, r);
		if (!s)
			continue;
		out->messages += stats_messages(&s->handler[id]);
		out->bytes += stats_message_bytes(&s->handler[id]);
		out->timed += stats_get(&s->handler[id].timed);
		out->ticks += stats_get(&s->handler[id].ticks);
	}
}

static double tick_ns(const struct top *t)
{
	for (uint32_t r = 0; r < t->watch.job.size; r++) {
		const struct stats *s = watch_stats(&t->watch, r);
		if (s)
			return tick_length((struct moment){ stats_get(&s->begun_tick),
							    stats_get(&s->begun_ns) });
	}
	return 1;
}

static int handler_compare(const void *a, const void *b)
{
	const struct top_handler *p = a, *q = b;
	return p->rate != q->rate ? (p->rate < q->rate) - (p->rate > q->rate)
				  : (p->messages < q->messages) - (p->messages > q->messages);
}

/* Less than before when a rank has closed meanwhile, and does not count any more. */
static double handler_rate(const struct top *t, uint64_t now, uint64_t before)
{
	return now > before ? (double)(now - before) / t->seconds : 0;
}

/* Counts begin at 0 with each session. */
static void handlers_look(struct top *t)
{
	uint32_t session = atomic_load(&t->watch.job.head->session);
	if (session != t->session)
		memset(t->handler_before, 0, sizeof t->handler_before);
	t->session = session;
	for (unsigned id = 0; id < TOP_HANDLERS; id++) {
		struct top_handler *h = &t->handler[id], *before = &t->handler_before[id];
		handler_sum(t, id, h);
		h->rate = handler_rate(t, h->messages, before->messages);
		h->byte_rate = handler_rate(t, h->bytes, before->bytes);
		*before = *h;
	}
	qsort(t->handler, TOP_HANDLERS, sizeof *t->handler, handler_compare);
}

void top_look(struct top *t)
{
	struct rank_view *spare = t->before;
	t->before = t->now;
	t->now = spare;
	watch_look(&t->watch, t->now);
	uint64_t at = clock_ns();
	t->seconds = t->looked ? (double)(at - t->looked) / 1e9 : 1;
	t->looked = at;
	handlers_look(t);
}

/* -- Rates --------------------------------------------------------------------------------- */

/* How fast a count of a rank has grown, per second. */
static double since(const struct top *t, uint32_t r, uint64_t now, uint64_t before)
{
	return (double)view_growth(&t->now[r], &t->before[r], now, before) / t->seconds;
}

static double count_since(const struct top *t, uint32_t r, unsigned count)
{
	return since(t, r, t->now[r].count[count], t->before[r].count[count]);
}

/* Sleeps are counted when they end; one that goes on counts from where it was seen. */
static double asleep_part(const struct top *t, uint32_t r)
{
	double part = count_since(t, r, PULSE_SLEPT) / 1e9;
	return part < 1 ? part : 1;
}

/* Whether any rank counts what is sent, bytes and handlers. */
static bool top_counting(const struct top *t)
{
	for (uint32_t r = 0; r < t->watch.job.size; r++)
		if (t->now[r].counting)
			return true;
	return false;
}

/* -- A table ------------------------------------------------------------------------------- */

static void head_print(const struct top *t, FILE *to)
{
	const struct job_head *h = t->watch.job.head;
	fprintf(to, "job of %d: %u ranks on %u cores, %llu MiB committed%s\n",
		(int)t->watch.launcher, h->size, h->cores,
		(unsigned long long)atomic_load(&h->committed) >> 20,
		top_counting(t) ? ""
				: "; TERN_STATS=1 would count handlers, bytes and what is sent");
	fprintf(to, "%5s %7s %10s %10s %10s %7s %7s %9s  %s\n", "rank", "pid", "handled/s",
		"sent/s", "bytes/s", "queue", "asleep", "stalls/s", "doing");
}

/* The figures of a rank that stand in columns. */
static void figures_of(const struct top *t, uint32_t r, double figure[COLUMNS])
{
	const struct rank_view *now = &t->now[r], *before = &t->before[r];
	figure[BY_RANK] = -(double)r;
	figure[BY_HANDLED] = since(t, r, now->served, before->served);
	figure[BY_SENT] = since(t, r, now->sent, before->sent);
	figure[BY_BYTES] = since(t, r, now->bytes, before->bytes);
	figure[BY_QUEUE] = (double)now->queue;
	figure[BY_ASLEEP] = asleep_part(t, r);
	figure[BY_STALLS] =
		count_since(t, r, PULSE_ROOM_STALLS) + count_since(t, r, PULSE_BLOCK_STALLS);
}

struct place {
	uint32_t rank;
	double figure; /* that places are ordered by */
};

static int place_compare(const void *a, const void *b)
{
	const struct place *p = a, *q = b;
	return p->figure != q->figure ? (p->figure < q->figure) - (p->figure > q->figure)
				      : (p->rank > q->rank) - (p->rank < q->rank);
}

static void places_sort(const struct top *t, struct place *place)
{
	double figure[COLUMNS];
	for (uint32_t r = 0; r < t->watch.job.size; r++) {
		figures_of(t, r, figure);
		place[r] = (struct place){ r, figure[t->by] };
	}
	qsort(place, t->watch.job.size, sizeof *place, place_compare);
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

static void rank_print(const struct top *t, uint32_t r, FILE *to)
{
	const struct rank_view *now = &t->now[r];
	char handled[CELL], sent[CELL] = "-", bytes[CELL] = "-", queue[24], stalls[CELL],
			    doing[128];
	double figure[COLUMNS];
	figures_of(t, r, figure);
	cell_short(handled, figure[BY_HANDLED]);
	if (top_counting(t))
		cell_short(sent, figure[BY_SENT]);
	if (now->counting)
		cell_short(bytes, figure[BY_BYTES]);
	cell_short(stalls, figure[BY_STALLS]);
	snprintf(queue, sizeof queue, "%s%llu", now->queue_exact || !now->queue ? "" : ">",
		 (unsigned long long)now->queue);
	doing_text(now, doing, sizeof doing);
	fprintf(to, "%5u %7d %10s %10s %10s %7s %5.0f %% %9s  %s\n", r, (int)now->pid, handled,
		sent, bytes, queue, 100 * figure[BY_ASLEEP], stalls, doing);
}

/* On a network of packets: those of all ranks. */
static void packets_print(const struct top *t, FILE *to)
{
	double sent = 0, received = 0, again = 0, dropped = 0;
	char cell[4][CELL];
	bool any = false;
	for (uint32_t r = 0; r < t->watch.job.size; r++) {
		any |= t->now[r].count[PULSE_PACKETS_SENT] || view_dropped(&t->now[r]);
		sent += count_since(t, r, PULSE_PACKETS_SENT);
		received += count_since(t, r, PULSE_PACKETS_RECEIVED);
		again += count_since(t, r, PULSE_PACKETS_AGAIN);
		dropped += since(t, r, view_dropped(&t->now[r]), view_dropped(&t->before[r]));
	}
	if (any)
		fprintf(to, "packets/s: %s sent, %s received, %s sent again, %s dropped\n",
			cell_short(cell[0], sent), cell_short(cell[1], received),
			cell_short(cell[2], again), cell_short(cell[3], dropped));
}

static void handlers_print(const struct top *t, FILE *to)
{
	char name[HANDLER_TEXT], rate[CELL], bytes[CELL];
	double tick = tick_ns(t);
	if (t->handler[0].messages)
		fprintf(to, "%-28s %10s %10s %10s %14s\n", "handler", "handled/s", "bytes/s",
			"mean ns", "messages");
	for (unsigned i = 0; i < HANDLERS_SHOWN && t->handler[i].messages; i++) {
		const struct top_handler *h = &t->handler[i];
		watch_handler(&t->watch, h->id, name);
		fprintf(to, "%-28s %10s %10s %10.0f %14llu\n", name, cell_short(rate, h->rate),
			cell_short(bytes, h->byte_rate),
			h->timed ? (double)h->ticks * tick / (double)h->timed : 0,
			(unsigned long long)h->messages);
	}
}

void top_print(const struct top *t, uint32_t ranks, FILE *to)
{
	struct place place[TERN_RANKS_MAX];
	places_sort(t, place);
	head_print(t, to);
	for (uint32_t i = 0; i < t->watch.job.size && i < ranks; i++)
		rank_print(t, place[i].rank, to);
	packets_print(t, to);
	handlers_print(t, to);
	fflush(to);
}

/* Over the table before it. What has no room on the terminal is left out, and lines are cut off. */
static void top_screen(const struct top *t)
{
	struct winsize size = { 0 };
	char *text = NULL, *line;
	size_t len;
	FILE *to = open_memstream(&text, &len);
	ioctl(STDOUT_FILENO, TIOCGWINSZ, &size);
	unsigned lines = size.ws_row ? size.ws_row : LINES_UNKNOWN;
	if (!to)
		return;
	top_print(t, lines * 2 / 3, to);
	fclose(to);
	fputs("\033[H\033[?7l", stdout);
	for (char *rest = text; --lines && (line = strsep(&rest, "\n"));)
		printf("%s\033[K\n", line);
	fputs("\033[J\033[?7h", stdout);
	fflush(stdout);
	free(text);
}

/* -- The command --------------------------------------------------------------------------- */

static void top_run(struct top *t, const struct watch_options *o)
{
	bool screen = !o->once && isatty(STDOUT_FILENO);
	top_look(t);
	do {
		world_nap((uint64_t)(o->interval * 1e9));
		top_look(t);
		if (screen)
			top_screen(t);
		else
			top_print(t, UINT32_MAX, stdout);
	} while (!o->once && !top_over(t));
}

static bool read_interval(void *to, char *text)
{
	struct watch_options *o = to;
	char *end;
	double seconds = strtod(text, &end);
	if (end == text || *end || !(seconds >= 0.05 && seconds <= 3600))
		return option_refuse("--interval %s: it is a number of seconds, 0.05 to 3600",
				     text);
	o->interval = seconds;
	return true;
}

static bool read_column(void *to, char *text)
{
	static const char *const name[] = {
		[BY_RANK] = "rank",     [BY_HANDLED] = "handled", [BY_SENT] = "sent",
		[BY_BYTES] = "bytes",   [BY_QUEUE] = "queue",     [BY_ASLEEP] = "asleep",
		[BY_STALLS] = "stalls", [COLUMNS] = NULL
	};
	unsigned i = 0;
	while (name[i] && strcmp(text, name[i]) != 0)
		i++;
	*(enum top_column *)to = i;
	return name[i] || option_refuse("--sort %s: the columns are rank, handled, sent, bytes, "
					"queue, asleep, stalls",
					text);
}

int top_main(int argc, char **argv)
{
	struct watch_options o = { .interval = 1 };
	enum top_column by = BY_RANK;
	int status;
	const struct choice choices[] = {
		{ .name = "--once", .flag = &o.once },
		{ .name = "--sort", .read = read_column, .to = &by },
		{ .name = "--interval", .read = read_interval, .to = &o },
		{ .name = "--help" },
		{ 0 },
	};
	const struct options options = { .command = "top", .help = help_top, .choice = choices };
	if (!watch_options_read(&o, &options, argc, argv, &status))
		return status;
	struct top *t = calloc(1, sizeof *t);
	bool found = t && watch_open(&t->watch, o.job, "tern top") && top_begin(t);
	if (found) {
		t->by = by;
		top_run(t, &o);
		top_close(t);
	}
	free(t);
	return found ? 0 : 1;
}
