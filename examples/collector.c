/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * One rank that serves many. Every other rank has a channel to rank 0 and sends messages of two
 * kinds: reports with a long appendix, which rank 0 reads now and then, and at last a procedure,
 * which rank 0 runs with the parameters behind it. Rank 0 looks at all channels in turn, so that
 * nobody keeps the others waiting.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <tern/chan.h>

enum { REPORTS = 1, TOTALS = 0, EACH = 20, APPENDIX = 50000 };

struct report {
	uint64_t number, pages;
	char text[48];
};

/* Read by rank 0; and what their writers say: how many they wrote, and how many had to wait. */
static uint64_t reports, told, waited;

static void must(int rc)
{
	if (!rc)
		return;
	fprintf(stderr, "collector: %s\n", tern_strerror(rc));
	exit(1);
}

static void totals(tern *t, tern_in *in, void *arg)
{
	uint64_t written, waits;
	(void)t;
	must(tern_chan_get(in, &written, sizeof written));
	must(tern_chan_get(in, &waits, sizeof waits));
	*(uint64_t *)arg += written;
	waited += waits;
}

/* An appendix that is on its way: longer than a channel, so it goes piece by piece. */
struct pages {
	tern_in *in;
	tern_out *out;
	size_t done;
	int rc;
	char bytes[APPENDIX];
};

static int come(tern *t, void *arg)
{
	struct pages *s = arg;
	(void)t;
	s->rc = tern_chan_get_some(s->in, s->bytes, sizeof s->bytes, &s->done);
	return s->rc != 1 && s->rc != -EAGAIN;
}

static int gone(tern *t, void *arg)
{
	struct pages *s = arg;
	(void)t;
	s->rc = tern_chan_put_some(s->out, s->bytes, sizeof s->bytes, &s->done);
	return s->rc != 1 && s->rc != -EAGAIN;
}

/* Serves one message, or what there is of one; 0 when the channel has come to its end. */
static int serve(tern *t, tern_in *in)
{
	struct report l;
	switch (tern_chan_peek(in)) {
	case TERN_CHAN_CLOSED:
		return 0;
	case TERN_CHAN_PROCEDURE:
		must(tern_chan_run(in));
		break;
	default:
		if (tern_chan_ready(in, sizeof l)) /* it is still arriving: others first */
			return tern_poll(t) >= 0;
		must(tern_chan_get(in, &l, sizeof l));
		reports += l.pages == APPENDIX;
		if (l.number % 10 == 0) {
			static struct pages s;
			s.in = in;
			s.done = 0;
			must(tern_wait_until(t, come, &s));
			must(s.rc);
		}
	}
	must(tern_chan_next(in)); /* passes what is left of the message */
	return 1;
}

static void collect(tern *t)
{
	uint32_t open = tern_size(t) - 1;
	tern_chan **chan = calloc(open + 1, sizeof *chan);
	tern_in *in = calloc(open + 1, sizeof *in), **ends = calloc(open + 1, sizeof *ends);
	if (!chan || !in || !ends)
		must(-ENOMEM);
	for (uint32_t i = 0; i < open; i++) {
		must(tern_chan_from(t, i + 1, REPORTS, &chan[i]));
		in[i] = tern_chan_in(chan[i]);
		ends[i] = &in[i];
	}
	for (unsigned next = 0; open;) {
		int i = tern_chan_any(ends, open, &next, 0);
		must(i < 0 ? i : 0);
		if (!serve(t, ends[i]))
			ends[i] = ends[--open];
	}
	for (uint32_t i = 0; i + 1 < tern_size(t); i++)
		must(tern_chan_close(chan[i]));
	free(ends), free(in), free(chan);
}

static void write_reports(tern *t)
{
	static struct pages s;
	tern_chan *chan;
	uint64_t written = 0, waits = 0;
	must(tern_chan_to(t, 0, REPORTS, &chan));
	tern_out out = tern_chan_out(chan);
	for (; written < EACH; written++) {
		struct report l = { .number = written, .pages = APPENDIX, .text = "appended" };
		waits += tern_chan_room(&out, sizeof l) != 0; /* rank 0 is behind */
		must(tern_chan_put(&out, &l, sizeof l));
		s.out = &out;
		s.done = 0;
		must(tern_wait_until(t, gone, &s));
		must(s.rc);
		must(tern_chan_end(&out));
	}
	must(tern_chan_call(&out, TOTALS));
	must(tern_chan_put(&out, &written, sizeof written));
	must(tern_chan_put(&out, &waits, sizeof waits));
	must(tern_chan_end(&out));
	tern_chan_out_back(&out);
	must(tern_chan_close(chan));
}

int main(void)
{
	tern *t;
	must(tern_open(&t, NULL));
	must(tern_chan_on(t, TOTALS, totals, &told));
	if (tern_rank(t))
		write_reports(t);
	else
		collect(t);
	if (tern_rank(t) == 0)
		printf("%u reports of %u%s\n", (unsigned)reports, (unsigned)told,
		       waited ? ", some of which had to wait" : "");
	must(tern_barrier(t));
	must(tern_close(t));
	return reports != told;
}
