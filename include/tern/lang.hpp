/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What C++ adds to C's calls: errors as exceptions or as return values, spans, and the types of
 * what messages carry. Programs include <tern/tern.hpp>, never this file.
 */
#ifndef TERN_LANG_HPP
#define TERN_LANG_HPP

#ifdef TERN_TERN_H
#error "include <tern/tern.hpp> before the C headers of Tern: it includes them, and renames a type"
#endif

#include <cerrno>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <exception>
#include <initializer_list>
#include <iterator>
#include <memory>
#include <new>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>
#if __cplusplus >= 202002L
#include <span>
#endif

#define tern tern_c
#include <tern/async.h>
#include <tern/buf.h>
#include <tern/chan.h>
#include <tern/coll.h>
#include <tern/lock.h>
#include <tern/mem.h>
#include <tern/op.h>
#include <tern/post.h>
#include <tern/send.h>
#include <tern/sequence.h>
#include <tern/sim.h>
#include <tern/stats.h>
#include <tern/tern.h>
#include <tern/thread.h>
#undef tern

namespace tern {

/* -- Errors ------------------------------------------------------------------------ */

/* Its codes are Tern's, negative; its messages are the sentences of tern_strerror(). */
inline const std::error_category &category()
{
	static const struct : std::error_category {
		const char *name() const noexcept override { return "tern"; }
		std::string message(int rc) const override { return tern_strerror(rc); }
		std::error_condition default_error_condition(int rc) const noexcept override
		{
			return { -rc, std::generic_category() };
		}
	} one;
	return one;
}

/* How a call has ended, where there are no exceptions: true if it has failed. */
class [[nodiscard]] status {
	int rc_ = 0;

public:
	status() = default;
	explicit status(int rc) : rc_(rc) {}
	explicit operator bool() const { return rc_ != 0; }
	int code() const { return rc_; }
	const char *what() const { return tern_strerror(rc_); }
	operator std::error_code() const { return { rc_, category() }; }
	friend bool operator==(status s, std::errc e) { return s.rc_ == -static_cast<int>(e); }
	friend bool operator!=(status s, std::errc e) { return !(s == e); }
};

/* A value that a call gives, unless `error` is true: auto [value, error] = ... */
template <class T> struct [[nodiscard]] result {
	T value;
	status error;
};

/* The two ways to hear of errors: what calls return, and what they do with C's codes. */
struct codes {
	using done = status;
	template <class T> using result = tern::result<T>;
	static status check(int rc) { return status(rc); }
	template <class T> static result<T> give(int rc, T &value)
	{
		return { std::move(value), status(rc) };
	}
};

#ifdef __cpp_exceptions
/* what() is the sentence, code() compares with std::errc. */
class error : public std::system_error {
public:
	explicit error(int rc) : std::system_error(rc, category()) {}
};

[[noreturn, gnu::cold, gnu::noinline]] inline void fail_(int rc)
{
	throw error(rc);
}

struct throws {
	using done = void;
	template <class T> using result = T;
	static void check(int rc)
	{
		if (TERN_UNLIKELY(rc))
			fail_(rc);
	}
	template <class T> static T give(int rc, T &value)
	{
		check(rc);
		return std::move(value);
	}
};
using usual_ = throws;
#else
using usual_ = codes;
#endif

/* What a call gives, made of `x` after it has written them. */
template <class P, class T, class... X> auto make_(int rc, X &&...x)
{
	T made(x...);
	return P::give(rc, made);
}

/* -- Spans --------------------------------------------------------------------------- */

template <class C> using element_ = std::remove_pointer_t<decltype(std::data(std::declval<C &>()))>;
template <class C, class = void> constexpr bool is_container_ = false;
template <class C> constexpr bool is_container_<C, std::void_t<element_<C>>> = true;

#if __cplusplus >= 202002L
template <class T> using span = std::span<T>;
#else
/* A view of elements that lie one behind the other, as std::span of C++20. */
template <class T> class span {
	T *data_ = nullptr;
	size_t size_ = 0;

public:
	using element_type = T;
	constexpr span() = default;
	constexpr span(T *data, size_t size) : data_(data), size_(size) {}
	template <class C,
		  class = std::enable_if_t<std::is_convertible_v<element_<C> (*)[], T (*)[]>>>
	constexpr span(C &&from) : data_(std::data(from)), size_(std::size(from))
	{
	}
	constexpr T *data() const { return data_; }
	constexpr size_t size() const { return size_; }
	constexpr size_t size_bytes() const { return size_ * sizeof(T); }
	constexpr bool empty() const { return size_ == 0; }
	constexpr T *begin() const { return data_; }
	constexpr T *end() const { return data_ + size_; }
	constexpr T &operator[](size_t i) const { return data_[i]; }
	constexpr span first(size_t n) const { return { data_, n }; }
	constexpr span subspan(size_t at) const { return { data_ + at, size_ - at }; }
	constexpr span subspan(size_t at, size_t n) const { return { data_ + at, n }; }
};
template <class C> span(C &&) -> span<element_<C>>;
#endif

/* One object as a span. */
template <class T> span<T> one(T &object)
{
	return { &object, 1 };
}

/* The bytes of a container or span, to be sent or to be filled. */
template <class Void> struct basic_bytes {
	Void *data = nullptr;
	size_t len = 0;
	template <class C, class = std::enable_if_t<is_container_<C>>> basic_bytes(C &&c)
	    : data(std::data(c)), len(std::size(c) * sizeof(*std::data(c)))
	{
		static_assert(std::is_trivially_copyable_v<element_<C>>,
			      "tern: elements are copied byte by byte");
	}
};
using bytes = basic_bytes<void>;
using const_bytes = basic_bytes<const void>;

/* -- What messages carry ---------------------------------------------------------------- */

template <class T> struct same_ {
	using type = T;
};
template <class T> using as_ = typename same_<T>::type; /* not deduced: arguments convert to it */
template <class T> constexpr bool is_span_ = false;
template <class T> constexpr bool is_span_<span<T>> = true;
template <class T>
constexpr bool is_number_ = (std::is_arithmetic_v<T> && sizeof(T) <= 8) || std::is_enum_v<T>;
template <class T> constexpr unsigned words_of_ = is_span_<T> ? 0 : (sizeof(T) + 7) / 8;

template <class... A> struct last_ {
	using type = void;
};
template <class T> struct last_<T> {
	using type = T;
};
template <class T, class U, class... A> struct last_<T, U, A...> : last_<U, A...> {
};

/*
 * The number of a handler and the types of what it takes: numbers, which travel as in C; trivially
 * copyable structs, of up to 64 bytes together as words, or one longer one as the payload; and
 * last, if at all, a span, which is the payload. The name is what tools show.
 */
template <class... A> struct handler {
	unsigned id;
	const char *name;
	constexpr explicit handler(unsigned number, const char *shown = nullptr)
	    : id(number), name(shown)
	{
	}

	static constexpr unsigned all = (0 + ... + words_of_<A>);
	static constexpr unsigned spans = (0 + ... + is_span_<A>);
	static constexpr bool whole = all > TERN_WORDS_MAX; /* one struct, as the payload */
	static constexpr unsigned words = whole ? 0 : all;
	static constexpr bool payload = whole || spans;
	static constexpr unsigned at(size_t i) /* the first word of argument i */
	{
		const unsigned each[] = { words_of_<A>..., 0 };
		unsigned sum = 0;
		for (size_t k = 0; k < i; k++)
			sum += each[k];
		return sum;
	}
	static_assert(((is_span_<A> || std::is_trivially_copyable_v<A>)&&...),
		      "tern: what a message carries is trivially copyable");
	static_assert(((alignof(A) <= 64) && ...), "tern: a payload lies at a multiple of 64");
	static_assert(!whole || sizeof...(A) == 1,
		      "tern: a message has at most 8 words; put them into one struct");
	static_assert(spans == 0 || (spans == 1 && is_span_<typename last_<A...>::type>),
		      "tern: a message has one span at most, and last");
};

/* What is sent: the words and the payload of one message. */
template <class... A> struct packed_ {
	uint64_t w[TERN_WORDS_MAX] = {};
	const void *data = nullptr;
	size_t len = 0;

	explicit packed_(const A &...a)
	{
		[[maybe_unused]] unsigned at = 0;
		(add(at, a), ...);
	}
	template <class T> void add(unsigned &at, const T &value)
	{
		if constexpr (is_span_<T>) {
			data = value.data();
			len = value.size_bytes();
		} else if constexpr (handler<A...>::whole) {
			data = &value;
			len = sizeof value;
		} else if constexpr (is_number_<T>) {
			w[at++] = tern_word_of_(value);
		} else {
			copy(at, reinterpret_cast<const char *>(&value), sizeof value,
			     std::make_index_sequence<words_of_<T>>());
		}
	}
	/* Word by word and without a loop, so that they stay in registers. */
	template <size_t... I>
	void copy(unsigned &at, const char *from, size_t n, std::index_sequence<I...>)
	{
		(std::memcpy(&w[at++], from + 8 * I, n - 8 * I < 8 ? n - 8 * I : 8), ...);
	}
};
#define TERN_QUICK_ [[gnu::always_inline]] /* into the caller, as C's macros are */
#define TERN_EIGHT_(w) w[0], w[1], w[2], w[3], w[4], w[5], w[6], w[7]

/* Room for a T that bytes are copied to; it need not have a default constructor. */
template <class T> union room_ {
	T value;
	room_() {}
};

[[gnu::cold, gnu::noinline]] inline void mismatch_(tern_c *t)
{
	tern_abort(t, "a message has another length than its handler takes: do all ranks run the "
		      "same program?");
}

/* A number or a struct, of its words. */
template <class T> T of_words_(const uint64_t *w)
{
	room_<T> room;
	double real;
	if constexpr (std::is_floating_point_v<T> && is_number_<T>) {
		std::memcpy(&real, w, sizeof real);
		return static_cast<T>(real);
	} else if constexpr (is_number_<T>) {
		return static_cast<T>(*w);
	} else {
		std::memcpy(static_cast<void *>(&room), w, sizeof(T));
		return room.value;
	}
}

/* From word `at` of a message on. */
template <class T> T take_(const tern_msg *m, unsigned at)
{
	uint64_t w[words_of_<T>];
	for (unsigned i = 0; i < words_of_<T>; i++)
		w[i] = tern_msg_word(m, at + i);
	return of_words_<T>(w);
}

/* The same, or the payload. */
template <class A> auto argument_(const tern_msg *m, [[maybe_unused]] unsigned at)
{
	if constexpr (is_span_<A>) {
		using T = typename A::element_type;
		size_t len;
		const void *data = tern_msg_data(m, &len);
		return A(static_cast<const T *>(data), len / sizeof(T));
	} else {
		return take_<A>(m, at);
	}
}

template <class P> class basic_message;
template <class P> class basic_endpoint_ref;
template <class P> class basic_endpoint;

/* Calls a handler of the program's, which need not ask for the message. */
template <class P, class F, class... V> void call_(F &f, tern_c *t, const tern_msg *m, V &&...v)
{
	if constexpr (std::is_invocable_v<F &, basic_message<P>, V...>) {
		f(basic_message<P>(t, m), std::forward<V>(v)...);
	} else {
		static_assert(
			std::is_invocable_v<F &, V...>,
			"tern: a handler takes the types of its number, behind a tern::message "
			"or alone");
		f(std::forward<V>(v)...);
	}
}

template <class P, class F, class... A, size_t... I>
void run_(F &f, tern_c *t, const tern_msg *m, std::index_sequence<I...>)
{
	if constexpr (handler<A...>::whole) {
		size_t len;
		const void *data = tern_msg_data(m, &len);
		if (len == (0 + ... + sizeof(A)))
			call_<P>(f, t, m, *static_cast<const A *>(data)...);
		else
			mismatch_(t);
	} else {
		call_<P>(f, t, m, argument_<A>(m, handler<A...>::at(I))...);
	}
}

/* Calls another function of the program's, which need not ask for the endpoint. */
template <class P, class F, class... V> auto call_at_(F &f, tern_c *t, V &&...v)
{
	if constexpr (std::is_invocable_v<F &, basic_endpoint_ref<P>, V...>)
		return f(basic_endpoint_ref<P>(t), std::forward<V>(v)...);
	else
		return f(std::forward<V>(v)...);
}

/*
 * The number of a function that light threads run, and the types of what it takes and gives:
 * thread_fn<double(int, double)>. What it takes has 8 words at most, and may have a span last; what
 * it gives is one word, or void.
 */
template <class F> struct thread_fn;
template <class R, class... A> struct thread_fn<R(A...)> {
	using args = handler<A...>;
	unsigned id;
	constexpr explicit thread_fn(unsigned number) : id(number) {}
	static_assert(!args::whole, "tern: a thread takes at most 8 words, and a span");

	/* As tern_thread_fn, and the end of one as tern_thread_done. */
	template <class P, class F>
	static uint64_t run(tern_c *t, const uint64_t *word, void *arg) noexcept
	{
		return call<P>(*static_cast<F *>(arg), t, word, std::index_sequence_for<A...>());
	}
	template <class P, class F>
	static void end(tern_c *t, uint32_t rank, int rc, uint64_t word, void *arg) noexcept
	{
		const std::unique_ptr<F> f(static_cast<F *>(arg));
		if constexpr (std::is_void_v<R>)
			call_at_<P>(*f, t, rank, status(rc));
		else
			call_at_<P>(*f, t, rank, status(rc), of_words_<R>(&word));
	}

private:
	template <class T> static T argument(tern_c *t, [[maybe_unused]] const uint64_t *word)
	{
		if constexpr (is_span_<T>) {
			using E = typename T::element_type;
			const tern_thread_info self = tern_thread_self(t);
			return T(static_cast<E *>(self.data), self.len / sizeof(E));
		} else {
			return of_words_<T>(word);
		}
	}
	template <class P, class F, size_t... I>
	static uint64_t call(F &f, tern_c *t, const uint64_t *word, std::index_sequence<I...>)
	{
		if constexpr (std::is_void_v<R>)
			return call_at_<P>(f, t, argument<A>(t, word + args::at(I))...), 0;
		else
			return packed_<R>(call_at_<P>(f, t, argument<A>(t, word + args::at(I))...))
				.w[0];
	}
};

/*
 * What C calls in the place of a lambda. One that captures nothing lies here, once for its type,
 * and
 * costs no more than a function. Another one is found by its address, which C keeps.
 */
template <class P, class F, class... A> struct entry_ {
	alignas(F) static inline unsigned char place[sizeof(F)];
	static F &find(tern_c *t, const tern_msg *m)
	{
		if constexpr (std::is_empty_v<F>)
			return *std::launder(reinterpret_cast<F *>(place));
		else
			return *static_cast<F *>(tern_msg_handler_arg(t, m));
	}
	static void on(tern_c *t, const tern_msg *m) noexcept
	{
		run_<P, F, A...>(find(t, m), t, m, std::index_sequence_for<A...>());
	}
	/* Of items of a post: many in one call. */
	static void many(tern_c *t, const tern_msg *m, const uint64_t *words, size_t n) noexcept
	{
		if (tern_msg_count(m) != handler<A...>::words)
			mismatch_(t);
		else
			call_<P>(find(t, m), t, m,
				 span<const A>(reinterpret_cast<const A *>(words), n)...);
	}
};

} // namespace tern

#endif
