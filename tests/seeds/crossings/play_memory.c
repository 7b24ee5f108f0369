/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Puts, gets, atomics and stores. Of each rank's memory, which all ranks have alike, a part never
 * changes, for gets; and each other rank has a part that it alone writes, so it knows what is
 * there.
 */
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include <tern/async.h>

#include "memory.h"

enum { ON_PUT = 9, ON_PUT_SEEN, REGION_BYTES = RANKS_MOST * (REGISTERED + WORDS * 8) };
enum put_form {
	PLAIN,
	STARTED,
	PARTS,
	VALUE,
	LOCAL,
	THEN,
	ASYNC_PUT,
	REGISTERED_PUT,
	MAPPED_PUT,
	LONG,
	PARTS_THEN
};
enum get_form {
	GET_PLAIN,
	GET_STARTED,
	GET_PARTS,
	GET_VALUE,
	GET_ASYNC,
	GET_WHEN,
	GET_BLOCK,
	GET_COPY
};
enum amo_form { AMO_64, AMO_32, CAS_64, CAS_32, AMO_REAL, AMO_SHARED };

struct memory *mine;
/* Memory that is no heap: private, and of a file. A part of it for each rank, then its words. */
static tern_addr registered[2][RANKS_MOST];
static uint64_t model_word[RANKS_MOST][WORDS];
static unsigned told_due; /* requests behind puts, and their replies */
static _Atomic unsigned told;

static bool of_region(unsigned form)
{
	return form == REGISTERED_PUT || form == MAPPED_PUT;
}

static tern_addr put_place(const struct step *s)
{
	return of_region(s->form)
		       ? registered[s->form == MAPPED_PUT][s->to] + (tern_addr)me * REGISTERED
		       : at(s->to, mine->of[me].bytes);
}

/* Words lie in the heap and in both regions. */
static tern_addr word_place(uint32_t rank, unsigned k)
{
	return k % 3 == 0 ? at(rank, &mine->of[me].word[k])
			  : registered[k % 3 - 1][rank] + (tern_addr)RANKS_MOST * REGISTERED +
				    (me * WORDS + k) * sizeof(uint64_t);
}

/* -- Puts ------------------------------------------------------------------------------------- */

/* What was put is got again, and must be that. */
static void put_again(struct pending *w, int rc)
{
	const struct step *s = w->s;
	char *back = malloc(s->len + 1);
	if (code_is(s, "a put", rc, 0) &&
	    code_is(s, "tern_get()", tern_get(t, back, put_place(s), w->word), 0))
		bytes_are(s, "what was put", back, 0, w->word, message_number(s, w->i));
	free(back);
}

static size_t put_len(const struct step *s)
{
	return s->form == VALUE                            ? (size_t)1 << s->len % 4
	       : s->form == PARTS || s->form == PARTS_THEN ? s->len - s->len % 8
	       : of_region(s->form)                        ? s->len % REGISTERED
							   : s->len;
}

static void on_put(tern *own, const tern_msg *m)
{
	const struct step *s = &program.step[tern_msg_word(m, 0) % program.steps];
	static char copy[LONGEST]; /* an interrupt may have come in the middle of malloc() */
	size_t len = put_len(s);
	(void)own;
	memcpy(copy, mine->of[tern_msg_src(m)].bytes, len);
	bytes_are(s, "what was put before a request", copy, 0, len,
		  message_number(s, (unsigned)tern_msg_word(m, 1)));
	code_is(s, "a reply", tern_reply(t, m, ON_PUT_SEEN, 0), 0);
}

static void on_put_seen(tern *own, const tern_msg *m)
{
	(void)own, (void)m;
	atomic_fetch_add(&told, 1);
}

static int all_seen(tern *own, void *arg)
{
	(void)own, (void)arg;
	return atomic_load(&told) >= told_due;
}

