/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory that there is for one step alone: segments, allocations, registered memory. */
#include <stdatomic.h>
#include <sys/mman.h>
#include <unistd.h>

#include "play.h"

enum { ON_FILL = 11, HEAD = 8, MARGIN = 16 };
enum segment_form { FILLED, STARTED, SHORTENED, TWICE, BY_REPLY };
enum region_form { HEAP, ALIGNED, GRANTED, PRIVATE, IN_FILE };

static const unsigned char fill = 0xee;

static bool all_are(const char *p, size_t len)
{
	for (size_t i = 0; i < len; i++)
		if ((unsigned char)p[i] != fill)
			return false;
	return true;
}

/* -- Segments --------------------------------------------------------------------------------- */

struct filling {
	_Atomic unsigned ends;
	unsigned rounds;
	size_t len;
	char *bytes;
};

static size_t segment_len(const struct step *s)
{
	size_t len = s->form == BY_REPLY ? s->len % (TERN_PAYLOAD_MAX + 1) : s->len;
	return len ? len : 1;
}

/* The i-th part of it begins here. */
static size_t part_at(const struct step *s, unsigned i)
{
	return segment_len(s) * i / s->count;
}

static size_t segment_ended(tern *own, void *base, void *arg)
{
	struct filling *f = arg;
	(void)own, (void)base;
	return atomic_fetch_add(&f->ends, 1) + 1 < f->rounds ? f->len : 0;
}

static int has_ended(tern *own, void *arg)
{
	struct filling *f = arg;
	(void)own;
	return atomic_load(&f->ends) == f->rounds;
}

static tern_segment segment_begin(const struct step *s, struct filling *f)
{
	size_t len = segment_len(s), more = s->form == SHORTENED ? 5 : 0;
	tern_segment out = 0;
	*f = (struct filling){ .rounds = s->form == TWICE ? 2 : 1, .len = len };
	f->bytes = malloc(len + MARGIN);
	memset(f->bytes, fill, len + MARGIN);
	code_is(s, "tern_segment_open()",
		tern_segment_open(t, f->bytes, len + more, segment_ended, f, &out), 0);
	return out;
}

static void segment_finish(const struct step *s, struct filling *f, tern_segment segment)
{
	if (s->form == SHORTENED)
		code_is(s, "tern_segment_shorten()", tern_segment_shorten(t, segment, 5), 0);
	code_is(s, "waiting for a segment", tern_wait_until(t, has_ended, f), 0);
	bytes_are(s, "a segment", f->bytes, 0, f->len, message_number(s, 0));
	if (!all_are(f->bytes + f->len, MARGIN))
		wrong(s, "something is written behind the segment");
	code_is(s, "closing a segment that has ended", tern_segment_close(t, segment), -EINVAL);
	free(f->bytes);
}

static void part_put(struct pending *w, int rc)
{
	code_is(w->s, "tern_segment_put()", rc, 0);
}

/* One byte more than is still to come is refused, and none of it is written. */
static void segment_overfill(const struct step *s, tern_segment segment, size_t left)
{
	char data[TERN_PAYLOAD_MAX];
	if (s->form != FILLED || s->count == 1 || left + 1 > sizeof data)
		return;
	memset(data, fill, left + 1);
	code_is(s, "a put of more than is still to come",
		tern_segment_put(t, segment, data, left + 1), -EOVERFLOW);
}

static void segment_fill(const struct step *s, tern_segment segment)
{
	for (unsigned k = 0; k < s->count; k++) {
		unsigned i = s->value >> 21 & 1 ? k : s->count - 1 - k;
		size_t at = part_at(s, i), len = part_at(s, i + 1) - at;
		struct pending *w = pending_new(s, i, len, part_put);
		if (k + 1 == s->count && len < segment_len(s))
			segment_overfill(s, segment, len);
		tern_op *op = s->form == STARTED && !waits_here(s) ? &w->op : NULL;
		content_fill(w->bytes, at, len, message_number(s, 0));
		pending_begun(w, tern_segment_put_start(t, segment + at, w->bytes, len, op),
			      op != NULL);
	}
	pending_wait_all();
}

static void on_fill(tern *own, const tern_msg *m)
{
	const struct step *s = &program.step[tern_msg_word(m, 1) % program.steps];
	unsigned i = (unsigned)tern_msg_word(m, 2);
	size_t at = part_at(s, i), len = part_at(s, i + 1) - at;
	char data[TERN_PAYLOAD_MAX];
	(void)own;
	content_fill(data, at, len, message_number(s, 0));
	code_is(s, "tern_segment_reply()",
		tern_segment_reply(t, m, tern_msg_word(m, 0) + at, data, len), 0);
}

static void segment_by_replies(const struct step *s)
{
	struct filling f;
	if (s->from != me)
		return;
	tern_segment segment = segment_begin(s, &f);
	for (unsigned i = 0; i < s->count; i++)
		code_is(s, "tern_request()", tern_request(t, s->to, ON_FILL, segment, s->number, i),
			0);
	segment_finish(s, &f, segment);
}

/* What is sent to it afterwards is refused. */
static void segment_stale(const struct step *s, tern_segment segment)
{
	code_is(s, "a put into a segment that has ended", tern_segment_put(t, segment, &fill, 1),
		-EFAULT);
}

void segment_play(const struct step *s)
{
	struct filling f;
	if (s->form == BY_REPLY) {
		segment_by_replies(s);
		return;
	}
	tern_segment segment = s->to == me ? segment_begin(s, &f) : 0;
	segment = word_pass(s, s->to, s->from, 1, segment);
	for (unsigned i = 0; i < (s->form == TWICE ? 2 : 1) && s->from == me; i++)
		segment_fill(s, segment);
	if (s->to == me)
		segment_finish(s, &f, segment);
	word_pass(s, s->to, s->from, 2, 0);
	if (s->from == me)
		segment_stale(s, segment);
}

