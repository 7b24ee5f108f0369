/* SPDX-License-Identifier: BSD-3-Clause */
/* Walking the bytes of a message that lies in parts. */
#include "msg/layout.h"

#include <errno.h>
#include <string.h>

#include "base/error.h"
#include "base/memory.h"

static bool part_dense(const tern_part *p)
{
	size_t len = p->run;
	for (unsigned d = 0; d < p->dims; len *= p->count[d++])
		if (p->count[d] > 1 && p->stride[d] != (ptrdiff_t)len)
			return false;
	return true;
}

struct layout layout_block(const void *base, size_t len)
{
	return (struct layout){ .parts = 1,
				.one = { .base = (void *)(uintptr_t)base, .run = len },
				.whole = (char *)(uintptr_t)base,
				.total = len };
}

const tern_part *layout_list(const struct layout *l)
{
	return l->list ? l->list : &l->one;
}

int layout_parts(struct layout *l, const tern_part *parts, size_t n, bool temporary)
{
	*l = (struct layout){ .list = parts, .parts = n, .temporary = temporary };
	if (n > TERN_PARTS_MAX)
		return error_set(-EINVAL, "a message was given %zu parts; it may have %d", n,
				 TERN_PARTS_MAX);
	int rc = parts_total(parts, n, &l->total);
	if (!rc && n == 1) { /* needs no list */
		l->one = parts[0];
		l->list = NULL;
		l->whole = part_dense(parts) ? parts->base : NULL;
	}
	return rc;
}

int layout_keep(struct layout *l, struct pool_of *copies)
{
	struct run_walk w;
	if (!l->temporary || (!l->list && !l->one.dims))
		return 0;
	layout_walk(l, &w);
	size_t need = parts_copy_list(&w, NULL);
	struct list_copy *k = record_take(copies);
	if (k && need > sizeof k->near)
		k->far = memory_new(1, need);
	if (k && need > sizeof k->near && !k->far) {
		record_give(copies, k);
		k = NULL;
	}
	if (!k)
		return error_set(-ENOMEM, "a message has no memory for its list of parts");
	parts_copy_list(&w, k->far ? k->far : k->near);
	l->list = w.part;
	l->parts = w.parts;
	l->kept = k;
	return 0;
}

void layout_give(struct layout *l, struct pool_of *copies)
{
	memory_free(l->kept->far);
	record_give(copies, l->kept);
	l->kept = NULL;
}

void layout_free_copies(struct pool_of *copies)
{
	for (struct list_copy *k = NULL; (k = record_next(copies, k));)
		memory_free(k->far);
	pool_free(copies);
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
