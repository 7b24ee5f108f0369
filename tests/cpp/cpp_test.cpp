// SPDX-License-Identifier: BSD-3-Clause
// <tern/tern.hpp>: what it sends arrives, what it owns is given back, and errors come as chosen.
// cpp_test.sh compiles this in every dialect, with exceptions and without.
#include <array>
#include <string>
#include <sys/mman.h>
#include <unistd.h>

#include "cpp_lib.hpp"

struct words8 {
	uint64_t w[8];
};
struct large {
	double d[300];
	int n;
};
struct made { // without a default constructor
	int n;
	explicit made(int x) : n(x) {}
};
enum class colour : int16_t { red = -3, green };

constexpr tern::handler<> h_nothing{ 0 };
constexpr tern::handler<int, double, float, bool, colour> h_numbers{ 1, "numbers" };
constexpr tern::handler<small, made> h_structs{ 2 };
constexpr tern::handler<words8> h_eight{ 3 };
constexpr tern::handler<large> h_large{ 4 };
constexpr tern::handler<int, tern::span<const double>> h_span{ 5 };
constexpr tern::handler<uint64_t> h_ask{ 6 }, h_answer{ 7 };
constexpr tern::handler<std::array<uint64_t, 2>> h_many{ 8 };
constexpr tern::handler<tern::global_ptr<uint64_t>> h_put{ 9 };

static void whatever_a_message_carries_arrives()
{
	pair p;
	int seen = 0;
	p.on(h_nothing, [&](tern::message m) { CHECK(m.count() == 0 && m.src() == 0), seen++; });
	p.on(h_numbers, [&](int i, double d, float f, bool b, colour c) {
		CHECK(i == -5 && d == 0.25 && f == -1.5f && b && c == colour::red), seen++;
	});
	p.on(h_structs, [&](const small &s, made m) {
		CHECK(s.a == -1 && std::string(s.b) == "abcdef" && m.n == 7), seen++;
	});
	p.on(h_eight, [&](tern::message m, const words8 &w) {
		CHECK(m.count() == 8);
		for (uint64_t i = 0; i < 8; i++)
			CHECK(w.w[i] == i * i);
		seen++;
	});
	p.on(h_large, [&](const large &l) { CHECK(l.d[299] == 299 && l.n == 11), seen++; });
	p.on(h_span, [&](tern::message m, int n, tern::span<const double> d) {
		CHECK(m.src() == 0 && int(d.size()) == n);
		for (int i = 0; i < n; i++)
			CHECK(d[i] == i / 2.0);
		m.signal(p.done);
	});
	words8 w;
	for (uint64_t i = 0; i < 8; i++)
		w.w[i] = i * i;
	large l = {};
	l.d[299] = 299, l.n = 11;
	std::vector<double> halves(1000);
	for (int i = 0; i < 1000; i++)
		halves[i] = i / 2.0;
	const tern::endpoint_ref t = p.t[0];
	OK(t.request(1, h_nothing));
	OK(t.request(1, h_numbers, -5, 0.25, -1.5f, true, colour::red));
	OK(t.request(1, h_structs, { -1, "abcdef" }, made(7)));
	OK(t.request(1, h_eight, w));
	OK(t.request(1, h_large, l));
	OK(t.request(1, h_span, 1000, halves));
	OK(t.request(1, h_span, 3, { halves.data(), 3 }));
	p.wait(2);
	CHECK(seen == 5);
}

static void replies_carry_the_same()
{
	pair p;
	uint64_t sum = 0;
	large got = {};
	p.on(h_ask, [](tern::message m, uint64_t n) {
		large l = {};
		l.n = int(n);
		if (n == 1)
			(void)m.reply(h_answer, n + 41);
		else
			(void)m.reply(h_large, l);
	});
	p.on(h_answer, [&](tern::message m, uint64_t n) { sum += n, m.signal(p.done); });
	p.on(h_large, [&](tern::message m, const large &l) { got = l, m.signal(p.done); });
	OK(p.t[0].request(1, h_ask, 1));
	OK(p.t[0].request(1, h_ask, 2));
	p.wait(2);
	CHECK(sum == 42 && got.n == 2);
}

