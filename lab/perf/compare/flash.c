/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Section 5 of the paper on FLASH: a page as a typed message, clean and dirty in caches, its
 * initiation; a remote read of a cache line; Fetch-and-Op. Its figures are estimates from handlers
 * that were written by hand.
 */
#include <string.h>
#include <tern/buf.h>
#include <tern/mem.h>

#include "base/clock.h"
#include "lab/bench/words.h"
#include "lab/perf/compare/paper.h"

enum {
	TYPE = 1,
	BUFFERS = 16,
	PAGE = 4096,
	FLASH_LINE = 128,
	AREA = 4 << 20, /* that reads go through, more than the nearest caches hold */
};
enum { CLEAN = 0, DIRTY = 1, CALL = 2, COPY = 4 }; /* bits of the way */

static _Alignas(4096) char page[PAGE];
static tern_addr there; /* the other rank's heap */

static int flash_open(struct bench_rank *p)
{
	void *own;
	int rc = tern_alloc_all(p->t, AREA, &own);
	if (rc)
		return rc;
	memset(own, 1, AREA);
	there = tern_addr_at(p->t, 1 - p->rank, own);
	rc = tern_buf_alloc(p->t, TYPE, PAGE, BUFFERS, TERN_BUF_WAIT);
	return rc ? rc : tern_barrier(p->t);
}

/* -- A page ------------------------------------------------------------------------------ */

/* Who receives gives a buffer back as its cache has it. */
static int page_take(struct bench_rank *p)
{
	tern_buf got;
	int rc = tern_buf_recv(p->t, TYPE, 0, &got);
	if (rc)
		return rc;
	if (p->way & DIRTY)
		memset(got.data, 2, PAGE);
	else
		raw_sink += raw_sum(got.data, PAGE);
	return tern_buf_free(p->t, got.data);
}

/* Ns until the call has returned, or until the page has landed. */
static uint64_t page_send(struct bench_rank *p)
{
	tern_op op = TERN_OP;
	uint64_t began = clock_ns();
	if (p->way & COPY)
		p->rc = tern_put_start(p->t, there, page, PAGE, &op);
	else
		p->rc = tern_buf_send_start(p->t, 1, TYPE, page, PAGE, 0, &op);
	uint64_t called = clock_ns();
	if (!p->rc)
		p->rc = tern_op_wait(p->t, &op);
	return (p->way & CALL ? called : clock_ns()) - began;
}

/* The clock stands while the source is made clean or dirty. */
static double page_play(struct bench_rank *p)
{
	uint64_t ns = 0;
	for (uint64_t i = 0; i < p->count && !p->rc; i++) {
		if (p->rank && p->way & COPY)
			break;
		if (p->way & DIRTY && !p->rank)
			memset(page, (int)i, PAGE);
		else if (!p->rank)
			raw_sink += raw_sum(page, PAGE);
		if (p->rank)
			p->rc = page_take(p);
		else
			ns += page_send(p);
	}
	if (!p->rc)
		p->rc = p->rank ? words_serve(p->t, 1) : words_last(p->t, 1);
	return each_ns(p, ns);
}

/* -- A line, and a word ------------------------------------------------------------------- */

static char line[FLASH_LINE];
static uint64_t old;

static REPEATS(reads, tern_get(p->t, line, there + i * 37 * FLASH_LINE % AREA, FLASH_LINE));
static REPEATS(fetches, tern_amo(p->t, there, TERN_AMO_ADD, 1, &old));

static const struct paper_row rows[] = {
	{ "send call, page", "5.2", page_play, .way = CALL, .share = 20, .other = { .us = 0.7 } },
	{ "preparation after it", "5.2", NULL, .other = { .us = 0.3 } },
	{ "page, clean", "5.2", page_play, .way = CLEAN, .share = 20, .bytes = PAGE,
	  .other = { 11, 372 } },
	{ "page, dirty", "5.2", page_play, .way = DIRTY, .share = 20, .bytes = PAGE,
	  .other = { 16.4, 249 } },
	{ "memory copy, clean", "3.5", page_play, .way = COPY | CLEAN, .share = 20, .bytes = PAGE },
	{ "memory copy, dirty", "3.5", page_play, .way = COPY | DIRTY, .share = 20, .bytes = PAGE },
	{ "remote read, 128 bytes", "5.2", words_acted, .act = reads, .share = 10,
	  .bytes = FLASH_LINE, .other = { .us = 2 } },
	{ "Fetch-and-Op", "5.3", words_acted, .act = fetches, .share = 10, .other = { .us = 2 } },
};

static const char *const notes[] = {
	"a page is a typed message of 4 KiB, one at a time, until its sender knows that it has",
	"landed; two looks at the clock are in it. Dirty: written just before by its sender, and",
	"the buffer by its receiver. Here the call itself copies the page where memory is shared;",
	"on FLASH it tells MAGIC, whose network limits a clean page to 317 MB/s. The paper's",
	"figures are estimates",
	NULL
};

const struct paper_table paper_flash = {
	.title = "Section 5 of the paper on FLASH",
	.key = "flash",
	.machine = "FLASH",
	.row = rows,
	.rows = sizeof rows / sizeof *rows,
	.test = { .name = "flash", .ranks = 2, .cores = 2, .warm = 2, .open = flash_open },
	.notes = notes,
};
