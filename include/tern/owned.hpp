/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What a program owns besides its endpoint: handles, memory, claims, channels, teams. Each gives
 * back what it has when it goes, moves, and does not copy. Programs include <tern/tern.hpp>, never
 * this file.
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
	tern_chan_kind information() { return tern_chan_information(&at_); }
};

/* -- Teams ---------------------------------------------------------------------------------- */

template <class T> constexpr tern_type type_()
{
	if (std::is_integral_v<T>)
		return static_cast<tern_type>(
			(std::is_signed_v<T> ? TERN_TYPE_INT8 : TERN_TYPE_UINT8) + (sizeof(T) > 1) +
			(sizeof(T) > 2) + (sizeof(T) > 4));
	return std::is_same_v<T, float>            ? TERN_TYPE_FLOAT
	       : std::is_same_v<T, double>         ? TERN_TYPE_DOUBLE
	       : std::is_same_v<T, tern_int64_at>  ? TERN_TYPE_INT64_AT
	       : std::is_same_v<T, tern_uint64_at> ? TERN_TYPE_UINT64_AT
	       : std::is_same_v<T, tern_double_at> ? TERN_TYPE_DOUBLE_AT
						   : TERN_TYPE_USER;
}

/*
 * How elements are reduced: a TERN_REDUCE_ value, or a function of two elements that gives one.
 * With a handle, the function stays until the operation is complete.
 */
template <class T, class How> struct reduction_ {
	static constexpr bool named = std::is_convertible_v<How, uintptr_t>;
	static constexpr tern_type type = named ? type_<T>() : TERN_TYPE_USER;
	const How &how;
	tern_reduce_op op = { fn, const_cast<How *>(&how), sizeof(T) };
	explicit reduction_(const How &h) : how(h) {}
	uintptr_t value() const
	{
		if constexpr (named)
			return static_cast<uintptr_t>(how);
		else
			return TERN_REDUCE_BY(&op);
	}
	static void fn(void *left, const void *right, size_t n, void *arg) noexcept
	{
		T *l = static_cast<T *>(left);
		const T *r = static_cast<const T *>(right);
		if constexpr (!named)
			for (size_t i = 0; i < n; i++)
				l[i] = (*static_cast<How *>(arg))(std::as_const(l[i]), r[i]);
	}
};

template <class P> class basic_team {
	struct give_back {
		together_ together = {};
		void operator()(tern_team *team) const
		{
			if (together)
				tern_team_free(team);
		}
	};
	std::unique_ptr<tern_team, give_back> team_;
	using done = typename P::done;

public:
	basic_team() = default;
	explicit basic_team(tern_team *team) : team_(team) {}
	tern_team *get() const { return team_.get(); }
	tern_team *release() { return team_.release(); }   /* it is C's from now on */
	explicit operator bool() const { return !!team_; } /* false: this rank is in none */
	uint32_t rank() const { return tern_team_rank(get()); }
	uint32_t size() const { return tern_team_size(get()); }
	uint32_t member(uint32_t i) const { return tern_team_member(get(), i); }

	auto split(int colour, int key = 0) const
	{
		tern_team *out = nullptr;
		return make_<P, basic_team>(tern_team_split(get(), colour, key, &out), out);
	}
	auto list(span<const uint32_t> ranks) const
	{
		tern_team *out = nullptr;
		const auto n = static_cast<uint32_t>(ranks.size());
		return make_<P, basic_team>(tern_team_list(get(), ranks.data(), n, &out), out);
	}
	auto machine() const
	{
		tern_team *out = nullptr;
		return make_<P, basic_team>(tern_team_machine(get(), &out), out);
	}
	auto survivors() const
	{
		tern_team *out = nullptr;
		return make_<P, basic_team>(tern_team_survivors(get(), &out), out);
	}

	done quiet() const { return P::check(tern_team_quiet(get())); }
	done barrier(op_ref o = {}) const
	{
		return P::check(tern_team_barrier_start(get(), o.raw));
	}
	done broadcast(uint32_t root, bytes data, op_ref o = {}) const
	{
		return P::check(tern_team_broadcast_start(get(), root, data.data, data.len, o.raw));
	}
	/* Containers that are too short for all members: -EMSGSIZE. */
	done gather(uint32_t root, const_bytes in, bytes out, op_ref o = {}) const
	{
		const bool fits = root != rank() || out.len >= in.len * size();
		return P::check(
			fits ? tern_team_gather_start(get(), root, in.data, out.data, in.len, o.raw)
			     : -EMSGSIZE);
	}
	done allgather(const_bytes in, bytes out, op_ref o = {}) const
	{
		const bool fits = out.len >= in.len * size();
		return P::check(
			fits ? tern_team_allgather_start(get(), in.data, out.data, in.len, o.raw)
			     : -EMSGSIZE);
	}
	done scatter(uint32_t root, const_bytes in, bytes out, op_ref o = {}) const
	{
		const bool fits = root != rank() || in.len >= out.len * size();
		return P::check(fits ? tern_team_scatter_start(get(), root, in.data, out.data,
							       out.len, o.raw)
				     : -EMSGSIZE);
	}
	done alltoall(const_bytes in, bytes out, op_ref o = {}) const
	{
		const bool fits = in.len % size() == 0 && out.len >= in.len;
		const size_t each = in.len / size();
		return P::check(
			fits ? tern_team_alltoall_start(get(), in.data, out.data, each, o.raw)
			     : -EMSGSIZE);
	}
	template <class In, class Out, class How>
	done reduce(uint32_t root, const In &in, Out &&out, const How &how, op_ref o = {}) const
	{
		const reduction_<std::remove_const_t<element_<const In>>, How> by(how);
		const bool fits = root != rank() || bytes(out).len >= const_bytes(in).len;
		return P::check(fits ? tern_team_reduce_start(get(), root, std::data(in),
							      std::data(out), std::size(in),
							      by.type, by.value(), o.raw)
				     : -EMSGSIZE);
	}
	template <class In, class Out, class How>
	done allreduce(const In &in, Out &&out, const How &how, op_ref o = {}) const
	{
		return all(tern_team_allreduce_start, in, out, how, o);
	}
	template <class In, class Out, class How>
	done scan(const In &in, Out &&out, const How &how, op_ref o = {}) const
	{
		return all(tern_team_scan_start, in, out, how, o);
	}
	template <class In, class Out, class How>
	done exscan(const In &in, Out &&out, const How &how, op_ref o = {}) const
	{
		return all(tern_team_exscan_start, in, out, how, o);
	}
	/* Of one value: the result, at every member. */
	template <class T, class How> auto allreduce(const T &value, const How &how) const
	{
		const reduction_<T, How> by(how);
		T out = value;
		const int rc = tern_team_allreduce(get(), &value, &out, 1, by.type, by.value());
		return P::give(rc, out);
	}

private:
	template <class Call, class In, class Out, class How>
	done all(Call *call, const In &in, Out &out, const How &how, op_ref o) const
	{
		const reduction_<std::remove_const_t<element_<const In>>, How> by(how);
		const bool fits = bytes(out).len >= const_bytes(in).len;
		return P::check(fits ? call(get(), std::data(in), std::data(out), std::size(in),
					    by.type, by.value(), o.raw)
				     : -EMSGSIZE);
	}
};

} // namespace tern

#endif
