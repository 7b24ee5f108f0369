/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading TERN_FAULT, and a wire that does what it says: see fault.h. */
#include "net/fault/fault.h"

#include <errno.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/chance.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/memory.h"
#include "base/setting.h"
#include "net/packet/service.h"

enum kind { RATE, MICROSECONDS, SEED };

static const struct word {
	const char *name;
	enum kind kind;
	size_t at;
} words[] = {
	{ "drop", RATE, offsetof(struct plan, drop) },
	{ "duplicate", RATE, offsetof(struct plan, duplicate) },
	{ "reorder", RATE, offsetof(struct plan, reorder) },
	{ "delay", RATE, offsetof(struct plan, delay) },
	{ "corrupt", RATE, offsetof(struct plan, corrupt) },
	{ "truncate", RATE, offsetof(struct plan, truncate) },
	{ "partition", RATE, offsetof(struct plan, partition) },
	{ "late", MICROSECONDS, offsetof(struct plan, late_ns) },
	{ "partition-time", MICROSECONDS, offsetof(struct plan, partition_ns) },
	{ "slow", MICROSECONDS, offsetof(struct plan, slow_ns) },
	{ "seed", SEED, offsetof(struct plan, seed) },
};
enum { WORDS = sizeof words / sizeof *words };

static const struct word *word_named(const char *text, size_t len)
{
	for (unsigned i = 0; i < WORDS; i++)
		if (strlen(words[i].name) == len && memcmp(words[i].name, text, len) == 0)
			return &words[i];
	return NULL;
}

static bool value_set(struct plan *p, const struct word *w, const char *text, char **end)
{
	void *to = (char *)p + w->at;
	errno = 0;
	if (w->kind == SEED) {
		*(uint64_t *)to = strtoull(text, end, 0);
		p->seeded = true;
		return *end != text && !errno;
	}
	double value = strtod(text, end);
	if (*end == text || !(value >= 0) || value > (w->kind == RATE ? 1 : 1e9))
		return false;
	if (w->kind == RATE)
		*(uint32_t *)to = value < 1 ? (uint32_t)(value * 4294967296.0) : UINT32_MAX;
	else
		*(uint64_t *)to = (uint64_t)(value * 1000);
	return true;
}

/* `text` is what was not understood, and whatever follows. */
static int plan_refuse(const struct word *w, const char *text)
{
	int len = (int)strcspn(text, ",");
	if (!w)
		return error_set(
			-EINVAL,
			"TERN_FAULT has '%.*s'; there are drop, "
			"duplicate, reorder, delay, corrupt, truncate and partition (of 0 to 1), "
			"late, partition-time and slow (in microseconds), "
			"and seed, each with = and a number, and commas between them",
			len, text);
	return error_set(-EINVAL, "TERN_FAULT has '%.*s'; %s is %s, as in %s", len, text, w->name,
			 w->kind == RATE           ? "the part of all packets, 0 to 1"
			 : w->kind == MICROSECONDS ? "a time in microseconds, 0 to 1e9"
						   : "a whole number",
			 w->kind == RATE           ? "drop=0.01,reorder=0.05"
			 : w->kind == MICROSECONDS ? "delay=0.1,late=500"
						   : "drop=0.01,seed=42");
}

int plan_read(struct plan *p, const char *text)
{
	*p = (struct plan){ .late_ns = 1000000, .partition_ns = 20000000 };
	while (*text) {
		size_t len = strcspn(text, "=,");
		const struct word *w = word_named(text, len);
		char *end = NULL;
		if (!w || text[len] != '=' || !value_set(p, w, text + len + 1, &end) ||
		    (*end && *end != ','))
			return plan_refuse(w, text);
		text = *end ? end + 1 : end;
	}
	return 0;
}

