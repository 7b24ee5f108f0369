/* SPDX-License-Identifier: BSD-3-Clause */
/* Creating threads, their ends, their limits; by one kernel thread that plays all ranks. */
#include "lib/threads.h"

#include "core/direct.h"
#include "core/scope.h"
#include "spawn/context.h"

enum { ADD, STAY, NOTE, SPAWN_MORE, SELF, OTHER };

static struct ending ended;

static uint64_t add(tern *t, const uint64_t word[TERN_WORDS_MAX], void *arg)
{
	(void)arg;
	(void)t;
	return word[0] + word[1] + word[2] + word[3] + word[4] + word[5] + word[6] + word[7];
}

static _Atomic uint64_t gate; /* of all threads that stay */

static uint64_t stay(tern *t, const uint64_t word[TERN_WORDS_MAX], void *arg)
{
	(void)arg;
	CHECK_IS(tern_wait(t, &gate, 1), 0);
	return word[0];
}

static uint64_t noted[8192];
static unsigned notes;

static uint64_t note(tern *t, const uint64_t word[TERN_WORDS_MAX], void *arg)
{
	(void)arg;
	(void)t;
	noted[notes++] = word[0];
	return 0;
}

static void open_all(uint32_t n)
{
	threads_open(n);
	threads_on(ADD, add);
	threads_on(STAY, stay);
	threads_on(NOTE, note);
}

TEST(a_thread_runs_at_its_rank_and_its_result_comes_back)
{
	open_all(2);
	CHECK_IS(tern_spawn(local[0], 1, ADD, note_ending, &ended, 40, 2), 0);
	CHECK_IS(ended.count, 0);
	await(&ended, 1);
	CHECK_IS(ended.rank, 1);
	CHECK_IS(ended.rc, 0);
	CHECK_IS(ended.result, 42);
	local_close();
}

TEST(a_thread_gets_none_to_eight_words_and_zeros_for_the_rest)
{
	open_all(2);
	CHECK_IS(tern_spawn(local[0], 1, ADD, note_ending, &ended), 0);
	await(&ended, 1);
	CHECK_IS(ended.result, 0);
	CHECK_IS(tern_spawn(local[0], 1, ADD, note_ending, &ended, 1, 2, 3, 4, 5), 0);
	await(&ended, 2);
	CHECK_IS(ended.result, 15);
	CHECK_IS(tern_spawn(local[0], 1, ADD, note_ending, &ended, 1, 2, 3, 4, 5, 6), 0);
	await(&ended, 3);
	CHECK_IS(ended.result, 21);
	CHECK_IS(tern_spawn(local[0], 1, ADD, note_ending, &ended, 1, 2, 3, 4, 5, 6, 7), 0);
	await(&ended, 4);
	CHECK_IS(ended.result, 28);
	CHECK_IS(tern_spawn(local[0], 1, ADD, note_ending, &ended, 1, 2, 3, 4, 5, 6, 7, 8), 0);
	await(&ended, 5);
	CHECK_IS(ended.result, 36);
	local_close();
}

