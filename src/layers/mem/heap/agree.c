/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every rank says a word (an offset, or that it could not), and all compare. Where ranks share
 * memory the words lie there, and a barrier follows before and after they are read. Elsewhere each
 * rank tells every other, and waits until it has heard as many; two rounds have places of their
 * own, because a rank that has heard all may begin the next round while another still listens.
 */
#include "core/wait.h"
#include "mem/mem.h"

static void agree_note(struct agreement *a, uint64_t round, uint32_t src, uint64_t word)
{
	struct heard *h = &a->of[round % AGREE_ROUNDS];
	struct odd one = { true, src, word };
	if (!h->n++)
		*h = (struct heard){ .n = 1, .first = one };
	else if (word != h->first.word)
		h->odd = one;
}

void on_agree(tern *t, const tern_msg *msg)
{
	agree_note(&mem_of(t)->agreement, tern_msg_word(msg, 0), tern_msg_src(msg),
		   tern_msg_word(msg, 1));
}

static bool agree_heard(struct endpoint *e, void *arg)
{
	struct agreement *a = arg;
	return a->of[a->round % AGREE_ROUNDS].n == e->t->size;
}

static int agree_tell(struct mem *m, struct agreement *a, uint64_t mine)
{
	uint64_t words[] = { a->round, mine };
	int rc = 0;
	agree_note(a, a->round, m->rank, mine);
	for (uint32_t r = 0; r < m->size && !rc; r++)
		if (r != m->rank)
			rc = layer_request(m->e, r, MEM_AGREE, NULL, 0, 2, words);
	return rc;
}

static int agree_by_messages(struct mem *m, uint64_t mine, struct odd *odd)
{
	struct agreement *a = &m->agreement;
	struct wait w = { .call = "a collective call", .stop = wait_blame };
	/* Not a word is sent before all are known to make the same call. */
	int rc = m->e->barrier.quiescing ? 0 : tern_barrier(m->e->t);
	if (!rc)
		rc = agree_tell(m, a, mine);
	if (!rc)
		rc = wait_until(m->e, agree_heard, a, &w);
	if (rc)
		return rc;
	struct heard *h = &a->of[a->round++ % AGREE_ROUNDS];
	*odd = h->first.word != mine ? h->first : h->odd;
	h->n = 0;
	return 0;
}

/*
 * The last barrier keeps the words until all have read them. The barriers order them; the default
 * order of the words themselves costs one store in a collective call.
 */
static int agree_in_memory(struct mem *m, uint64_t mine, struct odd *odd)
{
	tern *t = m->e->t;
	atomic_store(&m->job->rank[m->rank].word, mine);
	int rc = tern_barrier(t);
	if (rc)
		return rc;
	*odd = (struct odd){ .is = false };
	for (uint32_t r = 0; r < m->size && !odd->is; r++) {
		uint64_t word = atomic_load(&m->job->rank[r].word);
		*odd = (struct odd){ word != mine, r, word };
	}
	return tern_barrier(t);
}

int all_agree(struct mem *m, const char *call, uint64_t mine, struct odd *odd)
{
	uint32_t mapped = 0;
	while (mapped < m->size && layer_maps(m->e, mapped))
		mapped++;
	m->e->barrier.call = call;
	int rc = (mapped < m->size ? agree_by_messages : agree_in_memory)(m, mine, odd);
	m->e->barrier.call = NULL;
	return rc;
}
