/* SPDX-License-Identifier: BSD-3-Clause */
/* cost: base setup */
#include "boot/herald.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/kernel.h"
#include "base/setting.h"
#include "base/world.h"
#include "boot/address.h"
#include "boot/channel.h"
#include "boot/thread.h"

enum {
	DOUBT_NS = 300000000,   /* how long others may take to say how a rank has ended */
	SETTLE_NS = 1000000000, /* how long a rank that leaves waits for its herald, at most */
	NAP_NS = 200000,
	BLIND_NS = 10000000, /* between looks, when it cannot sleep until there is something to see */
	RECALL_NS = 200000000,
	STRANGERS = 16, /* who may have called besides all ranks */
	ROUND_MS = 100, /* while it is in doubt of somebody, or somebody cannot be let in */
	GREETING_S = 5, /* how long one that has called may say nothing that is believed */
};

struct herald {
	struct job *job;
	pid_t pid;
	uint32_t rank;
	struct sockaddr_in6 *address; /* one a rank */
	uint64_t *said;      /* how late the bulletins were that the next one has heard of, one a rank */
	struct bulletin own; /* what those who watch us have heard, */
	bool *deaths;        /* and whether they have of a rank that died, one a rank */
	int listener, knock;
	uint64_t silence;   /* s */
	uint32_t next;      /* the rank that `out` leads to; ours: there is none */
	struct channel out; /* fd -1 while the next one is in doubt */
	uint64_t doubt;     /* until when, ns; 0: it is not */
	uint32_t silent;    /* the machine, plus 1, that did not say how its rank ended; 0: none */
	uint64_t recall;    /* when it is to be called again, because it could not be, ns; 0: it could */
	uint64_t cut;       /* since when no way leads to it, ns; 0: one does */
	bool recalled; /* it has been, because a stream broke that was full of words, or had taken none */
	struct channel *in; /* those of others */
	uint32_t ins, rooms;
	bool wanting; /* somebody has called, and there was no memory or descriptor to let them in */
	_Atomic uint64_t asked, done; /* settlings */
};

static struct herald *the_herald; /* one a process, which is one rank */

/* -- Saying ------------------------------------------------------------------------------ */

/* The later one has more; behind that a rank has ended comes nothing. */
static uint64_t lateness(const struct bulletin *b)
{
	return b->state >= RANK_GONE ? UINT64_MAX : b->serial + 1;
}

/*
 * Each herald passes on what is new to its own next one, whatever others of its machine have done: theirs may be on another machine. So
 * news goes on around the circle, through the machine that it is of, too, until it comes to one who has passed it on. The
 * circle leaves no machine out, because nobody is passed over but ranks of the machine where the news is already.
 */
static void say_out(struct herald *h, const struct bulletin *b)
{
	if (h->out.fd < 0 || lateness(b) <= h->said[b->rank])
		return;
	h->said[b->rank] = lateness(b);
	channel_send(&h->out, b);
}

/* Of our own rank all others are told that watch it: when their stream ends they must know why. */
static void say_back(struct herald *h, const struct bulletin *b)
{
	for (uint32_t i = 0; i < h->ins; i++)
		channel_send(&h->in[i], b);
}

/*
 * Deaths go around the circle the other way, too, once: a rank that is stopped, by a debugger, passes nothing on, and others may wait
 * for whom it has not told them of.
 */
static void say_death(struct herald *h, const struct bulletin *b)
{
	if (b->state != RANK_DEAD || h->deaths[b->rank])
		return;
	h->deaths[b->rank] = true;
	say_back(h, b);
}

/* Other ranks here speak for themselves, as long as they live. */
static bool ours_to_say(const struct herald *h, const struct bulletin *b)
{
	return b->rank == h->rank || b->state >= RANK_GONE;
}

static void say_news(struct herald *h)
{
	struct bulletin b;
	for (uint32_t r = 0; r < h->job->size; r++) {
		if (!job_here(h->job, r))
			continue;
		bulletin_read(h->job, r, &b);
		if (ours_to_say(h, &b))
			say_out(h, &b);
		say_death(h, &b);
		if (r == h->rank && b.serial != h->own.serial) {
			h->own = b;
			say_back(h, &b);
		}
	}
}

