/* SPDX-License-Identifier: BSD-3-Clause */
/* Opens a running job's memory to look at it, and reads what its ranks do. */
#include "tools/watch/watch.h"

#include <stdio.h>

#include "base/clock.h"
#include "base/world.h"
#include "endpoint/handler.h"
#include "net/talk.h"

enum { LOOKS = 6, LOOK_NS = 1000000 };

const struct stats *watch_stats(const struct watch *w, uint32_t rank)
{
	if (!atomic_load_explicit(&w->job.pulse[rank].counting, memory_order_acquire))
		return NULL;
	return job_stats(&w->job, rank);
}

/* -- Queues ------------------------------------------------------------------------------ */

/* A walk over what lies in a ring, as its consumer would go. */
struct stroll {
	struct ring_memory in,
		larger;        /* the ring that it is in, and the one that it may go on in */
	uint64_t leaf, first;  /* where it is, where it began */
	size_t at;             /* bytes from the ring's beginning */
	uint64_t count, later; /* messages, and those of them behind the first leaf */
	unsigned last;         /* handler of the last one */
};

static size_t leaf_bytes(const struct stroll *s)
{
	return (size_t)s->in.leaf_lines * TERN_LINE;
}

/* Behind a control header; false if nothing can lie there. */
static bool stroll_advance(struct stroll *s, unsigned control)
{
	if (control == CONTROL_GROW && !s->larger.lines)
		return false;
	if (control == CONTROL_GROW) {
		s->in = s->larger;
		s->larger.lines = NULL;
	}
	s->leaf++;
	s->at = s->leaf % RING_LEAVES * leaf_bytes(s);
	return s->leaf < s->first + 2 * RING_LEAVES;
}

/* False when nothing more lies there. */
static bool stroll_step(struct stroll *s)
{
	if (s->at % TERN_PIECE || s->at > RING_LEAVES * leaf_bytes(s) - TERN_PIECE)
		return false; /* no ring goes on there: its memory was written over */
	const tern_msg *m = (const tern_msg *)(const void *)(s->in.lines + s->at);
	uint64_t head = atomic_load_explicit(&m->head, memory_order_relaxed);
	if ((head ^ ring_lap_of(s->leaf, 0)) >> TERN_LAP_SHIFT)
		return false;
	bool two = head_double(head);
	unsigned control = (unsigned)(head >> TERN_ID_SHIFT) % TERN_HANDLER_SLOTS;
	if (head & TERN_HEAD_CONTROL && !two &&
	    (control == CONTROL_NEXT || control == CONTROL_GROW))
		return stroll_advance(s, control);
	if (!(head & TERN_HEAD_CONTROL) || two) {
		s->count++;
		s->later += s->leaf > s->first;
		s->last = (unsigned)(head >> TERN_ID_SHIFT) % TERN_HANDLER_SLOTS;
	}
	if (head & TERN_HEAD_CONTROL && !two)
		s->at += TERN_LINE - s->at % TERN_LINE; /* behind a pad */
	else
		s->at += message_bytes(m, head);
	return true;
}

/* Where the inlet stands, if its rank says so; else the beginning of the leaf it is in. */
static struct stroll stroll_begin(const struct watch *w, uint32_t from, uint32_t to, bool *exact)
{
	/* A rank says where it stands in the rings of ranks, and not of workers. */
	const struct stats *stats = from < w->job.size ? watch_stats(w, to) : NULL;
	uint64_t stands = stats ? stats_get(&stats->peer[from].requests_at) : 0;
	char *base = w->job.base;
	struct small_talk *k = (void *)(base + job_small_at(&w->job, from, to));
	struct rings small = small_rings(k),
		     larger = large_rings(k, (void *)(base + job_talk_at(&w->job, from, to)));
	struct stroll s = { .in = small.requests };
	/* Of a ring that has not grown, the larger memory is a hole, which a look would fill. */
	if (stats_get(larger.requests.freed))
		s.larger = larger.requests;
	if (stats_get(s.in.freed) == RING_MOVED && s.larger.lines) {
		s.in = s.larger;
		s.larger.lines = NULL;
	}
	s.leaf = s.first = stats_get(s.in.freed);
	*exact = stats != NULL;
	s.at = stats && stands >> 32 == (uint32_t)s.leaf ? (uint32_t)stands
							 : s.leaf % RING_LEAVES * leaf_bytes(&s);
	return s;
}

struct queue watch_queue(const struct watch *w, uint32_t from, uint32_t to)
{
	bool exact;
	if (!(atomic_load_explicit(&w->job.begun[to * w->job.heed_row + from],
				   memory_order_acquire) &
	      TALK_BEGUN))
		return (struct queue){ .exact = true };
	struct stroll s = stroll_begin(w, from, to, &exact);
	size_t most = RING_LEAVES * REQUEST_LEAF_LINES * (TERN_LINE / TERN_PIECE);
	for (size_t i = 0; i < most && stroll_step(&s); i++)
		;
	exact |= !s.count;
	return (struct queue){ exact ? s.count : s.later, exact, s.last };
}

void watch_handler(const struct watch *w, unsigned id, char text[HANDLER_TEXT])
{
	char name[JOB_NAME];
	handler_number(id, "user", job_name_get(&w->job, id, name) ? name : NULL, text);
}

/* -- Ranks ------------------------------------------------------------------------------- */

/* The memory may have been written over. */
static uint32_t members_of(const struct watch *w)
{
	uint32_t members = job_members(&w->job), most = w->job.size + w->job.seats;
	return members < most ? members : most;
}

