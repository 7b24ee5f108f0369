/* SPDX-License-Identifier: BSD-3-Clause */
/* What a host's keeper hears from its launcher, and tells it. Only up_end() blocks. */
#include "tools/run/up.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/kernel.h"
#include "base/setting.h"
#include "job/exchange.h"
#include "open/nets.h"

/* -- Beginning -------------------------------------------------------------------------- */

static bool job_divide(struct job *job, const struct run_options *o)
{
	uint32_t *machine = calloc(o->total, sizeof *machine);
	if (!machine)
		return false;
	for (uint32_t i = 0, r = 0; i < o->order.host_count; i++)
		for (uint32_t n = 0; n < o->order.share[i]; n++)
			machine[r++] = i;
	job_spread(job, machine, o->order.host, o->order.host_count);
	job_identify(job, o->order.id, o->order.key);
	free(machine);
	return true;
}

int up_open(struct up *u, struct job *job, const struct run_options *o)
{
	uint16_t port = 0;
	uint64_t keepalive;
	int rc = setting_number(SETTING_KEEPALIVE, &keepalive);
	if (rc)
		return rc;
	u->job = job;
	job->watches = true;
	u->input = -1;
	u->told = calloc(o->total, sizeof *u->told);
	u->notice = loopback_listen(&port);
	rc = u->notice < 0 ? u->notice : u->told && job_divide(job, o) ? 0 : -ENOMEM;
	if (rc)
		return error_set(rc, "listening for news of the ranks here: %s", strerror(-rc));
	for (uint32_t r = 0; r < o->total; r++) /* the launcher knows that they begin */
		u->told[r] = atomic_load(&job->rank[r].serial) + 1;
	atomic_store(&job->head->notice, port);
	keepalive_begin(&u->silence, keepalive);
	return 0;
}

int up_input(struct up *u)
{
	int in[2];
	if (pipe2(in, O_CLOEXEC) != 0)
		return -errno;
	fcntl(in[1], F_SETFL, O_NONBLOCK);
	u->input = in[1];
	return in[0];
}

void up_begin(struct up *u)
{
	if (u->input >= 0)
		wire_send(&u->wire, FRAME_TAKEN, NULL, 0); /* ready for the first piece */
	if (u->job->head->machines > 1)
		wire_send_number(&u->wire, FRAME_FABRIC, nets_fabric_here());
}

/* -- What comes in ---------------------------------------------------------------------- */

static void input_close(struct up *u)
{
	if (u->input >= 0)
		close(u->input);
	u->input = -1;
}

/* The launcher sends the next piece when this one is taken, so signals never wait behind input. */
static void input_write(struct up *u)
{
	struct buffer *b = &u->pending;
	while (u->input >= 0 && b->at < b->len) {
		ssize_t n = write(u->input, b->bytes + b->at, b->len - b->at);
		if (n > 0)
			b->at += (size_t)n;
		else if (n < 0 && errno == EAGAIN)
			return;
		else if (n < 0 && errno != EINTR)
			input_close(u); /* rank 0 reads no more */
	}
	if (u->input >= 0 && b->len) {
		b->at = b->len = 0;
		wire_send(&u->wire, FRAME_TAKEN, NULL, 0);
	}
}

static void input_take(struct up *u, const struct frame *f)
{
	struct buffer *b = &u->pending;
	if (!f->len || u->input < 0) {
		input_close(u);
		return;
	}
	b->at = b->len = 0;
	if (!buffer_reserve(b, f->len)) {
		u->wire.error = ENOMEM;
		return;
	}
	memcpy(b->bytes, f->data, f->len);
	b->len = f->len;
	input_write(u);
}

static bool record_take(struct up *u, const struct frame *f)
{
	struct rank_status b;
	if (f->len != sizeof b)
		return false;
	memcpy(&b, f->data, sizeof b);
	return rank_status_take(u->job, &b) != RANK_STATUS_NONSENSE;
}

/* Anything but a signal, which is the keeper's. */
static void up_frame(struct up *u, const struct frame *f)
{
	int32_t number;
	if (f->type == FRAME_INPUT)
		input_take(u, f);
	else if (f->type == FRAME_ALIVE)
		wire_send(&u->wire, FRAME_ALIVE, NULL, 0);
	else if (f->type == FRAME_FABRIC && frame_number(f, &number))
		job_fabric_agreed(u->job, number);
	else if (f->type != FRAME_RANK_STATUS || !record_take(u, f))
		u->wire.error = EPROTO;
}

bool up_signal(struct up *u, int *signal)
{
	struct frame f;
	int32_t number = 0;
	while (wire_next(&u->wire, &f))
		if (f.type == FRAME_END || (f.type == FRAME_SIGNAL && frame_number(&f, &number) &&
					    number > 0 && number < SIGRTMIN)) {
			*signal = f.type == FRAME_END ? 0 : number;
			return true;
		} else {
			up_frame(u, &f);
		}
	return false;
}

/* -- What goes out ---------------------------------------------------------------------- */

/* Whether or not a byte came: a loopback that is down, or full, loses it. */
static void up_tell(struct up *u)
{
	struct rank_status b;
	loopback_drain(u->notice);
	while (rank_status_news(u->job, u->told, &b))
		wire_send(&u->wire, FRAME_RANK_STATUS, &b, sizeof b);
}

void up_polls(const struct up *u, struct pollfd *p)
{
	p[0] = (struct pollfd){ .fd = u->wire.from, .events = POLLIN };
	p[1] = (struct pollfd){ .fd = wire_backlog(&u->wire) ? u->wire.to : -1, .events = POLLOUT };
	p[2] = (struct pollfd){ .fd = u->pending.len ? u->input : -1, .events = POLLOUT };
	p[3] = (struct pollfd){ .fd = u->notice, .events = POLLIN };
}

bool up_serve(struct up *u)
{
	size_t before = buffer_backlog(&u->wire.in);
	wire_flush(&u->wire);
	input_write(u);
	up_tell(u);
	bool there = wire_read(&u->wire);
	if (buffer_backlog(&u->wire.in) > before)
		keepalive_heard(&u->silence);
	return there && !u->wire.error && !keepalive_expired(&u->silence);
}

void up_end(struct up *u, int status)
{
	struct pollfd p = { .fd = u->wire.to, .events = POLLOUT };
	up_tell(u); /* how the last of them ended */
	wire_send_number(&u->wire, FRAME_OVER, status);
	while (wire_backlog(&u->wire) && poll(&p, 1, -1) >= 0)
		wire_flush(&u->wire);
}
