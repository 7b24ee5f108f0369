/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Put and get between the heaps of two ranks, and between registered private memory. The limit is
 * memcpy, or the kernel's copy, between the same bytes, so a ratio of 1 says that the library costs
 * nothing.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/uio.h>

#include "base/error.h"
#include "lab/bench/place.h"
#include "lab/bench/words.h"
#include "lab/perf/perf.h"
#include "tools/common/single_copy.h"

enum { MOST = 64 << 20 };
enum { PUT, GET }; /* ways */
/* -- By the initiator alone ------------------------------------------------------- */

static REPEATS(heap_puts, tern_put(p->t, place.addr, place.own, p->size));
static REPEATS(heap_gets, tern_get(p->t, place.own, place.addr, p->size));
static REPEATS(heap_copies,
	       tern_copy(p->t, place.addr, tern_addr_at(p->t, p->rank, place.own), p->size));
static REPEATS(copies_there, place_copied(place.there, place.own, p->size));
static REPEATS(copies_here, place_copied(place.own, place.there, p->size));

/* A piece and then a round trip, again and again. */
static int chunk_put(struct bench_rank *p)
{
	int rc = tern_put(p->t, place.addr, place.own, p->size);
	return rc ? rc : words_trips(p->t, 1, 1);
}

static REPEATS(chunk_puts, chunk_put(p));
static REPEATS(quiet_trips, words_trips(p->t, 1, 1));

/* -- With a word that the target waits for ------------------------------------------- */

enum { SIGNAL_LINES = 512, LINE_WORDS = 64 / sizeof(uint64_t) };
static uint64_t *signal_line; /* the word, and beside it the data */
static uint64_t signal_trips; /* so far, of all rounds */

static int signal_open(struct bench_rank *p)
{
	void *lines;
	int rc = tern_alloc_all(p->t, SIGNAL_LINES * LINE_WORDS * sizeof *signal_line, &lines);
	signal_line = lines;
	signal_trips = 0;
	return rc;
}

static int signal_send(struct bench_rank *p, tern_addr there, uint64_t lap)
{
	static const uint64_t data[LINE_WORDS];
	const tern_change change = { .word = there, .what = TERN_AMO_STORE, .value = lap };
	return tern_put_signal(p->t, there + sizeof lap, data, p->size, &change);
}

static int signal_play(struct bench_rank *p)
{
	for (uint64_t end = signal_trips + p->count; signal_trips < end && !p->rc; signal_trips++) {
		uint64_t lap = signal_trips / SIGNAL_LINES + 1;
		uint64_t *line = &signal_line[signal_trips % SIGNAL_LINES * LINE_WORDS];
		tern_addr there = tern_addr_at(p->t, !p->rank, line);
		p->rc = p->rank ? 0 : signal_send(p, there, lap);
		if (!p->rc)
			p->rc = tern_wait_word(p->t, line, TERN_WORD_EQ, lap);
		if (!p->rc && p->rank)
			p->rc = signal_send(p, there, lap);
	}
	return p->rc;
}

/* -- Private memory ------------------------------------------------------------------ */

static REPEATS(moves_play, p->way == PUT ? tern_put(p->t, private.addr, private.own, p->size)
					 : tern_get(p->t, private.own, private.addr, p->size));

static int vm_moves(struct bench_rank *p)
{
	struct iovec here = { private.own, p->size },
		     there = { (char *)(uintptr_t) private.there, p->size };
	for (uint64_t i = 0; i < p->count && !p->rc; i++)
		if ((p->way == GET ? process_vm_readv(private.there_pid, &here, 1, &there, 1, 0)
				   : process_vm_writev(private.there_pid, &here, 1, &there, 1,
						       0)) != (ssize_t)p->size)
			p->rc = error_set(
				-EIO, "the kernel did not copy %u bytes between two processes: %s",
				p->size, strerror(errno));
	return p->rc;
}

/* -- The rows --------------------------------------------------------------------------------- */

