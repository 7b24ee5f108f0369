/* SPDX-License-Identifier: BSD-3-Clause */
/* Requests to a worker; messages that are kept, put off and held back; sends that are taken back.
 */
#include <stdatomic.h>
#include <time.h>

#include <tern/sim.h>

#include "play.h"

enum { ON_WORK = 12, ON_WORKED, ON_KEEP, ON_KEPT, ON_SPARE, KEPT_MOST = 8, SPARES = 24 };
enum worker_form { FROM_RANK, FROM_WORKER };
enum keep_form { DEFERRED, IN_STEP };
enum cancel_other { RECEIVES, LOOKS };

/* By rank: how many requests of the step under way, and of all steps. */
static _Atomic unsigned worked[RANKS_MOST], answered, kept_come, kept_answers;

static int comes_to(_Atomic unsigned *count, unsigned due)
{
	return atomic_load(count) >= due;
}

struct due {
	_Atomic unsigned *count;
	unsigned due;
};

static int is_due(tern *own, void *arg)
{
	const struct due *d = arg;
	(void)own;
	return comes_to(d->count, d->due);
}

static void wait_due(const struct step *s, tern *who, _Atomic unsigned *count, unsigned due)
{
	struct due d = { count, due };
	code_is(s, "waiting for messages of a step", tern_wait_until(who, is_due, &d), 0);
	atomic_store(count, 0);
}

/* -- Workers ---------------------------------------------------------------------------------- */

static size_t work_len(const struct step *s)
{
	return s->other % 2 ? s->len : 0;
}

/* The words of a message: step, which one, and others. */
static void words_fill(const struct step *s, unsigned i, uint64_t *word)
{
	word[0] = s->number;
	word[1] = i;
	for (unsigned k = 2; k < TERN_WORDS_MAX; k++)
		word[k] = content_of(message_number(s, i), 5000 + k);
}

static unsigned words_of(const struct step *s)
{
	return s->words < 2 ? 2 : s->words;
}

/* A message as it was sent; which one of its step. */
static unsigned work_check(const struct step *s, const tern_msg *m, uint32_t src, size_t len)
{
	static char copy[TERN_REQUEST_MAX]; /* which a planted fault may change */
	uint64_t want[TERN_WORDS_MAX];
	unsigned i = (unsigned)tern_msg_word(m, 1);
	size_t got;
	const void *data = tern_msg_data(m, &got);
	words_fill(s, i, want);
	number_is(s, "the source of a message", tern_msg_src(m), src);
	number_is(s, "the number of words", tern_msg_count(m), words_of(s));
	for (unsigned k = 2; k < words_of(s); k++)
		number_is(s, "a word", tern_msg_word(m, k), want[k]);
	if (number_is(s, "the length of a payload", got, len) && len) {
		memcpy(copy, data, len);
		bytes_are(s, "a payload", copy, 0, len, message_number(s, i));
	}
	return i;
}

static int message_send(const struct step *s, tern *by, uint32_t to, unsigned id, unsigned i,
			size_t len)
{
	uint64_t word[TERN_WORDS_MAX];
	char *data = malloc(len + 1);
	words_fill(s, i, word);
	content_fill(data, 0, len, message_number(s, i));
	int rc = len ? tern_request_data_array(by, to, id, data, len, words_of(s), word)
		     : tern_request_array(by, to, id, words_of(s), word);
	free(data);
	return rc;
}

static void on_work(tern *own, const tern_msg *m)
{
	const struct step *s = &program.step[tern_msg_word(m, 0) % program.steps];
	uint64_t word[TERN_WORDS_MAX];
	unsigned i = work_check(s, m, s->from, work_len(s));
	number_is(s, "which request of the step", i, atomic_load(&worked[s->from]));
	words_fill(s, i, word);
	code_is(s, "a reply of a worker", tern_reply_array(own, m, ON_WORKED, words_of(s), word),
		0);
	atomic_fetch_add(&worked[s->from], 1);
}

static void on_worked(tern *own, const tern_msg *m)
{
	const struct step *s = &program.step[tern_msg_word(m, 0) % program.steps];
	(void)own;
	number_is(s, "which reply of the step", work_check(s, m, s->to, 0), atomic_load(&answered));
	atomic_fetch_add(&answered, 1);
}

/*
 * Where ranks reach each other over a network, workers take turns at the rank's endpoint: one that
 * is interrupted, or may start threads, stays with its thread.
 */
