/* SPDX-License-Identifier: BSD-3-Clause */
/* Scattered memory, beside a loop that copies run by run. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "lab/bench/place.h"
#include "lab/bench/words.h"
#include "lab/perf/perf.h"

#include <tern/mem.h>

enum { LINE = 64 };
enum { PUT, GET }; /* ways */

static uint32_t run, apart; /* in bytes */
static char *here;
static tern_part *far_list, *near_list;

/* The same runs as a list, of a part each. */
static int lists_make(struct bench_rank *p)
{
	far_list = calloc(p->size, sizeof *far_list);
	near_list = calloc(p->size, sizeof *near_list);
	if (!far_list || !near_list)
		return error_set(-ENOMEM, "no memory for %u parts", p->size);
	for (uint32_t i = 0; i < p->size; i++) {
		far_list[i] = (tern_part){ .addr = place.addr + i * apart, .run = run };
		near_list[i] = (tern_part){ .base = here + i * apart, .run = run };
	}
	return 0;
}

static int runs_open(struct bench_rank *p, uint32_t len)
{
	run = len;
	apart = 2 * len;
	size_t bytes = (size_t)p->size * apart;
	here = calloc(1, bytes);
	if (!here)
		return error_set(-ENOMEM, "no memory for %zu bytes", bytes);
	int rc = place_make(p, bytes);
	return rc ? rc : lists_make(p);
}

static int parts_open(struct bench_rank *p)
{
	return runs_open(p, LINE);
}

static int words_open(struct bench_rank *p)
{
	return runs_open(p, sizeof(uint64_t));
}

static int parts_move(struct bench_rank *p)
{
	const size_t count[] = { p->size };
	const ptrdiff_t stride[] = { apart };
	tern_part far = {
		.addr = place.addr, .run = run, .dims = 1, .count = count, .stride = stride
	};
	tern_part near = { .base = here, .run = run, .dims = 1, .count = count, .stride = stride };
	for (uint64_t i = 0; i < p->count && !p->rc; i++)
		p->rc = p->way == GET ? tern_get_parts(p->t, &near, 1, &far, 1)
				      : tern_put_parts(p->t, &far, 1, &near, 1);
	return p->rc;
}

static REPEATS(list_move, tern_put_parts(p->t, far_list, p->size, near_list, p->size));

static int runs_copy(struct bench_rank *p)
{
	for (uint64_t i = 0; i < p->count; i++)
		for (size_t r = 0; r < p->size; r++)
			place_copy(place.there + r * apart, here + r * apart, run);
	return 0;
}

/* -- The rows --------------------------------------------------------------------------------- */

const struct test parts_tests[] = {
	{ "parts", "a put of runs of 64 bytes, 128 apart, to another rank's heap", "us", "runs", 1,
	  65536, .sizes = { 3, { 16, 1024, 65536 } }, .count = 2000, .bytes = 1 << 16, .rounds = 21,
	  .open = parts_open, .measure = { parts_move, PHASE_FIRST, PUT },
	  .limit = { { runs_copy, PHASE_FIRST } },
	  .limit_name = "memcpy of run after run by the same process" },
	{ "parts-get", "a get of as many", NULL, .like = "parts",
	  .measure = { parts_move, PHASE_FIRST, GET } },
	{ "parts-list", "a put of the same runs, as a list with a part for each", NULL,
	  .like = "parts", .measure = { list_move, PHASE_FIRST } },
	{ "words-list", "a put of runs of 8 bytes, 16 apart, as such a list", NULL,
	  .like = "parts-list", .open = words_open },
	{ .like = NULL },
};
