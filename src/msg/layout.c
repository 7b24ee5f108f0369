/* SPDX-License-Identifier: BSD-3-Clause */
/* Walking the bytes of a message that lies in parts. */
#include "msg/layout.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"

struct layout layout_block(const void *base, size_t len)
{
	return (struct layout){ .parts = 1,
				.one = { (void *)(uintptr_t)base, len, 1, 0 },
				.total = len };
}

const tern_part *layout_part(const struct layout *l, size_t i)
{
	return l->list ? &l->list[i] : &l->one;
}

static bool part_dense(const tern_part *p)
{
	return p->count <= 1 || p->stride == (ptrdiff_t)p->size;
}

int layout_parts(struct layout *l, const tern_part *parts, size_t n)
{
	*l = (struct layout){ .list = parts, .parts = n };
	if (n > TERN_PARTS_MAX)
		return error_set(-EINVAL, "a message was given %zu parts; it may have %d", n,
				 TERN_PARTS_MAX);
	for (size_t i = 0; i < n; i++) {
		size_t bytes;
		if (__builtin_mul_overflow(parts[i].size, parts[i].count, &bytes) ||
		    __builtin_add_overflow(l->total, bytes, &l->total) || l->total > PTRDIFF_MAX)
			return error_set(-EINVAL,
					 "the parts of a message have more bytes than memory can");
	}
	if (n == 1) { /* needs no list */
		l->one = parts[0];
		l->list = NULL;
	}
	return 0;
}

char *layout_whole(const struct layout *l)
{
	const tern_part *p = layout_part(l, 0);
	return l->parts == 1 && part_dense(p) ? p->base : NULL;
}

void layout_fill(const struct layout *l, const char *bytes, size_t len)
{
	char *whole = layout_whole(l);
	struct walk w = { .layout = l };
	if (whole && len == sizeof(uint64_t)) /* the commonest, without a call */
		memcpy(whole, bytes, sizeof(uint64_t));
	else if (whole)
		memcpy(whole, bytes, len);
	else
		walk_scatter(&w, bytes, len);
}

/* The memory where the walk stands, and how much of it lies in one piece. */
static char *walk_run(const struct walk *w, size_t *len)
{
	const tern_part *p = layout_part(w->layout, w->part);
	if (part_dense(p)) {
		*len = p->size * p->count - w->done;
		return (char *)p->base + w->done;
	}
	size_t element = w->done / p->size, within = w->done % p->size;
	*len = p->size - within;
	return (char *)p->base + (ptrdiff_t)element * p->stride + within;
}

static void walk_on(struct walk *w, size_t len)
{
	const tern_part *p = layout_part(w->layout, w->part);
	w->done += len;
	if (w->done < p->size * p->count)
		return;
	w->part++;
	w->done = 0;
}

static void walk_skip_empty(struct walk *w)
{
	const tern_part *p = layout_part(w->layout, w->part);
	while (p->size * p->count == 0)
		p = layout_part(w->layout, ++w->part);
}

static void walk_copy(struct walk *w, char *bytes, size_t len, bool gather)
{
	while (len) {
		size_t run;
		walk_skip_empty(w);
		char *at = walk_run(w, &run);
		run = run < len ? run : len;
		memcpy(gather ? bytes : at, gather ? at : bytes, run);
		walk_on(w, run);
		bytes += run;
		len -= run;
	}
}

void walk_gather(struct walk *w, char *bytes, size_t len)
{
	walk_copy(w, bytes, len, true);
}

void walk_scatter(struct walk *w, const char *bytes, size_t len)
{
	walk_copy(w, (char *)(uintptr_t)bytes, len, false);
}

/* cost: base control */
