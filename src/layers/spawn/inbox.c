/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads that have been created here and wait for a place to run in, in the order in which they
 * came.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/memory.h"
#include "core/direct.h"
#include "spawn/context.h"

int inbox_open(struct spawn *s)
{
	s->inbox_size = s->e->t->size * TERN_SPAWN_CREDITS;
	s->inbox = calloc(s->inbox_size, sizeof *s->inbox);
	return s->inbox ? 0 : -ENOMEM;
}

void inbox_close(struct spawn *s)
{
	struct creation c;
	while (inbox_take(s, &c))
		memory_free(c.data);
	free(s->inbox);
}

/* A payload that is too short for its words is garbage: they are 0 then. */
static int inbox_put(struct spawn *s, const tern_msg *m, struct label l)
{
	struct creation c = { .from = tern_msg_src(m), .label = l };
	size_t len, words = label_more(l) * sizeof(uint64_t);
	const unsigned char *payload = tern_msg_data(m, &len);
	for (unsigned i = 0; i < SPAWN_LINE; i++)
		c.word[i] = tern_msg_word(m, i + 1);
	if (words && len >= words)
		memcpy(&c.word[SPAWN_LINE], payload, words);
	if (len > words) {
		c.len = len - words;
		c.data = memory_new(1, c.len);
		if (!c.data)
			return -ENOMEM;
		memcpy(c.data, payload + words, c.len);
	}
	s->inbox[(s->inbox_first + s->inbox_count++) % s->inbox_size] = c;
	s->party[c.from].here++;
	return 0;
}

static void inbox_refuse(struct spawn *s, struct label l, int rc)
{
	const uint64_t words[] = { label_word(l), (uint64_t)rc, 0 };
	layer_reply(s->e, SPAWN_DONE, NULL, 0, 3, words);
}

/* The handler of CREATE. Where it may be run now is context.c's affair. */
void on_thread_create(tern *t, const tern_msg *m)
{
	struct spawn *s = spawn_of(t);
	struct label l = word_label(tern_msg_word(m, 0));
	uint32_t from = tern_msg_src(m);
	if (s->leaving)
		return; /* its creator will know that this rank has left */
	if (!s->function[l.id].fn) {
		inbox_refuse(s, l, -ENXIO);
	} else if (s->party[from].here == TERN_SPAWN_CREDITS) {
		poll_trouble(
			t->own,
			error_set(-EBADMSG,
				  "rank %u has created more than %d threads at rank %u at once; "
				  "one was dropped",
				  from, TERN_SPAWN_CREDITS, t->rank));
	} else {
		int rc = inbox_put(s, m, l);
		if (rc)
			inbox_refuse(s, l, rc);
		else
			context_wanted(s);
	}
}

bool inbox_take(struct spawn *s, struct creation *c)
{
	if (!s->inbox_count)
		return false;
	*c = s->inbox[s->inbox_first]; /* its data belong to the caller now */
	s->inbox_first = (s->inbox_first + 1) % s->inbox_size;
	s->inbox_count--;
	return true;
}

/* May wait for room in the ring. A creator that is gone needs no answer. */
void inbox_answer(struct spawn *s, struct creation *c, int rc, uint64_t result)
{
	memory_free(c->data);
	c->data = NULL;
	s->party[c->from].here--;
	if (!s->e->site.peer[c->from].lost)
		layer_words(s->e, c->from, SPAWN_DONE, label_word(c->label), (uint64_t)rc, result,
			    0, 0, 0);
}