int plan_judge(const struct plan *p, bool checked)
{
	if (checked || (!p->corrupt && !p->truncate))
		return 0;
	return error_set(
		-EINVAL,
		"TERN_FAULT has %s, but TERN_PROTECT is none, "
		"so nobody would notice, and wrong data would be delivered: take TERN_PROTECT=auth",
		p->corrupt ? "corrupt" : "truncate");
}

enum {
	LATE = 64,               /* datagrams that may be late at once */
	REORDER_NS = 200000,     /* how late one is at most that is overtaken */
	QUEUE_NS = 20 * 1000000, /* what waits on a slow wire: more of it is lost */
};

/* A copy that is sent later than it should be. */
struct late {
	bool used;
	uint64_t due;
	struct outgoing outgoing; /* but for its parts */
	size_t len;
	unsigned char bytes[DATAGRAM_MAX];
};

struct fault {
	struct wire_ops ops; /* first: the wire's, in place of */
	const struct wire_ops *inner;
	struct wire *wire;
	struct plan plan;
	struct chance chance;
	uint64_t *cut;  /* until when nothing gets to a rank */
	uint64_t clear; /* when a slow wire is free again */
	/* LATE of them, and one for what is damaged: too large for a thread's stack. */
	struct late *late;
	uint64_t due; /* of the first of them */
};

static bool resting;

void fault_rest(bool rest)
{
	resting = rest;
}

static struct fault *fault_of(const struct wire *w)
{
	return (struct fault *)(uintptr_t)w->ops;
}

static bool happens(struct fault *f, uint32_t rate)
{
	return rate && (uint32_t)chance_next(&f->chance) < rate;
}

/* In place of `o`, whose parts are not looked at. */
static void send_bytes(struct fault *f, const struct outgoing *o, unsigned char *bytes, size_t len)
{
	struct iovec part = { bytes, len };
	struct outgoing now = *o;
	now.part = &part;
	now.parts = 1;
	f->inner->send(f->wire, &now, 1);
}

static void late_release(struct fault *f, uint64_t now)
{
	if (now < f->due)
		return;
	f->due = DUE_NEVER;
	for (unsigned i = 0; i < LATE; i++) {
		struct late *l = &f->late[i];
		if (l->used && l->due <= now) {
			send_bytes(f, &l->outgoing, l->bytes, l->len);
			l->used = false;
		}
		if (l->used && l->due < f->due)
			f->due = l->due;
	}
}

/* Lost if too many are late already. */
static void late_add(struct fault *f, const struct outgoing *o, uint64_t due)
{
	for (unsigned i = 0; i < LATE; i++) {
		struct late *l = &f->late[i];
		if (l->used)
			continue;
		l->used = true;
		l->due = due;
		l->outgoing = *o;
		l->len = outgoing_copy(l->bytes, o);
		f->due = due < f->due ? due : f->due;
		return;
	}
}

static void send_damaged(struct fault *f, const struct outgoing *o, bool cut)
{
	unsigned char *bytes = f->late[LATE].bytes;
	size_t len = outgoing_copy(bytes, o);
	if (cut)
		len = chance_below(&f->chance, (uint32_t)len);
	else
		bytes[chance_below(&f->chance, (uint32_t)len)] ^=
			(unsigned char)(1 << chance_below(&f->chance, 8));
	send_bytes(f, o, bytes, len);
}

static bool partitioned(struct fault *f, uint32_t rank, uint64_t now)
{
	if (happens(f, f->plan.partition) && f->cut[rank] < now)
		f->cut[rank] = now + f->plan.partition_ns;
	return now < f->cut[rank];
}

/* When a slow wire lets it through; 0: it has too long a queue. */
static uint64_t slow_leaves(struct fault *f, uint64_t now)
{
	uint64_t leaves = f->clear > now ? f->clear : now;
	if (leaves - now > QUEUE_NS)
		return 0;
	f->clear = leaves + f->plan.slow_ns;
	return leaves;
}