TEST(words_from_an_array_are_those_that_are_given_one_by_one)
{
	uint64_t words[] = { 1, 2, 3, 4, 5, 6, 7, 8, 1000 }, result = 0;
	tern_thread thread;
	open_all(3);
	for (unsigned n = 0, sum = 0; n <= TERN_WORDS_MAX; n++, sum += n) {
		CHECK_IS(tern_spawn_array(local[0], 1, ADD, note_ending, &ended, n, words), 0);
		await(&ended, n + 1);
		CHECK_IS(ended.result, sum);
		CHECK_IS(tern_thread_start_array(local[0], 2, ADD, &thread, n, words), 0);
		CHECK_IS(tern_thread_join(local[0], &thread, &result), 0);
		CHECK_IS(result, sum);
	}
	tern_spawn_args some = {
		.count = 2, .id = ADD, .n = 2, .words = words, .done = note_ending, .arg = &ended
	};
	CHECK_IS(tern_spawn_with(local[0], &some), 0);
	await(&ended, 11);
	CHECK_IS(ended.result, 3);
	some.rank = TERN_RANK_ALL;
	some.n = 3;
	CHECK_IS(tern_spawn_with(local[0], &some), 0);
	await(&ended, 14);
	CHECK_IS(ended.result, 6);
	CHECK_IS(tern_spawn_array(local[0], 1, ADD, note_ending, &ended, 0, NULL), 0);
	await(&ended, 15);
	CHECK_IS(ended.result, 0);
	CHECK_IS(tern_spawn_array(local[0], 1, ADD, note_ending, &ended, 9, words), -E2BIG);
	some.n = 9;
	CHECK_IS(tern_spawn_with(local[0], &some), -E2BIG);
	CHECK_IS(tern_thread_start_array(local[0], 1, ADD, &thread, 9, words), -E2BIG);
	CHECK_IS(thread.pending, 0);
	local_close();
}

static uint64_t halve(tern *t, const uint64_t word[TERN_WORDS_MAX], void *arg)
{
	(void)arg;
	double d;
	(void)t;
	memcpy(&d, &word[0], sizeof d);
	return d == 2.75;
}

TEST(a_double_travels_as_its_bits)
{
	open_all(2);
	threads_on(STAY, halve);
	CHECK_IS(tern_spawn(local[0], 1, STAY, note_ending, &ended, 2.75), 0);
	await(&ended, 1);
	CHECK_IS(ended.result, 1);
	local_close();
}

TEST(a_rank_creates_threads_on_itself)
{
	open_all(1);
	CHECK_IS(tern_spawn(local[0], 0, ADD, note_ending, &ended, 1, 1), 0);
	await(&ended, 1);
	CHECK_IS(ended.result, 2);
	local_close();
}

TEST(a_callback_is_not_needed)
{
	open_all(2);
	CHECK_IS(tern_spawn(local[0], 1, NOTE, NULL, NULL, 7), 0);
	while (!notes)
		everybody();
	CHECK_IS(noted[0], 7);
	local_close();
}

static int spawn_on(uint32_t from, uint32_t rank, uint32_t count)
{
	return tern_spawn_with(local[from], &(tern_spawn_args){ .rank = rank,
								.count = count,
								.id = ADD,
								.n = 1,
								.words = &(uint64_t){ 9 },
								.done = note_ending,
								.arg = &ended });
}

TEST(threads_on_several_ranks_or_on_all_have_a_callback_each)
{
	open_all(5);
	CHECK_IS(spawn_on(2, 0, 3), 0);
	await(&ended, 3);
	CHECK_IS(spawn_on(2, TERN_RANK_ALL, 0), 0);
	await(&ended, 8);
	CHECK_IS(ended.result, 9);
	CHECK_IS(spawn_on(2, 3, 2), 0);
	await(&ended, 10);
	CHECK_IS(spawn_on(2, 4, 0), 0); /* one */
	await(&ended, 11);
	CHECK_IS(spawn_on(2, 1, 5), -ERANGE);
	CHECK(sentence_has(-ERANGE, "rank 5 was"));
	CHECK_IS(spawn_on(2, TERN_RANK_ANY, 2), -ERANGE);
	CHECK_IS(spawn_on(2, TERN_RANK_NONE, 0), -ERANGE);
	CHECK_IS(spawn_on(2, 1, UINT32_MAX), -ERANGE);
	CHECK_IS(tern_spawn(local[2], UINT32_MAX, ADD, note_ending, &ended, 9), -ERANGE);
	CHECK(sentence_has(-ERANGE, "rank 4294967295 was"));
	local_close();
}

TEST(a_join_waits_for_the_result)
{
	tern_thread thread;
	uint64_t result = 0;
	open_all(2);
	CHECK_IS(tern_thread_start(local[0], 1, ADD, &thread, 20, 22), 0);
	CHECK_IS(tern_thread_join(local[0], &thread, &result), 0);
	CHECK_IS(result, 42);
	CHECK_IS(tern_thread_join(local[0], &thread, NULL), 0);
	local_close();
}

