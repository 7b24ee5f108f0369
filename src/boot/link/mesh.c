/* SPDX-License-Identifier: BSD-3-Clause */
/* Calls, takes calls, and sends the news of this machine over each connection. */
#include "boot/link/mesh.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "job/exchange.h"

#define SECOND UINT64_C(1000000000)

enum {
	RECALL_NS = 200000000,
	AT_ONCE = 64,   /* calls that are taken before the others are served */
	GREETING_S = 5, /* how long one that has called may say nothing that is believed */
};

/* -- Beginning ---------------------------------------------------------------------------- */

static void peer_open(struct mesh *m, uint32_t machine)
{
	bool lower = m->job->head->machine < machine;
	uint32_t lowest = 0;
	while (lowest + 1 < m->job->size && m->job->rank[lowest].machine != machine)
		lowest++;
	m->peer[machine] = (struct mesh_peer){ .stream = { .fd = -1 },
					       .recall = clock_ns() + (lower ? 0 : SECOND),
					       .over = machine == m->job->head->machine,
					       .told = m->told + (size_t)machine * m->job->size };
	memcpy(&m->peer[machine].address, m->job->rank[lowest].link, sizeof(struct sockaddr_in6));
	keepalive_begin(&m->peer[machine].silence, m->silence);
}

struct mesh *mesh_open(struct job *job, int listener, uint64_t silence)
{
	struct mesh *m = calloc(1, sizeof *m);
	if (!m)
		return NULL;
	*m = (struct mesh){ .job = job, .listener = listener, .silence = silence };
	m->machines = job->head->machines;
	m->peer = calloc(m->machines, sizeof *m->peer);
	m->told = calloc((size_t)m->machines * job->size, sizeof *m->told);
	if (!m->peer || !m->told) {
		mesh_close(m);
		return NULL;
	}
	for (uint32_t i = 0; i < m->machines; i++)
		peer_open(m, i);
	for (uint32_t i = 0; i < STRANGERS; i++)
		m->stranger[i].fd = -1;
	return m;
}

void mesh_close(struct mesh *m)
{
	free(m->peer);
	free(m->told);
	free(m);
}

/* -- Connections -------------------------------------------------------------------------- */

static bool connection_proven(const struct connection *c)
{
	return c->fd >= 0 && c->received;
}

/* Whether no answer comes from the other machine's kernel. */
static bool errno_unreachable(int rc)
{
	return rc == -ETIMEDOUT || rc == -EHOSTUNREACH || rc == -ENETUNREACH || rc == -EHOSTDOWN ||
	       rc == -ENETDOWN;
}

static bool machine_ended(const struct mesh *m, uint32_t machine)
{
	for (uint32_t r = 0; r < m->job->size; r++)
		if (m->job->rank[r].machine == machine && job_rank_state(m->job, r) < RANK_GONE)
			return false;
	return true;
}

static void machine_lost(struct mesh *m, uint32_t machine)
{
	struct rank_status b;
	m->peer[machine].over = true;
	connection_close(&m->peer[machine].stream);
	for (uint32_t r = 0; r < m->job->size; r++)
		if (m->job->rank[r].machine == machine) {
			rank_status_lost(&b, r);
			rank_status_take(m->job, &b);
		}
}

/*
 * A connection that is full may have been given up by our own kernel, because a process there is
 * stopped: that says nothing.
 */
static void peer_broken(struct mesh *m, uint32_t machine, int rc)
{
	struct mesh_peer *p = &m->peer[machine];
	bool silent = connection_proven(&p->stream) && errno_unreachable(rc) &&
		      !connection_waits(&p->stream);
	connection_close(&p->stream);
	p->recall = clock_ns() + (m->job->head->machine < machine ? RECALL_NS : SECOND);
	if (silent)
		machine_lost(m, machine);
	else if (machine_ended(m, machine))
		p->over = true;
}

static void peer_call(struct mesh *m, uint32_t machine)
{
	struct mesh_peer *p = &m->peer[machine];
	int rc = connection_call(&p->stream, &p->address, m->job, m->silence);
	if (rc)
		p->recall = clock_ns() + RECALL_NS;
	else
		memset(p->told, 0, m->job->size * sizeof *p->told);
}

/* What there is to tell of our ranks, as far as the connection takes it now. */
static int peer_tell(struct mesh *m, struct mesh_peer *p)
{
	struct rank_status b;
	int rc = connection_flush(&p->stream);
	while (!rc && connection_room(&p->stream) && rank_status_news(m->job, p->told, &b)) {
		connection_send(&p->stream, &b);
		rc = connection_flush(&p->stream);
	}
	return rc;
}

/* A machine speaks of its own ranks alone. */
static int connection_hear(struct mesh *m, struct connection *c, unsigned most)
{
	struct rank_status b;
	int rc = 0;
	for (unsigned i = 0; i < most && (rc = connection_receive(c, &b)) > 0; i++)
		if (b.rank >= m->job->size || m->job->rank[b.rank].machine != c->peer ||
		    rank_status_take(m->job, &b) == RANK_STATUS_NONSENSE)
			return -EPROTO;
	return rc;
}

/* What has come is heard even if nothing can be written any more: it may say why. */
static void peer_talk(struct mesh *m, uint32_t machine)
{
	struct mesh_peer *p = &m->peer[machine];
	int told = peer_tell(m, p), heard = connection_hear(m, &p->stream, UINT_MAX);
	if (heard >= 0 && p->stream.greeted && p->stream.peer != machine)
		heard = -EPROTO;
	if (heard < 0 || told < 0)
		peer_broken(m, machine, heard < 0 ? heard : told);
	else if (connection_proven(&p->stream))
		p->heard = true;
}

