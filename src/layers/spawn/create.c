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
#include "base/wrap.h"
#include "core/direct.h"
#include "core/scope.h"
#include "core/wait.h"
#include "spawn/preempt.h"
#include "spawn/spawn.h"

int create_open(struct spawn *s)
{
	s->ticket = calloc(TERN_THREADS_MAX, sizeof *s->ticket);
	s->party = calloc(s->e->t->size, sizeof *s->party);
	if (!s->ticket || !s->party)
		return -ENOMEM;
	for (uint32_t i = 0; i < TERN_THREADS_MAX && wrap_distance(); i++)
		s->ticket[i].label.generation = (uint32_t)wrap_first(32, 0);
	for (uint32_t r = 0; r < s->e->t->size; r++)
		s->party[r].credits = TERN_SPAWN_CREDITS;
	return 0;
}

/* A payload is shared by the tickets of one call, and goes with the last of them. */
static void payload_drop(struct payload **at)
{
	struct payload *p = *at;
	*at = NULL;
	if (p && --p->users == 0)
		memory_free(p);
}

void create_close(struct spawn *s)
{
	for (uint32_t i = 0; s->ticket && i < s->fresh; i++)
		payload_drop(&s->ticket[i].payload);
	free(s->ticket);
	free(s->party);
}

/* -- Tickets ------------------------------------------------------------------------ */

static bool tickets_left(const struct spawn *s, uint32_t n)
{
	return TERN_THREADS_MAX - s->under_way >= n;
}

/* The caller has seen that there is one. */
static struct ticket *ticket_take(struct spawn *s)
{
	uint32_t i = s->unused;
	if (i)
		s->unused = s->ticket[i - 1].next;
	else
		i = ++s->fresh;
	struct ticket *k = &s->ticket[i - 1];
	k->used = true;
	k->label.ticket = (uint16_t)(i - 1);
	k->label.generation++;
	s->under_way++;
	return k;
}

/* Gives the ticket back first: the callback may create another thread. */
static void ticket_end(struct spawn *s, struct ticket *k, int rc, uint64_t result)
{
	tern_thread_done *done = k->done;
	void *arg = k->arg;
	uint32_t rank = k->rank;
	payload_drop(&k->payload);
	k->used = false;
	k->next = s->unused;
	s->unused = (uint32_t)(k - s->ticket) + 1;
	s->under_way--;
	if (done)
		done(s->e->t, rank, rc, result, arg);
}

/* -- Sending, and the queues that wait for it ---------------------------------------- */

/* SPAWN_LINE words fit the message's line beside the label; the others are its payload. */
static int ticket_send(struct spawn *s, const struct ticket *k, const struct payload *p)
{
	const uint64_t *w = k->word;
	uint64_t label = label_word(k->label);
	if (k->label.words <= SPAWN_LINE && !p)
		return layer_words(s->e, k->rank, SPAWN_CREATE, label, w[0], w[1], w[2], w[3],
				   w[4]);
	const uint64_t words[] = { label, w[0], w[1], w[2], w[3], w[4] };
	if (!p)
		return layer_request(s->e, k->rank, SPAWN_CREATE, &w[SPAWN_LINE],
				     label_more(k->label) * sizeof *w, 6, words);
	library_hold(s->e); /* so that a poll does not wait for a block: -EAGAIN */
	int rc = layer_request(s->e, k->rank, SPAWN_CREATE, p->bytes, p->len, 6, words);
	library_release(s->e);
	return rc;
}

/*
 * Spends a credit. False: it was sent; or its rank was lost while this waited for room, and its
 * callback knows. The ticket may have ended, and have another's payload, when this returns.
 */
static bool ticket_remains(struct spawn *s, struct ticket *k)
{
	struct party *to = &s->party[k->rank];
	struct payload *p = k->payload;
	uint32_t generation = k->label.generation;
	k->payload = NULL;
	to->credits--;
	int rc = ticket_send(s, k, p);
	if (rc)
		to->credits++;
	if (rc && k->used && k->label.generation == generation) {
		k->payload = p;
		return true;
	}
	payload_drop(&p);
	return false;
}

static void queue_push(struct spawn *s, struct ticket *k)
{
	struct queue *q = &s->party[k->rank].queued;
	uint32_t i = (uint32_t)(k - s->ticket) + 1;
	k->queued = true;
	k->next = 0;
	if (q->last)
		s->ticket[q->last - 1].next = i;
	else
		q->first = i;
	q->last = i;
	s->queued++;
}

static struct ticket *queue_pop(struct spawn *s, struct queue *q)
{
	struct ticket *k = &s->ticket[q->first - 1];
	q->first = k->next;
	if (!q->first)
		q->last = 0;
	k->queued = false;
	s->queued--;
	return k;
}

static void queue_return(struct spawn *s, struct queue *q, struct ticket *k)
{
	k->queued = true;
	k->next = q->first;
	q->first = (uint32_t)(k - s->ticket) + 1;
	if (!q->last)
		q->last = q->first;
	s->queued++;
}

/* Whether the first of a rank's queue can be sent without waiting for a place in the ring. */
static bool party_ready(struct spawn *s, uint32_t rank)
{
	struct party *p = &s->party[rank];
	return p->queued.first && p->credits && !s->e->site.peer[rank].lost &&
	       lane_ready(&s->e->t->lane[rank]);
}

