/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: LABELS perf */
/*
 * The budgets of docs/cost.md. A path that has become longer than its budget fails, and the parts
 * that have grown since tests/lab/cost_baseline.txt was written are listed, the most grown first,
 * with the instructions they have now. Budgets hold for gcc 12 at -O2; elsewhere the counts are
 * only printed: compilers differ by two or three. `cost_budget_test --print` prints a new baseline.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lab/cost/measure.h"

enum { SKIPPED = 77, PARTS = COST_SIDES * COST_FEATURES * COST_STEPS, SHOWN = 3 };

/* What memcpy takes is not in it: that depends on the processor. */
static const struct budget {
	const char *operation;
	int64_t most;
} budgets[] = {
	{ "request-4", 39 },
	{ "put-8", 22 },
	{ "interrupt-4", 1180 },
	{ "stream-16-by-8", 90 },
	{ "finite-16-put-then", 90 },
	{ "finite-1024-put-then", 300 },
	/* The study's protocols; CMAM takes 397, 11737, 481 and 29965. */
	{ "block-16-by-4", 594 },
	{ "block-1024-by-4", 13927 },
	{ "block-1024-by-8", 7776 },
	{ "ordered-16-by-4", 681 },
	{ "ordered-1024-by-4", 41440 },
	{ "ordered-1024-by-8", 22720 },
	{ "grouped-16-by-4", 638 },
	{ "grouped-1024-by-4", 33456 },
};

enum { BUDGETS = sizeof budgets / sizeof *budgets };

static struct cost_map *map;

/* -- Parts: by side, feature and step -------------------------------------------------------- */

struct part {
	int side, feature, step;
};

static struct part part_of(int i)
{
	return (struct part){ i / COST_STEPS / COST_FEATURES, i / COST_STEPS % COST_FEATURES,
			      i % COST_STEPS };
}

static int64_t part_count(const struct cost_tally *t, int i)
{
	struct part p = part_of(i);
	return cost_sum(t, (struct cost_cut){ p.side, p.feature, p.step, -1 });
}

static void part_text(int i, char *text, size_t len)
{
	struct part p = part_of(i);
	snprintf(text, len, "%s %s %s", cost_side_name[p.side], cost_feature_name[p.feature],
		 cost_step_name[p.step]);
}

static void baseline_print(const struct cost_result *r)
{
	for (int i = 0; i < PARTS; i++) {
		char text[80];
		part_text(i, text, sizeof text);
		if (part_count(&r->steady, i))
			printf("%s %s %lld\n", r->op->name, text,
			       (long long)part_count(&r->steady, i));
	}
}

/* What the part took when the baseline was written; 0 if it was not there. */
static int64_t baseline_of(const char *operation, int part)
{
	FILE *from = fopen("tests/lab/cost_baseline.txt", "r");
	char line[200], wanted[160], text[80];
	long long count = 0;
	part_text(part, text, sizeof text);
	snprintf(wanted, sizeof wanted, "%s %s ", operation, text);
	while (from && fgets(line, sizeof line, from))
		if (strncmp(line, wanted, strlen(wanted)) == 0)
			count = strtoll(line + strlen(wanted), NULL, 10);
	if (from)
		fclose(from);
	return count;
}

/* -- What has grown ------------------------------------------------------------------------ */

/* The part whose instructions are listed, and what decodes them. */
struct listing {
	struct part part;
	struct decoder *decoder;
};

static void entry_print(const struct cost_insn *insn, enum cost_side side,
			const struct cost_site *s, void *arg)
{
	const struct listing *l = arg;
	char text[DECODED_TEXT];
	(void)insn;
	if ((int)side != l->part.side || (int)s->feature != l->part.feature ||
	    (int)s->step != l->part.step)
		return;
	decoder_text(l->decoder, s->at, text);
	printf("        %s:%u  %s\n", s->file, s->line, text);
}

/* Of the operation alone, so with what happens once. */
static void part_list(const struct cost_result *r, int part)
{
	struct listing l = { part_of(part), decoder_open() };
	if (l.decoder)
		result_each(map, r, entry_print, &l);
	decoder_close(l.decoder);
}

/* The part that has grown most, beyond those shown already; -1 if none has. */
static int part_most(const struct cost_result *r, const int *shown, int n)
{
	int best = -1;
	int64_t most = 0;
	for (int i = 0; i < PARTS; i++) {
		int64_t grown = part_count(&r->steady, i) - baseline_of(r->op->name, i);
		bool seen = false;
		for (int k = 0; k < n; k++)
			seen |= shown[k] == i;
		if (!seen && grown > most) {
			most = grown;
			best = i;
		}
	}
	return best;
}

static void growth_print(const struct cost_result *r)
{
	int shown[SHOWN];
	for (int n = 0; n < SHOWN; n++) {
		char text[80];
		int i = shown[n] = part_most(r, shown, n);
		if (i < 0)
			return;
		part_text(i, text, sizeof text);
		printf("    %s: %lld, was %lld\n", text, (long long)part_count(&r->steady, i),
		       (long long)baseline_of(r->op->name, i));
		part_list(r, i);
	}
}

/* -- The verdict --------------------------------------------------------------------------- */

static bool judged(void)
{
#if __GNUC__ == 12 && !defined(__clang__) && defined(__OPTIMIZE__) &&      \
	!defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__) && \
	!defined(TERN_NO_INLINE)
	return true;
#else
	return false;
#endif
}

static bool budget_kept(const struct budget *b, const struct cost_result *r)
{
	int64_t copy = r->steady.copy[0] + r->steady.copy[1],
		n = cost_sum(&r->steady, COST_ALL) - copy;
	printf("%-24s %4lld of %4lld", b->operation, (long long)n, (long long)b->most);
	if (copy)
		printf(", and %lld to copy", (long long)copy);
	puts(n > b->most && judged() ? "  FAIL" : "");
	if (n <= b->most || !judged())
		return true;
	growth_print(r);
	return false;
}

static int budget_check(const struct budget *b, bool print)
{
	struct cost_result r;
	char why[300];
	int rc = measure(map, operation_named(b->operation), &r, why, sizeof why);
	if (rc) {
		printf("%s: %s\n", rc == -EPERM ? "skipped" : "failed", why);
		return rc == -EPERM ? SKIPPED : 1;
	}
	if (print)
		baseline_print(&r);
	else
		rc = budget_kept(b, &r) ? 0 : 1;
	result_free(&r);
	return rc;
}

int main(int argc, char **argv)
{
	bool print = argc > 1 && strcmp(argv[1], "--print") == 0;
	int failed = 0;
	char why[300];
	map = map_open(why, sizeof why);
	if (!map) {
		printf("skipped: %s\n", why);
		return SKIPPED;
	}
	for (int i = 0; i < BUDGETS; i++) {
		int rc = budget_check(&budgets[i], print);
		if (rc == SKIPPED)
			return rc;
		failed |= rc;
	}
	map_close(map);
	if (!judged())
		puts("skipped: the budgets are for gcc 12 at -O2");
	return failed ? 1 : judged() ? 0 : SKIPPED;
}
