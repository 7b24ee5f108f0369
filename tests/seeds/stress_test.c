/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: MODES TIMEOUT 200 RUN_SERIAL */
/*
 * Everything at once, from a seed. What the i-th request from one rank to another
 * looks like (words, payload, what is answered) follows from the seed, the two
 * ranks and i, so the receiver knows what must come next and checks all of it:
 * order, words, bytes. The same for replies. In between, claims stay open, messages
 * are kept and dropped, and handlers defer work that sends a third stream. Posted items are a
 * fourth: some are answered, and some handlers post on.
 */
#include <tern/post.h>

#include "lib/chance.h"
#include "lib/handed.h"
#include "lib/ranks.h"

enum { ASK, TELL, EXTRA, ITEM, ITEM_ANSWER, HOP, CLAIMS_MOST = 4 };
enum answer { ANSWER_NONE, ANSWER_WORDS, ANSWER_DATA, ANSWER_IN_PLACE, ANSWERS };

/* What the program decides about a message before it is sent. */
struct shape {
	unsigned words;
	bool payload;
	enum answer answer;
	bool keep, defer;
	uint64_t hash;
};

struct shared {
	_Atomic uint64_t sent[RANKS_AT_MOST][RANKS_AT_MOST], extra[RANKS_AT_MOST][RANKS_AT_MOST];
	_Atomic uint64_t items[RANKS_AT_MOST][RANKS_AT_MOST], hops[RANKS_AT_MOST][RANKS_AT_MOST];
	_Atomic uint64_t done;
};

struct open_claim {
	unsigned char *at;
	uint32_t dst, len;
	uint64_t stamp;
};

struct rank {
	tern *t;
	uint64_t next_request[RANKS_AT_MOST], next_extra[RANKS_AT_MOST]; /* from each */
	uint64_t next_reply[RANKS_AT_MOST]; /* from each: the request that its next reply answers */
	uint64_t sent[RANKS_AT_MOST], extra[RANKS_AT_MOST];
	/* Of posts: to each, from each; and by handlers. An answer has the number of its item. */
	uint64_t items[RANKS_AT_MOST], next_item[RANKS_AT_MOST], next_answer[RANKS_AT_MOST];
	uint64_t hops[RANKS_AT_MOST], next_hop[RANKS_AT_MOST];
	uint64_t replies_due;
	_Atomic uint64_t replies;
	struct open_claim claim[CLAIMS_MOST];
	const tern_msg *kept;
	struct chance chance,
		answers; /* the program's and the handlers', which may run on another thread */
};

static uint64_t seed;
static unsigned messages;   /* a rank sends */
static unsigned neighbours; /* ranks behind it that it sends them to; 0: all */
static struct shared *shared;
static struct rank *ranks[RANKS_AT_MOST]; /* not per thread: a thread that waits serves endpoints
					     not used yet */

static struct rank *rank_of(const tern *t)
{
	return ranks[tern_rank(t)];
}

static struct shape shape_of(uint32_t from, uint32_t to, uint64_t i)
{
	uint64_t h = chance_of(seed ^ (uint64_t)from << 40 ^ (uint64_t)to << 20, i);
	return (struct shape){
		.words = (unsigned)(h % (TERN_WORDS_MAX + 1)),
		.payload = (h >> 8) % 8 == 0,
		.answer = (enum answer)((h >> 16) % ANSWERS),
		.keep = (h >> 24) % 16 == 0,
		.defer = (h >> 32) % 16 == 0,
		.hash = h,
	};
}

static uint32_t length_of(uint64_t hash)
{
	static const uint32_t corners[] = {
		0, 1, 63, 64, 65, TERN_PAYLOAD_MAX - 1, TERN_PAYLOAD_MAX
	};
	return hash % 3 ? (uint32_t)(hash >> 20) % 600 : corners[(hash >> 20) % 7];
}

/* -- Receiving ---------------------------------------------------------------------- */

static void drop_kept(tern *t, void *arg)
{
	CHECK_IS(tern_msg_drop(t, arg), 0);
}

