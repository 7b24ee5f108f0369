/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Controllers: none, FLASH's MAGIC, and the communication processor of Rosing and Saltz. SCMP's is
 * in niu.c.
 *
 * A message of SCMP has a head flit, a flit for the handler's address or the message's name, and a
 * flit for each 4 bytes of its registers and data (figures 3.2 and 5.5 of the thesis). RTS and CTS
 * have two flits. So what a layer of Tern sends has no registers: its words are what those two
 * flits say. A message that creates a thread has the thread's words.
 */
#include "net/sim/machine/controller.h"

#include <string.h>

uint64_t controller_send_cost(const struct machine *m, const struct travel *t)
{
	const struct profile *p = &m->profile;
	return t->class == CLASS_REPLY ? p->send_reply : p->send_request;
}

static void processor_sends(struct machine *m, const struct travel *t, uint64_t cost)
{
	baton_charge(m, cost);
	use_serve(use_node(m, t->src, USE_SEND), 0, cost);
}

enum travel_type controller_type(enum role role)
{
	return role == ROLE_THREAD ? TYPE_THREAD
	       : role == ROLE_RTS  ? TYPE_RTS
	       : role == ROLE_CTS  ? TYPE_CTS
				   : TYPE_DATA;
}

uint32_t controller_words(const struct machine *m, const struct travel *t)
{
	return 2 * (m->controller->handles ? t->registers : t->args) + (t->data + 3) / 4;
}

/* -- None: the processor does everything ------------------------------------------------------- */

static void none_send(struct machine *m, struct travel *t)
{
	baton_thread(m, t->context);
	processor_sends(m, t, controller_send_cost(m, t) + t->words * m->profile.send_word);
	t->sent = baton_time(m);
}

static const struct sim_controller none_controller = {
	.name = "none", .meaning = "the processor sends and receives", .send = none_send
};

/* -- A communication processor ---------------------------------------------------------------- */

/* When a packet is handed over: by a handler that runs here, or by the processor, which pays. */
uint64_t controller_hand_over(struct machine *m, const struct travel *t)
{
	const struct profile *p = &m->profile;
	if (m->serving)
		return m->served;
	baton_thread(m, t->context);
	processor_sends(
		m, t, (t->data ? p->command_block : p->command) + 2 * t->registers * p->send_word);
	return baton_time(m);
}

/* It takes up a packet that came at `since` and works for `ps`; when it is done. */
uint64_t controller_work(struct machine *m, uint32_t node, uint64_t *busy, uint64_t since,
			 uint64_t ps)
{
	uint64_t at = later(since, *busy);
	use_serve(use_node(m, node, USE_CONTROLLER), at - since, ps);
	return *busy = at + ps;
}

/*
 * MAGIC: the protocol processor works on one packet at a time, and what waits for it stands in a
 * queue that is never full. Data stream past it, through the inbox, the buffers and the outbox:
 * the first line of a block enters the network when its handler starts, and the last one leaves
 * when its handler has ended, or when the link has carried it, whichever is later.
 */
static uint64_t magic_lines(const struct machine *m, const struct travel *t)
{
	return (t->data + m->profile.line_bytes - 1) / m->profile.line_bytes;
}

static void magic_send(struct machine *m, struct travel *t)
{
	const struct profile *p = &m->profile;
	uint64_t lines = magic_lines(m, t), since = controller_hand_over(m, t);
	uint64_t ps = lines ? p->prepare + lines * p->line : controller_send_cost(m, t);
	uint64_t until = controller_work(m, t->src, &m->node[t->src].busy, since, ps);
	if (lines)
		t->size = t->data + (uint32_t)(lines * p->header);
	t->hold = lines * p->line;
	t->sent = until - t->hold;
	if (m->serving)
		m->served = until; /* the handler that has sent this goes on then */
}

static uint64_t magic_arrive(struct machine *m, const struct travel *t)
{
	const struct profile *p = &m->profile;
	uint64_t *busy = &m->node[t->dst].busy, now = m->shared->clock, lines = magic_lines(m, t);
	uint64_t since = lines ? now - later(t->hold, t->size * p->gap_byte) : now;
	uint64_t ps = lines ? lines * p->line : p->receive;
	return *busy = later(now, controller_work(m, t->dst, busy, since, ps));
}

/*
 * Rosing and Saltz's node: two processors of one kind, with a buffer between them. The
 * communication processor sends blocks, and runs the handler of whatever has come, the program's,
 * too; it does one thing at a time. Words the computation processor writes to the network itself.
 */
static void dual_send(struct machine *m, struct travel *t)
{
	if (!t->data && !m->serving) {
		none_send(m, t);
		return;
	}
	uint64_t since = controller_hand_over(m, t);
	uint64_t ps = controller_send_cost(m, t) + t->words * m->profile.send_word;
	t->sent = controller_work(m, t->src, &m->node[t->src].busy, since, ps);
	if (m->serving)
		m->served = t->sent;
}

static uint64_t dual_arrive(struct machine *m, const struct travel *t)
{
	uint64_t ps = m->profile.receive + t->words * m->profile.receive_word;
	return controller_work(m, t->dst, &m->node[t->dst].busy, m->shared->clock, ps);
}

static const struct sim_controller dual_controller = {
	.name = "dual",
	.meaning = "Rosing and Saltz's communication processor, which runs every handler",
	.handles = true,
	.programs = true,
	.send = dual_send,
	.arrive = dual_arrive
};

static const struct sim_controller magic_controller = {
	.name = "magic",
	.meaning = "FLASH's MAGIC: handlers on a protocol processor, data in a pipeline past it",
	.handles = true,
	.send = magic_send,
	.arrive = magic_arrive
};

const struct sim_controller *const controller_table[] = { &none_controller, &magic_controller,
							  &niu_controller, &dual_controller, NULL };

const struct sim_controller *controller_named(const char *name)
{
	for (unsigned i = 0; controller_table[i]; i++)
		if (strcmp(controller_table[i]->name, name) == 0)
			return controller_table[i];
	return NULL;
}