/* Runs of 8 bytes, one behind the other; and, if it is asked for, a request. */
static int put_parts(struct pending *w, tern_addr to, size_t len, bool then, tern_op *op)
{
	size_t *count = malloc(sizeof *count + sizeof(ptrdiff_t));
	ptrdiff_t *stride = (ptrdiff_t *)(void *)(count + 1);
	w->own[0] = count;
	*count = len / 8;
	*stride = 8;
	w->part[0] =
		(tern_part){ .addr = to, .run = 8, .dims = 1, .count = count, .stride = stride };
	w->part[1] = (tern_part){ .base = w->bytes, .run = *count * 8 };
	const uint64_t words[] = { w->s->number, w->i };
	const tern_parts parts = { &w->part[0], &w->part[1], 1, 1 };
	const tern_long what = { .id = ON_PUT, .n = 2, .op = op, .words = words, .parts = &parts };
	return then ? tern_put_request_start_array(t, &what)
		    : tern_put_parts_start(t, &w->part[0], 1, &w->part[1], 1, op);
}

static int put_one(const struct step *s, struct pending *w, tern_addr to, size_t len, tern_op **op)
{
	uint64_t value = 0;
	switch (s->form) {
	case PLAIN:
		*op = NULL;
		return tern_put(t, to, w->bytes, len);
	case PARTS:
	case PARTS_THEN:
		return put_parts(w, to, len, s->form == PARTS_THEN, *op);
	case LONG: /* without a handle, the data may be under way on return */
		*op = &w->op;
		return tern_put_request_start(t, to, ON_PUT, w->bytes, len, NULL, *op, s->number,
					      w->i);
	case VALUE:
		memcpy(&value, w->bytes, len);
		return tern_put_local_start(t, to, &value, len, &(tern_op)TERN_OP, *op);
	case LOCAL:
		*op = &w->op;
		return tern_put_local_start(t, to, w->bytes, len, &w->op, &w->op);
	case THEN:
		*op = NULL;
		return tern_put_request(t, to, ON_PUT, w->bytes, len, s->number, w->i);
	case ASYNC_PUT:
		*op = &w->op;
		return tern_async_put_start(t, to, w->bytes, len, TERN_ADDR_NONE, &w->op);
	default:
		return tern_put_start(t, to, w->bytes, len, *op);
	}
}

static bool has_request(const struct step *s)
{
	return s->form == THEN || s->form == LONG || s->form == PARTS_THEN;
}

/* One after the other to the same place: each is complete before the next. */
void put_play(const struct step *s)
{
	if (s->from != me)
		return;
	pending_wait_all();
	for (unsigned i = 0; i < s->count; i++) {
		size_t len = put_len(s);
		struct pending *w = pending_new(s, i, s->len + 8, put_again);
		tern_op *op = waits_here(s) ? NULL : &w->op;
		w->word = len;
		content_fill(w->bytes, 0, len, message_number(s, i));
		int rc = put_one(s, w, put_place(s), len, &op);
		pending_begun(w, rc, op != NULL);
		if (op && i + 1 < s->count)
			pending_wait_all();
		told_due += has_request(s);
		if (has_request(s)) /* its handler looks before the next one comes */
			code_is(s, "waiting for a reply", tern_wait_until(t, all_seen, NULL), 0);
	}
}

/* -- Gets ------------------------------------------------------------------------------------- */

static void got(struct pending *w, int rc)
{
	if (code_is(w->s, "a get", rc, 0))
		bytes_are(w->s, "what was got", w->bytes, w->word, w->len, w->s->to);
}

/* Of the third rank, and of the own memory, each of which may be near or far. */
static int copy_twice(struct pending *w, tern_addr from, size_t len)
{
	uint32_t third = (uint32_t)(w->s->value >> 5) % program.ranks;
	tern_addr by = at(step_has(gone, third) ? me : third, mine->of[me].bytes);
	int rc = tern_copy(t, by, from, len);
	rc = rc ? rc : tern_copy(t, at(me, mine->copied), by, len);
	memcpy(w->bytes, mine->copied, rc ? 0 : len);
	return rc;
}

