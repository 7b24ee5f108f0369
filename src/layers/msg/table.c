/* SPDX-License-Identifier: BSD-3-Clause */
/* The hash table by rank and id of sends, receives and arrivals. */
#include "msg/table.h"

#include "base/memory.h"
#include <errno.h>

void list_append(struct list *l, struct node *n)
{
	n->in = l;
	n->next = NULL;
	n->prev = l->last;
	*(l->last ? &l->last->next : &l->first) = n;
	l->last = n;
}

void list_prepend(struct list *l, struct node *n)
{
	n->in = l;
	n->prev = NULL;
	n->next = l->first;
	*(n->next ? &n->next->prev : &l->last) = n;
	l->first = n;
}

int table_add(struct table *t, struct node *n)
{
	if (!t->bucket) {
		t->bucket = memory_new((size_t)1 << TABLE_BITS, sizeof *t->bucket);
		if (!t->bucket)
			return -ENOMEM;
	}
	list_append(table_list(t, n->rank, n->id), n);
	return 0;
}