/* Kept over many messages by one receiver of each sender only, so that no pool runs dry. */
static void keep_some(tern *t, const tern_msg *m)
{
	struct rank *self = rank_of(t);
	uint32_t src = tern_msg_src(m);
	const tern_msg *kept = handed_keep(t, m);
	if (!CHECK(kept != NULL))
		return;
	if (tern_rank(t) != (src + 1) % tern_size(t)) {
		if (tern_defer(t, drop_kept, (void *)(uintptr_t)kept) != 0)
			CHECK_IS(tern_msg_drop(t, kept), 0);
		return;
	}
	if (self->kept)
		CHECK_IS(tern_msg_drop(t, self->kept), 0);
	self->kept = kept;
}

static void send_extra(tern *t, void *arg)
{
	struct rank *self = rank_of(t);
	uint32_t dst = (uint32_t)(uintptr_t)arg;
	CHECK_IS(tern_request(t, dst, EXTRA, self->extra[dst]++), 0);
}

static void answer_in_place(tern *t, const tern_msg *m, uint64_t hash)
{
	struct rank *self = rank_of(t);
	size_t has;
	const unsigned char *data = tern_msg_data(m, &has);
	size_t len = hash % 3 ? has / 2 : has;
	unsigned char *reply = handed_reply_claim(t, m, len);
	if (!CHECK(reply != NULL))
		return;
	if (len && reply == data)
		CHECK(reply[len - 1] == data[len - 1]);
	if (chance_one_in(&self->answers, 4))
		CHECK(tern_poll_replies(t) >= 0);
	chance_fill(reply, len, hash);
	CHECK_IS(tern_reply_commit(t, m, reply, TELL, hash, len), 0);
}

static void answer_as_asked(tern *t, const tern_msg *m, const struct shape *s)
{
	static _Thread_local unsigned char bytes[TERN_REQUEST_MAX];
	uint32_t len = length_of(~s->hash);
	if (s->hash % 32 == 0)
		len = TERN_REQUEST_MAX - len;
	switch (s->answer) {
	case ANSWER_WORDS:
		if (s->hash % 2)
			CHECK_IS(tern_reply(t, m, TELL, s->hash), 0);
		else if (s->hash % 4)
			CHECK_IS(tern_reply(t, m, TELL, s->hash, 1, 2, 3), 0);
		else
			CHECK_IS(tern_reply(t, m, TELL, s->hash, 1, 2, 3, 4, 5, 6, 7), 0);
		break;
	case ANSWER_DATA:
		chance_fill(bytes, len, s->hash);
		if (s->hash % 2)
			CHECK_IS(tern_reply_data(t, m, TELL, bytes, len, s->hash, len), 0);
		else
			CHECK_IS(tern_reply_data(t, m, TELL, bytes, len, s->hash, len, 2, 3, 4, 5,
						 6),
				 0);
		break;
	case ANSWER_IN_PLACE:
		answer_in_place(t, m, s->hash);
		break;
	default:
		break;
	}
}

/*
 * A payload's length and stamp travel in front of it, since claims are made before their place is
 * known.
 */
static void check_payload(const tern_msg *m, bool expected)
{
	size_t len;
	const unsigned char *data = tern_msg_data(m, &len);
	if (!CHECK((data != NULL) == expected) || !expected)
		return;
	uint64_t stamp;
	if (CHECK(len >= sizeof stamp)) {
		memcpy(&stamp, data, sizeof stamp);
		CHECK(chance_filled(data + sizeof stamp, len - sizeof stamp, stamp));
	}
}

static void on_ask(tern *t, const tern_msg *m)
{
	struct rank *self = rank_of(t);
	uint32_t src = tern_msg_src(m);
	struct shape s = shape_of(src, tern_rank(t), self->next_request[src]++);
	CHECK_IS(tern_msg_count(m), s.words);
	for (unsigned i = 0; i < s.words; i++)
		CHECK(tern_msg_word(m, i) == s.hash + i);
	check_payload(m, s.payload);
	if (s.keep)
		keep_some(t, m);
	if (s.defer) /* -EAGAIN, when too much is deferred already, is no harm */
		(void)!tern_defer(t, send_extra,
				  (void *)(uintptr_t)((s.hash >> 40) % tern_size(t)));
	answer_as_asked(t, m, &s);
}

