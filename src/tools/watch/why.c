/* SPDX-License-Identifier: BSD-3-Clause */
/* `tern why`: what each rank waits for, and the circle or the rank that all of it leads to. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/world.h"
#include "tools/common/json.h"
#include "tools/tools.h"
#include "tools/watch/graph.h"

enum { BETWEEN_NS = 500000000, NAMED = 8 }; /* ranks that a sentence names before it counts */

struct why {
	const struct watch *watch;
	uint32_t size;
	struct rank_view *before, *now;
	struct graph graph;
};

static uint64_t rank_handled(const struct why *w, uint32_t r)
{
	const struct rank_view *now = &w->now[r], *before = &w->before[r];
	return view_growth(now, before, now->served, before->served);
}

/* It has handled something, or opened or left its endpoint. */
static bool rank_moved(const struct why *w, uint32_t r)
{
	const struct rank_view *now = &w->now[r], *before = &w->before[r];
	return rank_handled(w, r) || now->session != before->session || now->state != before->state;
}

static uint64_t why_handled(const struct why *w)
{
	uint64_t sum = 0;
	for (uint32_t r = 0; r < w->size; r++)
		sum += rank_handled(w, r);
	return sum;
}

static bool why_moved(const struct why *w)
{
	for (uint32_t r = 0; r < w->size; r++)
		if (rank_moved(w, r))
			return true;
	return false;
}

/* Open, but neither waiting nor handling anything. */
static bool rank_deaf(const struct why *w, uint32_t r)
{
	return w->now[r].state == RANK_OPEN && !w->now[r].waits && !rank_moved(w, r);
}

/* -- Lists of ranks ------------------------------------------------------------------------- */

typedef bool choose(const struct why *w, uint32_t rank, uint32_t about);

static bool is_awaited(const struct why *w, uint32_t rank, uint32_t about)
{
	return graph_waits(&w->graph, about, rank);
}

static bool is_missing(const struct why *w, uint32_t rank, uint32_t about)
{
	return graph_lacks(&w->graph, about, rank);
}

static bool is_waiting_for(const struct why *w, uint32_t rank, uint32_t about)
{
	return graph_waits(&w->graph, rank, about);
}

enum { RANK_ELSEWHERE = RANK_DEAD + 1 }; /* it has to be asked on its machine what it does */

static uint32_t rank_state(const struct rank_view *s)
{
	return s->elsewhere && s->state == RANK_EXPECTED ? RANK_ELSEWHERE : s->state;
}

static bool is_in_state(const struct why *w, uint32_t rank, uint32_t about)
{
	return rank_state(&w->now[rank]) == about;
}

static uint32_t ranks_count(const struct why *w, choose *chosen, uint32_t about)
{
	uint32_t count = 0;
	for (uint32_t r = 0; r < w->size; r++)
		count += chosen(w, r, about);
	return count;
}

/* "rank 3", "ranks 1, 2 and 5 others" */
static void ranks_print(FILE *to, const struct why *w, choose *chosen, uint32_t about)
{
	uint32_t count = ranks_count(w, chosen, about), named = 0;
	fputs(count == 1 ? "rank" : "ranks", to);
	for (uint32_t r = 0; r < w->size && named < NAMED; r++)
		if (chosen(w, r, about))
			fprintf(to, "%s %u", named++ ? "," : "", r);
	if (count > named)
		fprintf(to, " and %u others", count - named);
}

/* -- A line for each rank ------------------------------------------------------------------- */

static void line_queue(const struct why *w, uint32_t r)
{
	const struct rank_view *s = &w->now[r];
	char handler[HANDLER_TEXT];
	if (!s->queue)
		return;
	watch_handler(w->watch, s->queue_last, handler);
	printf("; %s%llu message%s to be handled by it, the last for handler %s",
	       s->queue_exact ? "" : "at least ", (unsigned long long)s->queue,
	       s->queue == 1 ? " waits" : "s wait", handler);
}

/* What a network of packets has to repair, or to keep away, in the meantime. */
static void line_packets(const struct why *w, uint32_t r)
{
	const struct rank_view *s = &w->now[r], *b = &w->before[r];
	uint64_t again =
		view_growth(s, b, s->count[PULSE_PACKETS_AGAIN], b->count[PULSE_PACKETS_AGAIN]);
	uint64_t dropped = view_growth(s, b, view_dropped(s), view_dropped(b));
	if (again)
		printf("; it sent %llu packet%s again", (unsigned long long)again,
		       again == 1 ? "" : "s");
	if (dropped)
		printf("; it dropped %llu packet%s: of strangers, damaged or old",
		       (unsigned long long)dropped, dropped == 1 ? "" : "s");
}

