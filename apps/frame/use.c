/* SPDX-License-Identifier: BSD-3-Clause */
/* What programs call: errors, memory, blocks, declared work. */
#include "frame/app.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <tern/sim.h>
#include <unistd.h>

/* -- Errors -------------------------------------------------------------------------- */

void app_must(struct app_job *j, int rc)
{
	if (rc >= 0)
		return;
	if (!j->t) {
		fprintf(stderr, "%s: %s\n", app.name, tern_strerror(rc));
		exit(1);
	}
	tern_abort(j->t, tern_strerror(rc));
	abort();
}

void app_refuse(struct app_job *j, const char *format, ...)
{
	if (j->rank == 0) {
		va_list list;
		va_start(list, format);
		fprintf(stderr, "%s: ", app.name);
		vfprintf(stderr, format, list);
		putc('\n', stderr);
		va_end(list);
	}
	app_must(j, tern_barrier(j->t));
	tern_close(j->t);
	exit(2);
}

/* -- Memory -------------------------------------------------------------------------- */

/* All ranks agree: what does not fit at one of them is refused by all. */
static void memory_check(struct app_job *j, double bytes)
{
	unsigned near = 0;
	for (uint32_t r = 0; r < tern_size(j->t); r++)
		near += tern_near_is(j->t, r) != 0;
	double have = (double)sysconf(_SC_PHYS_PAGES) * (double)sysconf(_SC_PAGESIZE) / near;
	double lack[2] = { bytes - have, bytes };
	app_must(j, tern_team_allreduce(j->team, lack, lack, 2, TERN_TYPE_DOUBLE, TERN_REDUCE_MAX));
	if (lack[0] > 0)
		app_refuse(j,
			   "these sizes take %.3g MiB for each rank, "
			   "%.3g MiB more than the machine has",
			   lack[1] / 0x1p20, lack[0] / 0x1p20);
}

void *app_memory(struct app_job *j, double bytes)
{
	memory_check(j, bytes);
	void *p = calloc(bytes >= 1 ? (size_t)bytes : 1, 1);
	app_must(j, p ? 0 : -ENOMEM);
	return p;
}

void *app_shared(struct app_job *j, double bytes)
{
	void *p;
	memory_check(j, bytes);
	size_t n = bytes >= 8 ? (size_t)bytes : 8;
	uint64_t most = n;
	app_must(j,
		 tern_team_allreduce(j->team, &most, &most, 1, TERN_TYPE_UINT64, TERN_REDUCE_MAX));
	app_must(j, tern_alloc_all(j->t, most, &p));
	memset(p, 0, most);
	app_must(j, tern_barrier(j->t));
	return p;
}

void app_memory_free(struct app_job *j, void *p)
{
	(void)j;
	free(p);
}

void app_shared_free(struct app_job *j, void *p)
{
	app_must(j, tern_free_all(j->t, p));
}

/* -- Work and time --------------------------------------------------------------------- */

void app_work(struct app_job *j, uint64_t integer, uint64_t floating, uint64_t memory)
{
	tern_work work = { .integer = integer, .floating = floating, .loads = memory };
	app_must(j, tern_sim_work(j->t, &work));
}

double app_seconds(struct app_job *j)
{
	return (double)tern_time(j->t) * 1e-9;
}

void app_delivery(struct app_job *j, enum tern_delivery d)
{
	if (tern_delivery_get(j->t) != d)
		app_must(j, tern_delivery_set(j->t, d));
}

const char *app_interrupt_lacks(struct app_job *j)
{
	static char why[256];
	enum tern_delivery before = tern_delivery_get(j->t);
	int rc = tern_delivery_set(j->t, TERN_DELIVERY_INTERRUPT);
	if (!rc) {
		app_must(j, tern_delivery_set(j->t, before));
		return NULL;
	}
	snprintf(why, sizeof why, "%s", tern_strerror(rc));
	return why;
}

/* -- Blocks and numbers ---------------------------------------------------------------- */

uint64_t app_first(const struct app_job *j, uint64_t n, uint32_t rank)
{
	return app_part(n, j->size, rank);
}

uint32_t app_owner(const struct app_job *j, uint64_t n, uint64_t i)
{
	return app_part_of(n, j->size, i);
}

struct app_grid app_grid(const struct app_job *j)
{
	return app_grid_of(j->size, j->rank);
}
