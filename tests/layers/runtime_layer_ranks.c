/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The ranks of runtime_layer_test.sh: whether the layer of examples/runtime keeps what a language
 * relies on. Messages of every kind and argument count, exact completion, order, scattered memory
 * against a reference, contended atomics, teams, threads. Linked with the installed interface
 * alone.
 *
 * runtime_layer_ranks [own | file | exit]: segments are memory of the program's, be it of a file's;
 * or one rank ends the job.
 */
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "runtime_layer.h"

static tern_flag answers, hops, counts;
static bool segment_new; /* and not memory of the program's own */

static void wait_for(tern_flag *flag, uint64_t n)
{
	rt_must(tern_wait(rt_here.t, flag, n));
}

/* -- Messages: what the i-th argument is follows from how many there are -------------------- */

enum kind { SHORT, MEDIUM, LONG };

/* What the message under way is; the receiver finds it in the sender's area. */
struct shape {
	enum kind kind;
	unsigned n;
	size_t len, answer;
};

static uint32_t arg_of(unsigned i, unsigned n)
{
	return UINT32_C(0x9e3779b9) * (i + 1) ^ n << 27;
}

static void args_set(uint32_t *args, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		args[i] = arg_of(i, n);
}

static void arrived(const struct shape *s, size_t len, const uint32_t *args, unsigned n,
		    const char *data, size_t got)
{
	CHECK(n == s->n);
	for (unsigned i = 0; i < n; i++)
		CHECK(args[i] == arg_of(i, n));
	CHECK(got == (s->kind == SHORT ? 0 : len));
	CHECK((data != NULL) == (s->kind != SHORT));
	CHECK(filled(data, got, n));
}

static const struct shape *shape_from(uint32_t src)
{
	return (struct shape *)(void *)(area(rt.rank, src) + AREA - 64);
}

static void on_ask(rt_token *token, const uint32_t *args, unsigned n, void *data, size_t len)
{
	static char answer[AREA];
	const struct shape *s = shape_from(token->src);
	arrived(s, s->len, args, n, data, len);
	CHECK(!rt_is_reply(token));
	if (s->kind == LONG)
		CHECK(data == area(rt.rank, token->src));
	fill(answer, s->answer, n);
	if (s->kind == LONG)
		rt_reply_long(token, ANSWER, area(token->src, rt.rank) + HALF, answer, s->answer, n,
			      args);
	else
		rt_reply(token, ANSWER, s->kind == SHORT ? NULL : answer, s->answer, n, args);
	memset(answer, 0, s->answer); /* the source is free on return */
}

static struct shape asked;

static void on_answer(rt_token *token, const uint32_t *args, unsigned n, void *data, size_t len)
{
	arrived(&asked, asked.answer, args, n, data, len);
	CHECK(rt_is_reply(token));
	if (asked.kind == LONG)
		CHECK(data == area(rt.rank, token->src) + HALF);
	tern_signal(rt_here.t, &answers, 1);
}

static void ask(uint32_t rank, const struct shape *s)
{
	static char data[AREA];
	uint32_t args[RT_ARGS_MAX];
	tern_op local = TERN_OP;
	asked = *s;
	args_set(args, s->n);
	fill(data, s->len, s->n);
	rt_put(rank, area(rank, rt.rank) + AREA - 64, s, sizeof *s, NULL);
	tern_op *how = s->n % 3 == 0 ? NULL : s->n % 3 == 1 ? &local : rt_implicit(RT_SOURCES);
	if (s->kind == LONG)
		rt_request_long(rank, ASK, area(rank, rt.rank), data, s->len, how, s->n, args);
	else
		rt_request(rank, ASK, s->kind == SHORT ? NULL : data, s->len, s->n, args);
	rt_sync(RT_SOURCES);
	rt_wait(&local);
	memset(data, 0, s->len); /* the source is free */
	wait_for(&answers, 1);
}

static void messages_of_every_kind_and_count(void)
{
	static const size_t medium[] = { 0, 1, 64, 5000, 9000, RT_MEDIUM_MAX };
	static const size_t large[] = { 0, 8, 4096, RT_LONG_REPLY_MAX, 20000, HALF - 64 };
	for (uint32_t k = 0; k < rt.size; k++) {
		uint32_t rank = (rt.rank + k) % rt.size;
		for (unsigned n = 0; n <= RT_ARGS_MAX; n++) {
			ask(rank, &(struct shape){ SHORT, n, 0, 0 });
			for (unsigned i = 0; i < 6; i++)
				ask(rank, &(struct shape){ MEDIUM, n, medium[i], medium[5 - i] });
			for (unsigned i = 0; i < 6; i++) {
				size_t back = large[5 - i];
				if (n > RT_LONG_ARGS && back > RT_LONG_REPLY_MAX)
					back = RT_LONG_REPLY_MAX;
				ask(rank, &(struct shape){ LONG, n, large[i], back });
			}
		}
	}
}