/* How full the ring is that a request finds no room in. */
static void line_room(const struct why *w, uint32_t r)
{
	const struct rank_view *s = &w->now[r];
	char handler[HANDLER_TEXT];
	if (!s->wait.known || !strstr(s->wait.text, "ring full"))
		return;
	struct queue q = watch_queue(w->watch, r, s->wait.whom);
	watch_handler(w->watch, q.last, handler);
	printf("; %s%llu messages of its are not handled there, the last for handler %s",
	       q.exact ? "" : "at least ", (unsigned long long)q.count, handler);
}

/* Who has not come to its call, or else whom of those who have come it waits for. */
static void line_missing(const struct why *w, uint32_t r)
{
	bool missing = r < w->size && ranks_count(w, is_missing, r);
	if (r >= w->size || !ranks_count(w, is_awaited, r) || w->now[r].wait.known)
		return;
	fputs(missing ? "; not there: " : "; for ", stdout);
	ranks_print(stdout, w, missing ? is_missing : is_awaited, r);
}

static void line_wait(const struct why *w, uint32_t r)
{
	const struct rank_view *s = &w->now[r];
	char age[32];
	watch_age(s->wait.since, age, sizeof age);
	printf("has waited %s in %s", age, s->wait.text);
	if (s->wait.asleep)
		fputs(", asleep", stdout);
	line_missing(w, r);
	line_room(w, r);
}

/* Below its rank. */
static void line_worker(const struct why *w, uint32_t member, unsigned number)
{
	const struct rank_view *s = &w->now[member];
	printf("    worker %u of rank %u ", number, s->rank);
	if (s->waits)
		line_wait(w, member);
	else
		fputs(rank_handled(w, member) ? "handles replies" : "computes", stdout);
	if (s->hold)
		fputs("; under a hold", stdout);
	putchar('\n');
}

static void line_print(const struct why *w, uint32_t r)
{
	const struct rank_view *s = &w->now[r];
	printf("  rank %-4u pid %-7d ", r, (int)s->pid);
	if (s->waits)
		line_wait(w, r);
	else if (rank_deaf(w, r))
		fputs("computes, or has stopped: it has handled nothing meanwhile", stdout);
	else
		fputs(s->state == RANK_OPEN ? "runs and handles messages" : watch_state(s), stdout);
	if (s->hold)
		printf("; under %u hold%s, so that no handler runs", s->hold,
		       s->hold == 1 ? "" : "s");
	line_queue(w, r);
	line_packets(w, r);
	putchar('\n');
	for (uint32_t m = w->size, number = 0; m < w->graph.most; m++)
		if (w->now[m].rank == r && w->now[m].state == RANK_OPEN)
			line_worker(w, m, ++number);
}

/* -- The sentence ---------------------------------------------------------------------------- */

static bool cycle_stands(const struct why *w)
{
	for (uint32_t i = 0; i < w->graph.cycle_length; i++)
		if (rank_moved(w, w->graph.cycle[i]))
			return false;
	return w->graph.cycle_length > 0;
}

static void say_cycle(FILE *to, const struct why *w)
{
	const struct graph *g = &w->graph;
	fprintf(to, "a circle: rank %u waits for rank %u", g->cycle[0], g->cycle[1]);
	for (uint32_t i = 1; i < g->cycle_length; i++)
		fprintf(to, ", which waits for rank %u", g->cycle[(i + 1) % g->cycle_length]);
	fputs(", and none of them can go on.", to);
}

/* It waits for what the library does not know the sender of. */
static bool rank_vague(const struct why *w, uint32_t r)
{
	return w->now[r].waits && !ranks_count(w, is_awaited, r);
}

/*
 * The rank that most others wait for and that does not wait, or, if there is none, waits for nobody
 * in particular; size if there is neither.
 */
static uint32_t why_culprit(const struct why *w)
{
	uint32_t best = w->size, most = 0;
	for (int waits = 0; waits < 2 && best == w->size; waits++)
		for (uint32_t r = 0; r < w->size; r++) {
			bool fits = waits ? rank_vague(w, r) : !w->now[r].waits;
			uint32_t waiting = fits ? ranks_count(w, is_waiting_for, r) : 0;
			if (waiting > most) {
				most = waiting;
				best = r;
			}
		}
	return best;
}

