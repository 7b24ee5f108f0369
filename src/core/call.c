/* SPDX-License-Identifier: BSD-3-Clause */
/* The inline sends as functions: for TERN_NO_INLINE, for arrays of words, for other languages. */
#include <tern/tern.h>

int tern_request_call(tern *t, unsigned n, uint32_t dst, unsigned id, TERN_SIX_)
{
	return tern_request_inline(t, n, dst, id, TERN_SIX_VALUES_);
}

int tern_reply_call(tern *t, unsigned n, const tern_msg *m, unsigned id, TERN_SIX_)
{
	return tern_reply_inline(t, n, m, id, TERN_SIX_VALUES_);
}

/* The i-th word, or 0 where there is none; more than fit are refused with their number. */
static uint64_t word_at(const uint64_t *words, unsigned n, unsigned i)
{
	return i < n ? words[i] : 0;
}

#define WORDS_AT(words, n)                                                                      \
	word_at(words, n, 0), word_at(words, n, 1), word_at(words, n, 2), word_at(words, n, 3), \
		word_at(words, n, 4), word_at(words, n, 5)

int tern_request_array(tern *t, uint32_t dst, unsigned id, unsigned n, const uint64_t *words)
{
	return tern_request_inline(t, n, dst, id, WORDS_AT(words, n));
}

int tern_reply_array(tern *t, const tern_msg *m, unsigned id, unsigned n, const uint64_t *words)
{
	return tern_reply_inline(t, n, m, id, WORDS_AT(words, n));
}

/* cost: base call */
