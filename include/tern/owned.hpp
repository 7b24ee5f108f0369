/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a program owns besides its endpoint: handles, memory, locks, claims, buffers, threads,
 * channels. Each gives back what it has when it goes, moves, and does not copy. Programs include
 * <tern/tern.hpp>, never this file.
 */
#ifndef TERN_OWNED_HPP
#define TERN_OWNED_HPP

#include <tern/lang.hpp>

namespace tern {

/* -- Handles and waits ------------------------------------------------------------------ */

/* Counts what handlers do; waits wait for it. */
struct flag : tern_flag {
	flag() : tern_flag(0) {}
};

/* Nanoseconds of a limit, rounded up; what has passed is 0. */
template <class Rep, class Period> uint64_t ns_(std::chrono::duration<Rep, Period> limit)
{
	const auto ns = std::chrono::ceil<std::chrono::nanoseconds>(limit).count();
	return ns > 0 ? static_cast<uint64_t>(ns) : 0;
}

/* True if a wait has ended in time. */
template <class P> auto in_time_(int rc)
{
	return make_<P, bool>(rc == -ETIMEDOUT ? 0 : rc, rc == 0);
}

/*
 * A handle for operations under way. A call that takes one last begins and returns, and waits
 * without one. Its destructor waits for what is pending, since that uses memory of the program's.
 */
template <class P> class basic_op {
	tern_c *t_;
	tern_op raw_ = TERN_OP;

public:
	explicit basic_op(basic_endpoint_ref<P> t) : t_(t.get()) {}
	basic_op(const basic_op &) = delete;
	basic_op &operator=(const basic_op &) = delete;
	~basic_op()
	{
		if (!ready())
			tern_op_wait(t_, &raw_);
	}
	tern_op *get() { return &raw_; }
	bool ready() const { return tern_op_ready(&raw_); }
	typename P::done wait() { return P::check(tern_op_wait(t_, &raw_)); }
	/* Whether nothing is pending, after messages were served once, or in time. */
	auto test() { return wait_for(std::chrono::nanoseconds(0)); }
	template <class Rep, class Period> auto wait_for(std::chrono::duration<Rep, Period> limit)
	{
		return in_time_<P>(tern_op_wait_for(t_, &raw_, ns_(limit)));
	}
};

/* The last argument of calls: a handle, or none. */
struct op_ref {
	tern_op *raw = nullptr;
	op_ref() = default;
	op_ref(tern_op *handle) : raw(handle) {}
	template <class P> op_ref(basic_op<P> &handle) : raw(handle.get()) {}
};

/* -- Memory ------------------------------------------------------------------------------- */

/* The address of a T of any rank: one word, which travels in messages. */
template <class T> class global_ptr {
	tern_addr addr_ = TERN_ADDR_NONE;

public:
	global_ptr() = default;
	explicit global_ptr(tern_addr addr) : addr_(addr) {}
	tern_addr get() const { return addr_; }
	uint32_t rank() const { return tern_addr_rank(addr_); }
	explicit operator bool() const { return addr_ != TERN_ADDR_NONE; }
	global_ptr operator+(size_t n) const { return global_ptr(addr_ + n * sizeof(T)); }
	friend bool operator==(global_ptr a, global_ptr b) { return a.addr_ == b.addr_; }
	friend bool operator!=(global_ptr a, global_ptr b) { return a.addr_ != b.addr_; }
};

/*
 * What all ranks give back together. While an exception passes it is left to tern_close(), since
 * the other ranks may not come.
 */
struct together_ {
	int passing = std::uncaught_exceptions();
	explicit operator bool() const { return std::uncaught_exceptions() <= passing; }
};

/* Elements that somebody owns, `Give` gives them back. */
template <class T, class Give> class owned_ {
protected:
	std::unique_ptr<T, Give> p_;
	size_t size_ = 0;

public:
	owned_() = default;
	owned_(void *p, size_t size, Give give) : p_(static_cast<T *>(p), give), size_(size) {}
	T *data() const { return p_.get(); }
	size_t size() const { return size_; }
	T *begin() const { return data(); }
	T *end() const { return data() + size_; }
	T &operator[](size_t i) const { return data()[i]; }
	void reset() { p_.reset(); }
};

struct free_ {
	tern_c *t = nullptr;
	bool all = false;
	together_ together = {};
	void operator()(void *p) const
	{
		if (!all)
			tern_free(t, p);
		else if (together)
			tern_free_all(t, p);
	}
};

/* Memory of this rank's heap, from alloc() or alloc_all(): a container of its elements. */
template <class T> class memory : public owned_<T, free_> {
	static_assert(std::is_trivially_destructible_v<T>, "tern: nobody destroys the elements");

public:
	using owned_<T, free_>::owned_;
	/* Element i of the same memory at `rank`; of alloc_all() only. */
	global_ptr<T> at(uint32_t rank, size_t i = 0) const
	{
		return global_ptr<T>(
			tern_addr_at(this->p_.get_deleter().t, rank, this->data() + i));
	}
};

/* Memory of the program's that others may put to and get from until this goes. */
template <class T> class registration {
	struct end {
		tern_addr addr = TERN_ADDR_NONE;
		void operator()(tern_c *t) const { tern_unregister(t, addr); }
	};
	std::unique_ptr<tern_c, end> t_;

public:
	registration() = default;
	registration(tern_c *t, tern_addr addr) : t_(addr ? t : nullptr, end{ addr }) {}
	global_ptr<T> at(size_t i = 0) const { return global_ptr<T>(t_.get_deleter().addr) + i; }
	void reset() { t_.reset(); }
};

/* Elements of a container, or n at another rank, as a part of a transfer. */
template <class C, class = std::enable_if_t<is_container_<C>>> tern_part part(C &&c)
{
	tern_part p = {};
	p.base = const_cast<void *>(const_bytes(c).data);
	p.run = const_bytes(c).len;
	return p;
}
template <class T> tern_part part(global_ptr<T> at, size_t n = 1)
{
	tern_part p = {};
	p.addr = at.get();
	p.run = n * sizeof(T);
	return p;
}
/* count[0] such parts stride[0] bytes apart, count[1] such rows, and so on. Both stay. */
inline tern_part strided(tern_part p, span<const size_t> count, span<const ptrdiff_t> stride)
{
	p.dims = static_cast<unsigned>(count.size() < stride.size() ? count.size() : stride.size());
	p.count = count.data();
	p.stride = stride.data();
	return p;
}

/* A list of parts: one, { some }, or a container of them. */
struct parts {
	const tern_part *data = nullptr;
	size_t size = 0;
	parts() = default;
	parts(const tern_part &one) : data(&one), size(1) {}
	parts(std::initializer_list<tern_part> some) : parts(some.begin(), some.size()) {}
	template <class C,
		  class = std::enable_if_t<std::is_convertible_v<element_<C> *, const tern_part *>>>
	parts(C &&c) : parts(std::data(c), std::size(c))
	{
	}

private:
	parts(const tern_part *first, size_t n) : data(first), size(n) {}
};

/* -- Locks --------------------------------------------------------------------------------- */

/* A lock that this rank has, or thread; it goes to the next one when this goes. */
template <class L, int (*release)(tern_c *, L *)> class locked_ {
	struct give_back {
		tern_c *t = nullptr;
		void operator()(L *l) const { release(t, l); }
	};
	std::unique_ptr<L, give_back> lock_;

public:
	locked_() = default;
	locked_(tern_c *t, L *l) : lock_(l, give_back{ t }) {}
	explicit operator bool() const { return !!lock_; } /* false: another one has it */
	void unlock() { lock_.reset(); }
};
using locked = locked_<tern_lock, tern_lock_release>;
using locked_mutex = locked_<tern_mutex, tern_mutex_release>;

/* -- Messages ------------------------------------------------------------------------------ */

struct abandon_ {
	tern_c *t = nullptr;
	const tern_msg *m = nullptr; /* the request, if the claim is for a reply */
	void operator()(void *p) const { tern_abandon(t, p); }
};

/* Elements of a message that is composed in place. One that is not committed is abandoned. */
template <class P, class T> class basic_claim : public owned_<T, abandon_> {
public:
	using owned_<T, abandon_>::owned_;
	/* Sends it to a handler that takes these words, and last a span of T. */
	template <class... A, class... V>
	typename P::done commit(handler<A...> h, const V &...words)
	{
		static_assert(
			std::is_same_v<typename last_<A...>::type, span<const T>>,
			"tern: a claim of T is for a handler that takes a span<const T> last");
		const auto [t, m] = this->p_.get_deleter();
		const packed_<A...> p(words..., span<const T>());
		const int rc =
			m ? tern_reply_commit_any_(t, m, this->data(), h.words, h.id,
						   TERN_EIGHT_(p.w))
			  : tern_commit_any_(t, this->data(), h.words, h.id, TERN_EIGHT_(p.w));
		if (!rc)
			this->p_.release();
		return P::check(rc);
	}
};

/* A message, in its handler. */
template <class P> class basic_message {
	tern_c *t_;
	const tern_msg *m_;

public:
	basic_message(tern_c *t, const tern_msg *m) : t_(t), m_(m) {}
	const tern_msg *get() const { return m_; }
	auto at() const { return basic_endpoint_ref<P>(t_); } /* the endpoint that handles it */
	uint32_t src() const { return tern_msg_src(m_); }
	unsigned count() const { return tern_msg_count(m_); }
	uint64_t word(unsigned i) const { return tern_msg_word(m_, i); }
	bool is_reply() const { return tern_msg_is_reply(t_, m_) != 0; }
	void signal(tern_flag &f, uint64_t n = 1) const { tern_signal(t_, &f, n); }

	template <class... A>
	TERN_QUICK_ typename P::done reply(handler<A...> h, const as_<A> &...a) const
	{
		const packed_<A...> p(a...);
		if constexpr (h.payload)
			return P::check(tern_reply_data_any_(t_, m_, h.id, p.data, h.words, p.len,
							     TERN_EIGHT_(p.w)));
		else
			return P::check(tern_reply_any_(t_, h.words, m_, h.id, TERN_EIGHT_(p.w)));
	}
	/* n elements of a reply: of the request's own payload, if that is long enough. */
	template <class T> auto claim(size_t n, tern_claim_from from = TERN_CLAIM_ANY) const
	{
		void *p = nullptr;
		const int rc = tern_reply_claim(t_, m_, n * sizeof(T), from, &p);
		return make_<P, basic_claim<P, T>>(rc, p, n, abandon_{ t_, m_ });
	}
};

/* The number of a type of buffers, and what the messages of the type are made of. */
template <class T> struct buf_type {
	unsigned id;
	constexpr explicit buf_type(unsigned number) : id(number) {}
	static_assert(std::is_trivially_copyable_v<T>, "tern: elements are copied byte by byte");
};

struct buf_free_ {
	tern_c *t = nullptr;
	uint32_t src = TERN_RANK_NONE;
	void operator()(void *p) const { tern_buf_free(t, p); }
};

/* A message in a buffer, which goes back to its type. */
template <class T> class buf : public owned_<T, buf_free_> {
public:
	using owned_<T, buf_free_>::owned_;
	explicit operator bool() const { return !!this->p_; } /* false: there was none */
	uint32_t src() const { return this->p_.get_deleter().src; }
};

/* A light thread that was started. Its destructor waits for its end. */
template <class P, class R> class basic_thread {
	struct join_ {
		tern_c *t = nullptr;
		void operator()(tern_thread *thread) const
		{
			if (thread->pending)
				tern_thread_join(t, thread, nullptr);
			delete thread;
		}
	};
	std::unique_ptr<tern_thread, join_> thread_;

public:
	basic_thread() = default;
	basic_thread(tern_c *t, tern_thread *thread) : thread_(thread, join_{ t }) {}
	bool ended() const { return !thread_ || !thread_->pending; }
	/* What its function has returned. */
	auto join()
	{
		uint64_t word = 0;
		const int rc = tern_thread_join(thread_.get_deleter().t, thread_.get(), &word);
		if constexpr (std::is_void_v<R>)
			return P::check(rc);
		else
			return make_<P, R>(rc, of_words_<R>(&word));
	}
};

/* -- Channels ------------------------------------------------------------------------------- */

/* One end of a channel. As a local variable it lives in registers. */
template <class End, End (*open)(tern_chan *), void (*back)(const End *)> class end_ {
	struct close {
		void operator()(tern_chan *c) const { tern_chan_close(c); }
	};
	std::unique_ptr<tern_chan, close> chan_;

protected:
	End at_ = {};

public:
	end_() = default;
	explicit end_(tern_chan *c) : chan_(c), at_(c ? open(c) : End()) {}
	end_(end_ &&) = default;
	end_ &operator=(end_ &&o)
	{
		std::swap(chan_, o.chan_);
		std::swap(at_, o.at_);
		return *this;
	}
	~end_()
	{
		if (chan_)
			back(&at_);
	}
	End *get() { return &at_; }
};

template <class P> class basic_out : public end_<tern_out, tern_chan_out, tern_chan_out_back> {
public:
	using end_::end_;
	/* A value, or the elements of a container as one block. */
	template <class T> typename P::done put(const T &value)
	{
		if constexpr (is_container_<const T>)
			return P::check(
				tern_chan_put(&at_, std::data(value), const_bytes(value).len));
		else
			return P::check(tern_chan_put(&at_, &value, sizeof value));
	}
	typename P::done end() { return P::check(tern_chan_end(&at_)); }
};

template <class P> class basic_in : public end_<tern_in, tern_chan_in, tern_chan_in_back> {
public:
	using end_::end_;
	using end_::get;
	/* A value, or a block; false when the sender has closed its end. */
	template <class T> auto get(T &&value)
	{
		int rc;
		if constexpr (is_container_<T>)
			rc = tern_chan_get(&at_, std::data(value), bytes(value).len);
		else
			rc = tern_chan_get(&at_, &value, sizeof value);
		return make_<P, bool>(rc == -EPIPE ? 0 : rc, rc == 0);
	}
	typename P::done next() { return P::check(tern_chan_next(&at_)); }
	tern_chan_kind peek() { return tern_chan_peek(&at_); }
};

} // namespace tern

#endif
