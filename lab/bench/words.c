/* SPDX-License-Identifier: BSD-3-Clause */
/* Handlers and loops for messages of each number of words, and what most phases do with them. */
#include "lab/bench/words.h"

#include <errno.h>
#include <string.h>

#include "base/clock.h"
#include "lab/bench/raw.h"

_Atomic uint64_t words_answers;
static _Atomic uint64_t lasts;

static inline void words_take(const tern_msg *m, unsigned words)
{
	uint64_t sum = 1;
	for (unsigned i = 0; i < words; i++)
		sum += tern_msg_word(m, i);
	raw_sink += sum;
}

/* A handler for each number of words, as a program has it for the one that it sends. */
#define WORDS_HANDLERS(n)                                                                  \
	static void take_##n(tern *t, const tern_msg *m)                                   \
	{                                                                                  \
		(void)t;                                                                   \
		words_take(m, n);                                                          \
	}                                                                                  \
	static void ask_##n(tern *t, const tern_msg *m)                                    \
	{                                                                                  \
		const uint64_t *w = m->word;                                               \
		tern_reply_any_(t, n, m, WORDS_ANSWER, w[0], w[1], w[2], w[3], w[4], w[5], \
				(n) > 6 ? tern_msg_word(m, 6) : 0,                         \
				(n) > 7 ? tern_msg_word(m, 7) : 0);                        \
	}
#define WORDS_EACH(of) of(0) of(1) of(2) of(3) of(4) of(5) of(6) of(7) of(8)
WORDS_EACH(WORDS_HANDLERS)

static void words_answer(tern *t, const tern_msg *m)
{
	(void)m;
	tern_signal(t, &words_answers, 1);
}

static void words_last_come(tern *t, const tern_msg *m)
{
	tern_signal(t, &lasts, 1);
	tern_reply(t, m, WORDS_ANSWER);
}

static void words_land(tern *t, const tern_msg *m)
{
	(void)t, (void)m;
	raw_sink++;
}

void words_read(tern *t, const tern_msg *m)
{
	size_t len;
	const void *data = tern_msg_data(m, &len);
	(void)t;
	raw_sink += raw_sum(data, len);
}

int handlers_on(tern *t, unsigned first, tern_handler *const *handlers, unsigned n)
{
	int rc = 0;
	for (unsigned i = 0; i < n && !rc; i++)
		rc = tern_on(t, first + i, handlers[i]);
	return rc;
}

int words_register(tern *t)
{
#define WORDS_TAKER(n) take_##n,
#define WORDS_ASKER(n) ask_##n,
	static tern_handler *const takes[] = { WORDS_EACH(WORDS_TAKER) };
	static tern_handler *const asks[] = { WORDS_EACH(WORDS_ASKER) };
	static tern_handler *const ends[] = { words_answer, words_last_come, words_land,
					      words_read };
	int rc = handlers_on(t, WORDS_TAKE, takes, TERN_WORDS_MAX + 1);
	if (!rc)
		rc = handlers_on(t, WORDS_ASK, asks, TERN_WORDS_MAX + 1);
	return rc ? rc : handlers_on(t, WORDS_ANSWER, ends, 4);
}

enum words_manner { ONE_WAY, IN_TURN, ANSWERED }; /* IN_TURN: to ranks 1 and 2 */

/*
 * What tern_request() becomes with so many arguments; manner and words are constant in each loop.
 */
static inline __attribute__((always_inline)) int words_loop(tern *t, enum words_manner manner,
							    uint32_t to, unsigned id,
							    unsigned words, uint64_t count)
{
	int rc = 0;
	for (uint64_t i = 0; i < count && !rc; i++) {
		rc = tern_request_any_(t, words, manner == IN_TURN ? 1 + (uint32_t)(i % 2) : to, id,
				       i, i, i, i, i, i, i, i);
		if (manner == ANSWERED && !rc)
			rc = tern_wait(t, &words_answers, 1);
	}
	return rc;
}

static inline __attribute__((always_inline)) int words_by(tern *t, enum words_manner manner,
							  uint32_t to, unsigned id, unsigned words,
							  uint64_t count)
{
#define WORDS_BY(n)       \
	if (words == (n)) \
		return words_loop(t, manner, to, id, n, count);
	WORDS_EACH(WORDS_BY)
	return -EINVAL;
}

int words_send_to(tern *t, uint32_t to, unsigned id, unsigned words, uint64_t count)
{
	return words_by(t, ONE_WAY, to, id, words, count);
}

int words_send(tern *t, uint32_t to, unsigned words, uint64_t count)
{
	return words_send_to(t, to, WORDS_TAKE + words, words, count);
}

int words_trips_with(tern *t, uint32_t with, unsigned words, uint64_t count)
{
	return words_by(t, ANSWERED, with, WORDS_ASK + words, words, count);
}

int words_trips(tern *t, unsigned words, uint64_t count)
{
	return words_trips_with(t, 1, words, count);
}

