/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The network interface unit (NIU) of SCMP (chapters 3 and 5 of the thesis).
 *
 * The processor builds a message with an instruction for its head and one for each two registers;
 * data the NIU fetches itself. Messages with data, and requests to send (RTS), lie in transmission
 * queues of `queue` flits: one for each thread (`thread_queues`), or one for all. Data lie there as
 * two flits that describe them (`descriptors`), or whole. A thread whose message has no room is
 * suspended until it has. Thread messages, CTSs and what the NIU answers by itself have ways of
 * their own.
 *
 * A queue sends one message at a time. It is the network that says when flits have left: a worm
 * that is blocked keeps its queue. With an RTS the queue waits: nothing leaves it before the CTS
 * has come and the data have gone. Queues that are ready have the injection channel in the order
 * in which they became so, each for one message; the mesh keeps that order.
 *
 * A thread message whose node has no free context stays in the network, from its first flit on, and
 * what is behind it there waits. A context is free again when the last message of its thread lies
 * in a queue.
 *
 * What is lost would block a queue for ever, and what Tern sorts would wait for what a queue holds
 * back. So on a network that is not reliable, ordered and roomy there are no queues.
 */
#include <string.h>

#include "net/sim/machine/controller.h"
#include "net/sim/machine/network.h"

enum niu_state {
	NIU_EMPTY,
	NIU_SENDS, /* a message */
	NIU_ASKED, /* by an RTS, whether the data may follow */
	NIU_READY, /* they may */
};

/*
 * `in` and `out` count flits that came and went: a message lies in it once `mark - out <= queue`.
 */
struct niu_queue {
	uint64_t in, out;
	uint64_t head;        /* flits of the message at its head that are in it, */
	uint64_t left;        /* bytes of its data that no packet has, */
	uint32_t name, peer;  /* and of a rendezvous its name and the receiver */
	uint32_t state;       /* enum niu_state */
	uint32_t now;         /* the packet at its head */
	uint32_t first, last; /* of the packets behind it, */
	uint32_t count;
};

size_t niu_bytes(const struct profile *p, uint32_t nodes)
{
	bool is = strcmp(p->controller, niu_controller.name) == 0;
	return is ? (size_t)nodes * THREADS * sizeof(struct niu_queue) : 0;
}

static uint64_t word_at(const unsigned char *words, unsigned i)
{
	uint64_t w;
	memcpy(&w, words + i * sizeof w, sizeof w);
	return w;
}

void niu_read(struct travel *t, enum role role, const unsigned char *words)
{
	t->niu.own = role == ROLE_THREAD || role >= ROLE_CTS;
	t->niu.data = role == ROLE_DATA;
	t->niu.ends = role == ROLE_THREAD_ENDS;
	if (t->niu.data) {
		t->niu.name = (uint32_t)word_at(words, 0);
	} else if (t->type == TYPE_RTS) {
		t->niu.name = (uint32_t)(word_at(words, 1) >> NAME_SHIFT);
		t->niu.total = word_at(words, 2);
	} else if (t->type == TYPE_CTS) {
		uint32_t kind = (uint32_t)word_at(words, 0);
		t->niu.clears = kind == TOLD_CLEAR;
		t->niu.told = kind >= TOLD_CLEAR && kind <= TOLD_LAST;
		t->niu.name = (uint32_t)(word_at(words, 0) >> NAME_SHIFT);
		t->niu.other = (uint32_t)word_at(words, 3);
	}
}

/* -- Queues ------------------------------------------------------------------------------------ */

static bool niu_queues(const struct machine *m)
{
	const struct profile *p = &m->profile;
	return p->order && p->room && !p->drop && !p->corrupt && !p->jitter && m->net->wake;
}

static struct niu_queue *queue_at(const struct machine *m, uint32_t node, uint64_t thread)
{
	return &m->niu[node * THREADS + (m->profile.thread_queues ? thread % THREADS : 0)];
}

static struct niu_queue *queue_of(const struct machine *m, const struct travel *t)
{
	return &m->niu[t->src * THREADS + t->niu.queue - 1];
}

/* Flits of a message in its queue: head, name, registers, and its data or what describes them. */
static uint64_t niu_flits(const struct machine *m, const struct travel *t)
{
	uint64_t bytes = t->type == TYPE_RTS ? t->niu.total : t->data;
	uint64_t data = m->profile.descriptors ? 2 : (bytes + 3) / 4;
	if (t->class == CLASS_CONTROL)
		return 0; /* the network's own */
	return 2 + 2 * t->registers + (bytes ? data : 0);
}

