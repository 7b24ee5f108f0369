/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages and puts over libfabric, beside the same provider without Tern. */
#include <errno.h>
#include <string.h>

#include "lab/bench/words.h"
#include "lab/perf/fabric.h"
#include "lab/perf/parts.h"
#include "lab/perf/perf.h"
#include "tern/mem.h"

static char *source;
static tern_addr target;

static int ofi_open_beside(struct bench_rank *p, bool waits)
{
	int rc = words_register(p->t);
	if (rc)
		return rc;
	void *memory;
	rc = tern_alloc_all(p->t, FABRIC_MOST, &memory);
	if (rc)
		return rc;
	source = memset(memory, 1, FABRIC_MOST);
	target = tern_addr_at(p->t, 1 - p->rank, source);
	return fabric_bare_open(p, waits);
}

static int ofi_open_test(struct bench_rank *p)
{
	return ofi_open_beside(p, false);
}

static int ofi_open_waits(struct bench_rank *p)
{
	return ofi_open_beside(p, true);
}

/* -- Round trip --------------------------------------------------------------------------- */

static int trip_bare(struct bench_rank *p)
{
	return fabric_bare_trips(p, p->count, p->size * sizeof(uint64_t) + 2);
}

static const struct test test_ofi_trip = {
	{ "ofi-trip", "a request and its reply over libfabric's tcp", "ns" },
	{ "words", 0, TERN_WORDS_MAX, { 2, { 0, 4 } }, { 0 } },
	.amount = { .count = 500, .rounds = 31 },
	.play = { .open = ofi_open_test,
		  .measure = { .time = PHASE_ACTED, .act = words_trips_of },
		  .limit = { { .time = PHASE_ALL, .act = trip_bare } } },
	.limit_name =
		"fi_tsend and fi_trecv there and back over the same provider, both sides polling",
	.bar = { { 4, "at most 1.10" } },
	.set = { { "TERN_NET", "ofi/tcp" } },
};

static const struct test test_ofi_wait_trip = {
	{ "ofi-wait-trip", "the same beside a queue that could be slept on, as Tern's can", "ns" },
	.like = &test_ofi_trip,
	.play = { .open = ofi_open_waits },
	.limit_name =
		"the same as of ofi-trip, with a descriptor to sleep on that nobody sleeps on",
};

static const struct test test_ofi_nap_trip = {
	{ "ofi-nap-trip", "the same as ofi-trip without a descriptor to sleep on", "ns" },
	.like = &test_ofi_trip,
	.set = { { "TERN_NET", "ofi/tcp" }, { "TERN_OFI_WAIT", "0" } },
};

static const struct test test_ofi_shm_trip = {
	{ "ofi-shm-trip", "a request and its reply over libfabric's shm", "ns" },
	.like = &test_ofi_trip,
	.set = { { "TERN_NET", "ofi/shm" } },
};

/* -- Bulk ----------------------------------------------------------------------------------- */

static int bulk_put(struct bench_rank *p)
{
	tern_op op = TERN_OP;
	for (uint64_t i = 0; i < p->count && !p->rc; i++)
		p->rc = tern_put_start(p->t, target, source, p->size, &op);
	int rc = tern_op_wait(p->t, &op);
	return p->rc ? p->rc : rc;
}

static int bulk_bare(struct bench_rank *p)
{
	return fabric_bare_writes(p, p->count, p->size);
}

static const struct test test_ofi_bulk = {
	{ "ofi-bulk", "puts into another rank's heap over libfabric's tcp", "GB/s" },
	{ "bytes", 1024, FABRIC_MOST, { 3, { 64 << 10, 1 << 20, 4 << 20 } }, { 0 } },
	.amount = { .count = 256, .bytes = 64 << 20, .rounds = 21 },
	.play = { .open = ofi_open_test,
		  .measure = { .time = PHASE_ACTED, .act = bulk_put },
		  .limit = { { .time = PHASE_ALL, .act = bulk_bare } } },
	.limit_name = "fi_write over the same provider, 4 under way",
	.bar = { { 1 << 20, "at least 0.90" }, { 4 << 20, "at least 0.90" } },
	.set = { { "TERN_NET", "ofi/tcp" } },
};

static const struct test test_ofi_shm_bulk = {
	{ "ofi-shm-bulk", "puts into another rank's heap over libfabric's shm", "GB/s" },
	.like = &test_ofi_bulk,
	.set = { { "TERN_NET", "ofi/shm" } },
};

/* -- Scattered memory ------------------------------------------------------------------------ */

static const struct test test_ofi_parts = {
	{ "ofi-parts", "a put of runs of 64 bytes, 128 apart, over libfabric's tcp", "us" },
	.like = &net_parts,
	.set = { { "TERN_NET", "ofi/tcp" } },
};

static const struct test test_ofi_parts_get = {
	{ "ofi-parts-get", "a get of as many", NULL },
	.like = &test_ofi_parts,
	.play.measure.way = PARTS_GET,
};

const struct test *const ofi_tests[] = {
	&test_ofi_trip,     &test_ofi_wait_trip, &test_ofi_nap_trip,
	&test_ofi_shm_trip, &test_ofi_bulk,      &test_ofi_shm_bulk,
	&test_ofi_parts,    &test_ofi_parts_get, NULL
};