static bool may_refuse(void)
{
	const char *delivery = getenv("TERN_DELIVERY"), *net = getenv("TERN_NET");
	bool interrupts = delivery && strcmp(delivery, "interrupt") == 0;
	return (!net || strcmp(net, "shm") != 0) && (interrupts || plays(SPAWN));
}

static bool worker_begin(const struct step *s, tern **worker)
{
	int rc = tern_worker_open(t, worker);
	bool busy = rc == -EBUSY; /* a light thread has not ended */
	if ((rc == -ENOTSUP || busy) && may_refuse())
		return false;
	return code_is(s, "tern_worker_open()", rc, 0);
}

static void work_ask(const struct step *s, uint32_t worker)
{
	tern *own = NULL;
	tern *by = s->form == FROM_WORKER && worker_begin(s, &own) ? own : t;
	for (unsigned i = 0; i < s->count; i++)
		code_is(s, "a request to a worker",
			message_send(s, by, worker, ON_WORK, i, work_len(s)), 0);
	wait_due(s, by, &answered, s->count);
	if (own)
		code_is(s, "tern_close() of a worker", tern_close(own), 0);
}

void worker_play(const struct step *s)
{
	tern *worker = NULL;
	uint64_t id = UINT32_MAX;
	if (s->from == s->to) /* the two would wait for each other */
		return;
	pending_wait_all();
	if (s->to == me && worker_begin(s, &worker))
		id = tern_worker_id(worker);
	id = word_pass(s, s->to, s->from, 1, id);
	if (id == UINT32_MAX)
		return;
	if (s->from == me)
		work_ask(s, (uint32_t)id);
	if (s->to == me) {
		wait_due(s, worker, &worked[s->from], s->count);
		code_is(s, "tern_close() of a worker", tern_close(worker), 0);
	}
	word_pass(s, s->to, s->from, 2, 0);
	if (s->from == me && id >= program.ranks) /* else it is the rank itself */
		code_is(s, "a request to a worker that is closed",
			tern_request(t, (uint32_t)id, ON_WORK, 0), -ESHUTDOWN);
}

/* -- Kept messages ---------------------------------------------------------------------------- */

static const tern_msg *_Atomic kept[KEPT_MOST]; /* of the step under way */

/* Where sending is allowed: checks it, drops it, and says so. */
static void kept_end(tern *own, void *arg)
{
	const tern_msg *m = arg;
	const struct step *s = &program.step[tern_msg_word(m, 0) % program.steps];
	unsigned i = work_check(s, m, s->from, s->len);
	code_is(s, "tern_request()", tern_request(own, s->from, ON_KEPT, s->number, i), 0);
	code_is(s, "tern_msg_drop()", tern_msg_drop(own, m), 0);
}

static void on_keep(tern *own, const tern_msg *m)
{
	const struct step *s = &program.step[tern_msg_word(m, 0) % program.steps];
	const tern_msg *copy = NULL;
	if (!code_is(s, "tern_msg_keep()", tern_msg_keep(own, m, &copy), 0))
		return;
	if (s->form == DEFERRED)
		code_is(s, "tern_defer()", tern_defer(own, kept_end, (void *)(uintptr_t)copy), 0);
	else
		atomic_store(&kept[tern_msg_word(m, 1) % KEPT_MOST], copy);
	atomic_fetch_add(&kept_come, 1);
}

static void on_spare(tern *own, const tern_msg *m)
{
	(void)own, (void)m;
	atomic_fetch_add(&kept_come, 1);
}

/* Others behind them: each needs room, and none takes that of what is kept. */
static void spares_send(const struct step *s)
{
	char *data = calloc(1, s->len + 1);
	for (unsigned i = 0; i < SPARES; i++)
		code_is(s, "a request", tern_request_data(t, s->to, ON_SPARE, data, s->len), 0);
	free(data);
}

static void on_kept(tern *own, const tern_msg *m)
{
	const struct step *s = &program.step[tern_msg_word(m, 0) % program.steps];
	(void)own;
	number_is(s, "which answer of the step", tern_msg_word(m, 1), atomic_load(&kept_answers));
	atomic_fetch_add(&kept_answers, 1);
}

/* Under a hold, and one in it, no handler runs. */
static void hold_play(const struct step *s)
{
	struct timespec nap = { .tv_nsec = (long)(s->value % 200000) };
	const tern_work work = { .integer = 10000 };
	tern_hold(t);
	tern_hold(t);
	unsigned before = atomic_load(&kept_come);
	if (simulated)
		(void)tern_sim_work(t, &work);
	else
		nanosleep(&nap, NULL);
	tern_release(t);
	code_is(s, "a barrier under a hold", tern_barrier(t), -EDEADLK);
	number_is(s, "what was handled under a hold", atomic_load(&kept_come), before);
	tern_release(t);
}

