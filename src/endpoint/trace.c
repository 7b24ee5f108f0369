/* SPDX-License-Identifier: BSD-3-Clause */
/* Writes what an endpoint does to a file, through a buffer of records. */
#include "endpoint/trace.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/file.h"
#include "base/setting.h"
#include "endpoint/handler.h"

enum {
	ROOM = 8192, /* records */
	/* Waits inside waits, by deferred functions; deeper ones are not recorded. */
	DEPTH_MOST = 8,
	SLOW_NS = 100000000, /* a flush that took longer has met a slow disk, */
	SLOW_PAUSE = 9,      /* and for so many times its time there is no other */
	PATH_MOST = 4096,
};

/* A wait that has begun, and when its last step was over. */
struct open_wait {
	bool begun;
	uint16_t what, thread;
	uint32_t call;
	uint64_t last;
};

/* Messages to and from a rank, requests and replies apart. */
struct counts {
	uint32_t sent[2], handled[2];
};

struct trace {
	uint32_t held;               /* records that the file has not taken whole */
	struct trace_record nowhere; /* takes what is dropped */
	uint32_t dropped;            /* and not told yet */
	uint64_t lost;               /* dropped in all */
	uint32_t barriers;
	struct delivery last;
	bool returning; /* the handler of `last` has, and that is not recorded yet */
	unsigned depth; /* steps of waits that this thread is in */
	bool barrier;   /* in one: its own waits are not recorded apart */
	struct open_wait wait[DEPTH_MOST + 1];
	int fd;
	size_t taken;    /* bytes of them that it has taken */
	uint64_t resume; /* no flush before this */
	int error;       /* of the file: from then on everything is dropped */
	const struct world *world;
	char call[RECORD_CALLS][RECORD_NAME_MOST + 1]; /* names that were written, */
	uint32_t calls;                                /* so many */
	char path[PATH_MOST];
	struct trace_record record[ROOM];
	struct counts peer[]; /* one a rank */
};

/* -- The records and the file ------------------------------------------------------------ */

/* Writes until the file takes no more for now. */
static void trace_write(struct trace *r)
{
	size_t bytes = r->held * sizeof *r->record;
	while (r->taken < bytes) {
		ssize_t wrote = file_append(r->fd, (char *)r->record + r->taken, bytes - r->taken);
		if (wrote >= 0)
			r->taken += (size_t)wrote;
		else if (errno != EINTR)
			break;
	}
	if (r->taken < bytes && errno != EAGAIN)
		r->error = errno;
}

void trace_flush(struct trace *r)
{
	uint64_t began = r->world->now();
	if (r->error || began < r->resume)
		return;
	trace_write(r);
	uint32_t whole = (uint32_t)(r->taken / sizeof *r->record);
	r->held -= whole;
	r->taken %= sizeof *r->record;
	if (whole)
		memmove(r->record, r->record + whole, r->held * sizeof *r->record);
	uint64_t took = r->world->now() - began;
	if (took > SLOW_NS)
		r->resume = began + took + took * SLOW_PAUSE;
}

static struct trace_record *records_next(struct trace *r)
{
	return &r->record[r->held++];
}

/* Room for `n` records, after a flush if need be. */
static bool records_have_room(struct trace *r, unsigned n)
{
	if (TERN_UNLIKELY(r->held + n > ROOM))
		trace_flush(r);
	return r->held + n <= ROOM;
}

/* What was dropped is told before what comes next. */
static void trace_tell_dropped(struct trace *r, uint64_t now)
{
	*records_next(r) = (struct trace_record){ .time = now,
						  .sequence = r->dropped,
						  .kind = RECORD_DROPPED };
	r->dropped = 0;
}

/* Where the next record goes, which happened `now`: into the buffer, or nowhere. */
static inline struct trace_record *trace_next(struct trace *r, uint64_t now)
{
	if (TERN_UNLIKELY(
		    !records_have_room(r, 2))) { /* two: one may be the count of those dropped */
		r->dropped++;
		r->lost++;
		return &r->nowhere;
	}
	if (TERN_UNLIKELY(r->dropped))
		trace_tell_dropped(r, now);
	return records_next(r);
}

/* Of a kind that needs no more than a number. */
static void trace_mark(struct trace *r, uint64_t now, enum record_kind kind, uint32_t sequence)
{
	*trace_next(r, now) =
		(struct trace_record){ .time = now, .sequence = sequence, .kind = (uint8_t)kind };
}

