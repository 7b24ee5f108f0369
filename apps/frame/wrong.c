/* SPDX-License-Identifier: BSD-3-Clause */
/* Comparing a result with the serial one: the first element that differs gets a sentence. */
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>

#include "frame/app.h"

static char first[256]; /* of this rank, in this round; "": none was wrong */
static int spoil;       /* the next value that is compared counts as wrong */

void app_wrong_begin(int spoiled)
{
	*first = '\0';
	spoil = spoiled;
}

uint64_t app_wrong(const char *format, ...)
{
	va_list list;
	if (*first)
		return 1;
	va_start(list, format);
	vsnprintf(first, sizeof first, format, list);
	va_end(list);
	return 1;
}

uint64_t app_differs(const char *name, uint64_t i, double is, double should, double within)
{
	if (spoil)
		is = should + 1 + within;
	spoil = 0;
	if (fabs(is - should) <= within) /* not where one of them is no number */
		return 0;
	return app_wrong("%s[%" PRIu64 "] is %.17g and should be %.17g", name, i, is, should);
}

uint64_t app_differs_word(const char *name, uint64_t i, uint64_t is, uint64_t should)
{
	if (spoil)
		is = should + 1;
	spoil = 0;
	if (is == should)
		return 0;
	return app_wrong("%s[%" PRIu64 "] is %" PRIu64 " and should be %" PRIu64, name, i, is,
			 should);
}

void app_wrong_report(struct app_job *j, uint64_t all)
{
	uint32_t rank = *first ? j->rank : j->size, least;
	app_must(j,
		 tern_team_allreduce(j->team, &rank, &least, 1, TERN_TYPE_UINT32, TERN_REDUCE_MIN));
	if (least == j->rank)
		fprintf(stderr, "%s, variant %s: %" PRIu64 " wrong; the first, at rank %u: %s\n",
			app.name, app.variants[j->variant].name, all, j->rank, first);
}