static void context_free(struct machine *m, struct travel *t)
{
	struct node *n = &m->node[t->src];
	if (!t->niu.ends)
		return;
	t->niu.ends = false;
	if (n->threads) {
		n->threads--;
		m->net->wake(m);
	}
}

static bool lies_in(const struct machine *m, const struct niu_queue *q, uint64_t mark)
{
	return mark <= q->out + m->profile.queue;
}

/* Flits have left the queue: threads may go on, or end. */
static void queue_settle(struct machine *m, const struct niu_queue *q)
{
	uint32_t i = q->first;
	for (uint32_t k = 0; k < q->count; k++, i = m->travel[i].next)
		if (lies_in(m, q, m->travel[i].niu.mark))
			context_free(m, &m->travel[i]);
	if (m->room)
		m->room(m, (uint32_t)((q - m->niu) / THREADS));
}

static void queue_put_back(struct machine *m, struct niu_queue *q, uint32_t i)
{
	if (q->count++)
		m->travel[q->last].next = i;
	else
		q->first = i;
	q->last = i;
}

/* The message at the queue's head begins to leave: an RTS before its data. */
static void queue_begin(struct machine *m, struct niu_queue *q, uint32_t i)
{
	struct travel *t = &m->travel[i];
	q->now = i;
	q->head = niu_flits(m, t);
	q->left = 0;
	if (t->type == TYPE_RTS && !m->node[t->dst].left) {
		q->state = NIU_ASKED;
		q->name = t->niu.name;
		q->peer = t->dst;
		q->left = t->niu.total;
	} else {
		q->state = NIU_SENDS;
		t->niu.watched = true;
		t->niu.after = 0;
	}
	machine_enter(m, i);
}

static void queue_over(struct machine *m, struct niu_queue *q)
{
	q->out += q->head;
	q->head = 0;
	q->state = NIU_EMPTY;
	queue_settle(m, q);
	if (!q->count)
		return;
	uint32_t i = q->first;
	q->first = m->travel[i].next;
	q->count--;
	queue_begin(m, q, i);
}

/* Whether its messages wait for somebody else. */
static bool queue_asks(const struct machine *m, const struct niu_queue *q)
{
	bool asks = q->state >= NIU_ASKED;
	uint32_t i = q->first;
	for (uint32_t k = 0; k < q->count && !asks; k++, i = m->travel[i].next)
		asks = m->travel[i].type == TYPE_RTS;
	return asks;
}

/* A receiver that has crashed clears nothing. */
static bool queue_lost(const struct machine *m, const struct niu_queue *q)
{
	return q->state >= NIU_ASKED && m->node[q->peer].left;
}

/* -- Sending ----------------------------------------------------------------------------------- */

static void niu_send(struct machine *m, struct travel *t)
{
	t->sent = controller_hand_over(m, t) + controller_send_cost(m, t);
	if ((m->serving && t->class != CLASS_CONTROL) || t->niu.own || !niu_queues(m))
		return;
	struct niu_queue *q = queue_at(m, t->src, t->context);
	t->niu.queue = (uint32_t)(q - m->niu) % THREADS + 1;
	q->in += niu_flits(m, t);
	t->niu.mark = q->in;
	if (t->src == m->self) /* the others of this process have no threads that compute */
		baton_thread_of(m, t->context)->mark = q->in;
}

/* The queue that has been cleared for these data; NULL. */
static struct niu_queue *queue_cleared(const struct machine *m, const struct travel *t)
{
	for (uint32_t i = 0; t->niu.data && i < THREADS; i++) {
		struct niu_queue *q = &m->niu[t->src * THREADS + i];
		if (q->state == NIU_READY && q->peer == t->dst && q->name == t->niu.name)
			return q;
	}
	return NULL;
}

static void niu_enter(struct machine *m, uint32_t i)
{
	struct travel *t = &m->travel[i];
	struct niu_queue *q = queue_cleared(m, t);
	if (q) {
		t->niu.queue = (uint32_t)(q - m->niu) % THREADS + 1;
		t->niu.watched = true;
		q->left -= t->data < q->left ? t->data : q->left;
		t->niu.after = q->left; /* packets of a message leave in order */
	}
	/* What the network says for itself, as in a barrier, is behind data, and before an RTS. */
	if (t->class == CLASS_CONTROL && t->niu.queue && queue_asks(m, queue_of(m, t)))
		t->niu.queue = 0;
	if (q || !t->niu.queue) {
		context_free(m, t);
		machine_enter(m, i);
		return;
	}
	q = queue_of(m, t);
	if (queue_lost(m, q))
		queue_over(m, q);
	if (lies_in(m, q, t->niu.mark))
		context_free(m, t);
	if (q->state == NIU_EMPTY)
		queue_begin(m, q, i);
	else
		queue_put_back(m, q, i);
}