/* False if there is no room for it. */
static bool name_write(struct trace *r, unsigned id, const char *name, uint32_t bytes)
{
	if (!records_have_room(r, 1 + record_name_places(bytes)))
		return false;
	*records_next(r) = (struct trace_record){ .time = r->world->now(),
						  .bytes = bytes,
						  .handler = (uint16_t)id,
						  .kind = RECORD_NAME };
	for (uint32_t at = 0; at < bytes; at += (uint32_t)sizeof(struct trace_record)) {
		struct trace_record *place = records_next(r);
		memset(place, 0, sizeof *place);
		memcpy(place, name + at, bytes - at < sizeof *place ? bytes - at : sizeof *place);
	}
	return true;
}

/* -- Calls and threads --------------------------------------------------------------------- */

/* The number of a call's name plus 1, or 0; "tern_recv() and more" is "tern_recv". */
static uint32_t call_number(struct trace *r, const char *call)
{
	char name[RECORD_NAME_MOST + 1] = "";
	size_t length = call ? strcspn(call, "(") : 0;
	memcpy(name, call ? call : "", length < RECORD_NAME_MOST ? length : RECORD_NAME_MOST);
	for (uint32_t i = 0; i < r->calls; i++)
		if (strcmp(r->call[i], name) == 0)
			return i + 1;
	if (!*name || r->calls == RECORD_CALLS ||
	    !name_write(r, TERN_HANDLER_SLOTS + r->calls, name, (uint32_t)strlen(name)))
		return 0;
	memcpy(r->call[r->calls++], name, sizeof name);
	return r->calls;
}

/* The light thread that runs; 0: the program. */
static uint16_t thread_now(const struct endpoint *e)
{
	uint64_t number = e->site.context ? e->site.context() : 0;
	return (uint16_t)(number ? (number - 1) % UINT16_MAX + 1 : 0);
}

static void trace_side(struct trace *r, uint64_t now, enum record_kind kind,
		       const struct open_wait *w)
{
	*trace_next(r, now) = (struct trace_record){ .time = now,
						     .bytes = w->call,
						     .peer = w->thread,
						     .handler = w->what,
						     .kind = (uint8_t)kind };
}

/* -- Waits ------------------------------------------------------------------------------- */

/* Ends the wait at this depth, if one has begun: something else happens, so it is over. */
static void trace_wait_end(struct trace *r)
{
	struct open_wait *w = &r->wait[r->depth < DEPTH_MOST ? r->depth : DEPTH_MOST];
	if (TERN_LIKELY(!w->begun))
		return;
	trace_side(r, w->last, RECORD_WAITED, w);
	w->begun = false;
}

static void trace_wait_begin(struct endpoint *e, enum wait_what what, const char *call, bool *begun)
{
	struct trace *r = e->trace;
	struct open_wait *w = &r->wait[r->depth];
	if (w->begun && *begun)
		return;
	trace_wait_end(r);
	*begun = true;
	*w = (struct open_wait){ .begun = true,
				 .what = (uint16_t)what,
				 .thread = thread_now(e),
				 .call = call_number(r, call) };
	w->last = r->world->now();
	trace_side(r, w->last, RECORD_WAIT, w);
}

void trace_step(struct endpoint *e, enum wait_what what, const char *call, bool *begun)
{
	struct trace *r = e->trace;
	if (r->depth < DEPTH_MOST && !r->barrier)
		trace_wait_begin(e, what, call, begun);
	r->depth++;
}

void trace_stepped(struct endpoint *e)
{
	struct trace *r = e->trace;
	trace_wait_end(r); /* one in a deferred function that this step ran */
	r->depth--;
	if (r->depth < DEPTH_MOST)
		r->wait[r->depth].last = r->world->now();
}

void trace_barrier(struct endpoint *e, enum record_kind kind)
{
	struct trace *r = e->trace;
	trace_wait_end(r);
	r->barrier = kind == RECORD_BARRIER;
	r->barriers += r->barrier;
	trace_mark(r, r->world->now(), kind, r->barriers);
}

void trace_call(struct endpoint *e, enum record_kind kind, const char *call)
{
	struct trace *r = e->trace;
	struct open_wait w = { .thread = thread_now(e), .call = call_number(r, call) };
	trace_wait_end(r);
	trace_side(r, r->world->now(), kind, &w);
}

/* -- Messages ---------------------------------------------------------------------------- */

void trace_send(struct endpoint *e, uint32_t dst, enum record_kind kind, const struct parcel *p)
{
	struct trace *r = e->trace;
	trace_wait_end(r);
	uint64_t now = r->world->now();
	*trace_next(r, now) = (struct trace_record){
		.time = now,
		.sequence = r->peer[dst].sent[kind == RECORD_REPLY]++,
		.bytes = (uint32_t)(p->n * sizeof(uint64_t) + p->len),
		.peer = (uint16_t)dst,
		.handler = (uint16_t)(p->bits >> TERN_ID_SHIFT) % TERN_HANDLER_SLOTS,
		.kind = (uint8_t)kind,
	};
}