TEST(threads_of_one_creator_start_in_the_order_of_their_creation)
{
	enum { MANY = 2000 };
	open_all(2);
	for (uint64_t i = 0; i < MANY; i++)
		CHECK_IS(tern_spawn(local[0], 1, NOTE, note_ending, &ended, i), 0);
	await(&ended, MANY);
	for (uint64_t i = 0; i < MANY; i++)
		CHECK_IS(noted[i], i);
	local_close();
}

static void stay_all(unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		CHECK_IS(tern_spawn(local[0], 1, STAY, note_ending, &ended, i), 0);
	for (unsigned i = 0; i < 100; i++)
		everybody();
}

/* And so it is again when all of them have ended. */
TEST(no_more_threads_run_than_there_are_contexts_and_the_others_wait)
{
	enum { MANY = 40 };
	setenv("TERN_CONTEXTS", "4", 1);
	open_all(2);
	for (unsigned ends = MANY; ends <= 3 * MANY; ends += MANY) {
		stay_all(MANY);
		CHECK_IS(tern_thread_self(local[1]).threads, 4);
		CHECK_IS(spawn_of(local[1])->made, 4);
		CHECK_IS(spawn_of(local[1])->inbox_count, MANY - 4);
		tern_signal(local[1], &gate, MANY);
		await(&ended, ends);
		CHECK_IS(tern_thread_self(local[1]).threads, 0);
		for (unsigned i = 0; i < 100; i++) /* contexts are parked */
			everybody();
	}
	local_close();
}

/* Its handler runs there, and the threads do not. */
TEST(a_yield_runs_threads_whose_creation_a_progress_thread_has_handled)
{
	local_delivered("thread");
	open_all(2);
	CHECK_IS(tern_spawn(local[0], 1, NOTE, NULL, NULL, 7), 0);
	while (!atomic_load(&local[1]->own->wanted))
		world_nap(100000);
	CHECK_IS(notes, 0);
	CHECK_IS(tern_thread_yield(local[1]), 0);
	CHECK_IS(notes, 1);
	local_close();
}

TEST(creations_beyond_the_credits_wait_at_their_creator)
{
	enum { MANY = TERN_SPAWN_CREDITS + 100 };
	open_all(2);
	for (unsigned i = 0; i < MANY; i++)
		CHECK_IS(tern_spawn(local[0], 1, STAY, note_ending, &ended, i), 0);
	for (unsigned i = 0; i < 100; i++)
		everybody();
	CHECK_IS(spawn_of(local[0])->queued, 100);
	CHECK_IS(spawn_of(local[1])->inbox_count, TERN_SPAWN_CREDITS - 16);
	/* A plain message still gets through, which is the point. */
	CHECK_IS(tern_spawn(local[1], 0, ADD, NULL, NULL, 1), 0);
	tern_signal(local[1], &gate, MANY);
	await(&ended, MANY);
	local_close();
}

static int rc_in_handler;

static void spawn_in_handler(tern *t, const tern_msg *m)
{
	CHECK_IS(tern_thread_on(t, OTHER, add, NULL), -EPERM);
	rc_in_handler =
		tern_spawn(t, (uint32_t)tern_msg_word(m, 0), ADD, note_ending, &ended, 3, 4);
}

TEST(a_handler_may_create_a_thread)
{
	open_all(2);
	local_on(0, spawn_in_handler);
	tern_request(local[0], 1, 0, 0);
	await(&ended, 1);
	CHECK_IS(rc_in_handler, 0);
	CHECK_IS(ended.result, 7);
	local_close();
}

TEST(a_thread_can_be_created_under_a_hold)
{
	open_all(2);
	tern_hold(local[0]);
	CHECK_IS(tern_spawn(local[0], 1, ADD, note_ending, &ended, 3, 4), 0);
	CHECK_IS(tern_thread_yield(local[0]), -EDEADLK);
	tern_release(local[0]);
	await(&ended, 1);
	CHECK_IS(ended.result, 7);
	local_close();
}