static void claims_are_committed_or_abandoned()
{
	pair p;
	double sum = 0;
	int answers = 0;
	p.on(h_span, [&](tern::message m, int n, tern::span<const double> d) {
		for (double x : d)
			sum += x;
		if (m.is_reply()) {
			answers++;
			m.signal(p.done);
		} else {
			(void)value(m.claim<double>(1, TERN_CLAIM_FRESH)); // given back
			auto reply = value(m.claim<double>(2)); // the request's own bytes
			reply[1] = 0.5;
			OK(reply.commit(h_span, n));
		}
	});
	for (int i = 0; i < 100; i++) { // more than there are blocks
		auto abandoned = value(p.t[0].claim<double>(1, 10));
		auto kept = value(p.t[0].claim<double>(1, 2));
		abandoned = std::move(kept);
		CHECK(abandoned.size() == 2);
		abandoned[0] = 1, abandoned[1] = 2;
		OK(abandoned.commit(h_span, 5));
		p.wait();
	}
	CHECK(answers == 100 && sum == 100 * (3 + 1.5));
}

static void items_of_posts_are_structs_one_by_one_and_many_at_once()
{
	pair p;
	uint64_t one = 0, many = 0, calls = 0;
	p.on(h_structs,
	     [&](const small &s, const made &m) { one += unsigned(s.a) * unsigned(m.n); });
	const auto take = [&](tern::message m, tern::span<const std::array<uint64_t, 2>> items) {
		CHECK(m.src() == 0);
		for (const auto &i : items)
			many += i[0] * i[1];
		calls++;
	};
	OK(p.t[0].post_on(h_many, take));
	OK(p.t[1].post_on(h_many, take));
	for (uint64_t i = 0; i < 1000; i++) {
		OK(p.t[0].post(1, h_many, { i, 2 }));
		if (i % 10 == 0)
			OK(p.t[0].post(1, h_structs, { int(i), "" }, made(3)));
	}
	OK(p.t[0].post_flush());
	OK(p.t[0].wait([&] { return many == 999000 && one == 3 * 49500; }));
	CHECK(calls < 1000);
}

static int called;
static void function(tern::message m, uint64_t n)
{
	called += int(n + m.src());
}

static void handlers_are_lambdas_functions_and_objects_that_move_with_their_endpoint()
{
	std::weak_ptr<int> life;
	{
		pair p;
		auto alive = std::make_shared<int>(5);
		life = alive;
		OK(p.t[1].on(h_ask, [alive](uint64_t n) { called += *alive * int(n); }));
		alive.reset();
		OK(p.t[1].on(h_answer, function));
		OK(p.t[0].on(h_ask, [](uint64_t) {}));
		OK(p.t[0].on(h_answer, [](auto, auto n) { called += int(n); }));
		tern::endpoint moved = std::move(p.t[1]);
		CHECK(!p.t[1] && moved && moved.rank() == 1);
		OK(p.t[0].request(1, h_ask, 3));
		OK(p.t[0].request(1, h_answer, 100));
		OK(moved.request(0, h_answer, 1000));
		OK(p.t[0].wait([] { return called == 1115; }));
		CHECK(!life.expired());
		p.t[1] = std::move(moved);
	}
	CHECK(life.expired()); // the endpoint had the lambda
}