int words_last(tern *t, uint32_t to)
{
	return words_answered(t, tern_request(t, to, WORDS_LAST));
}

int words_serve(tern *t, uint32_t senders)
{
	return tern_wait(t, &lasts, senders);
}

bool words_over(void)
{
	return atomic_load_explicit(&lasts, memory_order_acquire) > 0;
}

/* Rank 0's part, in ns: until `act` has returned, and until its last message has been handled. */
struct words_times {
	uint64_t acted, handled;
};

/* First `warm` with a count of 1, unless it is NULL: the other rank may still be on its way. */
static struct words_times words_time(struct bench_rank *p, phase_act *warm, phase_act *act)
{
	uint64_t count = p->count;
	if (p->rank) {
		p->rc = words_serve(p->t, 1);
		return (struct words_times){ 1, 1 };
	}
	p->count = 1;
	p->rc = warm ? warm(p) : 0;
	p->count = count;
	uint64_t began = clock_ns();
	if (!p->rc)
		p->rc = act(p);
	uint64_t acted = clock_ns() - began;
	if (!p->rc)
		p->rc = words_last(p->t, 1);
	return (struct words_times){ acted, clock_ns() - began };
}

uint64_t words_acted_after(struct bench_rank *p, phase_act *warm, phase_act *act)
{
	return words_time(p, warm, act).acted;
}

double words_acted(struct bench_rank *p)
{
	return each_ns(p, words_acted_after(p, p->act, p->act));
}

double acts_ns(struct bench_rank *p, phase_act *act)
{
	p->rc = act(p);
	uint64_t began = clock_ns();
	for (uint64_t i = 0; i < p->count && !p->rc; i++)
		p->rc = act(p);
	return each_ns(p, clock_ns() - began);
}

uint64_t words_handled_after(struct bench_rank *p, phase_act *warm, phase_act *act)
{
	return words_time(p, warm, act).handled;
}

static uint64_t phase_ns(struct bench_rank *p, const struct phase *f)
{
	if (f->time == PHASE_ACTED)
		return words_acted_after(p, NULL, f->act);
	if (f->time == PHASE_HANDLED)
		return words_handled_after(p, NULL, f->act);
	uint64_t began = clock_ns();
	if (f->time == PHASE_ALL || f->time == PHASE_SLOWEST || !p->rank)
		p->rc = f->act(p);
	return clock_ns() - began;
}

double phase_figure(struct bench_rank *p, const struct phase *f, const char *unit)
{
	if (f->figure)
		return f->figure(p);
	uint64_t ns = phase_ns(p, f);
	if (strcmp(unit, "M/s") == 0)
		return each_microsecond(p, ns);
	if (strcmp(unit, "GB/s") == 0)
		return each_byte(p, ns);
	if (strcmp(unit, "ns/B") == 0)
		return 1 / each_byte(p, ns);
	return strcmp(unit, "us") == 0 ? each_ns(p, ns) / 1000 : each_ns(p, ns);
}

int words_trips_of(struct bench_rank *p)
{
	return words_trips(p->t, p->size, p->count);
}

int words_sends_of(struct bench_rank *p)
{
	return words_send(p->t, 1, p->size, p->count);
}

/* -- The papers' phases of three ranks -------------------------------------------------- */

static int sends_around(struct bench_rank *p)
{
	return words_by(p->t, IN_TURN, 1, WORDS_TAKE + p->size, p->size, p->count);
}

static int sends_to_first(struct bench_rank *p)
{
	return words_send(p->t, 0, p->size, p->count / 2);
}

double fan_out_ns(struct bench_rank *p, phase_act *sends, phase_act *takes)
{
	uint64_t began = clock_ns();
	if (!p->rank)
		p->rc = sends(p);
	else if (p->rank < 3 && takes)
		p->rc = takes(p);
	for (uint32_t to = 1; to < 3 && !p->rank && !p->rc; to++)
		p->rc = words_last(p->t, to);
	uint64_t ended = clock_ns();
	if (p->rank && p->rank < 3 && !p->rc)
		p->rc = words_serve(p->t, 1);
	return each_ns(p, ended - began);
}

double fan_in_ns(struct bench_rank *p, phase_act *sends, phase_act *takes)
{
	uint64_t began = clock_ns();
	if (p->rank && p->rank < 3)
		p->rc = sends(p);
	if (p->rank && p->rank < 3 && !p->rc)
		p->rc = words_last(p->t, 0);
	if (!p->rank && takes)
		p->rc = takes(p);
	if (!p->rank && !p->rc)
		p->rc = words_serve(p->t, 2);
	return (double)(clock_ns() - began) / (double)(p->count > 1 ? p->count / 2 * 2 : 1);
}

double words_two_receivers(struct bench_rank *p)
{
	return fan_out_ns(p, sends_around, NULL);
}

double words_two_senders(struct bench_rank *p)
{
	return fan_in_ns(p, sends_to_first, NULL);
}