TEST(the_most_that_can_be_under_way_is_an_error_only_where_waiting_is_not_allowed)
{
	open_all(2);
	local_on(0, spawn_in_handler);
	for (unsigned i = 0; i < TERN_THREADS_MAX; i++)
		CHECK_IS(tern_spawn(local[0], 1, STAY, note_ending, &ended, i), 0);
	tern_hold(local[0]);
	CHECK_IS(tern_spawn(local[0], 1, STAY, note_ending, &ended, 0), -EAGAIN);
	CHECK(sentence_has(-EAGAIN, "4096"));
	tern_release(local[0]);
	tern_request(local[0], 0, 0, 1);
	tern_poll(local[0]);
	CHECK_IS(rc_in_handler, -EAGAIN);
	CHECK_IS(spawn_on(1, TERN_RANK_ALL, 0), 0); /* another creator's are its own */
	tern_signal(local[1], &gate, TERN_THREADS_MAX + 1);
	CHECK_IS(tern_spawn(local[0], 1, STAY, note_ending, &ended, 0),
		 0); /* waits until one has ended */
	await(&ended, TERN_THREADS_MAX + 3);
	local_close();
}

static unsigned generation;

static void spawn_again(tern *t, uint32_t rank, int rc, uint64_t result, void *arg)
{
	CHECK_IS(rc, 0);
	if (++generation < 1000)
		CHECK_IS(tern_spawn(t, rank, ADD, spawn_again, arg, result, 1), 0);
}

TEST(a_callback_may_create_the_next_thread)
{
	open_all(2);
	CHECK_IS(tern_spawn(local[0], 1, ADD, spawn_again, NULL, 0, 1), 0);
	while (generation < 1000)
		everybody();
	local_close();
}

static uint64_t tree(tern *t, const uint64_t word[TERN_WORDS_MAX], void *arg)
{
	(void)arg;
	uint64_t left = 0, right = 0;
	tern_thread a, b;
	if (!word[0])
		return 1;
	CHECK_IS(tern_thread_start(t, (tern_rank(t) + 1) % tern_size(t), OTHER, &a, word[0] - 1),
		 0);
	CHECK_IS(tern_thread_start(t, (tern_rank(t) + 2) % tern_size(t), OTHER, &b, word[0] - 1),
		 0);
	CHECK_IS(tern_thread_join(t, &a, &left), 0);
	CHECK_IS(tern_thread_join(t, &b, &right), 0);
	return left + right + 1;
}

TEST(threads_create_threads_and_join_them)
{
	tern_thread root;
	uint64_t count = 0;
	setenv("TERN_CONTEXTS", "64",
	       1); /* a thread that waits for its children keeps its context */
	threads_open(3);
	threads_on(OTHER, tree);
	CHECK_IS(tern_thread_start(local[0], 1, OTHER, &root, 6), 0);
	CHECK_IS(tern_thread_join(local[0], &root, &count), 0);
	CHECK_IS(count, 127);
	local_close();
}

static uint64_t self_numbers[3];

static uint64_t tell_self(tern *t, const uint64_t word[TERN_WORDS_MAX], void *arg)
{
	(void)arg;
	self_numbers[word[0]] = tern_thread_self(t).number;
	tern_thread_yield(t);
	CHECK_IS(tern_thread_self(t).number, self_numbers[word[0]]);
	CHECK_IS(tern_thread_self(t).creator, 1);
	return 0;
}

TEST(a_thread_knows_its_number_and_its_creator)
{
	threads_open(2);
	threads_on(SELF, tell_self);
	for (unsigned i = 0; i < 3; i++)
		CHECK_IS(tern_spawn(local[1], 0, SELF, note_ending, &ended, i), 0);
	await(&ended, 3);
	for (unsigned i = 0; i < 3; i++)
		CHECK_IS(self_numbers[i], i + 1);
	CHECK_IS(tern_thread_self(local[0]).number, 0);
	CHECK_IS(tern_thread_self(local[0]).creator, 0);
	local_close();
}