static void memory_is_put_to_got_from_and_operated_on()
{
	pair p;
	const tern::endpoint_ref t = p.t[0];
	auto heap = value(p.t[1].alloc<uint64_t>(8));
	auto doubles = value(p.t[1].alloc<double>(1));
	const auto at = value(p.t[1].global(heap.data()));
	CHECK(at && at.rank() == 1 && at + 0 == at && at + 1 != at);
	OK(t.put(at, 5));
	CHECK(heap[0] == 5 && value(t.get(at)) == 5);
	CHECK(value(t.fetch_add(at, 2)) == 5 && value(t.cas(at, 7, 9)) == 7 && heap[0] == 9);
	CHECK(value(t.amo(at, TERN_AMO_SWAP, 1)) == 9);
	std::array<uint64_t, 3> some = { 1, 2, 3 }, back = {};
	OK(t.put(at + 2, some));
	OK(t.get(back, at + 2));
	CHECK(back == some && heap[4] == 3 && heap.size() == 8);
	const auto d = value(p.t[1].global(doubles.data()));
	OK(t.put(d, 0.5));
	CHECK(value(t.amo(d, TERN_AMO_ADD, 1)) == 0.5 && doubles[0] == 1.5);
	CHECK(value(t.local(at, 8)) != nullptr);

	uint64_t old = 0;
	tern::op op(t);
	some = { 4, 5, 6 };
	OK(t.put(at, some, op));
	OK(op.wait());
	OK(t.get(tern::span<uint64_t>(back), at, op));
	OK(t.amo(at + 7, TERN_AMO_OR, 8, old, op));
	CHECK(value(op.wait_for(10s)) && op.ready() && back == some && heap[7] == 8);
	CHECK(value(op.test()));

	tern::global_ptr<uint64_t> told;
	p.on(h_put,
	     [&](tern::message m, tern::global_ptr<uint64_t> a) { told = a, m.signal(p.done); });
	OK(t.put_request(at, some, h_put, at + 1));
	p.wait();
	CHECK(told == at + 1 && heap[2] == 6);

	CHECK(!value(p.t[1].wait_word_for(1ms, heap[6], TERN_WORD_GE, 1)));
	OK(t.put_signal(at, back, at + 6, TERN_AMO_ADD, 2));
	OK(p.t[1].wait_word(heap[6], TERN_WORD_EQ, 2));
	CHECK(value(p.t[1].wait_word_for(1h, heap[6], TERN_WORD_GE, 1)) && heap[0] == back[0]);
	OK(t.flush());
}