/* False if it goes as it is, now. */
static bool harm(struct fault *f, const struct outgoing *o, uint64_t now)
{
	const struct plan *p = &f->plan;
	uint64_t leaves = p->slow_ns ? slow_leaves(f, now) : now;
	if (partitioned(f, o->rank, now) || happens(f, p->drop) || !leaves)
		return true;
	if (happens(f, p->duplicate))
		late_add(f, o, leaves + chance_below(&f->chance, REORDER_NS));
	if (happens(f, p->corrupt))
		send_damaged(f, o, false);
	else if (happens(f, p->truncate))
		send_damaged(f, o, true);
	else if (happens(f, p->reorder))
		late_add(f, o, leaves + chance_below(&f->chance, REORDER_NS));
	else if (happens(f, p->delay))
		late_add(f, o, leaves + chance_below(&f->chance, (uint32_t)p->late_ns + 1));
	else if (leaves > now)
		late_add(f, o, leaves);
	else
		return false;
	return true;
}

static void fault_send(struct wire *w, const struct outgoing *o, unsigned n)
{
	struct fault *f = fault_of(w);
	uint64_t now = clock_ns();
	struct outgoing well[PACKET_BATCH];
	unsigned wells = 0;
	late_release(f, now);
	for (unsigned i = 0; i < n; i++)
		if (resting || !harm(f, &o[i], now))
			well[wells++] = o[i];
	if (wells)
		f->inner->send(w, well, wells);
}

static unsigned fault_receive(struct wire *w, struct datagram *d, unsigned n)
{
	struct fault *f = fault_of(w);
	if (f->due != DUE_NEVER)
		late_release(f, clock_ns());
	return f->inner->receive(w, d, n);
}

static uint64_t fault_due(struct wire *w)
{
	struct fault *f = fault_of(w);
	uint64_t due = f->inner->due(w);
	return due < f->due ? due : f->due;
}

static void fault_free(struct fault *f)
{
	if (!f)
		return;
	free(f->cut);
	memory_free(f->late);
	free(f);
}

static void fault_close(struct wire *w)
{
	struct fault *f = fault_of(w);
	w->ops = f->inner;
	w->ops->close(w);
	fault_free(f);
}

static int fault_new(struct fault **out, uint32_t size)
{
	struct fault *f = calloc(1, sizeof *f);
	if (f) {
		f->cut = calloc(size, sizeof *f->cut);
		f->late = memory_new(LATE + 1, sizeof *f->late);
	}
	if (!f || !f->cut || !f->late) {
		fault_free(f);
		return error_set(-ENOMEM, "TERN_FAULT: no memory");
	}
	*out = f;
	return 0;
}

int fault_wrap(struct wire *w, uint32_t rank, uint32_t size)
{
	const char *text = setting_text(SETTING_FAULT);
	struct plan plan;
	struct fault *f = NULL;
	if (!*text)
		return 0;
	int rc = plan_read(&plan, text);
	if (!rc)
		rc = fault_new(&f, size);
	if (rc)
		return rc;
	if (!plan.seeded)
		plan.seed = clock_ns();
	if (rank == 0)
		error_warn("TERN_FAULT: things go wrong on purpose, with seed=%llu",
			   (unsigned long long)plan.seed);
	f->ops = *w->ops;
	f->ops.room = NULL;
	f->ops.send = fault_send;
	f->ops.receive = fault_receive;
	f->ops.due = fault_due;
	f->ops.close = fault_close;
	f->inner = w->ops;
	f->wire = w;
	f->plan = plan;
	f->chance.state = plan.seed ^ (rank + 1) * UINT64_C(0x9e3779b97f4a7c15);
	f->due = DUE_NEVER;
	w->ops = &f->ops;
	w->provides = 0;
	return 0;
}

bool fault_in(const struct wire *w)
{
	return w->ops->send == fault_send;
}

int fault_judge(const struct wire *w, bool checked)
{
	return fault_in(w) ? plan_judge(&fault_of(w)->plan, checked) : 0;
}
