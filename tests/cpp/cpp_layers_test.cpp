// SPDX-License-Identifier: BSD-3-Clause
// <tern/tern.hpp>: lists of parts, light threads, typed buffers, locks, varied collectives, and
// lambdas that are called at the end of a rank. cpp_test.cpp runs these.
#include <array>
#include <csignal>
#include <sys/wait.h>
#include <unistd.h>

#include "cpp_lib.hpp"

static void lists_of_parts_are_put_and_got()
{
	pair p;
	const tern::endpoint_ref t = p.t[0];
	auto heap = value(p.t[1].alloc<uint16_t>(64));
	const auto at = value(p.t[1].global(heap.data()));
	const std::array<uint16_t, 3> low = { 1, 2, 3 };
	const std::vector<uint16_t> high = { 4, 5 };
	OK(t.put_parts({ tern::part(at, 4), tern::part(at + 32) },
		       { tern::part(low), tern::part(high) }));
	CHECK(heap[0] == 1 && heap[3] == 4 && heap[32] == 5);
	// a column of four rows of eight
	const size_t count[] = { 4 };
	const ptrdiff_t stride[] = { 8 * sizeof(uint16_t) };
	std::array<uint16_t, 4> column = { 6, 7, 8, 9 }, back = {};
	const tern_part there = tern::strided(tern::part(at + 1), count, stride);
	tern::op op(t);
	OK(t.put_parts(there, tern::part(column), op));
	OK(op.wait());
	CHECK(heap[1] == 6 && heap[25] == 9 && heap[2] == 3);
	const std::vector<tern_part> list = { there };
	OK(t.get_parts(tern::part(back), list));
	CHECK(back == column);
	tern::nothrow::endpoint_ref n(t.get());
	CHECK(n.put_parts(there, tern::part(low)) == std::errc::message_size);
}

constexpr tern::thread_fn<double(int, double, small)> f_product{ 0 };
constexpr tern::thread_fn<void(uint64_t)> f_add{ 1 };
constexpr tern::thread_fn<uint64_t(int, tern::span<const double>)> f_sum{ 2 };
constexpr tern::thread_fn<int()> f_none{ 3 };

// Rank 0 starts them at rank 1, which waits meanwhile.
static void light_threads_run_where_they_are_asked_to(tern::endpoint &t)
{
	uint64_t told = 0, ends = 0;
	tern_mutex mutex = {};
	OK(t.thread_on(f_product, [](tern::endpoint_ref at, int a, double b, small s) {
		CHECK(at.rank() == 1 && s.a == -1 && at.thread_self().creator == 0);
		OK(at.thread_yield());
		return a * b;
	}));
	OK(t.thread_on(f_add, [&](tern::endpoint_ref at, uint64_t n) {
		const auto has = value(at.mutex_take(mutex));
		const uint64_t before = told;
		OK(at.thread_yield()); // the others wait for the lock
		told = before + n;
	}));
	OK(t.thread_on(f_sum, [&](int n, tern::span<const double> d) {
		double sum = n;
		for (double x : d)
			sum += x;
		return uint64_t(sum) + told;
	}));
	if (t.rank() == 0)
		OK(t.thread_on(f_none, [] { return 0; }));
	OK(t.barrier());
	if (t.rank() == 0) {
		auto thread = value(t.thread_start(1, f_product, -6, 0.25, { -1, "" }));
		tern::thread<double> moved = std::move(thread);
		CHECK(value(moved.join()) == -1.5 && moved.ended() && thread.ended());
		{
			std::vector<tern::thread<void>> some;
			for (uint64_t i = 1; i <= 10; i++)
				some.push_back(value(t.thread_start(1, f_add, i)));
			OK(some[0].join());
		} // waits for the others
		const std::vector<double> values = { 1, 2, 3.5 };
		auto counts = std::make_shared<int>(0);
		const auto ended = [&, counts](uint32_t rank, tern::status error, uint64_t sum) {
			CHECK(rank == 1 && !error && sum == 106 + 55), ends++;
		};
		OK(t.spawn(1, f_sum, ended, 100, values));
		OK(t.spawn(0, f_add, nullptr, 1000)); // here
		OK(t.spawn(1, f_none, [&](tern::endpoint_ref, uint32_t, tern::status error, int) {
			CHECK(error == std::errc::no_such_device_or_address), ends++;
		})); // it is not registered there
		OK(t.wait([&] { return told == 1000 && ends == 2; }));
		CHECK(counts.use_count() == 2); // the callback's copy is gone
		tern::nothrow::endpoint_ref n(t.get());
		CHECK(n.thread_start(9, f_add, 1).error == std::errc::result_out_of_range);
	}
	OK(t.barrier());
	OK(t.close()); // by the thread that has its light threads
}

static void messages_land_in_typed_buffers()
{
	pair p;
	constexpr tern::buf_type<double> rows{ 3 };
	const tern::endpoint_ref t = p.t[0], u = p.t[1];
	const std::vector<double> row = { 1, 2, 3 };
	OK(u.buf_alloc(rows, 4, 2, TERN_BUF_REFUSE));
	CHECK(!value(u.buf_recv(rows, TERN_BUF_NOWAIT)));
	for (int i = 0; i < 5; i++) { // more than there are buffers
		tern::op op(t);
		OK(t.buf_send(1, rows, row));
		OK(t.buf_send(1, rows, { row.data(), 1 }, op));
		const tern::buf<double> first = value(u.buf_recv(rows));
		auto second = value(u.buf_recv(rows));
		CHECK(first && first.src() == 0 && first.size() == 3 && first[2] == 3);
		CHECK(second.size() == 1);
		tern::nothrow::endpoint_ref n(t.get());
		CHECK(n.buf_send(1, rows, row) == std::errc::no_buffer_space);
		CHECK(tern::nothrow::endpoint_ref(u.get()).buf_close(rows) ==
		      std::errc::device_or_resource_busy);
		second.reset();
		OK(op.wait());
	}
	OK(u.buf_close(rows));
	tern::nothrow::endpoint_ref n(u.get());
	CHECK(n.buf_recv(rows).error == std::errc::no_such_device_or_address);
}

