/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads that have been created here and wait for a place to run in, in the order in which they
 * came.
 */
#include <errno.h>
#include <stdlib.h>

#include "base/error.h"
#include "spawn/context.h"

int inbox_open(struct spawn *s)
{
	s->inbox_size = s->e->t->size * TERN_SPAWN_CREDITS;
	s->inbox = calloc(s->inbox_size, sizeof *s->inbox);
	return s->inbox ? 0 : -ENOMEM;
}

void inbox_close(struct spawn *s)
{
	free(s->inbox);
}

static void inbox_put(struct spawn *s, const tern_msg *m, struct label l)
{
	struct creation *c = &s->inbox[(s->inbox_first + s->inbox_count++) % s->inbox_size];
	const unsigned line = TERN_LINE_WORDS - 1; /* words beside the label */
	size_t len;
	const void *others = tern_msg_data(m, &len);
	c->from = tern_msg_src(m);
	c->label = l;
	for (unsigned i = 0; i < line; i++)
		c->word[i] = tern_msg_arg(m, i + 1);
	for (unsigned i = line; i < TERN_WORDS_MAX; i++)
		c->word[i] = 0;
	if (len && len <= (TERN_WORDS_MAX - line) * sizeof(uint64_t))
		memcpy(&c->word[line], others, len);
	s->party[c->from].here++;
}

/* The handler of CREATE. Where it may be run now is context.c's affair. */
void on_thread_create(tern *t, const tern_msg *m)
{
	struct spawn *s = spawn_of(t);
	struct label l = word_label(tern_msg_arg(m, 0));
	uint32_t from = tern_msg_src(m);
	if (s->leaving)
		return; /* its creator will know that this rank has left */
	if (!s->fn[l.id]) {
		const uint64_t words[] = { label_word(l), (uint64_t)-ENXIO, 0 };
		layer_reply(t->own, SPAWN_DONE, NULL, 0, 3, words);
	} else if (s->party[from].here == TERN_SPAWN_CREDITS) {
		poll_trouble(
			t->own,
			error_set(-EBADMSG,
				  "rank %u has created more than %d threads at rank %u at once; "
				  "one was dropped",
				  from, TERN_SPAWN_CREDITS, t->rank));
	} else {
		inbox_put(s, m, l);
		context_wanted(s);
	}
}

bool inbox_take(struct spawn *s, struct creation *c)
{
	if (!s->inbox_count)
		return false;
	*c = s->inbox[s->inbox_first];
	s->inbox_first = (s->inbox_first + 1) % s->inbox_size;
	s->inbox_count--;
	return true;
}

/* May wait for room in the ring. A creator that is gone needs no answer. */
void inbox_answer(struct spawn *s, const struct creation *c, int rc, uint64_t result)
{
	s->party[c->from].here--;
	if (!s->e->site.peer[c->from].lost)
		layer_words(s->e, c->from, SPAWN_DONE, label_word(c->label), (uint64_t)rc, result,
			    0, 0, 0);
}

/* cost: base control */