/* -- Messages that find no room, or follow from others ---------------------------------------- */

static void on_count(rt_token *token, const uint32_t *args, unsigned n, void *data, size_t len)
{
	(void)token, (void)args, (void)n, (void)data;
	CHECK(len == 0 || filled(data, len, 3));
	tern_signal(rt_here.t, &counts, 1);
}

static void a_request_without_room_is_not_sent(void)
{
	uint64_t sent = 0;
	uint32_t args[3] = { 0 };
	tern_hold(rt_here.t);
	while (!rt_request(rt.rank, COUNT, NULL, 0, 3, args))
		sent++;
	tern_release(rt_here.t);
	CHECK(sent > 0);
	wait_for(&counts, sent);
	rt_request(rt.rank, COUNT, NULL, 0, 0, NULL);
	wait_for(&counts, 1);
	CHECK(counts == 0);
}

static void a_claim_is_filled_in_place_and_shortened(void)
{
	void *claimed;
	rt_must(tern_claim(rt_here.t, (rt.rank + 1) % rt.size, 5000, &claimed));
	fill(claimed, 5000, 3);
	rt_commit(NULL, claimed, COUNT, 777, 0, NULL);
	wait_for(&counts, 1);
}

/* Abandons one claim for its reply, and sends the beginning of another. */
static void on_compose(rt_token *token, const uint32_t *args, unsigned n, void *data, size_t len)
{
	void *claimed;
	(void)n, (void)data, (void)len;
	rt_must(tern_reply_claim(rt_here.t, token->m, 100, TERN_CLAIM_FRESH, &claimed));
	rt_must(tern_abandon(rt_here.t, claimed));
	rt_must(tern_reply_claim(rt_here.t, token->m, RT_MEDIUM_MAX, TERN_CLAIM_FRESH, &claimed));
	fill(claimed, args[0], 3);
	rt_commit(token, claimed, COUNT, args[0], 0, NULL);
}

static void so_is_a_reply(void)
{
	static const uint32_t lengths[] = { 0, 10, 9000, RT_MEDIUM_MAX };
	for (unsigned i = 0; i < 4; i++) {
		rt_request((rt.rank + 1) % rt.size, COMPOSE, NULL, 0, 1, &lengths[i]);
		wait_for(&counts, 1);
	}
}

/* Beside the segment, from a page on; and who shares it is known without asking. */
static void memory_begins_a_page_where_it_is_asked_to(void)
{
	char *page = rt_shared(4096, 4096);
	CHECK(((uintptr_t)page & 4095) == 0);
	if (segment_new) {
		rt_put_value(rt.rank, page, 9, 8, NULL);
		CHECK(rt_get_value(rt.rank, page, 8) == 9);
	}
	rt_must(tern_free(rt_here.t, page));
	CHECK(rt.machines >= 1 && tern_machine(rt_here.t, rt.rank) < rt.machines);
}

struct hop {
	uint32_t origin, left;
};

static void hop_on(tern *t, void *arg)
{
	struct hop *h = arg;
	(void)t;
	uint32_t args[] = { h->origin, h->left }, next = (rt.rank + 1) % rt.size;
	rt_request(h->left ? next : h->origin, HOP, NULL, 0, 2, args);
	free(h);
}

static void on_hop(rt_token *token, const uint32_t *args, unsigned n, void *data, size_t len)
{
	(void)token, (void)n, (void)data, (void)len;
	if (args[1] == 0 && args[0] == rt.rank) {
		tern_signal(rt_here.t, &hops, 1);
		return;
	}
	struct hop *h = malloc(sizeof *h);
	CHECK(h);
	*h = (struct hop){ args[0], args[1] - 1 };
	rt_must(tern_defer(rt_here.t, hop_on, h));
}

static void handlers_let_requests_follow(void)
{
	uint32_t args[] = { rt.rank, 5 * rt.size };
	for (int i = 0; i < 4; i++)
		rt_request((rt.rank + 1) % rt.size, HOP, NULL, 0, 2, args);
	wait_for(&hops, 4);
}

/* -- Completion and order ------------------------------------------------------------------ */