/* To one that has just been called: it may have missed what the one before it was told. */
static void say_all(struct herald *h)
{
	struct bulletin b;
	memset(h->said, 0, h->job->size * sizeof *h->said);
	for (uint32_t r = 0; r < h->job->size; r++) {
		bulletin_read(h->job, r, &b);
		if (job_here(h->job, r) ? ours_to_say(h, &b) : b.session || b.state >= RANK_GONE)
			say_out(h, &b);
	}
}

static void hear(struct herald *h, const struct bulletin *b)
{
	bool here = b->rank < h->job->size && job_here(h->job, b->rank); /* who is here is known better, */
	if (!here && bulletin_take(h->job, b) == BULLETIN_NONSENSE)
		return;
	say_out(h, b); /* but others may not have heard of it */
	say_death(h, b);
}

/* -- The next one ------------------------------------------------------------------------- */

static uint32_t next_after(const struct herald *h, uint32_t from)
{
	for (uint32_t i = 1; i < h->job->size; i++) {
		uint32_t r = (from + i) % h->job->size;
		if (!job_here(h->job, r) && job_rank_state(h->job, r) < RANK_GONE)
			return r;
	}
	return h->rank;
}

static void rank_lost(struct herald *h, uint32_t rank, int status)
{
	struct bulletin b;
	bulletin_end(h->job, rank, status, &b);
	bulletin_take(h->job, &b);
	say_out(h, &b);
	say_death(h, &b);
}

static void machine_lost(struct herald *h, uint32_t machine)
{
	for (uint32_t r = 0; r < h->job->size; r++)
		if (h->job->rank[r].machine == machine)
			rank_lost(h, r, STATUS_LOST);
}

/* Its machine may take a while to say how it ended; but not if it had nothing to say of the one before, and this one did not answer. */
static void next_doubted(struct herald *h, bool answered)
{
	bool silent = !answered && h->silent == h->job->rank[h->next].machine + 1;
	h->doubt = clock_ns() + (silent ? 0 : DOUBT_NS);
}

/* Whether the way to a machine is gone, and not a process there. */
static bool unreachable(int rc)
{
	return rc == -ETIMEDOUT || rc == -EHOSTUNREACH || rc == -ENETUNREACH || rc == -EHOSTDOWN ||
	       rc == -ENETDOWN;
}

/* There is no way from here to the next one's machine. It may come back, and is waited for as for one that is silent. */
static void next_cut(struct herald *h)
{
	uint64_t now = clock_ns();
	if (!h->cut)
		h->cut = now;
	if (h->silence && now - h->cut >= h->silence * UINT64_C(1000000000))
		machine_lost(h, h->job->rank[h->next].machine);
}

static void next_call(struct herald *h)
{
	uint32_t before = h->next;
	h->doubt = h->recall = 0;
	h->next = next_after(h, h->rank);
	if (h->next != before)
		h->cut = 0;
	if (h->next == h->rank)
		return;
	int rc = channel_call(&h->out, &h->address[h->next], h->job, h->rank, h->silence);
	if (!unreachable(rc))
		h->cut = 0;
	if (rc == 0)
		say_all(h);
	else if (rc == -ECONNREFUSED)
		next_doubted(h, false);
	else
		h->recall =
			clock_ns() + RECALL_NS; /* for want of something here, which says nothing of it, */
	if (unreachable(rc))
		next_cut(h); /* unless it lasts */
}

/* Its stream has ended. Those of its own machine know better how, and will say so, if any are left. */
static void next_ended(struct herald *h, int rc)
{
	bool answered = h->out.greeted, full = answered && channel_waits(&h->out);
	bool mute = !h->out.out_at && !h->recalled && rc != -ECONNREFUSED;
	channel_close(&h->out);
	if (!unreachable(rc) && mute) { /* one that was stopped, say, and so had to be taken for a stranger */
		h->recalled = true;
		h->recall = clock_ns() + RECALL_NS;
		return;
	}
	if (!unreachable(rc)) {
		next_doubted(h, answered);
		return;
	}
	/* A rank that is stopped takes nothing, though its machine is there: then that answers. */
	if (!full || h->recalled)
		machine_lost(h, h->job->rank[h->next].machine);
	h->recalled = full && !h->recalled;
	next_call(h);
}

