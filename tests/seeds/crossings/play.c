/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * crossings SEED [OPTION=NUMBER...]: one rank of the program that follows from the seed; started by
 * `tern run` and `tern sim`. `crossings SEED list=RANKS` prints the program instead.
 */
#include "play.h"

#include <signal.h>
#include <stdarg.h>
#include <time.h>
#include <unistd.h>

#include <tern/sim.h>

struct program program;
tern *t;
uint32_t me;
struct place place[FAMILIES];
uint64_t gone;
int gone_code;
bool simulated;

static unsigned failures;
static bool calm; /* no handles */
static bool planted;

/* -- Comparing -------------------------------------------------------------------------------- */

void wrong(const struct step *s, const char *format, ...)
{
	char text[300];
	va_list list;
	va_start(list, format);
	vsnprintf(text, sizeof text, format, list);
	va_end(list);
	if (failures++ > 5)
		return;
	printf("seed %llu, rank %u: %s%s\n    at ", (unsigned long long)program.seed, me,
	       planted ? "(planted) " : "", text);
	step_print(s, stdout);
	fflush(stdout);
}

/* One comparison of a seed in a hundred is made wrong, to see that it is noticed. */
static bool plant(const struct step *s)
{
	if (program.planted < 0 || planted || s->number < (unsigned)program.planted)
		return false;
	return planted = true;
}

bool code_is(const struct step *s, const char *what, int rc, int want)
{
	if (rc == want)
		return true;
	wrong(s, "%s returns %d (%s), not %d", what, rc, rc < 0 ? tern_strerror(rc) : "", want);
	return false;
}

bool number_is(const struct step *s, const char *what, uint64_t got, uint64_t want)
{
	if (plant(s))
		got ^= 1;
	if (got == want)
		return true;
	wrong(s, "%s is %llu, not %llu", what, (unsigned long long)got, (unsigned long long)want);
	return false;
}

bool bytes_are(const struct step *s, const char *what, void *got, size_t at, size_t len,
	       uint64_t number)
{
	if (len && plant(s))
		((char *)got)[len / 2] ^= 1;
	size_t good = content_check(got, at, len, number);
	if (good == len)
		return true;
	wrong(s, "%s: byte %zu of %zu is wrong", what, good, len);
	return false;
}

bool same_bytes(const struct step *s, const char *what, void *got, const void *want, size_t len)
{
	if (len && plant(s))
		((char *)got)[len / 2] ^= 1;
	const unsigned char *a = got, *b = want;
	size_t i = 0;
	while (i < len && a[i] == b[i])
		i++;
	if (i == len)
		return true;
	wrong(s, "%s: byte %zu of %zu is %02x, not %02x", what, i, len, a[i], b[i]);
	return false;
}

int failed(void)
{
	return failures != 0;
}

/* -- What is under way ------------------------------------------------------------------------ */

enum { MARGIN = 16, FILL = 0xee, UNDERWAY_MOST = 24 };

static struct pending *first, **last = &first;
static unsigned underway;

struct pending *pending_new(const struct step *s, unsigned i, size_t bytes,
			    void (*check)(struct pending *w, int rc))
{
	struct pending *w = calloc(1, sizeof *w);
	*w = (struct pending){ .op = TERN_OP, .s = s, .i = i, .len = bytes, .check = check };
	w->bytes = malloc(bytes + MARGIN);
	memset(w->bytes, FILL, bytes + MARGIN);
	return w;
}

void pending_drop(struct pending *w)
{
	free(w->own[0]);
	free(w->own[1]);
	free(w->bytes);
	free(w);
}

static void pending_end(struct pending *w, int rc)
{
	if (!untouched(w, w->len))
		wrong(w->s, "something is written behind %zu bytes", w->len);
	w->check(w, rc);
	pending_drop(w);
}

void pending_begun(struct pending *w, int rc, bool stay)
{
	if (rc || !stay) {
		pending_end(w, rc);
		return;
	}
	*last = w;
	last = &w->next;
	underway++;
}

void pending_wait_all(void)
{
	while (first) {
		struct pending *w = first;
		int rc = tern_op_wait(t, &w->op);
		first = w->next;
		if (!first)
			last = &first;
		underway--;
		pending_end(w, rc);
	}
}

bool untouched(const struct pending *w, size_t from)
{
	for (size_t i = from; i < w->len + MARGIN; i++)
		if ((unsigned char)w->bytes[i] != FILL)
			return false;
	return true;
}

/* -- The rank --------------------------------------------------------------------------------- */

void come_late(const struct step *s)
{
	if (!step_has(s->late, me))
		return;
	uint64_t us =
		1 + content_of(s->value, 900 + me) % (s->number < program.lasting ? 500 : 20000);
	const tern_work work = { .integer = 1000 * us };
	if (simulated) {
		(void)tern_sim_work(t, &work);
		return;
	}
	struct timespec nap = { .tv_nsec = (long)us * 1000 };
	nanosleep(&nap, NULL);
}

bool waits_here(const struct step *s)
{
	return calm || !step_has(s->started, me);
}