/* Whether what the sender put before is here: args are an offset, a length and a key. */
static void on_look(rt_token *token, const uint32_t *args, unsigned n, void *data, size_t len)
{
	(void)n, (void)data, (void)len;
	CHECK(filled(area(rt.rank, token->src) + args[0], args[1], args[2]));
	rt_reply(token, COUNT, NULL, 0, 0, NULL);
}

static void look(uint32_t rank, size_t offset, size_t len, unsigned key)
{
	uint32_t args[] = { (uint32_t)offset, (uint32_t)len, key };
	rt_request(rank, LOOK, NULL, 0, 3, args);
}

static void a_complete_put_is_there_before_the_next_message(void)
{
	static char data[AREA];
	static const size_t lengths[] = { 1, 8, 100, 4096, 8192, 8193, 70000 };
	for (unsigned i = 0; i < 140; i++) {
		size_t len = lengths[i % 7];
		uint32_t rank = (uint32_t)chance(rt.size);
		char *to = area(rank, rt.rank);
		tern_op local = TERN_OP, e = TERN_OP;
		fill(data, len, i);
		switch (i % 5) {
		case 0:
			rt_put(rank, to, data, len, NULL);
			break;
		case 1:
			rt_put(rank, to, data, len, &e);
			break;
		case 2:
			rt_put_local(rank, to, data, len, &local, NULL);
			fill(data, len, i + 1);
			break;
		case 3:
			rt_put_local(rank, to, data, len, &local, &e);
			rt_wait(&local);
			fill(data, len, i + 1);
			break;
		default:
			rt_put_local(rank, to, data, len, rt_implicit(RT_SOURCES),
				     rt_implicit(RT_PUTS));
			rt_sync(RT_SOURCES);
			fill(data, len, i + 1);
			rt_sync(RT_PUTS);
		}
		rt_wait(&e);
		look(rank, 0, len, i);
		wait_for(&counts, 1);
	}
}

static void a_request_follows_scattered_data(void)
{
	static char data[3000];
	for (unsigned i = 0; i < 30; i++) {
		uint32_t rank = (uint32_t)chance(rt.size), args[] = { 0, sizeof data, i };
		char *to = area(rank, rt.rank);
		tern_part dst[] = { { .base = to, .run = 1000 },
				    { .base = to + 1000, .run = 2000 } };
		tern_part src[] = { { .base = data, .run = 1 }, { .base = data + 1, .run = 2999 } };
		tern_parts parts = { rt_at(rank, dst, 2), src, 2, 2 };
		tern_op local = TERN_OP;
		fill(data, sizeof data, i);
		CHECK(!rt_request_parts(LOOK, &parts, &local, way(i, RT_PUTS), 3, args));
		memset(dst, 0xee, sizeof dst); /* the lists are free on return */
		rt_wait(&local);
		memset(data, 0, sizeof data);
		wait_for(&counts, 1);
		finish(RT_PUTS);
	}
}

enum { SLOTS = 96, SLOT = 1024 };

static size_t slot_length(unsigned i)
{
	return i % 11 == 0 ? 8 : 1 + i * 37 % SLOT;
}

static void slots_verify(uint32_t rank, unsigned key)
{
	static char back[SLOTS][SLOT];
	tern_op e[SLOTS], *pending[SLOTS];
	memset(back, 0, sizeof back);
	memset(e, 0, sizeof e);
	for (unsigned i = 0; i < SLOTS; i++) {
		pending[i] = &e[i];
		rt_get(back[i], rank, area(rank, rt.rank) + i * SLOT, slot_length(i), &e[i]);
	}
	for (size_t n = SLOTS, which; n; pending[which] = pending[--n]) {
		rt_must(tern_op_wait_any(rt_here.t, pending, n, &which));
		unsigned i = (unsigned)(pending[which] - e);
		CHECK(filled(back[i], slot_length(i), key + i));
	}
}

static void puts_overlap_and_each_completes_for_itself(void)
{
	static char data[SLOTS][SLOT];
	tern_op e[SLOTS], region = TERN_OP;
	memset(e, 0, sizeof e);
	for (unsigned round = 0; round < 6; round++) {
		uint32_t rank = (rt.rank + round) % rt.size;
		rt_region_begin(round == 3 ? &region : NULL);
		for (unsigned i = 0; i < SLOTS; i++) {
			fill(data[i], slot_length(i), round + i);
			rt_put(rank, area(rank, rt.rank) + i * SLOT, data[i], slot_length(i),
			       round % 3 ? &e[i] : rt_implicit(RT_PUTS));
		}
		rt_region_begin(NULL);
		rt_wait(&region);
		for (unsigned i = 0; i < SLOTS && round == 1; i++) {
			unsigned other = i * 35 % SLOTS; /* in another order */
			rt_wait(&e[other]);
			look(rank, other * SLOT, slot_length(other), round + other);
		}
		wait_for(&counts, round == 1 ? SLOTS : 0);
		for (unsigned i = 0; i < SLOTS; i++)
			while (!rt_test(&e[i]))
				sched_yield();
		rt_sync(RT_ALL);
		slots_verify(rank, round);
	}
}

