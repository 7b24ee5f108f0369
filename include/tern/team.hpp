/* SPDX-License-Identifier: BSD-3-Clause */
/* Teams and their collectives. Programs include <tern/tern.hpp>, never this file. */
#ifndef TERN_TEAM_HPP
#define TERN_TEAM_HPP

#include <tern/owned.hpp>

namespace tern {

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

	auto split(int color, int key = 0) const
	{
		tern_team *out = nullptr;
		return make_<P, basic_team>(tern_team_split(get(), color, key, &out), out);
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
	/* Member i gets the results of its counts[i] elements. */
	template <class In, class Out, class How>
	done reduce_scatter(const In &in, Out &&out, span<const size_t> counts, const How &how,
			    op_ref o = {}) const
	{
		using T = std::remove_const_t<element_<const In>>;
		const reduction_<T, How> by(how);
		size_t sum = 0;
		for (size_t n : counts)
			sum += n;
		const bool fits = counts.size() == size() && std::size(in) >= sum &&
				  bytes(out).len >= counts[rank()] * sizeof(T);
		return P::check(fits ? tern_team_reduce_scatter_start(get(), std::data(in),
								      std::data(out), counts.data(),
								      by.type, by.value(), o.raw)
				     : -EMSGSIZE);
	}

	/* The same with parts of any length: where there is a list, it has one for each member. */
	done gatherv(uint32_t root, const tern_part &in, parts out, op_ref o = {}) const
	{
		const bool fits = root != rank() || out.size == size();
		return P::check(fits ? tern_team_gatherv_start(get(), root, &in, out.data, o.raw)
				     : -EMSGSIZE);
	}
	done scatterv(uint32_t root, parts in, const tern_part &out, op_ref o = {}) const
	{
		const bool fits = root != rank() || in.size == size();
		return P::check(fits ? tern_team_scatterv_start(get(), root, in.data, &out, o.raw)
				     : -EMSGSIZE);
	}
	done allgatherv(const tern_part &in, parts out, op_ref o = {}) const
	{
		return P::check(out.size == size()
					? tern_team_allgatherv_start(get(), &in, out.data, o.raw)
					: -EMSGSIZE);
	}
	done alltoallv(parts in, parts out, op_ref o = {}) const
	{
		const bool fits = in.size == size() && out.size == size();
		return P::check(fits ? tern_team_alltoallv_start(get(), in.data, out.data, o.raw)
				     : -EMSGSIZE);
	}
	done exchange(span<const tern_neighbor> list, op_ref o = {}) const
	{
		return P::check(tern_team_exchange_start(get(), list.data(), list.size(), o.raw));
	}
	done transpose(const tern_matrix &in, const tern_matrix &out, op_ref o = {}) const
	{
		return P::check(tern_team_transpose_start(get(), &in, &out, o.raw));
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
