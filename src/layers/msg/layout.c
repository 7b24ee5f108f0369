/* SPDX-License-Identifier: BSD-3-Clause */
/* Walking the bytes of a message that lies in parts. */
#include "msg/layout.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"

struct layout layout_block(const void *base, size_t len)
{
	return (struct layout){ .parts = 1,
				.one = { .base = (void *)(uintptr_t)base, .run = len },
				.total = len };
}

void layout_rows(struct layout *l, const void *base, size_t run, size_t count, ptrdiff_t stride)
{
	*l = layout_block(base, run);
	l->rows = count;
	l->stride = stride;
	l->one.dims = 1;
	l->one.count = &l->rows;
	l->one.stride = &l->stride;
	l->total = run * count;
}

void layout_copy(struct layout *to, const struct layout *from)
{
	*to = *from;
	if (from->one.count != &from->rows)
		return;
	to->one.count = &to->rows;
	to->one.stride = &to->stride;
}

const tern_part *layout_list(const struct layout *l)
{
	return l->list ? l->list : &l->one;
}

int layout_parts(struct layout *l, const tern_part *parts, size_t n)
{
	*l = (struct layout){ .list = parts, .parts = n };
	if (n > TERN_PARTS_MAX)
		return error_set(-EINVAL, "a message was given %zu parts; it may have %d", n,
				 TERN_PARTS_MAX);
	int rc = parts_total(parts, n, &l->total);
	if (!rc && n == 1) { /* needs no list */
		l->one = parts[0];
		l->list = NULL;
	}
	return rc;
}

static bool part_dense(const tern_part *p)
{
	size_t len = p->run;
	for (unsigned d = 0; d < p->dims; len *= p->count[d++])
		if (p->count[d] > 1 && p->stride[d] != (ptrdiff_t)len)
			return false;
	return true;
}

char *layout_whole(const struct layout *l)
{
	const tern_part *p = layout_list(l);
	return l->parts == 1 && part_dense(p) ? p->base : NULL;
}

void layout_fill(const struct layout *l, const char *bytes, size_t len)
{
	char *whole = layout_whole(l);
	struct run_walk w;
	if (whole && len == sizeof(uint64_t)) { /* the commonest, without a call */
		memcpy(whole, bytes, sizeof(uint64_t));
	} else if (whole) {
		memcpy(whole, bytes, len);
	} else {
		layout_walk(l, &w);
		parts_copy(&w, (char *)(uintptr_t)bytes, len, false);
	}
}

void layout_walk(const struct layout *l, struct run_walk *w)
{
	parts_begin(w, layout_list(l), l->parts, true);
}

void layout_gather(const struct layout *l, char *bytes)
{
	struct run_walk w;
	layout_walk(l, &w);
	parts_copy(&w, bytes, l->total, true);
}