/* One step at a time is at a rank: its sender waits for all answers. */
void keep_play(const struct step *s)
{
	if (s->from == s->to)
		return;
	word_pass(s, s->to, s->from, 1, 0); /* another sender's step is over */
	for (unsigned i = 0; i < s->count && s->from == me; i++)
		code_is(s, "a request", message_send(s, t, s->to, ON_KEEP, i, s->len), 0);
	if (s->from == me && s->form == IN_STEP)
		spares_send(s);
	if (s->from == me)
		wait_due(s, t, &kept_answers, s->count);
	if (s->to != me)
		return;
	hold_play(s);
	wait_due(s, t, &kept_come, s->count + (s->form == IN_STEP ? SPARES : 0));
	for (unsigned i = 0; i < s->count && s->form == IN_STEP; i++)
		kept_end(t, (void *)(uintptr_t)atomic_load(&kept[i]));
}

/* -- Sends that are taken back ---------------------------------------------------------------- */

static tern_id cancel_id(const struct step *s)
{
	return (tern_id)(1000 + s->number) << 16 | 9;
}

static void cancel_send(const struct step *s)
{
	static const unsigned flags[] = { TERN_SEND_AUTO, TERN_SEND_RENDEZVOUS, TERN_SEND_SYNC };
	struct pending *w = pending_new(s, 0, s->len, NULL);
	content_fill(w->bytes, 0, s->len, message_number(s, 0));
	code_is(s, "tern_send_start()",
		tern_send_start(t, s->to, cancel_id(s), w->bytes, s->len, flags[s->form], &w->op),
		0);
	for (unsigned i = 0; i < s->value % 5; i++)
		(void)!tern_poll(t);
	int rc = tern_op_cancel(t, &w->op);
	if (rc)
		code_is(s, "tern_op_cancel()", rc, -EALREADY);
	word_pass(s, s->from, s->to, 1, rc == 0);
	code_is(s, "a send", tern_op_wait(t, &w->op), rc ? 0 : -ECANCELED);
	pending_drop(w);
}

/* Whatever became of it, the receiver finds the same. */
static void cancel_recv(const struct step *s)
{
	struct pending *w = pending_new(s, 0, s->len, NULL);
	const tern_match match = { .rank = s->from, .id = cancel_id(s) };
	int rc = s->other == RECEIVES
			 ? tern_recv_start(t, &match, w->bytes, s->len, &w->env, &w->op)
			 : 0;
	code_is(s, "tern_recv_start()", rc, 0);
	bool taken_back = word_pass(s, s->from, s->to, 1, 0);
	if (s->other == LOOKS && taken_back)
		code_is(s, "a message that was taken back", tern_probe(t, &match, &w->env), 0);
	if (s->other == LOOKS && !taken_back)
		code_is(s, "tern_recv()",
			tern_recv(t, s->from, match.id, w->bytes, s->len, &w->env), 0);
	if (s->other == RECEIVES && taken_back)
		code_is(s, "tern_op_cancel() of the receive", tern_op_cancel(t, &w->op), 0);
	if (s->other == RECEIVES)
		code_is(s, "a receive", tern_op_wait(t, &w->op), taken_back ? -ECANCELED : 0);
	if (!taken_back)
		bytes_are(s, "a message that was not taken back", w->bytes, 0, s->len,
			  message_number(s, 0));
	if (!untouched(w, taken_back ? 0 : s->len))
		wrong(s, "something is written behind the message");
	pending_drop(w);
}

void cancel_play(const struct step *s)
{
	if (s->from == s->to)
		return;
	if (s->from == me)
		cancel_send(s);
	else
		cancel_recv(s);
}

void workers_open(void)
{
	const struct step s = { .kind = WORKER };
	code_is(&s, "tern_on()", tern_on(t, ON_WORK, on_work), 0);
	code_is(&s, "tern_on()", tern_on(t, ON_WORKED, on_worked), 0);
	code_is(&s, "tern_on()", tern_on(t, ON_KEEP, on_keep), 0);
	code_is(&s, "tern_on()", tern_on(t, ON_KEPT, on_kept), 0);
	code_is(&s, "tern_on()", tern_on(t, ON_SPARE, on_spare), 0);
}
