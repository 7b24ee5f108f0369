/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Proves that words are moved with one load and one store, by every path: a child moves them under
 * single-stepping. The tracer looks at the word after every instruction, and plays the other rank:
 * as soon as a put is there it answers with a value of its own, which a second store would
 * overwrite. While a get is under way it changes the word after every instruction, so that two
 * loads of half a word would bring halves of two values.
 */
#include <errno.h>
#include <sched.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>

#include <tern/async.h>

#include "lib/handed.h"
#include "lib/local.h"
#include "mem/mem.h"
#include "mem/word.h"

#if !defined(__x86_64__) || defined(CHECK_SANITIZED)
TEST(words_are_moved_as_one)
{
	check_skip("single-stepping is written for x86-64, and sanitizers copy with functions of "
		   "their own");
}
#else

enum { ASK, WIDTHS = 4, STEPS_MOST = 4000000, NAME = 3, NO_SLOT = 0xffff, BEFORE = 64 << 10 };
static const size_t width[WIDTHS] = { 1, 2, 4, 8 };

/* What the child knows and, being forked from it, the tracer. */
static unsigned char private[64] __attribute__((aligned(64)));
static uint64_t local_word;
static void *named = private;
static unsigned char *heap; /* of rank 1 */
static tern_addr at_heap, at_private;
static tern_segment segment;

__attribute__((noinline)) static void mark(void)
{
	__asm__ volatile("");
}

/* -- Paths: each moves `len` bytes between local_word and rank 1's memory ---------------------- */

static tern_addr addr;

static int put(size_t len)
{
	return tern_put(local[0], addr, &local_word, len);
}

/* As the first put to a heap: what it may reach is not known yet. */
static int put_anew(size_t len)
{
	struct job_span *s = &mem_of(local[0])->span[1];
	s->own_words = s->common_words = 0;
	return tern_put(local[0], addr, &local_word, len);
}

static int store(size_t len)
{
	return tern_store(local[0], addr, &local_word, len);
}

static int put_split(size_t len)
{
	tern_op op = TERN_OP;
	int rc = tern_put_start(local[0], addr, &local_word, len, &op);
	return rc ? rc : tern_op_wait(local[0], &op);
}

static int put_local(size_t len)
{
	return tern_put_local_start(local[0], addr, &local_word, len, &(tern_op)TERN_OP,
				    &(tern_op)TERN_OP);
}

static int put_queued(size_t len)
{
	tern_op op = TERN_OP;
	struct runs r;
	runs_of_block(&r, addr, &local_word, len);
	int rc = transfer_later(mem_of(local[0]), &r, true, &op);
	return rc ? rc : tern_op_wait(local[0], &op);
}

static int put_parts(size_t len)
{
	const tern_part there = { .addr = addr, .run = len };
	return tern_put_parts(local[0], &there, 1, &(tern_part){ .base = &local_word, .run = len },
			      1);
}

/* Where a turn would end in the middle of the word. */
static int put_behind(size_t len)
{
	static char much[BEFORE - 1];
	tern_op op = TERN_OP;
	const tern_part there[] = { { .addr = addr + BEFORE, .run = sizeof much },
				    { .addr = addr, .run = len } };
	const tern_part mine[] = { { .base = much, .run = sizeof much },
				   { .base = &local_word, .run = len } };
	int rc = tern_put_parts_start(local[0], there, 2, mine, 2, &op);
	return rc ? rc : tern_op_wait(local[0], &op);
}

static int put_column(size_t len)
{
	const size_t one = 1;
	const ptrdiff_t stride = 100;
	const tern_part there = {
		.addr = addr, .run = len, .dims = 1, .count = &one, .stride = &stride
	};
	return tern_put_parts(local[0], &there, 1, &(tern_part){ .base = &local_word, .run = len },
			      1);
}

/* Words of a row are moved one by one, though they lie side by side. */
static int put_row(size_t len)
{
	static char row[3 * WORD_MOST];
	const size_t three = 3;
	const ptrdiff_t stride = (ptrdiff_t)len;
	const tern_part there = {
		.addr = addr - len, .run = len, .dims = 1, .count = &three, .stride = &stride
	};
	memcpy(row + len, &local_word, len);
	return tern_put_parts(local[0], &there, 1, &(tern_part){ .base = row, .run = 3 * len }, 1);
}