/* -- Regions ---------------------------------------------------------------------------------- */

/* A word, `len` bytes, and a few that nobody may touch. */
struct region {
	size_t bytes;
	char *p;
	tern_addr a;
};

static bool heap_form(const struct step *s)
{
	return s->form == HEAP || s->form == ALIGNED || s->form == GRANTED;
}

static bool region_in_heap(const struct step *s, struct region *r)
{
	size_t align = s->form == ALIGNED ? (size_t)64 << s->value % 8 : 64;
	size_t whole = (r->bytes + align - 1) / align * align;
	void *p = NULL;
	int rc = s->form == ALIGNED ? tern_alloc_aligned(t, whole, align, &p)
				    : tern_alloc(t, r->bytes, &p);
	if (!code_is(s, "tern_alloc()", rc, 0))
		return false;
	number_is(s, "how far memory is from its alignment", (uintptr_t)p % align, 0);
	r->p = p;
	r->a = tern_addr_at(t, me, p);
	return true;
}

static bool region_mapped(const struct step *s, struct region *r)
{
	int fd = s->form == IN_FILE ? memfd_create("crossings", 0) : -1;
	if (fd >= 0)
		code_is(s, "ftruncate()", ftruncate(fd, (off_t)r->bytes), 0);
	r->p = mmap(NULL, r->bytes, PROT_READ | PROT_WRITE,
		    fd >= 0 ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, fd, 0);
	int rc = fd >= 0 ? tern_register_fd(t, r->p, r->bytes, fd, 0, &r->a)
			 : tern_register(t, r->p, r->bytes, &r->a);
	if (fd >= 0)
		close(fd);
	return code_is(s, "tern_register()", rc, 0);
}

/* 0: there is none. */
static tern_addr region_begin(const struct step *s, struct region *r)
{
	*r = (struct region){ .bytes = HEAD + s->len + MARGIN };
	if (!(heap_form(s) ? region_in_heap(s, r) : region_mapped(s, r)))
		return 0;
	memset(r->p, fill, r->bytes);
	memset(r->p, 0, HEAD);
	if (s->form == GRANTED)
		code_is(s, "tern_grant()", tern_grant(t, s->from, r->p, r->bytes), 0);
	return r->a;
}

static void region_end(const struct step *s, struct region *r)
{
	uint64_t sum;
	memcpy(&sum, r->p, sizeof sum);
	number_is(s, "a word of the region", sum, s->count);
	bytes_are(s, "a region", r->p + HEAD, 0, s->len, message_number(s, s->count - 1));
	if (!all_are(r->p + HEAD + s->len, MARGIN))
		wrong(s, "something is written behind what was put");
	if (s->form == GRANTED)
		code_is(s, "tern_revoke()", tern_revoke(t, s->from, r->p, r->bytes), 0);
	if (heap_form(s)) {
		code_is(s, "tern_free()", tern_free(t, r->p), 0);
		return;
	}
	code_is(s, "tern_unregister()", tern_unregister(t, r->a), 0);
	munmap(r->p, r->bytes);
}

static void region_put(struct pending *w, int rc)
{
	code_is(w->s, "a put into a region", rc, 0);
}

static void region_use(const struct step *s, tern_addr a)
{
	char *back = malloc(s->len + 1);
	for (unsigned i = 0; i < s->count; i++) {
		struct pending *w = pending_new(s, i, s->len, region_put);
		tern_op *op = waits_here(s) ? NULL : &w->op;
		uint64_t old = 0;
		content_fill(w->bytes, 0, s->len, message_number(s, i));
		pending_begun(w, tern_put_start(t, a + HEAD, w->bytes, s->len, op), op != NULL);
		code_is(s, "tern_amo()", tern_amo(t, a, TERN_AMO_ADD, (uint64_t)1, &old), 0);
		number_is(s, "the word before", old, i);
		pending_wait_all();
	}
	code_is(s, "tern_get()", tern_get(t, back, a + HEAD, s->len), 0);
	bytes_are(s, "what was got of a region", back, 0, s->len, message_number(s, s->count - 1));
	free(back);
}

/* Memory that is not registered any more is nobody's. */
static void region_stale(const struct step *s, tern_addr a)
{
	char byte = 0;
	uint64_t old;
	code_is(s, "a put to what was unregistered", tern_put(t, a + HEAD, &byte, 1), -EFAULT);
	code_is(s, "a get of what was unregistered", tern_get(t, &byte, a + HEAD, 1), -EFAULT);
	code_is(s, "an operation on what was unregistered",
		tern_amo(t, a, TERN_AMO_ADD, (uint64_t)1, &old), -EFAULT);
}

void region_play(const struct step *s)
{
	struct region r;
	tern_addr a = s->to == me ? region_begin(s, &r) : 0;
	a = word_pass(s, s->to, s->from, 1, a);
	if (s->from == me && a)
		region_use(s, a);
	word_pass(s, s->from, s->to, 2, 0);
	if (s->to == me && a)
		region_end(s, &r);
	word_pass(s, s->to, s->from, 3, 0);
	if (s->from == me && a && !heap_form(s))
		region_stale(s, a);
}

void regions_open(void)
{
	const struct step s = { .kind = SEGMENT };
	code_is(&s, "tern_on()", tern_on(t, ON_FILL, on_fill), 0);
}
