/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Entries found by rank and id, in the order they came: a hash of lists. An entry costs what
 * those cost that share its bucket, whatever else is in the table.
 */
#ifndef TERN_MSG_TABLE_H
#define TERN_MSG_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <tern/send.h>

struct node {
	struct node *next, *prev;
	struct list *in;
	uint32_t rank;
	tern_id id;
};

struct list {
	struct node *first, *last;
};

/* What the node `n`, its member `field`, is in; NULL if that is. */
#define NODE_OF(n, type, field) ((type *)node_owner(n, offsetof(type, field)))
static inline void *node_owner(struct node *n, size_t at)
{
	return n ? (char *)n - at : NULL;
}

enum { TABLE_BITS = 14 };

struct table {
	struct list *bucket; /* made with the first entry */
};

void list_append(struct list *l, struct node *n);
void list_prepend(struct list *l, struct node *n);

static inline void list_remove(struct node *n)
{
	*(n->prev ? &n->prev->next : &n->in->first) = n->next;
	*(n->next ? &n->next->prev : &n->in->last) = n->prev;
}

static inline struct list *table_list(const struct table *t, uint32_t rank, tern_id id)
{
	uint64_t mixed = (id ^ (uint64_t)rank << 40 ^ rank) * UINT64_C(0x9e3779b97f4a7c15);
	return &t->bucket[mixed >> (64 - TABLE_BITS)];
}

int table_add(
	struct table *t,
	struct node *n); /* -ENOMEM, no sentence, if there is no table yet and none can be had */

/* The first entry under rank and id from `n` on, `n` included; NULL if there is none. */
static inline struct node *node_like(struct node *n, uint32_t rank, tern_id id)
{
	while (n && (n->id != id || n->rank != rank))
		n = n->next;
	return n;
}

static inline struct node *table_find(const struct table *t, uint32_t rank, tern_id id)
{
	return t->bucket ? node_like(table_list(t, rank, id)->first, rank, id) : NULL;
}

#endif