/* Its bytes lie apart here. */
static int put_gathered(size_t len)
{
	const tern_part there = { .addr = addr, .run = len };
	const tern_part mine[] = { { .base = &local_word, .run = 1 },
				   { .base = (char *)&local_word + 1, .run = len - 1 } };
	return tern_put_parts(local[0], &there, 1, mine, 2);
}

/* The same, at even distances. */
static int put_apart(size_t len)
{
	char bytes[2 * WORD_MOST];
	const ptrdiff_t two = 2;
	const tern_part mine = {
		.base = bytes, .run = 1, .dims = 1, .count = &len, .stride = &two
	};
	for (size_t i = 0; i < len; i++)
		bytes[2 * i] = ((const char *)&local_word)[i];
	return tern_put_parts(local[0], &(tern_part){ .addr = addr, .run = len }, 1, &mine, 1);
}

static int put_request(size_t len)
{
	return tern_put_request(local[0], addr, ASK, &local_word, len);
}

static int copy(size_t len)
{
	return tern_copy_start(local[0], addr, handed_addr(local[0], &local_word), len, NULL);
}

static int write_async(size_t len)
{
	return tern_async_put_start(local[0], addr, &local_word, len, TERN_ADDR_NONE, NULL);
}

static int xfer(size_t len)
{
	return tern_segment_put_start(local[0], segment, &local_word, len, NULL);
}

/* As over a network: the bytes come in a message, and the owner lays them down. */
static int put_message(size_t len)
{
	uint64_t words[] = { addr, NO_SLOT, len };
	int rc = layer_request(local[0]->own, 1, MEM_PUT, &local_word, len, 3, words);
	return rc ? rc : tern_poll(local[1]) < 0;
}

/* The same among other runs: as pack.c describes them. */
static int put_pack(size_t len)
{
	uint64_t payload[] = { addr, 1 << 16 | len, 0 };
	memcpy(&payload[2], &local_word, len);
	uint64_t words[] = { NO_SLOT, 2, len };
	int rc = layer_request(local[0]->own, 1, MEM_PUT_PARTS, payload, 16 + len, 3, words);
	return rc ? rc : tern_poll(local[1]) < 0;
}

static void segment_asked(tern *t, const tern_msg *m)
{
	if (tern_msg_count(m))
		tern_segment_reply(t, m, tern_msg_word(m, 0), &local_word, tern_msg_word(m, 1));
}

static int reply_xfer(size_t len)
{
	int rc = tern_request(local[1], 0, ASK, segment, len);
	return rc ? rc : tern_poll(local[0]) < 0 || tern_poll(local[1]) < 0;
}

static int get(size_t len)
{
	return tern_get(local[0], &local_word, addr, len);
}

static int get_split(size_t len)
{
	tern_op op = TERN_OP;
	int rc = tern_get_start(local[0], &local_word, addr, len, &op);
	return rc ? rc : tern_op_wait(local[0], &op);
}

static int get_parts(size_t len)
{
	const tern_part there = { .addr = addr, .run = len };
	return tern_get_parts(local[0], &(tern_part){ .base = &local_word, .run = len }, 1, &there,
			      1);
}

static int get_column(size_t len)
{
	const size_t one = 1;
	const ptrdiff_t stride = 100;
	const tern_part there = {
		.addr = addr, .run = len, .dims = 1, .count = &one, .stride = &stride
	};
	return tern_get_parts(local[0], &(tern_part){ .base = &local_word, .run = len }, 1, &there,
			      1);
}

static int get_when(size_t len)
{
	return tern_get_when_start(local[0], &local_word, addr, len,
				   &(tern_when){ .flag = at_private + 32, .least = 0 }, NULL);
}

static int get_block(size_t len)
{
	return tern_block_get_start(local[0], &local_word, 0, 1,
				    &(tern_block){ .name = NAME, .run = len, .count = 1 }, NULL);
}

static int read_async(size_t len)
{
	return tern_async_get_start(local[0], &local_word, addr, len, NULL);
}

struct path {
	const char *name;
	int (*move)(size_t len);
	bool put, registered;
};