uint64_t word_pass(const struct step *s, uint32_t from, uint32_t to, unsigned n, uint64_t word)
{
	const tern_id id = (tern_id)(1000 + s->number) << 16 | n;
	if (from == to)
		return word;
	if (me == from)
		code_is(s, "tern_send()", tern_send(t, to, id, &word, sizeof word), 0);
	if (me == to)
		code_is(s, "tern_recv()", tern_recv(t, from, id, &word, sizeof word, NULL), 0);
	return word;
}

static void barrier_play(const struct step *s)
{
	pending_wait_all();
	replies_wait(s);
	code_is(s, "tern_barrier()", tern_barrier(t), gone ? gone_code : 0);
	if (gone)
		return;
	handled_check(s, false);
	shared_check(s);
	locked_check(s);
	async_check(s);
	sequence_check(s);
	/* What is compared here must not change until all have compared it. */
	code_is(s, "tern_barrier()", tern_barrier(t), 0);
}

static void (*const players[KINDS])(const struct step *s) = {
	[SEND] = send_play,       [PUT] = put_play,        [GET] = get_play,
	[AMO] = amo_play,         [STORE] = store_play,    [REQUEST] = request_play,
	[POST] = post_play,       [TYPED] = typed_play,    [CHAN] = chan_play,
	[ASYNC] = async_play,     [SPAWN] = spawn_play,    [CALL] = call_play,
	[MAKE] = make_play,       [FREE] = free_play,      [BARRIER] = barrier_play,
	[QUIET] = quiet_play,     [LOSE] = lose_play,      [SIGNAL] = signal_play,
	[LOCK] = lock_play,       [BLOCK] = sequence_play, [STREAM] = sequence_play,
	[SEGMENT] = segment_play, [REGION] = region_play,  [WORKER] = worker_play,
	[KEEP] = keep_play,       [CANCEL] = cancel_play,
};

/* Of a job that hangs, and is ended by its launcher: where each rank is. */
static volatile unsigned at_step;
static bool saying; /* each step as it is played */

static void on_end(int signal)
{
	char text[80];
	int n = snprintf(text, sizeof text, "rank %u is at step %u\n", me, at_step);
	(void)!write(STDOUT_FILENO, text, (size_t)n);
	_exit(128 + signal);
}

static bool between_two(enum kind kind)
{
	return kind < CALL;
}

static void step_play(const struct step *s)
{
	bool two = between_two(s->kind);
	at_step = s->number;
	if (saying) {
		printf("%.3f us, rank %u: ", (double)tern_time(t) / 1000, me);
		step_print(s, stdout);
		fflush(stdout);
	}
	if (two && s->from != me && s->to != me)
		return;
	if (s->kind == LOSE)
		others_are_ready(s);
	come_late(s);
	if (two && (step_has(gone, s->from) || step_has(gone, s->to)))
		lost_play(s, step_has(gone, s->from) ? s->from : s->to);
	else
		players[s->kind](s);
	if (underway > UNDERWAY_MOST || content_of(s->value, 800 + me) % 3 == 0)
		pending_wait_all();
}

static void on_lost(tern *own, uint32_t rank, int why, void *arg)
{
	(void)why, (void)arg;
	tern_forgive(own, rank);
}

static int play(void)
{
	const struct step last_step = { .number = program.steps, .kind = BARRIER };
	simulated = getenv("TERN_NET") && strcmp(getenv("TERN_NET"), "sim") == 0;
	if (tern_lost_on(t, on_lost, NULL) != 0)
		return 1;
	signal(SIGTERM, on_end);
	requests_open();
	more_open();
	sequence_open();
	regions_open();
	workers_open();
	teams_open();
	memory_open();
	for (unsigned i = 0; i < program.steps; i++)
		step_play(&program.step[i]);
	pending_wait_all();
	if (program.ending == ENDS_AFTER_A_LOSS)
		left_meet();
	code_is(&last_step, "tern_close()", tern_close(t), 0);
	return failed();
}

static bool option_read(struct wish *w, const char *text)
{
	static const char *const names[WISHES] = { "ending", "call",  "lost",   "victim",
						   "second", "after", "after2", "kind",
						   "values", "list",  "say",    "calm" };
	for (unsigned i = 0; i < WISHES; i++) {
		size_t len = strlen(names[i]);
		if (strncmp(text, names[i], len) == 0 && text[len] == '=') {
			w->of[i] = atoi(text + len + 1);
			return true;
		}
	}
	return false;
}

int main(int argc, char **argv)
{
	struct wish w;
	memset(&w, -1, sizeof w);
	bool good = argc > 1;
	for (int i = 2; i < argc; i++)
		good &= option_read(&w, argv[i]);
	if (!good) {
		fprintf(stderr, "usage: crossings SEED [list=RANKS] [OPTION=NUMBER...]\n");
		return 2;
	}
	saying = w.of[SAY] > 0;
	calm = w.of[CALM] > 0;
	uint64_t seed = strtoull(argv[1], NULL, 0);
	if (w.of[LIST] >= 0) {
		program_make(&program, seed, (uint32_t)w.of[LIST], &w);
		for (unsigned i = 0; i < program.steps; i++)
			step_print(&program.step[i], stdout);
		return 0;
	}
	int rc = tern_open(&t, NULL);
	if (rc) {
		fprintf(stderr, "crossings: %s\n", tern_strerror(rc));
		return 2;
	}
	me = tern_rank(t);
	program_make(&program, seed, tern_size(t), &w);
	return play();
}