/*
 * A handler has returned when the next one begins, or when the batch is over: there is only
 * the drain's loop between the two, and a look at the clock takes longer than that. The look
 * is the next one's, so that nothing is handled before it was sent.
 */
static void trace_returned(struct trace *r, uint64_t now)
{
	if (!r->returning)
		return;
	r->returning = false;
	*trace_next(r, now) = (struct trace_record){ .time = now,
						     .sequence = r->last.sequence,
						     .peer = r->last.peer,
						     .handler = r->last.handler,
						     .kind = RECORD_RETURN };
}

void trace_drained(struct endpoint *e)
{
	if (e->trace->returning)
		trace_returned(e->trace, e->trace->world->now());
}

struct delivery trace_arrived(struct endpoint *e, const tern_msg *m)
{
	struct trace *r = e->trace;
	bool reply = e->inlet->kind == TERN_KIND_REPLY;
	struct delivery d = { .peer = (uint16_t)tern_msg_src(m),
			      .handler = (uint16_t)handler_of(m) };
	size_t len;
	trace_wait_end(r);
	uint64_t now = r->world->now();
	tern_msg_data(m, &len);
	d.sequence = r->peer[d.peer].handled[reply]++;
	trace_returned(r, now);
	*trace_next(r, now) = (struct trace_record){
		.time = now,
		.sequence = d.sequence,
		.bytes = (uint32_t)(tern_msg_count(m) * sizeof(uint64_t) + len),
		.peer = d.peer,
		.handler = d.handler,
		.kind = reply ? RECORD_HANDLE_RE : RECORD_HANDLE,
	};
	return d;
}

void trace_handled(struct endpoint *e, struct delivery d)
{
	trace_wait_end(e->trace);
	e->trace->last = d;
	e->trace->returning = true;
}

void trace_name(struct endpoint *e, unsigned id, const char *name)
{
	name_write(e->trace, id, name, (uint32_t)strnlen(name, RECORD_NAME_MOST));
}

/* -- Opening and closing ----------------------------------------------------------------- */

static int trace_file_open(struct endpoint *e, struct trace *r, const char *prefix)
{
	struct trace_head h = {
		.record_bytes = sizeof(struct trace_record),
		.rank = e->t->rank,
		.size = e->t->size,
		.pid = (uint32_t)getpid(),
		.job = e->group->job.head->id,
		.time = r->world->now(),
	};
	memcpy(h.magic, TRACE_MAGIC, sizeof h.magic);
	snprintf(h.program, sizeof h.program, "%s", program_invocation_short_name);
	snprintf(r->path, sizeof r->path, "%s.%u", prefix, e->t->rank);
	errno = 0;
	/* Nonblocking: a pipe that nobody empties shall not stop the program. */
	r->fd = file_private(r->path, O_TRUNC | O_NONBLOCK);
	if (r->fd < 0 || file_append(r->fd, &h, sizeof h) != sizeof h)
		return error_set(errno ? -errno : -EIO, "TERN_TRACE: %s cannot be written: %s",
				 r->path, file_why(errno));
	return 0;
}

static void trace_free(struct trace *r)
{
	if (r->fd >= 0)
		close(r->fd);
	free(r);
}

int trace_open(struct endpoint *e)
{
	const char *prefix = setting_text(SETTING_TRACE);
	if (!*prefix)
		return 0;
	struct trace *r = calloc(1, sizeof *r + e->t->size * sizeof *r->peer);
	if (!r)
		return error_set(-ENOMEM, "tracing rank %u: no memory", e->t->rank);
	r->world = e->world;
	int rc = trace_file_open(e, r, prefix);
	if (rc) {
		trace_free(r);
		return rc;
	}
	e->trace = r;
	return 0;
}

void trace_close(struct endpoint *e)
{
	struct trace *r = e->trace;
	if (!r)
		return;
	trace_wait_end(r);
	r->resume = 0; /* the last flush is tried whatever the disk is like */
	trace_mark(r, r->world->now(), RECORD_CLOSE, 0);
	trace_flush(r);
	r->lost += r->held;
	if (r->lost)
		error_warn("%s lacks %llu events: %s", r->path, (unsigned long long)r->lost,
			   r->error ? strerror(r->error)
				    : "it was not written as fast as they happened");
	e->trace = NULL;
	trace_free(r);
}