static unsigned party_flush(struct spawn *s, uint32_t rank)
{
	struct party *p = &s->party[rank];
	unsigned sent = 0;
	for (; party_ready(s, rank); sent++) {
		struct ticket *k = queue_pop(s, &p->queued);
		if (!ticket_remains(s, k))
			continue;
		queue_return(s, &p->queued, k);
		break;
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
		if (s->party[r].queued.first && s->party[r].credits)
			return true;
	return false;
}

/* Sends at once, or lets polls do it when it cannot be done now. */
static void ticket_go(struct spawn *s, struct ticket *k)
{
	struct party *p = &s->party[k->rank];
	if (p->credits && !p->queued.first && !in_handler(s->e) && !held(s->e) &&
	    !ticket_remains(s, k))
		return;
	queue_push(s, k);
	if (p->credits)
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
	return tickets_left(w->s, w->tickets);
}

static int tickets_stop(struct endpoint *e, struct wait *wait)
{
	const struct wanted *w = wait->arg;
	if (!in_handler(e) && !held(e))
		return 0;
	return error_set(-EAGAIN,
			 "rank %u has created %u threads that have not ended, of %d at most",
			 e->t->rank, w->s->under_way, TERN_THREADS_MAX);
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
	if (id >= TERN_THREAD_IDS_MAX)
		return error_set(-ERANGE, "thread function %u was named; they are numbered 0 to %d",
				 id, TERN_THREAD_IDS_MAX - 1);
	if (!s->function[id].fn)
		return error_set(
			-ENXIO,
			"thread function %u was named, but rank %u has none under that number: "
			"every rank registers the same ones with tern_thread_on()",
			id, s->e->t->rank);
	return 0;
}

static void create_one(struct spawn *s, const struct ticket *model, uint32_t rank)
{
	struct ticket *k = ticket_take(s);
	k->done = model->done;
	k->arg = model->arg;
	k->rank = rank;
	k->label.id = model->label.id;
	k->label.words = model->label.words;
	memcpy(k->word, model->word, sizeof k->word);
	k->payload = model->payload;
	if (k->payload)
		k->payload->users++;
	int rc = send_reachable(s->e, rank);
	if (rc)
		ticket_end(s, k, rc, 0);
	else
		ticket_go(s, k);
}

/*
 * A thread at each of the ranks `first` to `end` - 1. A single rank that has left is an error; of
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
	if (!rc && end - first == 1)
		rc = send_reachable(s->e, first);
	if (!rc)
		rc = tickets_wait(s, (uint32_t)(end - first));
	for (uint32_t r = first; !rc && r < end; r++)
		create_one(s, model, r);
	return rc;
}

/* As ticket_send() sends it: words that the line has no room for, and then the data. */
static int payload_make(struct ticket *k, const void *data, size_t len)
{
	size_t words = label_more(k->label) * sizeof *k->word;
	if (len > TERN_SPAWN_DATA_MAX)
		return error_set(-EMSGSIZE,
				 "a thread was given %zu bytes of data; it gets at most %d", len,
				 TERN_SPAWN_DATA_MAX);
	if (!len)
		return 0;
	struct payload *p = memory_new(1, sizeof *p + words + len);
	if (!p)
		return error_set(-ENOMEM, "tern_spawn_with(): no memory for %zu bytes of data",
				 len);
	*p = (struct payload){ .users = 1, .len = words + len };
	memcpy(p->bytes, &k->word[SPAWN_LINE], words);
	memcpy(p->bytes + words, data, len);
	k->payload = p;
	return 0;
}

static int spawn_any(tern *t, const tern_spawn_args *a)
{
	struct ticket model = { .done = a->done,
				.arg = a->arg,
				.label = { .id = (uint8_t)a->id, .words = (uint8_t)a->n } };
	for (unsigned i = 0; i < a->n && i < TERN_WORDS_MAX; i++) /* create() refuses more */
		model.word[i] = a->words[i];
	bool all = a->rank == TERN_RANK_ALL;
	uint32_t first = all ? 0 : a->rank, count = all ? t->size : a->count ? a->count : 1;
	int rc = payload_make(&model, a->data, a->len);
	if (!rc)
		rc = create(spawn_of(t), first, (uint64_t)first + count, &model, a->id, a->n);
	payload_drop(&model.payload);
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
	struct ticket *k = l.ticket < TERN_THREADS_MAX && s->ticket ? &s->ticket[l.ticket] : NULL;
	if (!k || !k->used || k->queued || k->label.generation != l.generation || k->rank != rank)
		return; /* not one of ours: too late, or garbage */
	struct party *p = &s->party[rank];
	p->credits++;
	if (p->queued.first)
		layer_work(s->e, LAYER_SPAWN, true);
	ticket_end(s, k, layer_error(tern_msg_word(m, 1)), tern_msg_word(m, 2));
}

void create_end_lost(struct spawn *s, uint32_t rank)
{
	struct net *net = s->e->site.peer[rank].net;
	int error = net->ops->check(net, rank);
	while (s->party[rank].queued.first)
		queue_pop(s, &s->party[rank].queued);
	for (uint32_t i = 0; i < s->fresh; i++)
		if (s->ticket[i].used && s->ticket[i].rank == rank)
			ticket_end(s, &s->ticket[i], error, 0);
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