static void values_and_tests(void)
{
	uint32_t rank = (rt.rank + 1) % rt.size;
	char *to = area(rank, rt.rank);
	for (uint64_t i = 0; i < 100; i++) {
		size_t len = (size_t)1 << i % 4;
		rt_put_value(rank, to, i * 3, len, &own);
		rt_wait(&own);
		CHECK(rt_get_value(rank, to, len) == (len == 1 ? (uint8_t)(i * 3) : i * 3));
		rt_put_value(rank, to + 8, i, 8, rt_implicit(RT_PUTS));
		rt_sync(RT_PUTS);
		CHECK(rt_try_sync(RT_ALL));
		CHECK(rt_get_value(rank, to + 8, 8) == i);
	}
}

/* -- Atomics ------------------------------------------------------------------------------- */

enum { TIMES = 200 };

static void contended_atomics_lose_nothing(void)
{
	struct words *w = words_at(0);
	uint64_t old[TIMES], seen, before;
	uint32_t *no32 = NULL;
	double *no_double = NULL, sum;
	float *no_float = NULL, single;
	for (unsigned i = 0; i < TIMES; i++) {
		tern_op *op = way(i, RT_ATOMICS);
		rt_atomic(0, &w->wide, TERN_AMO_ADD, 1, &old[i], op);
		rt_atomic(0, &w->narrow, TERN_AMO_ADD, 1, no32, op);
		rt_atomic(0, &w->sum, TERN_AMO_ADD, 0.5, no_double, op);
		rt_atomic(0, &w->single, TERN_AMO_ADD, 0.25f, no_float, op);
		rt_atomic(0, &w->most, TERN_AMO_MAX, rt.rank * TIMES + i, (uint64_t *)NULL, op);
		rt_atomic(0, &w->most32, TERN_AMO_MAX, -1 - (int)i, (int32_t *)NULL, op);
		finish(RT_ATOMICS);
		CHECK(rt_get_value(0, &w->wide, 8) > old[i]);
		do { /* one more, by compare-and-swap */
			seen = rt_get_value(0, &w->swapped, 8);
			rt_compare_swap(0, &w->swapped, seen, seen + 1, &before, NULL);
		} while (before != seen);
	}
	for (unsigned i = 1; i < TIMES; i++)
		CHECK(old[i] > old[i - 1]);
	meet();
	uint64_t all = (uint64_t)TIMES * rt.size;
	CHECK(rt_get_value(0, &w->wide, 8) == all);
	CHECK(rt_get_value(0, &w->narrow, 4) == all);
	CHECK(rt_get_value(0, &w->swapped, 8) == all);
	CHECK(rt_get_value(0, &w->most, 8) == all - 1);
	CHECK(rt_get_value(0, &w->most32, 4) == 0); /* all others are negative */
	rt_atomic(0, &w->sum, TERN_AMO_LOAD, 0, &sum, NULL);
	CHECK(sum == 0.5 * (double)all);
	rt_atomic(0, &w->single, TERN_AMO_LOAD, 0, &single, NULL);
	CHECK(single == 0.25f * (float)all);
}

/* -- Teams --------------------------------------------------------------------------------- */

static void teams_meet_and_reduce(void)
{
	tern_team *half;
	uint32_t me = rt.rank, same = (rt.size + 1 - me % 2) / 2;
	rt_must(tern_team_split(rt.world, (int)(me % 2), 0, &half));
	CHECK(tern_team_size(half) == same);
	for (int i = 0; i < 30; i++) {
		tern_op *op = way((unsigned)i, RT_TEAMS);
		uint32_t root = (uint32_t)i % same;
		uint64_t in = me + 1, sum = 0, all = 0, told = 0;
		double most = 0, mine = me * 1.5;
		rt_broadcast(half, root, &told, &in, sizeof told, op);
		rt_reduce(half, root, &sum, &in, 1, TERN_TYPE_UINT64, TERN_REDUCE_SUM, op);
		rt_reduce(rt.world, RT_EVERYONE, &most, &mine, 1, TERN_TYPE_DOUBLE, TERN_REDUCE_MAX,
			  op);
		rt_barrier(half, op);
		finish(RT_TEAMS);
		CHECK(told == tern_team_member(half, root) + 1);
		for (uint32_t k = 0; k < same; k++)
			all += tern_team_member(half, k) + 1;
		CHECK(tern_team_rank(half) != root || sum == all);
		CHECK(most == (rt.size - 1) * 1.5);
	}
	rt_must(tern_team_free(half));
}