static const struct path paths[] = {
	{ "tern_put", put, true, false },
	{ "the first tern_put", put_anew, true, false },
	{ "tern_store", store, true, false },
	{ "tern_put_start", put_split, true, false },
	{ "tern_put_local_start", put_local, true, false },
	{ "a queued put", put_queued, true, false },
	{ "tern_put_parts", put_parts, true, false },
	{ "tern_put_parts_start behind a long part", put_behind, true, false },
	{ "tern_put_parts of a column", put_column, true, false },
	{ "tern_put_parts of a row", put_row, true, false },
	{ "tern_put_parts of scattered bytes", put_gathered, true, false },
	{ "tern_put_parts of bytes of a column", put_apart, true, false },
	{ "tern_put_request", put_request, true, false },
	{ "tern_copy_start", copy, true, false },
	{ "tern_async_put_start", write_async, true, false },
	{ "a put in a message", put_message, true, false },
	{ "a put of parts in a message", put_pack, true, false },
	{ "tern_segment_put_start", xfer, true, true },
	{ "tern_segment_reply", reply_xfer, true, true },
	{ "tern_put to registered memory", put, true, true },
	{ "tern_put_parts to registered memory", put_parts, true, true },
	{ "a put in a message to registered memory", put_message, true, true },
	{ "a put of parts in a message to registered memory", put_pack, true, true },
	{ "tern_get", get, false, false },
	{ "tern_get_start", get_split, false, false },
	{ "tern_get_parts", get_parts, false, false },
	{ "tern_get_parts of a column", get_column, false, false },
	{ "tern_async_get_start", read_async, false, false },
	{ "tern_get from registered memory", get, false, true },
	{ "tern_get_when_start", get_when, false, true },
	{ "tern_block_get_start", get_block, false, true },
};
enum { PATHS = sizeof paths / sizeof *paths };

/* -- The child --------------------------------------------------------------------------------- */

static const uint64_t old_value = 0x0101010101010101, new_value = 0x2222222222222222,
		      answer = 0x4343434343434343;

static size_t segment_again(tern *t, void *base, void *info)
{
	(void)t, (void)base, (void)info;
	return sizeof private;
}

static void child_move(const struct path *p, size_t len)
{
	unsigned char *target = p->registered ? private : heap;
	memcpy(target, &old_value, 8);
	local_word = p->put ? new_value : old_value;
	addr = p->registered ? at_private : at_heap;
	mark();
	int rc = p->move(len);
	mark();
	if (rc)
		printf("    %s of %zu bytes: %s\n", p->name, len, tern_strerror(rc));
	if (rc)
		_exit(2);
	local_settle();
}

static void child_run(void)
{
	local_open(2);
	local_on(ASK, segment_asked);
	heap = handed_alloc(local[1], (size_t)2 * BEFORE + 64);
	heap += heap ? 64 : 0; /* a row has words before */
	at_heap = handed_addr(local[1], heap);
	tern_addr mine;
	if (!heap || tern_register(local[1], private, sizeof private, &at_private) ||
	    tern_register(local[0], &local_word, sizeof local_word, &mine) ||
	    tern_segment_open(local[1], private, sizeof private, segment_again, NULL, &segment) ||
	    tern_block_name(local[1], NAME, &named, sizeof private))
		_exit(2);
	for (int i = 0; i < PATHS;
	     i++) /* what is done once, and finding functions, is over before */
		for (int w = 0; w < WIDTHS; w++)
			child_move(&paths[i], width[w]);
	ptrace(PTRACE_TRACEME, 0, NULL, NULL);
	raise(SIGSTOP);
	for (int i = 0; i < PATHS; i++)
		for (int w = 0; w < WIDTHS; w++)
			child_move(&paths[i], width[w]);
	_exit(0);
}

/* -- The tracer -------------------------------------------------------------------------------- */

static bool resume(pid_t child, enum __ptrace_request how, struct user_regs_struct *regs)
{
	int status;
	return ptrace(how, child, NULL, NULL) == 0 && waitpid(child, &status, 0) == child &&
	       WIFSTOPPED(status) && ptrace(PTRACE_GETREGS, child, NULL, regs) == 0;
}