/* It has handled nothing. */
static const char *culprit_does(const struct why *w, uint32_t r)
{
	static const char *const absent[] = { [RANK_EXPECTED] = "has not opened its endpoint",
					      [RANK_CLOSED] = "has closed its endpoint",
					      [RANK_GONE] = "has ended",
					      [RANK_DEAD] = "is dead",
					      [RANK_ELSEWHERE] = "is on another machine: `tern "
								 "why` there says what it does" };
	if (w->now[r].state != RANK_OPEN)
		return absent[rank_state(&w->now[r])];
	return w->now[r].hold ? "holds its handlers back (tern_hold)"
			      : "computes and does not poll";
}

static void say_culprit(FILE *to, const struct why *w, uint32_t culprit)
{
	bool one = ranks_count(w, is_waiting_for, culprit) == 1;
	ranks_print(to, w, is_waiting_for, culprit);
	fprintf(to, " %s for rank %u, which ", one ? "waits" : "wait", culprit);
	if (w->now[culprit].waits)
		fprintf(to, "itself waits in %s.", w->now[culprit].wait.text);
	else
		fprintf(to, "%s.", culprit_does(w, culprit));
}

static bool all_wait(const struct why *w)
{
	for (uint32_t r = 0; r < w->size; r++)
		if (w->now[r].state == RANK_OPEN && !w->now[r].waits)
			return false;
	return true;
}

/* "ranks 0, 2 have closed; rank 1 is dead": who takes no part in the job, in each way there is. */
static void say_absent(FILE *to, const struct why *w)
{
	static const char *const does[][2] = { [RANK_EXPECTED] = { "is not open", "are not open" },
					       [RANK_CLOSED] = { "has closed", "have closed" },
					       [RANK_GONE] = { "has ended", "have ended" },
					       [RANK_DEAD] = { "is dead", "are dead" },
					       [RANK_ELSEWHERE] = { "is on another machine",
								    "are on another machine" } };
	const char *between = "";
	for (uint32_t state = RANK_EXPECTED; state <= RANK_ELSEWHERE; state++) {
		uint32_t count = state == RANK_OPEN ? 0 : ranks_count(w, is_in_state, state);
		if (!count)
			continue;
		fputs(between, to);
		ranks_print(to, w, is_in_state, state);
		fprintf(to, " %s", does[state][count > 1]);
		between = "; ";
	}
}

static void say_all_wait(FILE *to, const struct why *w)
{
	uint32_t open = ranks_count(w, is_in_state, RANK_OPEN);
	fprintf(to,
		"every %srank waits, and none says for whom: what they wait for was never sent, "
		"or went elsewhere",
		open < w->size ? "open " : "");
	if (open < w->size) {
		fputs("; ", to);
		say_absent(to, w);
	}
	fputs(".", to);
}

static void say(FILE *to, const struct why *w)
{
	uint32_t culprit = why_culprit(w);
	if (cycle_stands(w))
		say_cycle(to, w);
	else if (culprit < w->size && !rank_moved(w, culprit))
		say_culprit(to, w, culprit);
	else if (why_handled(w))
		fputs("the job makes progress: messages are being handled.", to);
	else if (why_moved(w))
		fputs("the job makes progress: ranks open or leave it.", to);
	else if (!ranks_count(w, is_in_state, RANK_OPEN)) {
		fputs("no rank has an endpoint open: ", to);
		say_absent(to, w);
		fputs(".", to);
	} else if (all_wait(w))
		say_all_wait(to, w);
	else
		fputs("nobody is seen waiting for another rank.", to);
}

static void why_print(const struct why *w)
{
	printf("job of %d: %u ranks, %llu messages handled in half a second\n",
	       (int)w->watch->launcher, w->size, (unsigned long long)why_handled(w));
	for (uint32_t r = 0; r < w->size; r++)
		line_print(w, r);
	fputs("in short: ", stdout);
	say(stdout, w);
	putchar('\n');
}

/* -- JSON ------------------------------------------------------------------------------------- */

