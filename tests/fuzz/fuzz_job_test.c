/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A job's memory that somebody has written to at will, or cut off: it is refused when it is mapped,
 * or `tern top` and `tern why` can look at it.
 */
#include "fuzz.h"

#include <time.h>
#include <unistd.h>

#include <tern/tern.h>

#include "net/talk.h"
#include "tools/watch/top.h"
#include "tools/watch/watch.h"

/* Both look again after a while; nothing changes here meanwhile. */
int nanosleep(const struct timespec *length, struct timespec *left)
{
	(void)length, (void)left;
	return 0;
}

/* Where bytes are written to: parts of a job of two ranks that readers look at. */
static off_t place_of(const struct job *j, unsigned kind)
{
	uint32_t rank = kind & 1, other = kind >> 1 & 1;
	const char *place[] = { (char *)j->head,
				(char *)&j->rank[rank],
				(char *)&j->pulse[rank],
				(char *)&j->begun[rank * j->heed_row],
				(char *)job_stats(j, rank),
				(char *)&job_stats(j, rank)->peer[other],
				j->base + job_small_at(j, rank, other),
				j->base + job_talk_at(j, rank, other) };
	return place[kind >> 2 & 7] - j->base;
}

/* Each: a place, how far behind it, bytes. */
static void memory_write(const struct job *j, const uint8_t *bytes, size_t len)
{
	while (len > 4) {
		off_t at = place_of(j, fuzz_byte(&bytes, &len));
		size_t part;
		at += (off_t)fuzz_byte(&bytes, &len) << 3;
		const uint8_t *from = fuzz_part(&bytes, &len, &part);
		REQUIRE(pwrite(j->fd, from, part, at) == (ssize_t)part);
	}
}

static void job_look(struct job *j)
{
	struct top t = { .watch = { .job = *j } };
	REQUIRE(top_begin(&t));
	for (int i = 0; i < 2; i++) {
		top_look(&t);
		top_print(&t, UINT32_MAX, stdout);
		REQUIRE(why_explain(&t.watch, i));
	}
	(void)top_over(&t);
	top_close(&t); /* unmaps it */
}

static void fuzz_one(const uint8_t *bytes, size_t len)
{
	struct job made, seen;
	unsigned cut = fuzz_byte(&bytes, &len);
	REQUIRE(job_create(&made, 2, 0) == 0);
	atomic_store(&made.rank[0].state, RANK_OPEN);
	atomic_store(&made.rank[1].state, RANK_OPEN);
	memory_write(&made, bytes, len);
	if (cut & 1)
		REQUIRE(ftruncate(made.fd, (off_t)cut << 9) == 0);
	int rc = job_view(&seen, made.fd);
	REQUIRE(rc <= 0 && (rc == 0 || *tern_strerror(rc)));
	if (!rc)
		job_look(&seen);
	job_unmap(&made);
	job_forget(&made);
}

FUZZ_TARGET(job, 200)
