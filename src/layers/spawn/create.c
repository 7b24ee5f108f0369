/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Creating threads. A creation has a ticket from the call until its thread has ended. Its message
 * is sent at once if there is a credit for its rank, nothing waits before it, and sending is
 * allowed here; otherwise the ticket joins its rank's queue, which polls carry on as credits come
 * back. A creator therefore waits only for a ticket.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"
#include "core/scope.h"
#include "core/wait.h"
#include "spawn/preempt.h"
#include "spawn/spawn.h"

int create_open(struct spawn *s)
{
	uint32_t size = s->e->t->size;
	s->tickets = (struct pool_of){ .bytes = sizeof(struct ticket), .most = TERN_THREADS_MAX };
	s->party = calloc(size, sizeof *s->party);
	for (uint32_t r = 0; s->party && r < size; r++)
		s->party[r] =
			(struct party){ .credits = TERN_SPAWN_CREDITS, .end = &s->party[r].first };
	return s->party ? 0 : -ENOMEM;
}

/* A payload is shared by the tickets of one call, and goes with the last of them. */
static void payload_drop(struct payload *p)
{
	if (p && --p->users == 0)
		memory_free(p);
}

void create_close(struct spawn *s)
{
	for (const struct ticket *k = NULL; (k = record_next(&s->tickets, k));)
		payload_drop(k->payload);
	pool_free(&s->tickets);
	free(s->party);
}

/* Gives the ticket back first: the callback may create another thread. */
static void ticket_end(struct spawn *s, struct ticket *k, int rc, uint64_t result)
{
	const struct ticket ended = *k;
	payload_drop(k->payload);
	record_give(&s->tickets, k);
	if (ended.done)
		ended.done(s->e->t, ended.rank, rc, result, ended.arg);
}

/* -- Sending, and the queues that wait for it ---------------------------------------- */

/* Under a hold, so that nothing ends meanwhile: false if there is no room, or its rank is lost. */
static bool ticket_send(struct spawn *s, struct ticket *k)
{
	struct payload *p = k->payload;
	uint64_t words[1 + SPAWN_LINE] = { label_word(k->label) };
	memcpy(words + 1, k->word, sizeof k->word);
	if (layer_request_now(s->e, k->rank, SPAWN_CREATE, p ? p->bytes : NULL, p ? p->len : 0,
			      1 + SPAWN_LINE, words))
		return false;
	k->payload = NULL;
	payload_drop(p);
	return true;
}

static void queue_push(struct spawn *s, struct party *p, struct ticket *k)
{
	k->queued = true;
	*p->end = k;
	p->end = &k->next;
	s->queued++;
}

static void queue_pop(struct spawn *s, struct party *p)
{
	struct ticket *k = p->first;
	p->first = k->next;
	if (!p->first)
		p->end = &p->first;
	k->queued = false;
	k->next = NULL;
	s->queued--;
}

/* Sends the first of a rank's queue, as long as there are credits and room. */
static unsigned party_flush(struct spawn *s, uint32_t rank)
{
	struct party *p = &s->party[rank];
	unsigned sent = 0;
	for (; p->first && p->credits && ticket_send(s, p->first); sent++) {
		queue_pop(s, p);
		p->credits--;
	}
	return sent;
}

unsigned create_flush(struct spawn *s)
{
	unsigned sent = 0;
	for (uint32_t r = 0; s->queued && r < s->e->t->size; r++)
		sent += party_flush(s, r);
	return sent;
}

bool create_waits(const struct spawn *s)
{
	for (uint32_t r = 0; s->queued && r < s->e->t->size; r++)
		if (s->party[r].first && s->party[r].credits)
			return true;
	return false;
}

/* Behind those that wait for its rank; at once, or by polls where nothing may be sent now. */
static void ticket_go(struct spawn *s, struct ticket *k)
{
	uint32_t rank = k->rank;
	struct party *p = &s->party[rank];
	queue_push(s, p, k);
	if (!in_handler(s->e) && !held(s->e))
		party_flush(s, rank);
	if (p->first && p->credits)
		layer_work(s->e, LAYER_SPAWN, true);
}

/* -- The call ------------------------------------------------------------------------ */

