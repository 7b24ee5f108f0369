/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Tern for C++17, header only. tern-cpp(7) has the guide and a whole program.
 *
 * What is owned is given back by destructors: endpoints, workers, teams, handles, memory, locks,
 * channels, claims, buffers, threads. Errors are exceptions (tern::error) or return values
 * (tern::nothrow, and everywhere in programs compiled without exceptions). A handler's number has
 * the types of what it takes, so that the compiler checks both sides of a message. Calls have the
 * names and the rules of C without tern_; what is not here is called in C beside it, with get().
 *
 * C's type `tern` has the name of the namespace, so it is `tern_c` in programs that include this.
 */
#ifndef TERN_TERN_HPP
#define TERN_TERN_HPP

#include <tern/lang.hpp>
#include <tern/owned.hpp>
#include <tern/team.hpp>

namespace tern {

/* An endpoint that somebody else owns: a pointer with all calls. Pass it by value. */
template <class P> class basic_endpoint_ref {
protected:
	tern_c *t_ = nullptr;
	using done = typename P::done;
	template <class F> static constexpr bool is_condition = std::is_invocable_r_v<bool, F &>;
	template <class F> static int condition(tern_c *, void *holds) noexcept
	{
		return static_cast<bool>((*static_cast<F *>(holds))());
	}

public:
	basic_endpoint_ref() = default;
	explicit basic_endpoint_ref(tern_c *t) : t_(t) {}
	tern_c *get() const { return t_; }
	explicit operator bool() const { return t_ != nullptr; }
	uint32_t rank() const { return tern_rank(t_); }
	uint32_t size() const { return tern_size(t_); }
	/* What names this worker as the target of a request; of an endpoint of a rank, the rank. */
	uint32_t worker_id() const { return tern_worker_id(t_); }
	uint32_t machines() const { return tern_machines(t_); }
	uint32_t machine(uint32_t rank) const { return tern_machine(t_, rank); }
	bool near_is(uint32_t rank) const { return tern_near_is(t_, rank) != 0; }
	void attach() const { tern_attach(t_); }
	done detach() const { return P::check(tern_detach(t_)); }

	/* -- Messages -- */

	template <class... A>
	TERN_QUICK_ done request(uint32_t dst, handler<A...> h, const as_<A> &...a) const
	{
		const packed_<A...> p(a...);
		if constexpr (h.payload)
			return P::check(tern_request_data_any_(t_, dst, h.id, p.data, h.words,
							       p.len, TERN_EIGHT_(p.w)));
		else
			return P::check(
				tern_request_any_(t_, h.words, dst, h.id, TERN_EIGHT_(p.w)));
	}
	template <class... A>
	TERN_QUICK_ done post(uint32_t dst, handler<A...> h, const as_<A> &...a) const
	{
		static_assert(h.words <= 6 && !h.payload, "tern: an item has at most 6 words");
		const packed_<A...> p(a...);
		return P::check(tern_post_any_(t_, h.words, dst, h.id, TERN_EIGHT_(p.w)));
	}
	done post_flush() const { return P::check(tern_post_flush(t_)); }
	/* n elements of a request. */
	template <class T> auto claim(uint32_t dst, size_t n) const
	{
		void *p = nullptr;
		const int rc = tern_claim(t_, dst, n * sizeof(T), &p);
		return make_<P, basic_claim<P, T>>(rc, p, n, abandon_{ t_ });
	}
	/* f(endpoint_ref) where sending is allowed, after the handlers of this poll. */
	template <class F> done defer(F f) const
	{
		auto own = std::make_unique<F>(std::move(f));
		const auto run = [](tern_c *t, void *arg) noexcept {
			(*std::unique_ptr<F>(static_cast<F *>(arg)))(basic_endpoint_ref(t));
		};
		const int rc = tern_defer(t_, run, own.get());
		if (!rc)
			own.release();
		return P::check(rc);
	}

	/* -- Progress -- */

	auto poll() const
	{
		const int rc = tern_poll(t_);
		return make_<P, int>(rc < 0 ? rc : 0, rc);
	}
	void signal(tern_flag &f, uint64_t n = 1) const { tern_signal(t_, &f, n); }
	done wait(tern_flag &f, uint64_t n = 1) const { return P::check(tern_wait(t_, &f, n)); }
	/* Until holds() is true. */
	template <class F, class = std::enable_if_t<is_condition<F>>> done wait(F holds) const
	{
		return P::check(tern_wait_until(t_, condition<F>, &holds));
	}
	/* False if the limit has passed first; then nothing has changed. */
	template <class Rep, class Period>
	auto wait_for(std::chrono::duration<Rep, Period> limit, tern_flag &f, uint64_t n = 1) const
	{
		return in_time_<P>(tern_wait_for(t_, &f, n, ns_(limit)));
	}
	template <class Rep, class Period, class F, class = std::enable_if_t<is_condition<F>>>
	auto wait_for(std::chrono::duration<Rep, Period> limit, F holds) const
	{
		return in_time_<P>(tern_wait_until_for(t_, condition<F>, &holds, ns_(limit)));
	}
	template <class Clock, class Duration, class... What>
	auto wait_until(std::chrono::time_point<Clock, Duration> end, What &&...what) const
	{
		return wait_for(end - Clock::now(), std::forward<What>(what)...);
	}
	/* Until a word of this rank's heap compares so with `value`. */
	done wait_word(const uint64_t &word, tern_word what, uint64_t value) const
	{
		return P::check(tern_wait_word(t_, &word, what, value));
	}
	template <class Rep, class Period>
	auto wait_word_for(std::chrono::duration<Rep, Period> limit, const uint64_t &word,
			   tern_word what, uint64_t value) const
	{
		return in_time_<P>(tern_wait_word_for(t_, &word, what, value, ns_(limit)));
	}
	done barrier(op_ref o = {}) const { return P::check(tern_barrier_start(t_, o.raw)); }
	done flush() const { return P::check(tern_flush(t_)); }

	/* -- Memory -- */

	template <class T> auto alloc(size_t n) const
	{
		void *p = nullptr;
		const int rc = tern_alloc_aligned(t_, n * sizeof(T), alignof(T), &p);
		return make_<P, memory<T>>(rc, p, n, free_{ t_ });
	}
	template <class T> auto alloc_all(size_t n) const
	{
		static_assert(alignof(T) <= 64, "tern: memory of all ranks is aligned to 64");
		void *p = nullptr;
		const int rc = tern_alloc_all(t_, n * sizeof(T), &p);
		return make_<P, memory<T>>(rc, p, n, free_{ t_, true });
	}
	template <class C> auto register_memory(C &&c) const
	{
		tern_addr a = TERN_ADDR_NONE;
		const int rc = tern_register(t_, std::data(c), bytes(c).len, &a);
		return make_<P, registration<element_<C>>>(rc, t_, a);
	}
	/* Memory that the program mapped, shared, from a file: near ranks map it, too. */
	template <class C> auto register_fd(C &&c, int fd, uint64_t offset = 0) const
	{
		tern_addr a = TERN_ADDR_NONE;
		const int rc = tern_register_fd(t_, std::data(c), bytes(c).len, fd, offset, &a);
		return make_<P, registration<element_<C>>>(rc, t_, a);
	}
	/* The address of memory of this rank, and memory of this machine by its address. */
	template <class T> auto global(T *p) const
	{
		tern_addr a = TERN_ADDR_NONE;
		return make_<P, global_ptr<T>>(tern_addr_of(t_, p, &a), a);
	}
	template <class T> auto local(global_ptr<T> a, size_t n = 1) const
	{
		void *p = nullptr;
		const int rc = tern_addr_local(t_, a.get(), n * sizeof(T), &p);
		return make_<P, T *>(rc, static_cast<T *>(p));
	}

	template <class T> done put(global_ptr<T> dst, span<const as_<T>> src, op_ref o = {}) const
	{
		return P::check(tern_put_start(t_, dst.get(), src.data(), src.size_bytes(), o.raw));
	}
	template <class T> done put(global_ptr<T> dst, const as_<T> &value) const
	{
		return P::check(tern_put(t_, dst.get(), &value, sizeof value));
	}
	template <class T> done get(span<as_<T>> dst, global_ptr<T> src, op_ref o = {}) const
	{
		return P::check(tern_get_start(t_, dst.data(), src.get(), dst.size_bytes(), o.raw));
	}
	template <class T> auto get(global_ptr<T> src) const
	{
		room_<T> room;
		const int rc = tern_get(t_, &room.value, src.get(), sizeof(T));
		return P::give(rc, room.value);
	}
	/* The bytes of one list of parts, in order, to those of another. */
	done put_parts(parts dst, parts src, op_ref o = {}) const
	{
		return P::check(
			tern_put_parts_start(t_, dst.data, dst.size, src.data, src.size, o.raw));
	}
	done get_parts(parts dst, parts src, op_ref o = {}) const
	{
		return P::check(
			tern_get_parts_start(t_, dst.data, dst.size, src.data, src.size, o.raw));
	}
	/* Puts, and then changes a word in the heap of the same rank, where wait_word() waits. */
	template <class T> done put_signal(global_ptr<T> dst, span<const as_<T>> src,
					   global_ptr<uint64_t> word, tern_amo what, uint64_t value,
					   op_ref o = {}) const
	{
		const tern_change change = { word.get(), what, value };
		return P::check(tern_put_signal_start(t_, dst.get(), src.data(), src.size_bytes(),
						      &change, o.raw));
	}
	/* Puts, and then sends a request whose handler finds the data in place. */
	template <class T, class... A> done put_request(global_ptr<T> dst, span<const as_<T>> src,
							handler<A...> h, const as_<A> &...a) const
	{
		static_assert(!h.payload, "tern: the handler finds the data in place");
		const packed_<A...> p(a...);
		return P::check(tern_put_any_(t_, dst.get(), h.id, src.data(), h.words,
					      src.size_bytes(), TERN_EIGHT_(p.w)));
	}

	/* One atomic operation, which gives the value before: of 4 or 8 bytes. */
	template <class T> auto amo(global_ptr<T> a, tern_amo what, as_<T> operand) const
	{
		T old;
		const int rc = tern_amo_start(t_, a.get(), what, operand, &old, nullptr);
		return P::give(rc, old);
	}
	template <class T>
	done amo(global_ptr<T> a, tern_amo what, as_<T> operand, T &old, op_ref o) const
	{
		return P::check(tern_amo_start(t_, a.get(), what, operand, &old, o.raw));
	}
	template <class T> auto fetch_add(global_ptr<T> a, as_<T> operand) const
	{
		return amo(a, TERN_AMO_ADD, operand);
	}
	/* Writes `desired` where `expected` was; gives the value before in any case. */
	template <class T> auto cas(global_ptr<T> a, as_<T> expected, as_<T> desired) const
	{
		T old;
		const int rc = tern_cas_start(t_, a.get(), expected, desired, &old, nullptr);
		return P::give(rc, old);
	}

	/* -- Locks: each gives what unlocks when it goes -- */

	auto lock_take(tern_lock &l) const
	{
		const int rc = tern_lock_take(t_, &l);
		return make_<P, locked>(rc, t_, rc ? nullptr : &l);
	}
	auto lock_try(tern_lock &l) const
	{
		const int rc = tern_lock_try(t_, &l);
		return make_<P, locked>(rc == -EAGAIN ? 0 : rc, t_, rc ? nullptr : &l);
	}
	/* Between the light threads of a rank. */
	auto mutex_take(tern_mutex &m) const
	{
		const int rc = tern_mutex_take(t_, &m);
		return make_<P, locked_mutex>(rc, t_, rc ? nullptr : &m);
	}

	/* -- Light threads -- */

	/*
	 * Runs the function at `rank`. At its end then(rank, status, result) is called here, as a
	 * handler is; it may be nullptr.
	 */
	template <class R, class... A, class Then>
	done spawn(uint32_t rank, thread_fn<R(A...)> f, Then then, const as_<A> &...a) const
	{
		const packed_<A...> p(a...);
		tern_thread_done *end = nullptr;
		std::unique_ptr<Then> own;
		if constexpr (!std::is_null_pointer_v<Then>) {
			own = std::make_unique<Then>(std::move(then));
			end = f.template end<P, Then>;
		}
		tern_spawn_args with = {};
		int rc;
		if constexpr (handler<A...>::payload) {
			with.rank = rank, with.id = f.id;
			with.n = handler<A...>::words, with.words = p.w;
			with.done = end, with.arg = own.get();
			with.data = p.data, with.len = p.len;
			rc = tern_spawn_with(t_, &with);
		} else {
			rc = tern_spawn_words_(t_, rank, f.id, end, handler<A...>::words, own.get(),
					       TERN_EIGHT_(p.w));
		}
		if (!rc)
			own.release();
		return P::check(rc);
	}
	/* Runs it, to be joined. */
	template <class R, class... A>
	auto thread_start(uint32_t rank, thread_fn<R(A...)> f, const as_<A> &...a) const
	{
		static_assert(!handler<A...>::payload,
			      "tern: a thread to be joined takes words alone");
		const packed_<A...> p(a...);
		auto thread = new tern_thread();
		const int rc = tern_thread_start_words_(t_, rank, f.id, handler<A...>::words,
							thread, TERN_EIGHT_(p.w));
		return make_<P, basic_thread<P, R>>(rc, t_, thread);
	}
	done thread_yield() const { return P::check(tern_thread_yield(t_)); }
	tern_thread_info thread_self() const { return tern_thread_self(t_); }

	/* -- Typed buffers: `count` of them, of n elements each -- */

	template <class T> done buf_alloc(buf_type<T> type, size_t n, unsigned count,
					  unsigned flags = TERN_BUF_WAIT) const
	{
		return P::check(tern_buf_alloc(t_, type.id, n * sizeof(T), count, flags));
	}
	template <class T> done buf_close(buf_type<T> type) const
	{
		return P::check(tern_buf_close(t_, type.id));
	}
	template <class T> done buf_send(uint32_t dst, buf_type<T> type, span<const as_<T>> src,
					 op_ref o = {}, unsigned flags = 0) const
	{
		return P::check(tern_buf_send_start(t_, dst, type.id, src.data(), src.size_bytes(),
						    flags, o.raw));
	}
	/* The next message; with TERN_BUF_NOWAIT, false if there is none. */
	template <class T> auto buf_recv(buf_type<T> type, unsigned flags = 0) const
	{
		tern_buf b = {};
		const int rc = tern_buf_recv(t_, type.id, flags, &b);
		return make_<P, buf<T>>(rc == -EAGAIN ? 0 : rc, b.data, b.len / sizeof(T),
					buf_free_{ t_, b.src });
	}

	/* -- Send and receive, channels, teams, workers -- */

	done send(uint32_t dst, tern_id id, const_bytes data, op_ref o = {}) const
	{
		return P::check(
			tern_send_start(t_, dst, id, data.data, data.len, TERN_SEND_AUTO, o.raw));
	}
	auto recv(uint32_t src, tern_id id, bytes data) const
	{
		tern_envelope e = {};
		const int rc = tern_recv(t_, src, id, data.data, data.len, &e);
		return P::give(rc, e);
	}
	done recv(uint32_t src, tern_id id, bytes data, op_ref o, tern_envelope *e = nullptr) const
	{
		const tern_match match = { src, 0, id, 0 };
		return P::check(tern_recv_start(t_, &match, data.data, data.len, e, o.raw));
	}
	auto chan_to(uint32_t rank, uint64_t name) const
	{
		tern_chan *c = nullptr;
		return make_<P, basic_out<P>>(tern_chan_to(t_, rank, name, &c), c);
	}
	auto chan_from(uint32_t rank, uint64_t name) const
	{
		tern_chan *c = nullptr;
		return make_<P, basic_in<P>>(tern_chan_from(t_, rank, name, &c), c);
	}
	/* All ranks of the job; every rank calls it. */
	auto team() const
	{
		tern_team *all = nullptr;
		return make_<P, basic_team<P>>(tern_team_all(t_, &all), all);
	}
	/* An endpoint for another thread of this rank. */
	auto worker() const
	{
		tern_c *w = nullptr;
		return make_<P, basic_endpoint<P>>(tern_worker_open(t_, &w), w);
	}
};

/* An endpoint, which its destructor closes. It owns the lambdas that are registered with it. */
template <class P> class basic_endpoint : public basic_endpoint_ref<P> {
	using ref = basic_endpoint_ref<P>;
	using ref::t_;
	std::vector<std::shared_ptr<void>> lambdas_;

	template <class F, class... A> void *keep(F &&f)
	{
		if constexpr (std::is_empty_v<F>) {
			new (entry_<P, F, A...>::place) F(std::move(f));
			return nullptr;
		} else {
			return own(std::move(f));
		}
	}
	template <class F> void *own(F &&f)
	{
		lambdas_.push_back(std::make_shared<F>(std::move(f)));
		return lambdas_.back().get();
	}
	template <class F, class... V> static auto hook()
	{
		void (*fn)(tern_c *, V..., void *) = nullptr;
		if constexpr (!std::is_null_pointer_v<F>)
			fn = [](tern_c *t, V... v, void *arg) noexcept {
				call_at_<P>(*static_cast<F *>(arg), t, v...);
			};
		return fn;
	}

public:
	basic_endpoint() = default;
	explicit basic_endpoint(tern_c *t) : ref(t) {}
	basic_endpoint(basic_endpoint &&o) noexcept { *this = std::move(o); }
	basic_endpoint &operator=(basic_endpoint &&o) noexcept
	{
		std::swap(t_, o.t_);
		std::swap(lambdas_, o.lambdas_);
		return *this;
	}
	~basic_endpoint()
	{
		if (t_)
			tern_close(t_);
	}
	typename P::done close()
	{
		const int rc = tern_close(t_);
		t_ = rc ? t_ : nullptr;
		return P::check(rc);
	}

	/* Registers f(message, ...) or f(...), with the types of the number. It must not throw. */
	template <class... A, class F> typename P::done on(handler<A...> h, F f)
	{
		void *arg = keep<F, A...>(std::move(f));
		return P::check(tern_on_with(t_, h.id, entry_<P, F, A...>::on, arg, h.name));
	}
	/* Registers f(endpoint_ref, ...) or f(...), which light threads run. */
	template <class R, class... A, class F>
	typename P::done thread_on(thread_fn<R(A...)> fn, F f)
	{
		return P::check(
			tern_thread_on(t_, fn.id, fn.template run<P, F>, own(std::move(f))));
	}
	/* f(rank, why), or behind the endpoint_ref, for each rank that is lost; or nullptr. */
	template <class F> typename P::done lost_on(F f)
	{
		return P::check(tern_lost_on(t_, hook<F, uint32_t, int>(), own(std::move(f))));
	}
	/* f(signal), the same, when this process is ended from outside; or nullptr. */
	template <class F> typename P::done end_on(F f)
	{
		return P::check(tern_end_on(t_, hook<F, int>(), own(std::move(f))));
	}
	/* Registers f(message, span<const T>), which takes many items of posts in one call. */
	template <class T, class F> typename P::done post_on(handler<T> h, F f)
	{
		static_assert(sizeof(T) % 8 == 0 && alignof(T) <= 8 && h.words <= 6,
			      "tern: items that are handled together have whole words, 6 at most");
		void *arg = keep<F, T>(std::move(f));
		return P::check(tern_post_on(t_, h.id, entry_<P, F, T>::many, arg));
	}
};

/* Between its constructor and its destructor no handler runs. */
class hold {
	tern_c *t_;

public:
	template <class P> explicit hold(const basic_endpoint_ref<P> &t) : t_(t.get())
	{
		tern_hold(t_);
	}
	hold(const hold &) = delete;
	hold &operator=(const hold &) = delete;
	~hold() { tern_release(t_); }
};

/* Joins the job that the environment names. */
template <class P = usual_> auto open(const tern_options &o = {})
{
	tern_c *t = nullptr;
	return make_<P, basic_endpoint<P>>(tern_open(&t, &o), t);
}

/* A job of n ranks inside this process. */
template <class P = usual_> auto open_local(uint32_t n)
{
	std::vector<tern_c *> t(n);
	const int rc = tern_open_local(n, t.data());
	return make_<P, std::vector<basic_endpoint<P>>>(rc, t.begin(), rc ? t.begin() : t.end());
}

#define TERN_NAMES_(P)                                      \
	using endpoint = basic_endpoint<P>;                 \
	using endpoint_ref = basic_endpoint_ref<P>;         \
	using message = basic_message<P>;                   \
	using op = basic_op<P>;                             \
	using team = basic_team<P>;                         \
	using out = basic_out<P>;                           \
	using in = basic_in<P>;                             \
	template <class T> using claim = basic_claim<P, T>; \
	template <class R> using thread = basic_thread<P, R>

TERN_NAMES_(usual_);

/* The same with tern::status and tern::result in the place of exceptions. */
namespace nothrow {
TERN_NAMES_(codes);
inline auto open(const tern_options &o = {})
{
	return tern::open<codes>(o);
}
inline auto open_local(uint32_t n)
{
	return tern::open_local<codes>(n);
}
} // namespace nothrow

#undef TERN_EIGHT_
#undef TERN_QUICK_
#undef TERN_NAMES_

} // namespace tern

#endif