/*
 * Of descriptors, all is out of the queue when the head has gone and the data follow; of data, each
 * flit when it goes. The next message begins behind the last flit.
 */
static void niu_left(struct machine *m, uint32_t i, uint32_t unsent)
{
	struct travel *t = &m->travel[i];
	struct niu_queue *q = queue_of(m, t);
	uint64_t stays = m->profile.descriptors ? 0 : unsent + (t->niu.after + 3) / 4;
	if (stays < q->head) {
		q->out += q->head - stays;
		q->head = stays;
	}
	if (lies_in(m, q, t->niu.mark))
		context_free(m, t);
	if (unsent || t->niu.after)
		queue_settle(m, q);
	else
		queue_over(m, q);
}

bool niu_full(const struct machine *m, uint32_t node, uint64_t thread)
{
	return !lies_in(m, queue_at(m, node, thread), m->thread[thread % THREADS].mark);
}

/* What happens up to this process's time may make room. */
static bool niu_suspends(struct machine *m, uint64_t thread)
{
	if (!niu_full(m, m->self, thread))
		return false;
	baton_wait(m, baton_time(m), 0);
	return niu_full(m, m->self, thread);
}

/* -- Arrivals --------------------------------------------------------------------------------- */

static void niu_told(struct machine *m, const struct travel *t)
{
	for (uint32_t i = 0; i < THREADS; i++) {
		struct niu_queue *q = &m->niu[t->dst * THREADS + i];
		if (q->state != NIU_ASKED || q->peer != t->src || q->name != t->niu.name)
			continue;
		q->state = NIU_READY;
		q->name = t->niu.other;
		if (!t->niu.clears || !q->left)
			queue_over(m, q);
		return;
	}
}

static uint64_t niu_arrive(struct machine *m, const struct travel *t)
{
	if (t->type == TYPE_CTS && t->niu.told)
		niu_told(m, t);
	return controller_work(m, t->dst, &m->node[t->dst].drawn, m->shared->clock,
			       m->profile.receive);
}

static bool niu_take(struct machine *m, const struct travel *t)
{
	struct node *n = &m->node[t->dst];
	if (t->type != TYPE_THREAD || !m->profile.contexts || n->left || !niu_queues(m))
		return true;
	if (n->threads >= m->profile.contexts)
		return false;
	n->threads++;
	return true;
}

/* What waits for an answer of theirs goes on, and what they did not take is taken. */
static void niu_gone(struct machine *m)
{
	for (uint32_t i = 0; i < m->shared->nodes * THREADS; i++)
		if (queue_lost(m, &m->niu[i]))
			queue_over(m, &m->niu[i]);
	if (m->net->wake)
		m->net->wake(m);
}

static void queue_print(const struct machine *m, const struct niu_queue *q, FILE *to)
{
	fprintf(to, "  node %u has asked node %u whether it may send %llu bytes",
		(uint32_t)((q - m->niu) / THREADS), q->peer, (unsigned long long)q->left);
	if (q->count)
		fprintf(to, ", and %u messages of %s wait behind that", q->count,
			m->profile.thread_queues ? "this thread" : "all its threads");
	fputc('\n', to);
}

static bool niu_stuck(const struct machine *m, FILE *to)
{
	bool held = false;
	for (uint32_t i = 0; i < m->shared->nodes * THREADS; i++) {
		const struct niu_queue *q = &m->niu[i];
		held |= q->state == NIU_ASKED && q->count;
		if (to && q->state == NIU_ASKED)
			queue_print(m, q, to);
	}
	return held;
}

const struct sim_controller niu_controller = {
	.name = "niu",
	.meaning = "SCMP's network interface unit (thread_queues, descriptors)",
	.handles = true,
	.send = niu_send,
	.arrive = niu_arrive,
	.enter = niu_enter,
	.left = niu_left,
	.take = niu_take,
	.suspends = niu_suspends,
	.gone = niu_gone,
	.stuck = niu_stuck
};