struct wanted {
	struct spawn *s;
	uint32_t tickets;
};

static bool wanted_over(struct endpoint *e, void *arg)
{
	(void)e;
	struct wanted *w = arg;
	return TERN_THREADS_MAX - w->s->tickets.used >= w->tickets;
}

static int tickets_stop(struct endpoint *e, struct wait *wait)
{
	const struct wanted *w = wait->arg;
	if (!in_handler(e) && !held(e))
		return 0;
	return error_set(-EAGAIN,
			 "rank %u has created %u threads that have not ended, of %d at most",
			 e->t->rank, w->s->tickets.used, TERN_THREADS_MAX);
}

static int tickets_wait(struct spawn *s, uint32_t n)
{
	struct wanted w = { s, n };
	struct wait wait = { .call = "tern_spawn",
			     .lack = "too many threads",
			     .stop = tickets_stop };
	return wait_until(s->e, wanted_over, &w, &wait);
}

static int create_check(struct spawn *s, unsigned id, unsigned n)
{
	if (!in_handler(s->e)) {
		int rc = rules_rank(s->e, "tern_spawn()");
		if (!rc)
			rc = rules_program(s->e, "tern_spawn()");
		if (rc)
			return rc;
		preempt_watch(s);
	}
	if (n > TERN_WORDS_MAX)
		return error_set(-E2BIG, "a thread was given %u words; it gets at most %d", n,
				 TERN_WORDS_MAX);
	int rc = rules_number("thread function", id, TERN_THREAD_IDS_MAX);
	if (!rc && !s->function[id].fn)
		rc = error_set(
			-ENXIO,
			"thread function %u was named, but rank %u has none under that number: "
			"every rank registers the same ones with tern_thread_on()",
			id, s->e->t->rank);
	return rc;
}

/* 0, or why there is none, and then its callback does not know. */
static int create_one(struct spawn *s, const struct ticket *model, uint32_t rank)
{
	int rc = send_reachable(s->e, rank);
	struct ticket *k = rc ? NULL : record_take(&s->tickets);
	if (!k)
		return rc ? rc
			  : error_set(-ENOMEM, "tern_spawn(): no memory for a thread at rank %u",
				      rank);
	struct record record = k->record;
	*k = *model;
	k->record = record;
	k->rank = rank;
	k->label.ticket = record_name(k);
	if (k->payload)
		k->payload->users++;
	ticket_go(s, k);
	return 0;
}

/*
 * A thread at each of the ranks `first` to `end` - 1. That a single rank has left is an error; of
 * several, its callback gets it.
 */
static int create(struct spawn *s, uint32_t first, uint64_t end, const struct ticket *model,
		  unsigned id, unsigned n)
{
	int rc = create_check(s, id, n);
	if (!rc && (end > s->e->t->size || first >= end))
		rc = error_set(
			-ERANGE, "a thread on rank %llu was asked for; this job has ranks 0 to %u",
			(unsigned long long)(first < end ? end - 1 : first), s->e->t->size - 1);
	if (!rc)
		rc = tickets_wait(s, (uint32_t)(end - first));
	for (uint32_t r = first; !rc && r < end; r++) {
		int failed = create_one(s, model, r);
		if (end - first == 1)
			rc = failed;
		else if (failed && model->done)
			model->done(s->e->t, r, failed, 0, model->arg);
	}
	return rc;
}

/* What the line has no room for: the words beyond SPAWN_LINE, and then the data. */
static int payload_make(struct ticket *k, const tern_spawn_args *a)
{
	size_t len = a->len, words = label_more(k->label) * sizeof *a->words;
	if (len > TERN_SPAWN_DATA_MAX)
		return error_set(-EMSGSIZE,
				 "a thread was given %zu bytes of data; it gets at most %d", len,
				 TERN_SPAWN_DATA_MAX);
	if (!len && !words)
		return 0;
	struct payload *p = memory_new(1, sizeof *p + words + len);
	if (!p)
		return error_set(-ENOMEM, "tern_spawn_with(): no memory for %zu bytes of data",
				 len);
	*p = (struct payload){ .users = 1, .len = words + len };
	if (words)
		memcpy(p->bytes, a->words + SPAWN_LINE, words);
	if (len)
		memcpy(p->bytes + words, a->data, len);
	k->payload = p;
	return 0;
}