TEST(what_is_not_registered_is_named)
{
	threads_open(2);
	CHECK_IS(tern_thread_on(local[0], TERN_THREAD_IDS_MAX, add, NULL), -ERANGE);
	CHECK_IS(tern_thread_on(local[0], 0, NULL, NULL), -EINVAL);
	CHECK_IS(tern_spawn(local[0], 1, 5, NULL, NULL), -ENXIO);
	CHECK(sentence_has(-ENXIO, "function 5"));
	CHECK_IS(tern_spawn(local[0], 1, TERN_THREAD_IDS_MAX, NULL, NULL), -ERANGE);
	CHECK_IS(tern_thread_on(local[0], ADD, add, NULL), 0); /* and not at rank 1 */
	CHECK_IS(tern_spawn(local[0], 2, ADD, NULL, NULL), -ERANGE);
	tern_thread thread;
	CHECK_IS(tern_thread_start(local[0], 1, ADD, &thread, 1), 0);
	CHECK_IS(tern_thread_join(local[0], &thread, NULL), -ENXIO);
	CHECK(sentence_has(-ENXIO, "rank 1"));
	local_close();
}

TEST(where_no_stack_can_be_had_a_thread_ends_with_an_error)
{
	setenv("TERN_STACK", "4611686018427387904", 1);
	open_all(1);
	for (unsigned i = 1; i <= 2; i++) {
		CHECK_IS(tern_spawn(local[0], 0, ADD, note_ending, &ended, 1), 0);
		await(&ended, i);
		CHECK_IS(ended.rc, -ENOMEM);
	}
	local_close();
}

/* Messages that the creator's side does not send: each is a thread at rank 1, or the end of one. */
static void forge(uint32_t from, uint32_t to, unsigned handler, struct label l)
{
	CHECK_IS(layer_words(local[from]->own, to, handler, label_word(l), 0, 0, 0, 0, 0), 0);
	tern_poll(local[to]);
}

TEST(a_creation_without_a_credit_is_dropped)
{
	open_all(2);
	const struct party *creator = &spawn_of(local[1])->party[0];
	for (unsigned i = 0; i <= TERN_SPAWN_CREDITS; i++) {
		CHECK_IS(creator->here, i);
		forge(0, 1, SPAWN_CREATE, (struct label){ .id = STAY });
	}
	CHECK_IS(creator->here, TERN_SPAWN_CREDITS);
	tern_signal(local[1], &gate, TERN_SPAWN_CREDITS);
	while (creator->here)
		everybody();
	local_close();
}

TEST(the_end_of_a_thread_is_told_by_its_own_rank)
{
	open_all(3);
	CHECK_IS(tern_spawn(local[0], 1, STAY, note_ending, &ended, 5), 0);
	while (!tern_thread_self(local[1]).threads)
		everybody();
	forge(2, 0, SPAWN_DONE, spawn_of(local[1])->contexts->creation.label);
	CHECK_IS(ended.count, 0);
	tern_signal(local[1], &gate, 1);
	await(&ended, 1);
	CHECK_IS(ended.result, 5);
	local_close();
}

TEST(settings_out_of_range_are_named_when_the_endpoint_opens)
{
	tern *t;
	setenv("TERN_CONTEXTS", "0", 1);
	CHECK_IS(tern_open(&t, NULL), -EINVAL);
	CHECK(sentence_has(-EINVAL, "TERN_CONTEXTS"));
	setenv("TERN_CONTEXTS", "1", 1);
	setenv("TERN_STACK", "1000", 1);
	CHECK_IS(tern_open(&t, NULL), -EINVAL);
	CHECK(sentence_has(-EINVAL, "TERN_STACK"));
	unsetenv("TERN_STACK");
	static const char *const names[] = { "TERN_CONTEXTS", "TERN_STACK", "TERN_SLICE" };
	for (unsigned i = 0; i < 3; i++) {
		setenv(names[i], "many", 1);
		CHECK_IS(tern_open(&t, NULL), -EINVAL);
		CHECK(sentence_has(-EINVAL, names[i]));
		unsetenv(names[i]);
	}
	setenv("TERN_CONTEXTS", "4097", 1);
	CHECK_IS(tern_open(&t, NULL), -EINVAL);
	setenv("TERN_CONTEXTS", "4096", 1);
	setenv("TERN_STACK", "16384", 1);
	CHECK_IS(tern_open(&t, NULL), 0);
	CHECK_IS(spawn_of(t)->limit, 4096);
	CHECK_IS(tern_close(t), 0);
}

