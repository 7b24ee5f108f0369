/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages and puts over libfabric, beside the same provider without Tern. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/setting.h"
#include "net/ofi/ofi.h"
#include "tern/mem.h"
#include "tools/bench/words.h"
#include "tools/perf/fabric.h"
#include "tools/perf/perf.h"

static char *source;
static tern_addr target;

static int ofi_open_beside(struct player *p, bool waits)
{
	int rc = words_register(p->t);
	if (rc)
		return rc;
	source = tern_alloc_all(p->t, FABRIC_MOST);
	if (!source)
		return -errno;
	memset(source, 1, FABRIC_MOST);
	target = tern_addr_at(tern_addr_of(p->t, source), 1 - p->rank);
	return fabric_bare_open(p, waits);
}

static int ofi_open_test(struct player *p)
{
	return ofi_open_beside(p, false);
}

static int ofi_open_waits(struct player *p)
{
	return ofi_open_beside(p, true);
}

static bool named_usable(const char *net, char *why, size_t len)
{
	const char *given = getenv("TERN_NET");
	char *before = given ? strdup(given) : NULL;
	setenv("TERN_NET", net, 1);
	bool usable = ofi_ops.usable(why, len);
	if (before)
		setenv("TERN_NET", before, 1);
	else
		unsetenv("TERN_NET");
	free(before);
	return usable;
}

static bool tcp_here(char *why, size_t len)
{
	return named_usable("ofi/tcp", why, len);
}

static bool shm_here(char *why, size_t len)
{
	return named_usable("ofi/shm", why, len);
}

/* -- Round trip --------------------------------------------------------------------------- */

static double trip_bare(struct player *p)
{
	uint64_t began = clock_ns();
	p->rc = fabric_bare_trips(p, p->count, p->size * sizeof(uint64_t) + 2);
	return (double)(clock_ns() - began) / (double)p->count;
}

#define OFI_TRIP                                                                                   \
	.size_name = "words", .size_most = TERN_WORDS_MAX, .sizes = { 2, { 0, 4 } }, .unit = "ns", \
	.ranks = 2, .cores = 2, .count = 500, .rounds = 31, .warm = 2, .measure = words_trip_time, \
	.limit = { trip_bare }, .bar = { { 4, "at most 1.10" } }

#define OFI_TRIP_POLLED                  \
	OFI_TRIP, .open = ofi_open_test, \
		  .limit_name =          \
			  "fi_tsend and fi_trecv there and back over the same provider, both sides polling"

const struct test test_ofi_trip = {
	.name = "ofi-trip",
	.purpose = "a request and its reply over libfabric's tcp",
	.set = { { "TERN_NET", "ofi/tcp" } },
	.usable = tcp_here,
	OFI_TRIP_POLLED,
};

const struct test test_ofi_wait_trip = {
	.name = "ofi-wait-trip",
	.purpose = "the same beside a queue that could be slept on, as Tern's can",
	.set = { { "TERN_NET", "ofi/tcp" } },
	.usable = tcp_here,
	.open = ofi_open_waits,
	.limit_name = "the same as of ofi-trip, with a descriptor to sleep on that nobody sleeps on",
	OFI_TRIP,
};

const struct test test_ofi_nap_trip = {
	.name = "ofi-nap-trip",
	.purpose = "the same as ofi-trip without a descriptor to sleep on",
	.set = { { "TERN_NET", "ofi/tcp" }, { "TERN_OFI_WAIT", "0" } },
	.usable = tcp_here,
	OFI_TRIP_POLLED,
};

const struct test test_ofi_shm_trip = {
	.name = "ofi-shm-trip",
	.purpose = "a request and its reply over libfabric's shm",
	.set = { { "TERN_NET", "ofi/shm" } },
	.usable = shm_here,
	OFI_TRIP_POLLED,
};

/* -- Bulk ----------------------------------------------------------------------------------- */

static double put_rate(const struct player *p, uint64_t began)
{
	return (double)(p->count * p->size) / (double)(clock_ns() - began);
}

static double bulk_measure(struct player *p)
{
	tern_op op = TERN_OP;
	if (p->rank) {
		p->rc = words_serve(p->t, 1);
		return 0;
	}
	uint64_t began = clock_ns();
	for (uint64_t i = 0; i < p->count && !p->rc; i++)
		p->rc = tern_put_start(p->t, target, source, p->size, &op);
	int rc = tern_op_wait(p->t, &op);
	double rate = put_rate(p, began);
	p->rc = p->rc ? p->rc : rc ? rc : words_last(p->t, 1);
	return rate;
}

static double bulk_bare(struct player *p)
{
	uint64_t began = clock_ns();
	p->rc = fabric_bare_writes(p, p->count, p->size);
	return put_rate(p, began);
}

#define OFI_BULK                                                                                     \
	.size_name = "bytes", .size_least = 1024, .size_most = FABRIC_MOST,                          \
	.sizes = { 3, { 64 << 10, 1 << 20, 4 << 20 } }, .unit = "GB/s", .rate = true, .ranks = 2,    \
	.cores = 2, .count = 256, .bytes = 64 << 20, .rounds = 21, .warm = 2, .open = ofi_open_test, \
	.measure = bulk_measure, .limit = { bulk_bare },                                             \
	.bar = { { 1 << 20, "at least 0.90" }, { 4 << 20, "at least 0.90" } },                       \
	.limit_name = "fi_write over the same provider, 4 under way"

const struct test test_ofi_bulk = {
	.name = "ofi-bulk",
	.purpose = "puts into another rank's heap over libfabric's tcp",
	.set = { { "TERN_NET", "ofi/tcp" } },
	.usable = tcp_here,
	OFI_BULK,
};

const struct test test_ofi_shm_bulk = {
	.name = "ofi-shm-bulk",
	.purpose = "puts into another rank's heap over libfabric's shm",
	.set = { { "TERN_NET", "ofi/shm" } },
	.usable = shm_here,
	OFI_BULK,
};