static int spawn_any(tern *t, const tern_spawn_args *a)
{
	struct ticket model = { .done = a->done,
				.arg = a->arg,
				.label = { .id = (uint8_t)a->id, .words = (uint8_t)a->n } };
	for (unsigned i = 0; i < a->n && i < SPAWN_LINE; i++)
		model.word[i] = a->words[i];
	bool all = a->rank == TERN_RANK_ALL;
	uint32_t first = all ? 0 : a->rank, count = all ? t->size : a->count ? a->count : 1;
	int rc = payload_make(&model, a);
	if (!rc)
		rc = create(spawn_of(t), first, (uint64_t)first + count, &model, a->id, a->n);
	payload_drop(model.payload);
	return rc;
}

int tern_spawn_with(tern *t, const tern_spawn_args *a)
{
	INSIDE struct scope scope = scope_given(t);
	return spawn_any(t, a);
}

int tern_spawn_array(tern *t, uint32_t rank, unsigned id, tern_thread_done *done, void *arg,
		     unsigned n, const uint64_t *words)
{
	INSIDE struct scope scope = scope_given(t);
	return spawn_any(
		t,
		&(tern_spawn_args){
			.rank = rank, .id = id, .n = n, .words = words, .done = done, .arg = arg });
}

/* -- The end of a thread --------------------------------------------------------------- */

void on_thread_done(tern *t, const tern_msg *m)
{
	struct spawn *s = spawn_of(t);
	struct label l = word_label(tern_msg_word(m, 0));
	uint32_t rank = tern_msg_src(m);
	struct ticket *k = record_named(&s->tickets, l.ticket);
	if (!k || k->queued || k->rank != rank)
		return; /* not one of ours: too late, or garbage */
	struct party *p = &s->party[rank];
	p->credits++;
	if (p->first)
		layer_work(s->e, LAYER_SPAWN, true);
	ticket_end(s, k, layer_error(tern_msg_word(m, 1)), tern_msg_word(m, 2));
}

void create_end_lost(struct spawn *s, uint32_t rank)
{
	struct net *net = s->e->site.peer[rank].net;
	int error = net->ops->check(net, rank);
	while (s->party[rank].first)
		queue_pop(s, &s->party[rank]);
	for (struct ticket *k = NULL; (k = record_next(&s->tickets, k));)
		if (k->rank == rank)
			ticket_end(s, k, error, 0);
}

/* -- Joining ----------------------------------------------------------------------------- */

static void thread_ended(tern *t, uint32_t rank, int rc, uint64_t result, void *arg)
{
	tern_thread *thread = arg;
	(void)t, (void)rank;
	thread->rc = rc;
	thread->result = result;
	thread->pending = 0;
}

int tern_thread_start_array(tern *t, uint32_t rank, unsigned id, tern_thread *thread, unsigned n,
			    const uint64_t *words)
{
	t = given(t);
	*thread = (tern_thread){ .pending = 1, .rank = rank };
	int rc = tern_spawn_array(t, rank, id, thread_ended, thread, n, words);
	if (rc)
		thread->pending = 0;
	return rc;
}

static bool thread_over(struct endpoint *e, void *arg)
{
	(void)e;
	return !((tern_thread *)arg)->pending;
}

int tern_thread_join(tern *t, tern_thread *thread, uint64_t *result)
{
	INSIDE struct scope scope = scope_given(t);
	if (t->own->forked)
		return rules_forked(t->own);
	struct wait w = { .call = "tern_thread_join",
			  .way = "a thread at",
			  .whom = thread->rank + 1,
			  .rule = "tern_thread_join()" };
	int rc = wait_until(t->own, thread_over, thread, &w);
	if (rc)
		return rc;
	if (thread->rc)
		return error_set(thread->rc, "a thread at rank %u has not ended as it should: %s",
				 thread->rank,
				 thread->rc == -ENXIO ? "its function is not registered there"
						      : strerror(-thread->rc));
	if (result)
		*result = thread->result;
	return 0;
}
