/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The page is a template (trace_page.html) with a mark where its data go: one object of flat
 * arrays, whose order src/tools/trace/page.html knows.
 */
#include <inttypes.h>
#include <string.h>

#include <tern/tern.h>

#include "tools/common/json.h"
#include "tools/trace/show.h"

extern const char trace_page[];

#define MARK "/*TRACE*/"

static void page_ranks(struct json *j, const struct merged *m)
{
	json_begin(j, "ranks", '[');
	for (uint32_t i = 0; i < m->tracks; i++) {
		json_begin(j, NULL, '{');
		json_whole(j, "rank", m->track[i].head.rank);
		json_text(j, "program", m->track[i].head.program);
		json_truth(j, "closed", track_closed(&m->track[i]));
		json_end(j, '}');
	}
	json_end(j, ']');
}

/* The names of the handlers that occur. */
static void page_names(struct json *j, const struct merged *m)
{
	bool occurs[TERN_HANDLER_SLOTS] = { false };
	char number[16], name[HANDLER_TEXT];
	for (size_t i = 0; i < m->messages; i++)
		occurs[m->message[i].handler] = true;
	json_begin(j, "names", '{');
	for (unsigned h = 0; h < TERN_HANDLER_SLOTS; h++)
		if (occurs[h]) {
			snprintf(number, sizeof number, "%u", h);
			handler_name(name, m, h);
			json_text(j, number, name);
		}
	json_end(j, '}');
}

/*
 * track, begin, length, kind, handler, row, peer, bytes, sequence, message or -1, unended, call
 * plus 1 or 0; in ns.
 */
static void page_spans(const struct merged *m, FILE *to)
{
	fputs(",\n\"spans\": [", to);
	for (size_t i = 0; i < m->spans; i++) {
		const struct span *s = &m->span[i];
		fprintf(to, "%s%u,%" PRId64 ",%" PRId64 ",%u,%u,%u,%u,%u,%u,%lld,%d,%u",
			i ? ",\n" : "", s->track, s->begin, s->end - s->begin, (unsigned)s->kind,
			s->handler, s->row, s->peer, s->bytes, s->sequence,
			s->message == NO_MESSAGE ? -1LL : (long long)s->message, s->unended,
			s->call);
	}
	fputs("]", to);
}

/*
 * from track or -1, to track or -1, sent, reply, handler, bytes, sequence, source, target, span
 * or -1.
 */
static void page_messages(const struct merged *m, FILE *to)
{
	fputs(",\n\"messages\": [", to);
	for (size_t i = 0; i < m->messages; i++) {
		const struct message *x = &m->message[i];
		fprintf(to, "%s%lld,%lld,%" PRId64 ",%d,%u,%u,%u,%u,%u,%lld", i ? ",\n" : "",
			x->from == NO_TRACK ? -1LL : (long long)x->from,
			x->to == NO_TRACK ? -1LL : (long long)x->to, x->sent, x->reply, x->handler,
			x->bytes, x->sequence, x->source, x->target,
			x->span == NO_SPAN ? -1LL : (long long)x->span);
	}
	fputs("]", to);
}

static void page_data(const struct merged *m, FILE *to)
{
	struct json j = { .to = to, .depth = 1 };
	fprintf(to, "{\"length\": %" PRId64 ", \"dropped\": %" PRIu64 ", ", m->length, m->dropped);
	page_ranks(&j, m);
	page_names(&j, m);
	json_begin(&j, "calls", '[');
	for (uint32_t i = 0; i < m->calls; i++)
		json_text(&j, NULL, m->call[i]);
	json_end(&j, ']');
	page_spans(m, to);
	page_messages(m, to);
	fputs("}", to);
}

void show_html(const struct merged *m, FILE *to)
{
	const char *mark = strstr(trace_page, MARK);
	fwrite(trace_page, 1, (size_t)(mark - trace_page), to);
	page_data(m, to);
	fputs(mark + strlen(MARK), to);
}