static void on_tell(tern *t, const tern_msg *m)
{
	struct rank *self = rank_of(t);
	uint32_t src = tern_msg_src(m);
	struct shape s;
	do
		s = shape_of(tern_rank(t), src, self->next_reply[src]++);
	while (s.answer == ANSWER_NONE);
	CHECK(tern_msg_word(m, 0) == s.hash);
	for (unsigned i = 2; i < tern_msg_count(m); i++)
		CHECK_IS(tern_msg_word(m, i), i);
	size_t len;
	const unsigned char *data = tern_msg_data(m, &len);
	CHECK((data != NULL) == (s.answer != ANSWER_WORDS));
	if (CHECK(len == (s.answer == ANSWER_WORDS ? 0 : tern_msg_word(m, 1))))
		CHECK(chance_filled(data, len, s.hash));
	tern_signal(t, &self->replies, 1);
}

static void on_extra(tern *t, const tern_msg *m)
{
	struct rank *self = rank_of(t);
	CHECK_IS(tern_msg_word(m, 0), self->next_extra[tern_msg_src(m)]++);
}

/* -- Posted items ------------------------------------------------------------------- */

enum { ANSWERED_EVERY = 3, HOP_EVERY = 5 };

static void on_item(tern *t, const tern_msg *m)
{
	struct rank *self = rank_of(t);
	uint64_t i = tern_msg_word(m, 0);
	uint32_t to = (uint32_t)(i / HOP_EVERY % tern_size(t));
	CHECK_IS(i, self->next_item[tern_msg_src(m)]++);
	for (unsigned k = 1; k < tern_msg_count(m); k++)
		CHECK_IS(tern_msg_word(m, k), k);
	if (i % ANSWERED_EVERY == 0)
		CHECK_IS(tern_reply(t, m, ITEM_ANSWER, i), 0);
	if (i % HOP_EVERY == 0)
		CHECK_IS(tern_post(t, to, HOP, self->hops[to]++, 1), 0);
}

static void on_item_answer(tern *t, const tern_msg *m)
{
	uint64_t *next = &rank_of(t)->next_answer[tern_msg_src(m)];
	CHECK_IS(tern_msg_word(m, 0), *next);
	*next += ANSWERED_EVERY;
}

static void on_hop(tern *t, const tern_msg *m)
{
	CHECK_IS(tern_msg_word(m, 0), rank_of(t)->next_hop[tern_msg_src(m)]++);
}

/* Of one to three words, to ranks at random. */
static void post_some(tern *t)
{
	struct rank *self = rank_of(t);
	for (uint32_t n = chance_below(&self->chance, 8); n; n--) {
		uint32_t dst = chance_below(&self->chance, tern_size(t));
		const uint64_t w[] = { self->items[dst]++, 1, 2 };
		unsigned words = 1 + (chance_one_in(&self->chance, 4) ? 2 : 0);
		REQUIRE(tern_post_array(t, dst, ITEM, words, w) == 0);
	}
	if (chance_one_in(&self->chance, 100))
		CHECK_IS(tern_post_limit(t, chance_one_in(&self->chance, 2) ? 0 : 100), 0);
	if (chance_one_in(&self->chance, 100))
		CHECK_IS(tern_post_flush(t), 0);
}

static void check_items(const struct rank *self)
{
	uint32_t me = tern_rank(self->t), n = tern_size(self->t);
	for (uint32_t r = 0; r < n; r++) {
		CHECK_IS(self->next_item[r], atomic_load(&shared->items[r][me]));
		CHECK_IS(self->next_hop[r], atomic_load(&shared->hops[r][me]));
		CHECK_IS(self->next_answer[r],
			 (self->items[r] + ANSWERED_EVERY - 1) / ANSWERED_EVERY * ANSWERED_EVERY);
	}
}

/* -- Sending ------------------------------------------------------------------------ */

static void compose(unsigned char *at, uint32_t len, uint64_t stamp)
{
	memcpy(at, &stamp, sizeof stamp);
	chance_fill(at + sizeof stamp, len - sizeof stamp, stamp);
}