TEST(closing_lets_threads_end_and_refuses_while_one_cannot)
{
	open_all(2);
	setenv("TERN_GRACE", "50", 1);
	for (unsigned i = 0; i < 10; i++)
		CHECK_IS(tern_spawn(local[0], 1, NOTE, NULL, NULL, i), 0);
	CHECK_IS(tern_spawn(local[0], 1, STAY, note_ending, &ended, 0), 0);
	while (tern_poll_requests(local[1]) > 0)
		;
	CHECK_IS(tern_close(local[1]), -EBUSY);
	CHECK(sentence_has(-EBUSY, "1 threads"));
	CHECK_IS(notes, 10);
	tern_signal(local[1], &gate, 1);
	local_close_one(1);
	tern_poll(local[0]);
	CHECK_IS(ended.count, 1);
	CHECK_IS(ended.rc, 0);
	local_close();
}

static uint64_t close_here(tern *t, const uint64_t word[TERN_WORDS_MAX], void *arg)
{
	(void)arg;
	(void)word;
	return (uint64_t)-tern_close(t);
}

TEST(a_thread_cannot_close_the_endpoint_it_runs_in)
{
	threads_open(1);
	threads_on(OTHER, close_here);
	CHECK_IS(tern_spawn(local[0], 0, OTHER, note_ending, &ended), 0);
	await(&ended, 1);
	CHECK_IS(ended.result, EPERM);
	local_close();
}

TEST(threads_at_a_rank_that_closes_end_with_an_error)
{
	tern_thread thread;
	open_all(3);
	CHECK_IS(tern_thread_start(local[0], 1, ADD, &thread, 1), 0);
	local_close_one(1); /* it has not looked: the message is dropped */
	CHECK_IS(tern_thread_join(local[0], &thread, NULL), -ESHUTDOWN);
	CHECK_IS(tern_spawn(local[0], 1, ADD, note_ending, &ended), -ESHUTDOWN);
	CHECK_IS(spawn_on(0, 0, 3), 0);
	await(&ended, 3);
	local_close();
}

static uint64_t hold_on(tern *t, const uint64_t word[TERN_WORDS_MAX], void *arg)
{
	(void)arg;
	(void)word;
	tern_hold(t);
	return 0;
}

TEST(a_hold_that_a_thread_leaves_is_released)
{
	open_all(2);
	threads_on(OTHER, hold_on);
	CHECK_IS(tern_spawn(local[0], 1, OTHER, note_ending, &ended), 0);
	await(&ended, 1);
	CHECK_IS(held(local[1]->own), 0);
	local_close();
}

static void *close_elsewhere(void *arg)
{
	tern_attach(arg); /* says on standard error that it does not */
	CHECK(!attach_is_mine(((tern *)arg)->own));
	CHECK_IS(tern_close(arg), -EPERM);
	return NULL;
}

TEST(an_endpoint_that_starts_threads_stays_with_the_thread_that_has_it)
{
	pthread_t other;
	open_all(1);
	CHECK_IS(tern_spawn(local[0], 0, ADD, note_ending, &ended, 1), 0);
	await(&ended, 1);
	REQUIRE(pthread_create(&other, NULL, close_elsewhere, local[0]) == 0);
	pthread_join(other, NULL);
	local_close();
}