static void next_doubt(struct herald *h)
{
	while (h->doubt) { /* all ranks of a machine may have ended at once */
		bool known = job_rank_state(h->job, h->next) >= RANK_GONE;
		if (!known && clock_ns() < h->doubt)
			return;
		h->silent = known ? 0 : h->job->rank[h->next].machine + 1;
		if (!known)
			rank_lost(h, h->next, STATUS_UNKNOWN);
		next_call(h);
	}
}

/* What has come is heard even if nothing can be written any more: it may say why. */
static int stream_serve(struct herald *h, struct channel *c)
{
	struct bulletin b;
	int written = channel_flush(c), rc;
	while ((rc = channel_receive(c, &b)) > 0)
		hear(h, &b);
	if (!rc && !written)
		written = channel_flush(c);
	return rc ? rc : written;
}

static void next_serve(struct herald *h)
{
	if (h->out.fd >= 0) {
		int rc = stream_serve(h, &h->out);
		if (h->out.greeted) {
			h->recalled = false;
			h->silent = 0;
		}
		if (rc < 0)
			next_ended(h, rc);
	}
	if (h->out.fd >= 0 &&
	    job_rank_state(h->job, h->next) >= RANK_GONE) { /* a child of its may hold the stream */
		channel_close(&h->out);
		next_call(h);
	}
	if (h->recall && clock_ns() >= h->recall)
		next_call(h);
	next_doubt(h);
}

/* -- The others --------------------------------------------------------------------------- */

static bool in_room(struct herald *h)
{
	if (h->ins < h->rooms)
		return true;
	uint32_t rooms = 2 * h->rooms + 4;
	struct channel *in = realloc(h->in, rooms * sizeof *in);
	if (!in)
		return false;
	h->in = in;
	h->rooms = rooms;
	return true;
}

static bool in_welcome(const struct herald *h)
{
	return h->ins < 2 * h->job->size + STRANGERS;
}

static int in_take(struct herald *h)
{
	if (!in_room(h))
		return -ENOMEM;
	return channel_accept(&h->in[h->ins], h->listener, h->job, h->rank, h->silence);
}

static void in_accept(struct herald *h)
{
	int rc = -EAGAIN;
	while (in_welcome(h) && (rc = in_take(h)) == 0) {
		channel_send(&h->in[h->ins], &h->own);
		h->ins++;
	}
	h->wanting = rc != 0 && rc != -EAGAIN;
}

/* False if it is over, or nobody's. */
static bool in_serve(struct herald *h, struct channel *c)
{
	return stream_serve(h, c) >= 0 &&
	       (c->received || clock_ns() - c->begun < GREETING_S * UINT64_C(1000000000));
}

/* Whether somebody is to be looked after who may do nothing about it. */
static bool in_waits(const struct herald *h)
{
	if (h->wanting)
		return true;
	for (uint32_t i = 0; i < h->ins; i++)
		if (!h->in[i].received)
			return true;
	return false;
}

static void ins_serve(struct herald *h)
{
	in_accept(h);
	for (uint32_t i = 0; i < h->ins;)
		if (in_serve(h, &h->in[i]))
			i++;
		else {
			channel_close(&h->in[i]);
			h->in[i] = h->in[--h->ins];
		}
}

/* -- The thread --------------------------------------------------------------------------- */

static struct pollfd poll_of(const struct channel *c)
{
	return (struct pollfd){ .fd = c->fd, .events = (short)(POLLIN | (channel_waits(c) ? POLLOUT : 0)) };
}