const struct test memory_tests[] = {
	{ "put", "blocking puts from this rank's heap to another's, which nobody reads", "GB/s",
	  "bytes", 1, MOST,
	  .sizes = { 12,
		     { 8, 64, 512, 1 << 10, 4 << 10, 16 << 10, 64 << 10, 256 << 10, 1 << 20,
		       4 << 20, 16 << 20, MOST } },
	  .quick = { 2, { 4 << 10, 1 << 20 } }, .bytes = 16 << 20, .open = place_open,
	  .measure = { heap_puts, PHASE_FIRST }, .limit = { { copies_there, PHASE_FIRST } },
	  .limit_name = "memcpy by the same process between the same bytes of the two heaps",
	  .bar = { { 512, "at least 0.91" },
		   { 4 << 10, "at least 0.91" },
		   { 64 << 10, "at least 0.95" },
		   { 256 << 10, "at least 0.95" },
		   { 1 << 20, "at least 0.95" },
		   { 4 << 20, "at least 0.95" },
		   { 16 << 20, "at least 0.95" },
		   { MOST, "at least 0.95" } },
	  .note = "the target does not read the data" },
	{ "get", "blocking gets from another rank's heap to this one's, which nobody reads", "GB/s",
	  .like = "put", .measure = { heap_gets, PHASE_FIRST },
	  .limit = { { copies_here, PHASE_FIRST } },
	  .note = "nobody writes the source or reads what was got" },
	{ "copy", "tern_copy() from this rank's heap to another's, which nobody reads", "GB/s",
	  "bytes", 1, MOST, .sizes = { 3, { 512, 64 << 10, 1 << 20 } }, .bytes = 16 << 20,
	  .open = place_open, .measure = { heap_copies, PHASE_FIRST },
	  .limit = { { copies_there, PHASE_FIRST } },
	  .limit_name = "memcpy by the same process between the same bytes of the two heaps" },
	{ "put-signal", "a put with a signal there and one back, each waited for", "ns", "bytes", 0,
	  56, .sizes = { 3, { 0, 8, 48 } }, .quick = { 1, { 8 } }, .like = "raw-trip",
	  .count = 4000, .open = signal_open, .measure = { signal_play, PHASE_ALL },
	  .bar = { { 0, "at most 1.10" }, { 8, "at most 1.10" } } },
	{ "chunk-trip", "a round trip of one word that has to wait for a piece of a put", "ns",
	  "bytes", 1, 1 << 20,
	  .sizes = { 6, { 1 << 10, 4 << 10, 8 << 10, 16 << 10, 32 << 10, 64 << 10 } },
	  .count = 2000, .bytes = 8 << 20, .rounds = 31, .open = place_open,
	  .measure = { chunk_puts, PHASE_ACTED }, .limit = { { quiet_trips, PHASE_ACTED } },
	  .limit_name = "the same round trip without the piece" },
	{ "chunk", "a large put in pieces, with a round trip of one word after each", "GB/s",
	  .like = "chunk-trip", .limit = { { copies_there, PHASE_FIRST } },
	  .limit_name = "memcpy of the pieces, with nothing in between",
	  .note = "the target does not read the data" },
	{ "private-put",
	  "puts between registered memory of two processes, copied once by the kernel", "GB/s",
	  "bytes", 1, MOST, .sizes = { 5, { 64 << 10, 256 << 10, 1 << 20, 4 << 20, 16 << 20 } },
	  .bytes = 16 << 20, .rounds = 31, .open = private_open,
	  .measure = { moves_play, PHASE_ACTED, PUT },
	  .limit = { { vm_moves, PHASE_FIRST, GET }, { vm_moves, PHASE_FIRST, PUT } },
	  .limit_name =
		  "process_vm_readv or process_vm_writev between the same bytes, the better one",
	  .bar = { { 1 << 20, "at least 0.90" },
		   { 4 << 20, "at least 0.90" },
		   { 16 << 20, "at least 0.90" } },
	  .note = "the target does not read the data", .usable = single_copy_usable },
	{ "private-get",
	  "gets between registered memory of two processes, copied once by the kernel", NULL,
	  .like = "private-put", .measure.way = GET, .limit = { { vm_moves, PHASE_FIRST, GET } },
	  .limit_name = "process_vm_readv between the same bytes",
	  .note = "nobody writes the source or reads what was got" },
	{ .like = NULL },
};
