/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages and writes by a bare provider of libfabric. */
#include "lab/perf/fabric.h"

#include <errno.h>
#include <string.h>

#include <rdma/fi_tagged.h>

#include "base/error.h"
#include "base/setting.h"
#include "net/ofi/fabric.h"
#include "tern/mem.h"

enum { TAG = 7, SMALL = 256, BESIDE = 4, ADDRESS = 256 };

/* What one rank tells the other. */
struct visit {
	unsigned char address[ADDRESS];
	uint64_t base, key;
};

static struct fabric bare;
static fi_addr_t other;
static struct visit theirs;
static char *window;
static char small[2][SMALL]; /* what is sent, and what comes */
static struct fi_context2 send_context, receive_context, write_context[BESIDE];
static unsigned sends, receives, writes; /* that have ended */

static int bare_failed(const char *what, ssize_t rc)
{
	return error_set(-EIO, "%s by a bare provider of libfabric: %s", what,
			 bare.library ? bare.library->strerror((int)-rc) : "no library");
}

static int bare_expose(struct bench_rank *p, struct visit *mine)
{
	struct fid_mr *mr;
	void *memory; /* of the heap, too: its pages are small */
	int rc = tern_alloc(p->t, FABRIC_MOST, &memory);
	if (rc)
		return rc;
	window = memset(memory, 0, FABRIC_MOST);
	rc = fabric_register(&bare, window, FABRIC_MOST, FI_REMOTE_WRITE, &mr);
	if (rc)
		return rc;
	mine->base = fabric_asks(&bare, FI_MR_VIRT_ADDR) ? (uint64_t)(uintptr_t)window : 0;
	mine->key = fi_mr_key(mr);
	return 0;
}

static int bare_meet(struct bench_rank *p)
{
	struct visit *visits = (struct visit *)(void *)p->raw.arena->slot[0].data;
	struct visit *mine = &visits[p->rank];
	size_t len = sizeof mine->address;
	int rc = fi_getname(&bare.ep->fid, mine->address, &len);
	if (!rc)
		rc = bare_expose(p, mine);
	if (rc)
		return bare_failed("being found", rc);
	rc = tern_barrier(p->t);
	theirs = visits[1 - p->rank];
	if (!rc && fi_av_insert(bare.av, theirs.address, 1, &other, 0, NULL) != 1)
		rc = bare_failed("finding the other rank", -FI_EINVAL);
	return rc ? rc : tern_barrier(p->t);
}

/* The processes end with their test, and with them all of this. */
int fabric_bare_open(struct bench_rank *p, bool waits)
{
	const char *name = strchr(setting_text(SETTING_NET), '/');
	int rc = fabric_open(&bare, name ? name + 1 : "", FI_TAGGED, 2, waits);
	return rc ? rc : bare_meet(p);
}

/* Reads what has ended; an error if something failed. */
static int bare_look(void)
{
	struct fi_cq_data_entry e[BESIDE];
	ssize_t n = fi_cq_read(bare.cq, e, BESIDE);
	if (n == -FI_EAGAIN)
		return 0;
	if (n < 0)
		return bare_failed("moving", n);
	for (ssize_t i = 0; i < n; i++) {
		sends += e[i].op_context == &send_context;
		receives += e[i].op_context == &receive_context;
		writes += e[i].op_context != &send_context && e[i].op_context != &receive_context;
	}
	return 0;
}

static int bare_post_receive(void)
{
	ssize_t rc = fi_trecv(bare.ep, small[1], SMALL, NULL, other, TAG, 0, &receive_context);
	return rc ? bare_failed("receiving", rc) : 0;
}

static int bare_send(size_t len)
{
	ssize_t rc;
	int failed = 0;
	while (!failed && (rc = fi_tsend(bare.ep, small[0], len, NULL, other, TAG,
					 &send_context)) == -FI_EAGAIN)
		failed = bare_look();
	return failed ? failed : rc ? bare_failed("sending", rc) : 0;
}

static int bare_receive(unsigned until)
{
	int rc = 0;
	while (!rc && receives != until)
		rc = bare_look();
	return rc ? rc : bare_post_receive();
}

int fabric_bare_trips(struct bench_rank *p, uint64_t count, size_t len)
{
	static bool posted;
	int rc = posted ? 0 : bare_post_receive();
	posted = true;
	for (uint64_t i = 0; !rc && i < count; i++) {
		unsigned came = receives + 1;
		if (p->rank)
			rc = bare_receive(came);
		if (!rc)
			rc = bare_send(len);
		if (!rc && !p->rank)
			rc = bare_receive(came);
	}
	return rc;
}

static int bare_write(unsigned i, size_t len)
{
	ssize_t rc;
	int failed = 0;
	while (!failed && (rc = fi_write(bare.ep, window, len, NULL, other, theirs.base, theirs.key,
					 &write_context[i % BESIDE])) == -FI_EAGAIN)
		failed = bare_look();
	return failed ? failed : rc ? bare_failed("writing", rc) : 0;
}

static int bare_write_all(uint64_t count, size_t len)
{
	unsigned began = writes;
	int rc = 0;
	for (unsigned i = 0; !rc && i < count; i++) {
		while (!rc && i - (writes - began) >= BESIDE)
			rc = bare_look();
		if (!rc)
			rc = bare_write(i, len);
	}
	while (!rc && writes - began < count)
		rc = bare_look();
	return rc;
}

/*
 * The other rank helps until it is told that this was the last: by a message, which comes after
 * the writes.
 */
int fabric_bare_writes(struct bench_rank *p, uint64_t count, size_t len)
{
	if (p->rank)
		return fabric_bare_trips(p, 1, 1);
	int rc = bare_write_all(count, len);
	return rc ? rc : fabric_bare_trips(p, 1, 1);
}