static int get_one(const struct step *s, struct pending *w, tern_addr from, size_t len,
		   tern_op **op)
{
	const tern_block block = { .name = 1, .offset = w->word, .run = len, .count = 1 };
	uint64_t value;
	int rc;
	switch (s->form) {
	case GET_PLAIN:
		*op = NULL;
		return tern_get(t, w->bytes, from, len);
	case GET_VALUE:
		*op = NULL;
		rc = tern_get(t, &value, from, len);
		memcpy(w->bytes, &value, rc ? 0 : len);
		return rc;
	case GET_ASYNC:
		*op = &w->op;
		return tern_async_get_start(t, w->bytes, from, len, *op);
	case GET_PARTS:
		w->part[0] = (tern_part){ .base = w->bytes, .run = len };
		w->part[1] = (tern_part){ .addr = from, .run = len };
		return tern_get_parts_start(t, &w->part[0], 1, &w->part[1], 1, *op);
	case GET_WHEN:
		return tern_get_when_start(
			t, w->bytes, from, len,
			&(tern_when){ .flag = at(s->to, &mine->ready), .least = 1 }, *op);
	case GET_BLOCK:
		return tern_block_get_start(t, w->bytes, 0, s->to, &block, *op);
	case GET_COPY:
		pending_wait_all(); /* a put may be under way to the same place */
		*op = NULL;
		return copy_twice(w, from, len);
	default:
		return tern_get_start(t, w->bytes, from, len, *op);
	}
}

static size_t get_len(const struct step *s)
{
	return s->form == GET_VALUE                          ? 8
	       : s->form == GET_WHEN || s->form == GET_BLOCK ? s->len % (TERN_PAYLOAD_MAX + 1)
							     : s->len;
}

void get_play(const struct step *s)
{
	if (s->from != me)
		return;
	for (unsigned i = 0; i < s->count; i++) {
		size_t len = get_len(s);
		struct pending *w = pending_new(s, i, len, got);
		tern_op *op = waits_here(s) ? NULL : &w->op;
		w->word = (s->value >> 9) % (AREA - len + 1) / 8 * 8;
		int rc = get_one(s, w, at(s->to, mine->fixed) + w->word, len, &op);
		pending_begun(w, rc, op != NULL);
	}
}

/* -- Atomics ---------------------------------------------------------------------------------- */

static void operated(struct pending *w, int rc)
{
	if (code_is(w->s, "an atomic operation", rc, 0) && w->s->form != AMO_SHARED)
		number_is(w->s, "the value before", w->old, w->word);
}

static uint64_t amo_model(enum tern_amo what, uint64_t a, uint64_t b)
{
	return what == TERN_AMO_ADD   ? a + b
	       : what == TERN_AMO_AND ? (a & b)
	       : what == TERN_AMO_OR  ? (a | b)
	       : what == TERN_AMO_XOR ? (a ^ b)
	       : what == TERN_AMO_MIN ? (b < a ? b : a)
	       : what == TERN_AMO_MAX ? (b > a ? b : a)
				      : b;
}

static int amo_one(const struct step *s, unsigned i, struct pending *w, tern_op *op)
{
	unsigned k = (s->number + i) % WORDS;
	uint64_t *word = &model_word[s->to][k], operand = content_of(s->value, i);
	tern_addr a = word_place(s->to, k);
	enum tern_amo what = (enum tern_amo)(operand >> 40 & 7) % (TERN_AMO_SWAP + 1);
	uint32_t low = (uint32_t)operand;
	w->word = *word;
	if (s->form == AMO_SHARED)
		return tern_amo_start(t, at(s->to, (void *)&mine->shared), TERN_AMO_ADD,
				      operand % 1000, (uint64_t *)NULL, op);
	if (s->form == AMO_64) {
		*word = amo_model(what, *word, operand);
		return tern_amo_start(t, a, what, operand, &w->old, op);
	}
	if (s->form == CAS_64) {
		uint64_t guess = operand & 1 ? *word : ~*word;
		*word = operand & 1 ? operand : *word;
		return tern_cas_start(t, a, guess, operand, &w->old, op);
	}
	if (s->form == AMO_REAL) {
		double was;
		*word = operand;
		memcpy(&was, &operand, sizeof was);
		return tern_amo_start(t, a, TERN_AMO_SWAP, was, (double *)(void *)&w->old, op);
	}
	w->word = (uint32_t)*word;
	uint32_t guess = operand >> 33 & 1 ? (uint32_t)*word : ~(uint32_t)*word;
	uint32_t after = s->form == AMO_32   ? (uint32_t)amo_model(what, (uint32_t)*word, low)
			 : operand >> 33 & 1 ? low
					     : (uint32_t)*word;
	*word = *word >> 32 << 32 | after;
	return s->form == AMO_32
		       ? tern_amo_start(t, a, what, low, (uint32_t *)(void *)&w->old, op)
		       : tern_cas_start(t, a, guess, low, (uint32_t *)(void *)&w->old, op);
}