static void what_goes_is_given_back()
{
	for (int i = 0; i < 50; i++) {
		pair p;
		auto all = value(p.t[0].alloc<char>(1));
		all = value(p.t[0].alloc<char>(2));
		for (int k = 0; k < 50; k++)
			CHECK(value(p.t[0].alloc<char>(8 << 20)).size() == 8 << 20);
		auto out = value(p.t[0].chan_to(1, 7));
		out = tern::out();
		out = value(p.t[0].chan_to(1, 8));
		auto again = value(p.t[0].chan_to(1, 7));
	}
	pair p;
	std::vector<uint64_t> mine(10);
	tern::global_ptr<uint64_t> at;
	{
		auto registered = value(p.t[1].register_memory(mine));
		auto moved = std::move(registered);
		at = moved.at(3);
		OK(p.t[0].put(at, 42));
		CHECK(mine[3] == 42);
	}
	tern::nothrow::endpoint_ref t(p.t[0].get());
	CHECK(t.put(at, 43));
	CHECK(mine[3] == 42);
	const int fd = memfd_create("cpp_test", 0);
	CHECK(fd >= 0 && ftruncate(fd, 4096) == 0);
	auto *page = static_cast<uint64_t *>(
		mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
	{
		auto file = value(p.t[1].register_fd(tern::span<uint64_t>(page, 512), fd));
		close(fd);
		OK(p.t[0].put(file.at(511), 6));
		CHECK(page[511] == 6);
	}
	munmap(page, 4096);
	p.t.pop_back(); // the endpoint is closed
	OK(p.t[0].wait([&] { return t.put(at, 43).code() == -ESHUTDOWN; }));
}

static void handles_wait_before_they_go()
{
	pair p;
	std::vector<char> from(1 << 20, 'x'), to(1 << 20);
	auto registered = value(p.t[1].register_memory(from));
	{
		tern::op op(p.t[0]);
		OK(p.t[0].get(tern::span<char>(to), registered.at(), op));
	}
	CHECK(to == from);
}

static void waits_have_limits()
{
	pair p;
	const tern::endpoint_ref t = p.t[0];
	const auto begun = std::chrono::steady_clock::now();
	CHECK(!value(t.wait_for(2ms, p.done)));
	CHECK(!value(t.wait_for(2ms, [] { return false; })));
	CHECK(!value(t.wait_until(std::chrono::steady_clock::now() + 2ms, p.done, 3)));
	CHECK(std::chrono::steady_clock::now() - begun >= 6ms);
	CHECK(!value(t.wait_until(begun, p.done)));
	t.signal(p.done, 2);
	CHECK(value(t.wait_for(10min, p.done)) && value(t.wait_for(0s, [] { return true; })));
	OK(t.wait(p.done));
	CHECK(p.done == 0);
	tern::op op(t);
	char c = 0;
	OK(t.recv(1, 5, tern::one(c), op));
	CHECK(!value(op.wait_for(1ms)) && !value(op.test()) && !op.ready());
	OK(p.t[1].send(0, 5, tern::one("x"[0])));
	OK(op.wait());
	CHECK(c == 'x');
}

static void deferred_functions_and_holds()
{
	pair p;
	OK(p.t[1].on(h_ask, [&](tern::message m, uint64_t n) {
		OK(m.at().defer([n](tern::endpoint_ref t) { OK(t.request(0, h_answer, n)); }));
	}));
	OK(p.t[0].on(h_ask, [](uint64_t) {}));
	p.on(h_answer, [&](tern::message m, uint64_t n) { m.signal(p.done, n); });
	OK(p.t[0].request(1, h_ask, 5));
	p.wait(5);
	tern::hold hold(p.t[0]);
	tern::nothrow::endpoint_ref t(p.t[0].get());
	CHECK(t.wait(p.done) == std::errc::resource_deadlock_would_occur);
}

static void messages_and_channels_take_containers()
{
	pair p;
	const tern::endpoint_ref t = p.t[0], u = p.t[1];
	std::vector<int> sent = { 1, 2, 3 }, got(5);
	OK(t.send(1, 9, sent));
	const tern_envelope e = value(u.recv(0, 9, got));
	CHECK(e.len == 3 * sizeof(int) && e.src == 0 && got[2] == 3);
	{
		auto out = value(t.chan_to(1, 1));
		for (uint64_t i = 0; i < 1000; i++)
			OK(out.put(i));
		OK(out.put(sent));
		OK(out.end());
	}
	auto in = value(u.chan_from(0, 1));
	uint64_t n = 0;
	for (uint64_t i = 0; i < 1000; i++)
		CHECK(value(in.get(n)) && n == i);
	std::array<int, 3> block;
	CHECK(value(in.get(block)) && block[1] == 2);
	CHECK(in.peek() == TERN_CHAN_END);
	OK(in.next());
	CHECK(!value(in.get(n))); // the sender has closed it
}

static void teams_reduce_and_exchange(tern::endpoint &t)
{
	const uint32_t r = t.rank();
	const tern::team all = value(t.team());
	CHECK(all && all.rank() == r && all.size() == 2 && all.member(1) == 1);
	CHECK(value(all.allreduce(r + 1.5, TERN_REDUCE_SUM)) == 4);
	CHECK(value(all.allreduce(int8_t(r - 5), TERN_REDUCE_MIN)) == -5);
	CHECK(value(all.allreduce(tern_double_at{ 1.0 + r, r }, TERN_REDUCE_MAX)).at == 1);
	// the longer string of two, by a function of the program's
	struct text {
		char s[16];
	};
	const text mine = { { char('a' + r), r ? 'x' : '\0' } };
	const auto longer = [](const text &a, const text &b) {
		return std::strlen(a.s) >= std::strlen(b.s) ? a : b;
	};
	CHECK(value(all.allreduce(mine, longer)).s[1] == 'x');

	std::array<uint16_t, 3> in = { uint16_t(r), 1, 2 }, out = {};
	OK(all.allreduce(in, out, TERN_REDUCE_SUM));
	CHECK(out[0] == 1 && out[2] == 4);
	OK(all.scan(in, out, TERN_REDUCE_SUM));
	CHECK(out[1] == r + 1);
	OK(all.exscan(in, out, TERN_REDUCE_SUM));
	CHECK(!r || out[2] == 2);
	OK(all.reduce(1, in, out, TERN_REDUCE_SUM | TERN_REDUCE_EXACT));
	CHECK(!r || out[1] == 2);
	std::vector<uint16_t> both(6);
	OK(all.allgather(in, both));
	CHECK(both[3] == 1 && both[0] == 0);
	both.assign(6, 9);
	OK(all.gather(0, in, both));
	CHECK(both[5] == (r ? 9 : 2));
	OK(all.scatter(0, both, out));
	CHECK(out[0] == r);
	std::array<uint64_t, 2> to = { 10 + r, 20 + r }, from = {};
	tern::op op(t);
	OK(all.alltoall(to, from, op));
	OK(op.wait());
	CHECK(from[0] == 10 + 10 * r && from[1] == 11 + 10 * r);
	OK(all.broadcast(1, to));
	CHECK(to[0] == 11);
	OK(all.barrier());
	OK(all.quiet());

	auto alone = value(all.split(int(r)));
	CHECK(alone.size() == 1);
	alone = value(all.split(r ? 0 : TERN_COLOR_NONE));
	CHECK(bool(alone) == (r == 1));
	const std::array<uint32_t, 2> turned = { 1, 0 };
	CHECK(value(all.list(turned)).rank() == 1 - r);
	CHECK(value(all.machine()).size() == 2);
	// The destructor waits for that of the other member.
	static std::atomic<bool> comes{ false };
	{
		const tern::team both_again = value(all.split(0));
		if (r == 1) {
			std::this_thread::sleep_for(10ms);
			comes = true;
		}
	}
	CHECK(comes);

	auto memory = value(t.alloc_all<uint64_t>(4));
	OK(t.put(memory.at(1 - r, 2), 100 + r));
	OK(t.barrier());
	CHECK(memory[2] == 101 - r);

	tern::nothrow::team codes(all.get());
	CHECK(codes.allgather(in, out) == std::errc::message_size); // too short for two
	CHECK(codes.reduce(r, both, out, TERN_REDUCE_SUM) == std::errc::message_size);
	const size_t three[] = { 1, 1, 1 };
	CHECK(codes.reduce_scatter(in, out, three, TERN_REDUCE_SUM) == std::errc::message_size);
	CHECK(codes.allgatherv(tern::part(in), tern::part(out)) == std::errc::message_size);
	codes.release(); // `all` frees it
}

static void workers_are_endpoints(tern::endpoint &t)
{
	static tern::flag replies[2];
	const uint32_t r = t.rank();
	OK(t.on(h_ask, [](tern::message m, uint64_t n) { OK(m.reply(h_answer, n)); }));
	OK(t.on(h_answer, [](tern::message m, uint64_t n) { m.signal(replies[n]); }));
	OK(t.barrier());
	std::atomic<bool> over{ false };
	std::thread thread([&] {
		auto worker = value(t.worker());
		CHECK(worker.rank() == r);
		OK(worker.request(1 - r, h_ask, r));
		OK(worker.wait(replies[r]));
		CHECK(t.worker_id() == r && worker.worker_id() > t.size());
		OK(worker.request(worker.worker_id(), h_ask, r));
		OK(worker.wait(replies[r]));
		OK(worker.close());
		CHECK(!worker);
		over = true;
	});
	OK(t.wait([&] { return over.load(); })); // and answers the other's worker
	thread.join();
	OK(t.barrier());
	OK(t.detach());
	std::thread([&] { t.attach(); }).join();
	t.attach();
	OK(t.barrier());
}

static void codes_say_what_failed_in_a_sentence()
{
	auto [t, error] = tern::nothrow::open();
	CHECK(!error && t.size() == 1);
	const tern::status s = t.request(99, h_ask, 1);
	CHECK(s && s.code() == -ERANGE && s == std::errc::result_out_of_range);
	CHECK(s != std::errc::timed_out && std::string(s.what()).find("99") != std::string::npos);
	const std::error_code code = s;
	CHECK(code == std::errc::result_out_of_range && code.category() == tern::category());
	const auto team = t.team();
	CHECK(!team.error && team.value.size() == 1);
	CHECK(t.get(tern::global_ptr<int>()).error);
	CHECK(t.alloc<char>(size_t(1) << 60).error == std::errc::not_enough_memory);
	CHECK(!t.close());
	CHECK(!tern::nothrow::open().error); // the next session
}

#ifdef __cpp_exceptions
static void exceptions_have_the_sentence_and_the_code()
{
	tern::endpoint t = tern::open();
	try {
		t.request(99, h_ask, 1);
		CHECK(!"thrown");
	} catch (const std::system_error &e) {
		CHECK(e.code() == std::errc::result_out_of_range);
		CHECK(std::string(e.what()) == tern_strerror(-ERANGE));
		CHECK(std::string(e.what()).find("99") != std::string::npos);
	}
	try {
		t.alloc<char>(size_t(1) << 60);
		CHECK(!"thrown");
	} catch (const tern::error &e) {
		CHECK(e.code().value() == -ENOMEM);
	}
}

// The other rank is elsewhere: a destructor that called all ranks together would wait for ever.
static void nothing_is_called_together_while_an_exception_passes(tern::endpoint &t)
{
	try {
		auto memory = t.alloc_all<int>(1);
		auto team = t.team();
		if (t.rank() == 1)
			t.barrier();
		throw 1;
	} catch (int) {
		if (t.rank() == 0)
			t.barrier();
	}
}
#endif

template <class T> constexpr bool moves = !std::is_copy_constructible_v<T> &&
					  std::is_move_constructible_v<T> &&
					  std::is_move_assignable_v<T>;
static_assert(moves<tern::endpoint> && moves<tern::team> && moves<tern::memory<int>> &&
	      moves<tern::registration<int>> && moves<tern::claim<int>> && moves<tern::out> &&
	      moves<tern::in> && moves<tern::thread<int>> && moves<tern::buf<int>> &&
	      moves<tern::locked> && std::is_nothrow_move_constructible_v<tern::endpoint>);
static_assert(!std::is_move_constructible_v<tern::op> && !std::is_move_constructible_v<tern::hold>);
static_assert(std::is_trivially_copyable_v<tern::endpoint_ref> && sizeof(tern::endpoint_ref) == 8);
static_assert(std::is_trivially_copyable_v<tern::global_ptr<int>>);

int main()
{
	std::setvbuf(stdout, nullptr, _IOLBF, 0);
	setenv("TERN_HEAP", "32M", 1); // what is not given back is soon used up
	RUN(whatever_a_message_carries_arrives);
	RUN(replies_carry_the_same);
	RUN(claims_are_committed_or_abandoned);
	RUN(items_of_posts_are_structs_one_by_one_and_many_at_once);
	RUN(handlers_are_lambdas_functions_and_objects_that_move_with_their_endpoint);
	RUN(memory_is_put_to_got_from_and_operated_on);
	RUN(what_goes_is_given_back);
	RUN(handles_wait_before_they_go);
	RUN(waits_have_limits);
	RUN(deferred_functions_and_holds);
	RUN(messages_and_channels_take_containers);
	RUN_TOGETHER(teams_reduce_and_exchange);
	layers();
	RUN_TOGETHER(workers_are_endpoints);
	RUN(codes_say_what_failed_in_a_sentence);
#ifdef __cpp_exceptions
	RUN(exceptions_have_the_sentence_and_the_code);
	RUN_TOGETHER(nothing_is_called_together_while_an_exception_passes);
#endif
}