static void herald_sleep(const struct herald *h)
{
	struct pollfd *p = calloc(h->ins + 3, sizeof *p);
	if (!p) {
		world_real.nap(BLIND_NS);
		return;
	}
	p[0] = (struct pollfd){ .fd = h->knock, .events = POLLIN };
	p[1] = (struct pollfd){ .fd = in_welcome(h) && !h->wanting ? h->listener : -1, .events = POLLIN };
	p[2] = poll_of(&h->out);
	for (uint32_t i = 0; i < h->ins; i++)
		p[3 + i] = poll_of(&h->in[i]);
	if (poll(p, h->ins + 3, h->doubt || h->recall || in_waits(h) ? ROUND_MS : -1) < 0)
		world_real.nap(BLIND_NS); /* the program may have fewer descriptors now than it had */
	free(p);
}

static bool all_written(const struct herald *h)
{
	bool written = h->out.fd < 0 || (h->out.greeted && !channel_waits(&h->out));
	for (uint32_t i = 0; i < h->ins; i++)
		written &= !h->in[i].greeted || !channel_waits(&h->in[i]);
	return written;
}

static void *herald_main(void *arg)
{
	struct herald *h = arg;
	next_call(h);
	for (;;) {
		uint64_t asked = atomic_load(&h->asked);
		loopback_drain(h->knock);
		say_news(h);
		next_serve(h);
		ins_serve(h);
		if (all_written(h))
			atomic_store(&h->done, asked);
		herald_sleep(h);
	}
	return NULL;
}

void herald_settle(void)
{
	struct herald *h = the_herald;
	if (!h || h->pid != getpid()) /* a child has no thread */
		return;
	uint64_t ticket = atomic_fetch_add(&h->asked, 1) + 1, end = clock_ns() + SETTLE_NS;
	while (atomic_load(&h->done) < ticket && clock_ns() < end) {
		loopback_knock((uint16_t)atomic_load(&h->job->rank[h->rank].herald));
		world_real.nap(NAP_NS);
	}
}

int herald_open(int *listener, struct sockaddr_in6 *address)
{
	char why[200] = "";
	if (!channel_usable(why, sizeof why))
		return error_set(-ENOTSUP, "ranks on several machines cannot be joined: %s", why);
	int rc = address_choose(address, true);
	if (rc)
		return rc;
	*listener = channel_listen(address);
	if (*listener >= 0)
		return 0;
	return address_refused(address, *listener, "opening a socket for the ranks of other machines");
}

static int herald_fill(struct herald *h, struct job *job, uint32_t rank, const struct sockaddr_in6 *address)
{
	uint16_t port = 0;
	h->job = job;
	h->pid = getpid();
	h->rank = h->next = rank;
	h->out.fd = -1;
	h->address = calloc(job->size, sizeof *h->address);
	h->said = calloc(job->size, sizeof *h->said);
	h->deaths = calloc(job->size, sizeof *h->deaths);
	h->knock = loopback_listen(&port);
	if (!h->address || !h->said || !h->deaths || h->knock < 0)
		return h->knock < 0 ? h->knock : -ENOMEM;
	memcpy(h->address, address, job->size * sizeof *address);
	bulletin_read(job, rank, &h->own);
	atomic_store(&job->rank[rank].herald, port);
	return 0;
}

static void herald_free(struct herald *h)
{
	if (h->knock >= 0)
		close(h->knock);
	free(h->address);
	free(h->said);
	free(h->deaths);
	free(h);
}

static int herald_start(struct herald *h, struct job *job, uint32_t rank, const struct sockaddr_in6 *address)
{
	pthread_t thread;
	int rc = herald_fill(h, job, rank, address);
	if (!rc)
		rc = thread_start(&thread, herald_main, h);
	if (rc) {
		atomic_store(&job->rank[rank].herald, 0); /* nobody is to knock */
		return error_set(rc, "starting the thread that talks with other machines: %s", strerror(-rc));
	}
	pthread_detach(thread);
	return 0;
}

int herald_begin(struct job *job, uint32_t rank, int listener, const struct sockaddr_in6 *address)
{
	struct herald *h = calloc(1, sizeof *h);
	if (!h)
		return error_set(-ENOMEM, "starting the thread that talks with other machines: no memory");
	h->listener = listener;
	h->knock = -1;
	int rc = setting_number(SETTING_KEEPALIVE, &h->silence);
	if (!rc)
		rc = herald_start(h, job, rank, address);
	if (rc)
		herald_free(h);
	else
		the_herald = h;
	return rc;
}