static void view_queue(const struct watch *w, uint32_t rank, struct rank_view *s)
{
	s->queue_exact = true;
	for (uint32_t from = 0; from < members_of(w); from++) {
		struct queue q = watch_queue(w, from, rank);
		s->queue += q.count;
		s->queue_exact &= q.exact;
		s->queue_last = q.count ? q.last : s->queue_last;
	}
}

/* What it has sent is what others say that they have handled. */
static void view_sent(const struct watch *w, uint32_t rank, struct rank_view *s)
{
	const struct stats *own = watch_stats(w, rank);
	for (uint32_t r = 0; r < w->job.size; r++) {
		const struct stats *theirs = watch_stats(w, r);
		if (theirs)
			s->sent += stats_get(&theirs->peer[rank].requests) +
				   stats_get(&theirs->peer[rank].replies);
		if (own)
			s->bytes += stats_get(&own->peer[r].bytes);
	}
}

/* A number that is none is that of a rank whose memory was written over. */
static enum rank_state state_of(const struct watch *w, uint32_t rank)
{
	enum rank_state state = job_rank_state(&w->job, rank);
	return state <= RANK_DEAD ? state : RANK_DEAD;
}

/* `rank` may be a worker. */
static void view_wait(const struct watch *w, uint32_t rank, struct rank_view *s)
{
	s->waits = pulse_read(job_pulse(&w->job, rank), &s->wait);
	s->wait.known &= s->wait.whom < w->job.size;
}

static void view_count(struct rank_view *s, const struct pulse *p)
{
	s->served += stats_get(&p->served);
	for (int i = 0; i < PULSE_COUNTS; i++) {
		uint64_t n = stats_get(&p->count[i]);
		s->count[i] = i != PULSE_DEFERRED ? s->count[i] + n
			      : n > s->count[i]   ? n
						  : s->count[i];
	}
}

/* What its workers have counted is the rank's. */
static void view_workers(const struct watch *w, uint32_t rank, struct rank_view *s)
{
	for (uint32_t m = w->job.size; m < members_of(w); m++)
		if (job_member_rank(&w->job, m) == rank)
			view_count(s, job_pulse(&w->job, m));
}

static void view_take(const struct watch *w, uint32_t rank, struct rank_view *s)
{
	const struct pulse *p = &w->job.pulse[rank];
	uint32_t session = atomic_load(
		&w->job.head->session); /* first: counts are made 0 before it is raised */
	*s = (struct rank_view){ .state = state_of(w, rank),
				 .rank = rank,
				 .pid = atomic_load(&w->job.rank[rank].pid),
				 .session = session,
				 .counting = watch_stats(w, rank) != NULL };
	view_count(s, p);
	view_workers(w, rank, s);
	s->elsewhere = !job_here(&w->job, rank);
	if (s->elsewhere && s->state == RANK_OPEN)
		s->state = RANK_EXPECTED;
	if (s->state != RANK_OPEN)
		return;
	s->hold = pulse_holds(p);
	view_queue(w, rank, s);
	view_sent(w, rank, s);
}

/* `view` has those of the ranks already: a worker is open only while its rank is. */
static void worker_take(const struct watch *w, uint32_t member, struct rank_view *view)
{
	struct rank_view *s = &view[member];
	uint32_t rank = member < members_of(w) ? job_member_rank(&w->job, member) : w->job.size;
	*s = (struct rank_view){ .state = RANK_EXPECTED, .rank = rank };
	if (rank >= w->job.size || view[rank].state != RANK_OPEN ||
	    !atomic_load(&job_seat(&w->job, member)->id))
		return;
	s->state = RANK_OPEN;
	s->session = view[rank].session;
	s->pid = view[rank].pid;
	s->hold = pulse_holds(job_pulse(&w->job, member));
	view_count(s, job_pulse(&w->job, member));
}

uint64_t view_growth(const struct rank_view *now, const struct rank_view *before, uint64_t n,
		     uint64_t then)
{
	if (now->session != before->session)
		return n;
	return n > then ? n - then : 0;
}

uint64_t view_dropped(const struct rank_view *s)
{
	uint64_t sum = 0;
	for (int i = PULSE_PACKETS_DROPPED; i < PULSE_COUNTS; i++)
		sum += s->count[i];
	return sum;
}

void watch_look(const struct watch *w, struct rank_view *view)
{
	for (uint32_t r = 0; r < w->job.size; r++)
		view_take(w, r, &view[r]);
	for (uint32_t m = w->job.size; m < watch_most(w); m++)
		worker_take(w, m, view);
	for (int i = 0; i < LOOKS; i++) {
		for (uint32_t r = 0; r < watch_most(w); r++)
			if (view[r].state == RANK_OPEN && !view[r].waits)
				view_wait(w, r, &view[r]);
		world_nap(LOOK_NS);
	}
}

const char *watch_state(const struct rank_view *s)
{
	static const char *const other[] = { [RANK_EXPECTED] = "not open",
					     [RANK_OPEN] = "computing",
					     [RANK_CLOSED] = "closed",
					     [RANK_GONE] = "ended",
					     [RANK_DEAD] = "dead" };
	if (s->waits)
		return s->wait.asleep ? "asleep" : "waiting";
	return s->elsewhere && s->state == RANK_EXPECTED ? "on another machine" : other[s->state];
}

void watch_age(uint64_t since, char *text, size_t room)
{
	uint64_t now = clock_ns(), ns = now > since ? now - since : 0;
	if (ns < UINT64_C(1000000000))
		snprintf(text, room, "%u ms", (unsigned)(ns / 1000000));
	else
		snprintf(text, room, "%llu s", (unsigned long long)(ns / 1000000000));
}