static uint32_t payload_length(struct rank *self)
{
	uint32_t len = length_of(chance_next(&self->chance));
	if (chance_one_in(&self->chance, 12)) /* what only a request carries */
		len += chance_below(&self->chance, TERN_REQUEST_MAX - len + 1);
	return len < sizeof(uint64_t) ? (uint32_t)sizeof(uint64_t) : len;
}

static uint32_t destination(tern *t)
{
	struct chance *c = &rank_of(t)->chance;
	uint32_t n = tern_size(t);
	return neighbours ? (tern_rank(t) + 1 + chance_below(c, neighbours)) % n
			  : chance_below(c, n);
}

/* Opens a claim for later, if one is free; or gives one up. */
static void play_with_claims(tern *t)
{
	struct rank *self = rank_of(t);
	struct open_claim *c = &self->claim[chance_below(&self->chance, CLAIMS_MOST)];
	if (c->at) {
		if (chance_one_in(&self->chance, 3)) {
			CHECK_IS(tern_abandon(t, c->at), 0);
			c->at = NULL;
		}
		return;
	}
	c->dst = destination(t);
	c->len = payload_length(self);
	c->stamp = chance_next(&self->chance);
	c->at = handed_claim(t, c->dst, c->len);
	if (CHECK(c->at != NULL))
		compose(c->at, c->len, c->stamp);
}

static struct open_claim *claim_for(struct rank *self, uint32_t dst)
{
	for (int i = 0; i < CLAIMS_MOST; i++)
		if (self->claim[i].at && self->claim[i].dst == dst)
			return &self->claim[i];
	return NULL;
}

static int send_payload(tern *t, uint32_t dst, unsigned n, uint64_t h)
{
	struct rank *self = rank_of(t);
	static _Thread_local unsigned char bytes[TERN_REQUEST_MAX];
	struct open_claim *c = claim_for(self, dst);
	if (c) {
		int rc = tern_commit_any_(t, c->at, n, ASK, h, h + 1, h + 2, h + 3, h + 4, h + 5,
					  h + 6, h + 7);
		c->at = NULL;
		return rc;
	}
	uint32_t len = payload_length(self);
	compose(bytes, len, chance_next(&self->chance));
	return tern_request_data_any_(t, dst, ASK, bytes, n, len, h, h + 1, h + 2, h + 3, h + 4,
				      h + 5, h + 6, h + 7);
}

static void send_one(tern *t)
{
	struct rank *self = rank_of(t);
	uint32_t dst = destination(t);
	struct shape s = shape_of(tern_rank(t), dst, self->sent[dst]++);
	uint64_t h = s.hash;
	int rc = s.payload ? send_payload(t, dst, s.words, h)
			   : tern_request_any_(t, s.words, dst, ASK, h, h + 1, h + 2, h + 3, h + 4,
					       h + 5, h + 6, h + 7);
	if (rc)
		printf("    rank %u to %u: %s\n", tern_rank(t), dst, tern_strerror(rc));
	REQUIRE(rc == 0);
	self->replies_due += s.answer != ANSWER_NONE;
}

static void publish(const struct rank *self)
{
	uint32_t me = tern_rank(self->t), n = tern_size(self->t);
	for (uint32_t r = 0; r < n; r++) {
		atomic_store(&shared->sent[me][r], self->sent[r]);
		atomic_store(&shared->extra[me][r], self->extra[r]);
		atomic_store(&shared->items[me][r], self->items[r]);
		atomic_store(&shared->hops[me][r], self->hops[r]);
	}
}

static void check_totals(const struct rank *self)
{
	uint32_t me = tern_rank(self->t), n = tern_size(self->t);
	for (uint32_t r = 0; r < n; r++) {
		CHECK_IS(self->next_request[r], atomic_load(&shared->sent[r][me]));
		CHECK_IS(self->next_extra[r], atomic_load(&shared->extra[r][me]));
	}
}