/*
 * A machine that was never heard of may be about to start its link: as long as its kernel holds our
 * call, it is not silent. A call that its kernel has not taken within a second is made anew,
 * because the next one may meet a shorter queue.
 */
static void peer_serve(struct mesh *m, uint32_t machine)
{
	struct mesh_peer *p = &m->peer[machine];
	if (p->stream.fd < 0 && clock_ns() >= p->recall)
		peer_call(m, machine);
	if (p->stream.fd >= 0)
		peer_talk(m, machine);
	if (p->over)
		return;
	if (connection_proven(&p->stream) || (!p->heard && connection_reached(&p->stream)))
		keepalive_heard(&p->silence);
	else if (p->stream.fd >= 0 && !connection_reached(&p->stream) &&
		 clock_ns() - p->stream.begun > SECOND)
		connection_close(&p->stream);
	if (keepalive_expired(&p->silence))
		machine_lost(m, machine);
}

/* -- Strangers ---------------------------------------------------------------------------- */

/* Of two connections with one machine both ends keep the one that the lower machine called. */
static bool stranger_adoptable(const struct mesh *m, const struct connection *c)
{
	const struct mesh_peer *p = &m->peer[c->peer];
	return !p->over && !(connection_proven(&p->stream) && p->stream.caller &&
			     m->job->head->machine < c->peer);
}

static bool stranger_known(const struct mesh *m, const struct connection *c)
{
	return c->peer < m->machines && c->peer != m->job->head->machine;
}

static void stranger_adopt(struct mesh *m, struct connection *c)
{
	struct mesh_peer *p = &m->peer[c->peer];
	if (!stranger_adoptable(m, c)) {
		connection_close(c);
		return;
	}
	connection_close(&p->stream);
	p->stream = *c;
	p->heard = true;
	memset(p->told, 0, m->job->size * sizeof *p->told);
	*c = (struct connection){ .fd = -1 };
}

static void stranger_serve(struct mesh *m, struct connection *c)
{
	int rc = connection_flush(c);
	if (!rc)
		rc = connection_hear(m, c, 1);
	if (rc >= 0 && c->greeted && !stranger_known(m, c))
		rc = -EPROTO;
	if (rc >= 0 && c->received)
		stranger_adopt(m, c);
	else if (rc < 0 || clock_ns() - c->begun >= GREETING_S * SECOND)
		connection_close(c);
}

static void strangers_serve(struct mesh *m)
{
	struct connection c;
	int rc = 0;
	for (int i = 0;
	     i < AT_ONCE && (rc = connection_accept(&c, m->listener, m->job, m->silence)) == 0;
	     i++) {
		struct connection *place = &m->stranger[m->called++ % STRANGERS];
		connection_close(place);
		*place = c;
	}
	m->starved = rc == -EMFILE || rc == -ENFILE || rc == -ENOMEM || rc == -ENOBUFS;
	for (uint32_t i = 0; i < STRANGERS; i++)
		if (m->stranger[i].fd >= 0)
			stranger_serve(m, &m->stranger[i]);
}

/* -- Everybody ---------------------------------------------------------------------------- */

static struct pollfd poll_of(const struct connection *c)
{
	return (struct pollfd){ .fd = c->fd,
				.events = (short)(POLLIN | (connection_waits(c) ? POLLOUT : 0)) };
}

size_t mesh_polls_most(const struct job *job)
{
	return 1 + (size_t)job->head->machines + STRANGERS;
}

unsigned mesh_polls(const struct mesh *m, struct pollfd *p)
{
	unsigned n = 0;
	p[n++] = (struct pollfd){ .fd = m->starved ? -1 : m->listener, .events = POLLIN };
	for (uint32_t i = 0; i < m->machines; i++)
		if (m->peer[i].stream.fd >= 0)
			p[n++] = poll_of(&m->peer[i].stream);
	for (uint32_t i = 0; i < STRANGERS; i++)
		if (m->stranger[i].fd >= 0)
			p[n++] = poll_of(&m->stranger[i]);
	return n;
}

bool mesh_must_retry(const struct mesh *m)
{
	if (m->starved)
		return true;
	for (uint32_t i = 0; i < m->machines; i++)
		if (!m->peer[i].over && !connection_proven(&m->peer[i].stream))
			return true;
	for (uint32_t i = 0; i < STRANGERS; i++)
		if (m->stranger[i].fd >= 0)
			return true;
	return false;
}

bool mesh_told(const struct mesh *m, bool all)
{
	for (uint32_t i = 0; i < m->machines; i++) {
		const struct mesh_peer *p = &m->peer[i];
		bool owed = connection_proven(&p->stream)
				    ? rank_status_news(m->job, p->told, NULL) ||
					      connection_waits(&p->stream)
				    : all;
		if (!p->over && owed)
			return false;
	}
	return true;
}

void mesh_serve(struct mesh *m)
{
	strangers_serve(m);
	for (uint32_t i = 0; i < m->machines; i++)
		if (!m->peer[i].over)
			peer_serve(m, i);
}

/*
 * To close a connection with something unread in it may take what was written from the other end.
 */
void mesh_finish(struct mesh *m)
{
	for (uint32_t i = 0; i < m->machines; i++)
		if (m->peer[i].stream.fd >= 0)
			shutdown(m->peer[i].stream.fd, SHUT_WR);
}

bool mesh_over(struct mesh *m)
{
	bool over = true;
	for (uint32_t i = 0; i < m->machines; i++) {
		struct connection *c = &m->peer[i].stream;
		if (c->fd >= 0 && connection_hear(m, c, UINT_MAX) < 0)
			connection_close(c);
		over &= c->fd < 0;
	}
	return over;
}