/* To where the child enters mark(), at full speed. */
static bool run_to_mark(pid_t child)
{
	struct user_regs_struct regs;
	void *at = (void *)(uintptr_t)mark;
	if (!resume(child, PTRACE_SINGLESTEP, &regs))
		return false;
	long text = ptrace(PTRACE_PEEKTEXT, child, at, NULL);
	ptrace(PTRACE_POKETEXT, child, at, (void *)((text & ~0xffL) | 0xcc));
	if (!resume(child, PTRACE_CONT, &regs))
		return false;
	ptrace(PTRACE_POKETEXT, child, at, (void *)text);
	regs.rip = (unsigned long)(uintptr_t)at;
	return ptrace(PTRACE_SETREGS, child, NULL, &regs) == 0;
}

static uint64_t peek(pid_t child, const void *p)
{
	return (uint64_t)ptrace(PTRACE_PEEKDATA, child, p, NULL);
}

/* The low `len` bytes; the others stay as they are. */
static void poke(pid_t child, void *p, uint64_t value, size_t len)
{
	uint64_t word = peek(child, p);
	memcpy(&word, &value, len);
	ptrace(PTRACE_POKEDATA, child, p, (void *)word);
}

static bool is(uint64_t word, uint64_t value, size_t len)
{
	return memcmp(&word, &value, len) == 0;
}

/* Steps over a put. */
static void watch_put(pid_t child, const struct path *p, size_t len, void *target)
{
	struct user_regs_struct regs;
	bool answered = false, whole = true, once = true;
	for (long n = 0; n < STEPS_MOST && resume(child, PTRACE_SINGLESTEP, &regs); n++) {
		uint64_t now = peek(child, target);
		if (!answered && is(now, new_value, len)) {
			poke(child, target, answer, len);
			answered = true;
			now = peek(child, target);
		}
		once &= !answered || is(now, answer, len);
		whole &= answered || is(now, old_value, len);
		if (regs.rip == (unsigned long)(uintptr_t)mark)
			break;
	}
	if (!CHECK(answered && whole && once))
		printf("    %s of %zu bytes%s%s%s\n", p->name, len,
		       answered ? "" : ": it never came", whole ? "" : ": a part was seen",
		       once ? "" : ": it was stored twice");
}

/* Steps over a get. */
static void watch_get(pid_t child, const struct path *p, size_t len, void *source)
{
	struct user_regs_struct regs;
	for (long n = 0; n < STEPS_MOST && resume(child, PTRACE_SINGLESTEP, &regs); n++) {
		if (regs.rip == (unsigned long)(uintptr_t)mark)
			break;
		poke(child, source, n % 2 ? old_value : new_value, len);
	}
	uint64_t got = peek(child, &local_word);
	if (!CHECK(is(got, old_value, len) || is(got, new_value, len)))
		printf("    %s of %zu bytes brought %016llx\n", p->name, len,
		       (unsigned long long)got);
}

TEST(every_path_moves_a_word_with_one_load_and_one_store)
{
	int status;
	local_polled();
	fflush(stdout);
	pid_t child = fork();
	REQUIRE(child >= 0);
	if (!child)
		child_run();
	REQUIRE(waitpid(child, &status, 0) == child);
	if (!WIFSTOPPED(status))
		check_skip("a process cannot be traced here");
	for (int i = 0; i < PATHS; i++)
		for (int w = 0; w < WIDTHS; w++) {
			REQUIRE(run_to_mark(child));
			void *target = private;
			if (!paths[i].registered)
				target = (void *)peek(child, &heap);
			if (paths[i].put)
				watch_put(child, &paths[i], width[w], target);
			else
				watch_get(child, &paths[i], width[w], target);
		}
	struct user_regs_struct regs;
	while (resume(child, PTRACE_CONT, &regs))
		;
}

#endif

TEST(a_copy_is_right_for_every_length_and_alignment)
{
	unsigned char from[64], to[64], image[64];
	for (size_t i = 0; i < sizeof from; i++)
		from[i] = (unsigned char)(i * 7 + 1);
	for (size_t len = 0; len < 20; len++)
		for (size_t a = 0; a < 8; a++)
			for (size_t b = 0; b < 8; b++) {
				memset(to, 0xee, sizeof to);
				memset(image, 0xee, sizeof image);
				word_copy(to + a, from + b, len);
				memcpy(image + a, from + b, len);
				CHECK(memcmp(to, image, sizeof to) == 0);
			}
}
