/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What C11 and C++17 say differently: atomics, linkage, assertions, and the words of a message.
 * Programs include <tern/tern.h>, never this file.
 */
#ifndef TERN_LANG_H
#define TERN_LANG_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#ifdef __cplusplus
#include <atomic>
#include <type_traits>
/* As <stdatomic.h> of C++23 has them. */
using std::atomic_fetch_add_explicit;
using std::atomic_load_explicit;
using std::atomic_signal_fence;
using std::atomic_store_explicit;
using std::memory_order_acquire;
using std::memory_order_relaxed;
using std::memory_order_release;
using std::memory_order_seq_cst;
#define TERN_ATOMIC_(type) std::atomic<type>
#define TERN_ASSERT_(what, why) static_assert(what, why)
#define TERN_BEGIN_ extern "C" {
#define TERN_END_ }
#else
#include <stdatomic.h>
#define TERN_ATOMIC_(type) _Atomic type
#define TERN_ASSERT_(what, why) _Static_assert(what, why)
#define TERN_BEGIN_
#define TERN_END_
#endif

/*
 * A call that is compiled into programs. The library exports it too, for other languages:
 * src/open/exports.c compiles it once more, as a function.
 */
#ifndef TERN_INLINE_
#define TERN_INLINE_ static inline
#endif

/* What a wait waits for, and tern_signal() adds to. */
typedef TERN_ATOMIC_(uint64_t) tern_flag;

/* -- Words ------------------------------------------------------------------------ */

/* A double travels as its bits, a float as the double of its value, an integer as itself. */
static inline uint64_t tern_word_double_(double value)
{
	uint64_t word;
	memcpy(&word, &value, sizeof word);
	return word;
}

static inline double tern_double_word_(uint64_t word)
{
	double value;
	memcpy(&value, &word, sizeof value);
	return value;
}

static inline uint64_t tern_word_integer_(uint64_t value)
{
	return value;
}

#define TERN_WORDS_WRONG_ "tern: a message has at most 8 words"
#define TERN_WORD_WRONG_ \
	"tern: a word is an integer, a float or a double; cast a pointer to uintptr_t"

#ifdef __cplusplus
template <class T> static inline uint64_t tern_word_of_(T value)
{
	static_assert(std::is_integral<T>::value || std::is_enum<T>::value, TERN_WORD_WRONG_);
	return (uint64_t)value;
}
template <> inline uint64_t tern_word_of_(double value)
{
	return tern_word_double_(value);
}
template <> inline uint64_t tern_word_of_(float value)
{
	return tern_word_double_(value);
}
#define TERN_WORD_(value) tern_word_of_(value)
template <unsigned n> struct tern_words_of_ {
	static_assert(n <= 8, TERN_WORDS_WRONG_);
	enum { count = n };
};
#define TERN_WORDS_(n) tern_words_of_<n>::count
#else
/* Zero, in an expression; the compiler says why if `what` is not so. */
#define TERN_ZERO_IF_(what, why)            \
	(0 * (int)sizeof(struct {           \
		 _Static_assert(what, why); \
		 char one_;                 \
	 }))
#define TERN_IS_POINTER_(value) (__builtin_classify_type(value) == 5)
/* The value; of a pointer 0, so that there is one error and not three. */
#define TERN_NUMBER_(value, zero) +__builtin_choose_expr(TERN_IS_POINTER_(value), zero, (value))
#define TERN_WORD_(value)                         \
	_Generic(TERN_NUMBER_(value, 0), float    \
		 : tern_word_double_, double      \
		 : tern_word_double_, long double \
		 : tern_word_double_, default     \
		 : tern_word_integer_)(           \
		TERN_NUMBER_(value, TERN_ZERO_IF_(!TERN_IS_POINTER_(value), TERN_WORD_WRONG_)))
#define TERN_WORDS_(n) ((n) + TERN_ZERO_IF_((n) <= 8, TERN_WORDS_WRONG_))
#endif

#endif