static void stress_rank(tern *t)
{
	struct rank *self = rank_of(t);
	CHECK(tern_poll(t) >= 0); /* the endpoint is this thread's from here on, and so is self */
	for (unsigned i = 0; i < messages; i++) {
		send_one(t);
		if (chance_one_in(&self->chance, 4))
			post_some(t);
		if (chance_one_in(&self->chance, 8))
			play_with_claims(t);
		if (chance_one_in(&self->chance, 16))
			CHECK(tern_poll(t) >= 0);
		if (chance_one_in(&self->chance, 200))
			ranks_nap(chance_below(&self->chance, 200000));
	}
	for (int i = 0; i < CLAIMS_MOST; i++)
		CHECK_IS(self->claim[i].at ? tern_abandon(t, self->claim[i].at) : 0, 0);
	CHECK_IS(tern_wait(t, &self->replies, self->replies_due), 0);
	CHECK_IS(tern_barrier(t), 0); /* every request is handled, */
	CHECK_IS(tern_barrier(t), 0); /* and so is what those have deferred or posted */
	publish(self);
	CHECK_IS(tern_barrier(t), 0);
	check_totals(self);
	check_items(self);
	if (self->kept)
		CHECK_IS(tern_msg_drop(t, self->kept), 0);
	CHECK_IS(tern_barrier(t), 0);
	free(self);
	atomic_fetch_add(&shared->done, 1);
}

static void prepare(tern *t)
{
	struct rank *self = calloc(1, sizeof *self);
	REQUIRE(self != NULL);
	self->t = t;
	self->chance.state = seed + tern_rank(t);
	self->answers.state = ~seed + tern_rank(t);
	ranks[tern_rank(t)] = self;
	CHECK_IS(tern_on(t, ASK, on_ask), 0);
	CHECK_IS(tern_on(t, TELL, on_tell), 0);
	CHECK_IS(tern_on(t, EXTRA, on_extra), 0);
	CHECK_IS(tern_on(t, ITEM, on_item), 0);
	CHECK_IS(tern_on(t, ITEM_ANSWER, on_item_answer), 0);
	CHECK_IS(tern_on(t, HOP, on_hop), 0);
}

static void stress_process(void)
{
	tern *t = ranks_open();
	prepare(t);
	stress_rank(t);
	CHECK_IS(tern_close(t), 0);
}

static void begin(unsigned each)
{
	seed = check_seed();
	messages = check_scaled(each);
	shared = ranks_shared(sizeof *shared);
}

TEST(as_threads)
{
	begin(20000);
	ranks_run_threads(2, prepare, stress_rank);
	ranks_run_threads(8, prepare, stress_rank);
	CHECK_IS(shared->done, 10);
}

TEST(as_processes)
{
	begin(50000);
	ranks_run(6, stress_process);
	CHECK_IS(shared->done, 6);
}

TEST(with_far_more_ranks_than_cores)
{
	begin(1000);
	ranks_run(64, stress_process);
	ranks_run_threads(32, prepare, stress_rank);
	CHECK_IS(shared->done, 96);
}

/* All pairs of so many would take 15 GiB; a thread for each, minutes on two cores. */
TEST(with_many_ranks_that_talk_with_a_few)
{
	const char *delivery = getenv("TERN_DELIVERY");
	uint32_t n = delivery && strcmp(delivery, "thread") == 0 ? 128 : 512;
	begin(200);
	neighbours = 4;
	ranks_run(n, stress_process);
	neighbours = 0;
	CHECK_IS(shared->done, n);
}

/* Random ranks are stopped and go on, while the others talk to them. */
static void stop_and_continue(struct chance *c)
{
	while (atomic_load(&shared->done) < ranks_size) {
		pid_t victim = ranks_pid[chance_below(c, ranks_size)];
		if (victim > 0)
			kill(victim, SIGSTOP);
		ranks_nap(chance_below(c, 20000000));
		if (victim > 0)
			kill(victim, SIGCONT);
		ranks_nap(chance_below(c, 5000000));
		ranks_reap(ranks_size, WNOHANG);
	}
}

TEST(with_ranks_that_are_stopped_and_go_on)
{
	begin(50000);
	struct chance c = { seed };
	ranks_start(8, 0, stress_process);
	stop_and_continue(&c);
	CHECK_IS(ranks_reap(8, 0), 0);
	CHECK_IS(shared->done, 8);
	ranks_end();
}