/* Of a rank or, behind the ranks, a worker. */
static void json_wait(struct json *j, const struct why *w, uint32_t member)
{
	const struct rank_view *s = &w->now[member];
	json_text(j, "state", watch_state(s));
	json_text(j, "waits_in", s->waits ? s->wait.text : NULL);
	json_begin(j, "waits_for", '[');
	for (uint32_t r = 0; r < w->size; r++)
		if (member < w->size ? graph_waits(&w->graph, member, r)
				     : s->waits && s->wait.known && s->wait.whom == r)
			json_whole(j, NULL, r);
	json_end(j, ']');
	if (s->waits)
		json_real(j, "seconds", (double)(clock_ns() - s->wait.since) / 1e9);
	json_whole(j, "holds", s->hold);
	json_whole(j, "handled", s->served);
}

static void json_rank(struct json *j, const struct why *w, uint32_t r)
{
	const struct rank_view *s = &w->now[r];
	char handler[HANDLER_TEXT];
	json_begin(j, NULL, '{');
	json_whole(j, "rank", s->rank);
	json_whole(j, "pid", (uint64_t)s->pid);
	json_wait(j, w, r);
	json_whole(j, "queue", s->queue);
	json_truth(j, "queue_exact", s->queue_exact);
	watch_handler(w->watch, s->queue_last, handler);
	json_text(j, "queue_last", s->queue ? handler : NULL);
	for (int i = 0; i < PULSE_COUNTS; i++)
		if (i != PULSE_ROOM_TICKS && i != PULSE_BLOCK_TICKS)
			json_whole(j, pulse_names[i], s->count[i]);
	json_begin(j, "workers", '[');
	for (uint32_t m = w->size; m < w->graph.most; m++)
		if (w->now[m].rank == r && w->now[m].state == RANK_OPEN) {
			json_begin(j, NULL, '{');
			json_wait(j, w, m);
			json_end(j, '}');
		}
	json_end(j, ']');
	json_end(j, '}');
}

static void json_say(struct json *j, const struct why *w)
{
	char *sentence = NULL;
	size_t len;
	FILE *to = open_memstream(&sentence, &len);
	if (!to)
		return;
	say(to, w);
	if (fclose(to) == 0)
		json_text(j, "why", sentence);
	free(sentence);
}

static void why_json(const struct why *w)
{
	struct json j = { .to = stdout };
	json_begin(&j, NULL, '{');
	json_whole(&j, "job", (uint64_t)w->watch->launcher);
	json_whole(&j, "size", w->size);
	json_whole(&j, "handled", why_handled(w));
	json_say(&j, w);
	json_begin(&j, "cycle", '[');
	for (uint32_t i = 0; cycle_stands(w) && i < w->graph.cycle_length; i++)
		json_whole(&j, NULL, w->graph.cycle[i]);
	json_end(&j, ']');
	json_begin(&j, "ranks", '[');
	for (uint32_t r = 0; r < w->size; r++)
		json_rank(&j, w, r);
	json_end(&j, ']');
	json_end(&j, '}');
}

/* -- The command --------------------------------------------------------------------------- */

static bool why_look(struct why *w)
{
	w->size = w->watch->job.size;
	uint32_t most = watch_most(w->watch);
	w->before = calloc(most, sizeof *w->before);
	w->now = calloc(most, sizeof *w->now);
	if (!w->before || !w->now)
		return false;
	watch_look(w->watch, w->before);
	world_nap(BETWEEN_NS);
	watch_look(w->watch, w->now);
	return graph_open(&w->graph, w->now, w->size, most);
}

bool why_explain(const struct watch *watch, bool json)
{
	struct why w = { .watch = watch };
	bool looked = why_look(&w);
	if (looked)
		(json ? why_json : why_print)(&w);
	else
		fprintf(stderr, "tern why: no memory for a job of %u ranks\n", w.size);
	graph_close(&w.graph);
	free(w.before);
	free(w.now);
	return looked;
}

int why_main(int argc, char **argv)
{
	struct watch_options o = { 0 };
	struct watch w;
	int status;
	const struct choice choices[] = { { .name = "--json", .flag = &o.json },
					  { .name = "--help" },
					  { 0 } };
	const struct options options = { .command = "why", .help = help_why, .choice = choices };
	if (!watch_options_read(&o, &options, argc, argv, &status))
		return status;
	if (!watch_open(&w, o.job, "tern why"))
		return 1;
	bool explained = why_explain(&w, o.json);
	watch_close(&w);
	return explained ? 0 : 1;
}