/* A word is not operated on while it is: fewer are under way than there are words. */
void amo_play(const struct step *s)
{
	if (s->from != me)
		return;
	for (unsigned i = 0; i < s->count; i++) {
		struct pending *w = pending_new(s, i, 0, operated);
		tern_op *op = waits_here(s) ? NULL : &w->op;
		int rc = amo_one(s, i, w, op);
		pending_begun(w, rc, op != NULL);
	}
}

/* What all ranks have added to this one's word, in the steps before this one. */
void shared_check(const struct step *s)
{
	uint64_t sum = 0;
	for (unsigned k = 0; k < s->number; k++) {
		const struct step *b = &program.step[k];
		for (unsigned i = 0;
		     b->kind == AMO && b->form == AMO_SHARED && b->to == me && i < b->count; i++)
			sum += content_of(b->value, i) % 1000;
	}
	number_is(s, "the sum of all ranks", atomic_load(&mine->shared), sum);
}

/* -- Stores ----------------------------------------------------------------------------------- */

/*
 * They are counted: the other side waits for as many bytes as are stored to it by this step. Then
 * it says so, since the next step stores to the same place.
 */
void store_play(const struct step *s)
{
	const tern_id id = (tern_id)(1000 + s->number) << 16;
	char *data = malloc(s->len + 1);
	uint64_t seen = 0;
	for (unsigned i = 0; i < s->count && s->from == me; i++) {
		content_fill(data, 0, s->len, message_number(s, 0));
		code_is(s, "tern_store()",
			tern_store(t, at(s->to, mine->of[me].stored), data, s->len), 0);
	}
	if (s->to == me) {
		code_is(s, "tern_store_sync()", tern_store_sync(t, (uint64_t)s->len * s->count), 0);
		memcpy(data, mine->of[s->from].stored, s->len);
		bytes_are(s, "what was stored", data, 0, s->len, message_number(s, 0));
		code_is(s, "tern_send()",
			tern_send(t, s->from, id, &(uint64_t){ s->number }, sizeof(uint64_t)), 0);
	}
	if (s->from == me) {
		code_is(s, "tern_recv()", tern_recv(t, s->to, id, &seen, sizeof seen, NULL), 0);
		number_is(s, "the word", seen, s->number);
	}
	free(data);
}

/* -- The memory of a lost rank ---------------------------------------------------------------- */

static int memory_use(uint32_t rank, enum kind how)
{
	tern_addr to = at(rank, mine->of[me].word), from = at(rank, mine->fixed);
	tern_addr signal = at(rank, &mine->of[me].signal);
	uint64_t word = 0;
	return how == PUT   ? tern_put(t, to, &word, sizeof word)
	       : how == GET ? tern_get(t, &word, from, sizeof word)
	       : how == AMO ? tern_amo(t, to, TERN_AMO_ADD, 1, &word)
			    : tern_put_signal(t, TERN_ADDR_NONE, NULL, 0,
					      &(tern_change){ .word = signal,
							      .what = TERN_AMO_ADD,
							      .value = 1 });
}

void memory_lost_at_once(const struct step *s, uint32_t rank, enum kind how)
{
	code_is(s, "using the memory of the lost rank", memory_use(rank, how), gone_code);
}

void memory_lost(const struct step *s, uint32_t rank, enum kind how)
{
	int rc;
	while (!(rc = memory_use(rank, how)))
		;
	code_is(s, "using the memory of the lost rank until it is told", rc, gone_code);
}