static void lost_ranks_are_told_to_a_lambda()
{
	pair p;
	auto lost = std::make_shared<uint32_t>(99);
	OK(p.t[0].lost_on([lost](uint32_t rank, int why) {
		CHECK(why == -ESHUTDOWN);
		*lost = rank;
	}));
	p.t.pop_back(); // rank 1 closes
	OK(p.t[0].wait([&] { return *lost == 1; }));
	OK(p.t[0].lost_on(nullptr));
}

static void a_lambda_runs_when_the_process_is_ended()
{
	const pid_t child = fork();
	if (child == 0) {
		tern::endpoint t = value(tern::open());
		OK(t.end_on([](int) { CHECK(!"called"); }));
		OK(t.end_on(nullptr));
		OK(t.end_on([](tern::endpoint_ref e, int signal) {
			std::_Exit(e.rank() == 0 && signal == SIGTERM ? 7 : 8);
		}));
		std::raise(SIGTERM);
		OK(t.wait([] { return false; }));
	}
	int status = 0;
	CHECK(child > 0 && waitpid(child, &status, 0) == child);
	CHECK(WIFEXITED(status) && WEXITSTATUS(status) == 7);
}

static void locks_are_released_when_they_go(tern::endpoint &t)
{
	const tern::team all = value(t.team());
	auto lock = value(t.alloc_all<tern_lock>(1));
	lock[0] = {};
	auto sum = value(t.alloc_all<uint64_t>(1));
	sum[0] = 0;
	OK(t.barrier());
	for (int i = 0; i < 20; i++) {
		const auto has = value(t.lock_take(lock[0]));
		CHECK(has);
		const uint64_t before = value(t.get(sum.at(0)));
		OK(t.put(sum.at(0), before + 1)); // nobody between
	}
	OK(t.barrier());
	CHECK(value(t.get(sum.at(0))) == 40);
	auto has = value(t.lock_try(lock[0]));
	OK(t.barrier()); // one has it, or the other
	CHECK(value(all.allreduce(int(bool(has)), TERN_REDUCE_SUM)) == 1);
	has.unlock();
}

// Member 0 has 1 element, and member 1 has 3.
static void teams_exchange_parts_of_other_lengths(tern::endpoint &t)
{
	const uint32_t r = t.rank();
	const tern::team all = value(t.team());
	const std::vector<uint32_t> mine(1 + 2 * r, 5 + r);
	const std::vector<uint32_t> both = { 5, 6, 6, 6 };
	std::vector<uint32_t> got(4);
	const auto at = [&](size_t i, size_t n) {
		return tern::part(tern::span<uint32_t>(got.data() + i, n));
	};
	OK(all.allgatherv(tern::part(mine), { at(0, 1), at(1, 3) }));
	CHECK(got == both);
	got.assign(4, 0);
	OK(all.gatherv(1, tern::part(mine), r ? tern::parts{ at(0, 1), at(1, 3) } : tern::parts()));
	CHECK(!r || got == both);
	got.assign(4, 0);
	const std::vector<tern_part> from = { tern::part(tern::span<const uint32_t>(both).first(1)),
					      tern::part(tern::span<const uint32_t>(both).subspan(
						      1)) };
	OK(all.scatterv(0, from, at(0, mine.size())));
	CHECK(got[0] == 5 + r && got[1] == 6 * r);
	got.assign(4, 0);
	tern::op op(t);
	OK(all.alltoallv({ tern::part(mine), tern::part(mine) }, { at(0, 1), at(1, 3) }, op));
	OK(op.wait());
	CHECK(got == both);
	got.assign(4, 0);
	const size_t counts[] = { 1, 3 };
	OK(all.reduce_scatter(both, got, counts, [](uint32_t a, uint32_t b) { return a + b; }));
	CHECK(got[0] == 10 + 2 * r && got[2] == 12 * r);
	got.assign(4, 0);
	const std::array<tern_neighbor, 2> list = { {
		{ 1 - r, 1 - r, tern::part(mine), at(0, r ? 1 : 3) },
		{ TERN_RANK_NONE, TERN_RANK_NONE, {}, {} },
	} };
	OK(all.exchange(list));
	CHECK(got[0] == 6 - r && got[2] == 6 * (1 - r));
	std::array<uint32_t, 2> row = { r, 10 + r }, turned = {};
	OK(all.transpose({ row.data(), 2, 2, 4, 0 }, { turned.data(), 2, 2, 4, 0 }));
	CHECK(turned[0] == 10 * r && turned[1] == 10 * r + 1);
}

void layers()
{
	RUN(lists_of_parts_are_put_and_got);
	RUN_TOGETHER(light_threads_run_where_they_are_asked_to);
	RUN(messages_land_in_typed_buffers);
	RUN(lost_ranks_are_told_to_a_lambda);
	RUN(a_lambda_runs_when_the_process_is_ended);
	RUN_TOGETHER(locks_are_released_when_they_go);
	RUN_TOGETHER(teams_exchange_parts_of_other_lengths);
}