/* The greater of each, and how many there were: an element that is none of Tern's types. */
struct greatest {
	uint32_t value, of;
};

static void greater(void *left, const void *right, size_t n, void *arg)
{
	struct greatest *l = left;
	const struct greatest *r = right;
	for (size_t i = 0; i < n; i++) {
		l[i].value = l[i].value > r[i].value ? l[i].value : r[i].value;
		l[i].of += r[i].of;
	}
	CHECK(*(int *)arg == 5);
}

static void teams_of_disjoint_lists_reduce_in_a_way_of_their_own(void)
{
	static int five = 5;
	uint32_t mine[RANKS_MOST], n = 0;
	for (uint32_t r = rt.rank % 2; r < rt.size; r += 2)
		mine[n++] = r;
	tern_team *team;
	rt_must(tern_team_list(rt.world, mine, n, &team));
	const tern_reduce_op op = { greater, &five, sizeof(struct greatest) };
	struct greatest in = { rt.rank, 1 }, out;
	rt_reduce(team, RT_EVERYONE, &out, &in, 1, TERN_TYPE_USER, TERN_REDUCE_BY(&op), NULL);
	CHECK(out.value == mine[n - 1] && out.of == n);
	rt_must(tern_team_free(team));
}

/* -- Main ------------------------------------------------------------------------------------ */

static void (*const tests[])(void) = {
	messages_of_every_kind_and_count,
	a_request_without_room_is_not_sent,
	a_claim_is_filled_in_place_and_shortened,
	so_is_a_reply,
	memory_begins_a_page_where_it_is_asked_to,
	handlers_let_requests_follow,
	a_complete_put_is_there_before_the_next_message,
	a_request_follows_scattered_data,
	puts_overlap_and_each_completes_for_itself,
	values_and_tests,
	strided_transfers_are_those_of_the_reference,
	indexed_transfers_are_those_of_the_reference,
	contended_atomics_lose_nothing,
	teams_meet_and_reduce,
	teams_of_disjoint_lists_reduce_in_a_way_of_their_own,
	threads_call_ranks_and_each_other,
};

static void last_words(tern *t, int number, void *arg)
{
	(void)t, (void)arg;
	printf("rank %u is ended by signal %d\n", rt.rank, number);
	fflush(stdout);
}

/* New memory, or memory of the program's own: of no file, or of one. */
static void segment_open(const char *how)
{
	enum { BYTES = (RANKS_MOST + 1) * AREA };
	bool file = !strcmp(how, "file");
	int fd = file ? memfd_create("segment", MFD_CLOEXEC) : -1;
	void *given = NULL;
	CHECK(!file || !ftruncate(fd, BYTES));
	if (file || !strcmp(how, "own"))
		given = mmap(NULL, BYTES, PROT_READ | PROT_WRITE,
			     file ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, fd, 0);
	CHECK(given != MAP_FAILED);
	segment_new = !given;
	rt_attach(given, BYTES, fd);
}

int main(int argc, char **argv)
{
	rt_open();
	rt_on(ASK, on_ask);
	rt_on(ANSWER, on_answer);
	rt_on(LOOK, on_look);
	rt_on(HOP, on_hop);
	rt_on(COUNT, on_count);
	rt_on(COMPOSE, on_compose);
	rt_on(CALL, on_call);
	rt_on(CALLED, on_called);
	CHECK(rt.size <= RANKS_MOST);
	segment_open(argc > 1 ? argv[1] : "");
	state = rt.rank + 1;
	if (argc > 1 && !strcmp(argv[1], "exit")) {
		rt_last(last_words);
		meet();
		if (rt.rank == rt.size - 1)
			rt_exit(7);
		wait_for(&counts, 1); /* that never comes */
	}
	for (size_t i = 0; i < sizeof tests / sizeof tests[0]; i++) {
		tests[i]();
		rt_must(tern_barrier(rt_here.t));
	}
	if (rt.rank == 0)
		printf("%zu of %zu\n", sizeof tests / sizeof tests[0],
		       sizeof tests / sizeof tests[0]);
	rt_close();
	return 0;
}