/* -- Traffic with a rank that may be gone ------------------------------------------------------ */

void traffic_memory(const struct step *s, uint32_t rank, size_t len,
		    void (*ended)(struct pending *w, int rc))
{
	tern_addr there = at(rank, mine->of[me].bytes), word = at(rank, mine->of[me].word);
	const tern_block block = { .name = 1, .run = len % TERN_PAYLOAD_MAX, .count = 1 };
	for (unsigned i = 0; i < 8; i++) {
		struct pending *w = pending_new(s, i, len, ended);
		int rc = i == 0   ? tern_put_start(t, there, w->bytes, len, &w->op)
			 : i == 1 ? tern_get_start(t, w->bytes, at(rank, mine->fixed), len, &w->op)
			 : i == 2 ? tern_amo_start(t, word, TERN_AMO_ADD, 1, &w->old, &w->op)
			 : i == 3 ? tern_put_signal_start(
					    t, there, w->bytes, len,
					    &(tern_change){ .word = at(rank, &mine->of[me].signal),
							    .what = TERN_AMO_ADD,
							    .value = 1 },
					    &w->op)
			 : i == 4 ? tern_put_start(t, registered[1][rank] + me * REGISTERED,
						   w->bytes, len % REGISTERED, &w->op)
			 : i == 5 ? tern_get_start(t, w->bytes,
						   registered[0][rank] + me * REGISTERED,
						   len % REGISTERED, &w->op)
			 : i == 6 ? tern_copy_start(t, at(me, mine->copied), at(rank, mine->fixed),
						    len, &w->op)
				  : tern_block_get_start(t, w->bytes, 0, rank, &block, &w->op);
		pending_begun(w, rc, true);
	}
}

/* The lost rank stays in it. */
void traffic_lock(const struct step *s, bool stay)
{
	tern_lock *lock = &mine->left.lock;
	int rc = tern_lock_take(t, lock);
	if (rc && (stay || (rc != -EOWNERDEAD && rc != gone_code)))
		wrong(s, "a lock that the lost rank may have: %s", tern_strerror(rc));
	if (!rc && !stay && (rc = tern_lock_release(t, lock)) && rc != -EOWNERDEAD &&
	    rc != gone_code)
		wrong(s, "a lock whose home may be gone: %s", tern_strerror(rc));
}

/* -- Opening ----------------------------------------------------------------------------------- */

void *reply_room(uint32_t of)
{
	return mine->of[of].replied;
}

/* A region of private memory, or of a file. */
static void region_open(const struct step *s, bool file)
{
	int fd = file ? memfd_create("crossings", 0) : -1;
	int flags = file ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS;
	tern_addr own = 0;
	if (file)
		code_is(s, "ftruncate()", ftruncate(fd, REGION_BYTES), 0);
	void *p = mmap(NULL, REGION_BYTES, PROT_READ | PROT_WRITE, flags, fd, 0);
	code_is(s, "tern_register()",
		file ? tern_register_fd(t, p, REGION_BYTES, fd, 0, &own)
		     : tern_register(t, p, REGION_BYTES, &own),
		0);
	code_is(s, "tern_team_allgather()",
		tern_team_allgather(place[0].team, &own, registered[file], sizeof own), 0);
	if (file)
		close(fd);
}

void memory_open(void)
{
	const struct step s = { .kind = PUT };
	static void *fixed;
	const size_t bytes = sizeof *mine + program.ranks * sizeof(struct written);
	code_is(&s, "tern_on()", tern_on(t, ON_PUT, on_put), 0);
	code_is(&s, "tern_on()", tern_on(t, ON_PUT_SEEN, on_put_seen), 0);
	code_is(&s, "tern_alloc_all()", tern_alloc_all(t, bytes, (void **)&mine), 0);
	content_fill(mine->fixed, 0, AREA, me);
	mine->ready = 1;
	fixed = mine->fixed;
	code_is(&s, "tern_block_name()", tern_block_name(t, 1, &fixed, AREA), 0);
	region_open(&s, false);
	region_open(&s, true);
	code_is(&s, "tern_barrier()", tern_barrier(t), 0);
}
