/* SPDX-License-Identifier: BSD-3-Clause */
/* The smallest layer: counts what ranks say to each other. */
#include "core/layer.h"
#include "layers.h"

struct toy {
	struct endpoint *e;
	uint64_t heard;
};

int tern_toy_say(tern *t, uint32_t rank, uint64_t what);
uint64_t tern_toy_heard(tern *t);

enum { TOY_WORD = TOY_HANDLERS };

static struct toy *toy_of(tern *t)
{
	return t->own->layer[LAYER_TOY];
}

static void on_word(tern *t, const tern_msg *m)
{
	toy_of(t)->heard += tern_msg_word(m, 0);
}

static int toy_open(struct endpoint *e, void *state)
{
	struct toy *y = state;
	y->e = e;
	layer_on(e, TOY_WORD, on_word);
	return 0;
}

static void toy_close(void *state)
{
	(void)state;
}

static unsigned toy_progress(void *state)
{
	(void)state;
	return 0;
}

static void toy_lost(void *state, uint32_t rank)
{
	(void)state, (void)rank;
}

extern const struct layer toy_layer;
const struct layer toy_layer = {
	.bytes = sizeof(struct toy),
	.open = toy_open,
	.close = toy_close,
	.progress = toy_progress,
	.lost = toy_lost,
};

int tern_toy_say(tern *t, uint32_t rank, uint64_t what)
{
	INSIDE struct scope scope = scope_given(t);
	return layer_request(t->own, rank, TOY_WORD, NULL, 0, 1, &what);
}

uint64_t tern_toy_heard(tern *t)
{
	return toy_of(t)->heard;
}
