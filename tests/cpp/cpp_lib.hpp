// SPDX-License-Identifier: BSD-3-Clause
// What the tests of <tern/tern.hpp> share.
#ifndef TERN_TEST_CPP_LIB_HPP
#define TERN_TEST_CPP_LIB_HPP

#include <cstdio>
#include <cstdlib>
#include <tern/tern.hpp>
#include <thread>

using namespace std::chrono_literals;

inline void check(bool holds, const char *what, int line)
{
	if (holds)
		return;
	std::fprintf(stderr, "    line %d: not %s; %s\n", line, what, tern_strerror(0));
	std::exit(1);
}
#define CHECK(what) check(static_cast<bool>(what), #what, __LINE__)

// The same calls in both ways to hear of errors: what fails ends the test.
template <class T> T value(T v)
{
	return v;
}
template <class T> T value(tern::result<T> r)
{
	check(!r.error, r.error.what(), 0);
	return std::move(r.value);
}
#ifdef __cpp_exceptions
#define OK(call) call
#else
#define OK(call) check(!(call), #call, __LINE__)
#endif

struct small {
	int32_t a;
	char b[7];
};
// Two ranks in this process. This thread runs the handlers of both while it waits in one.
struct pair {
	std::vector<tern::endpoint> t = value(tern::open_local(2));
	tern::flag done;
	template <class... A, class F> void on(tern::handler<A...> h, F f)
	{
		for (auto &each : t)
			OK(each.on(h, f));
	}
	void wait(uint64_t n = 1) { OK(t[0].wait(done, n)); }
};

// What all ranks call together: each by a thread of its own.
template <class F> void together(F f)
{
	auto t = value(tern::open_local(2));
	std::thread other([&] { f(t[1]); });
	f(t[0]);
	other.join();
	for (auto &each : t)
		if (each)
			each.attach();
}

#define RUN(test) (std::puts(#test), test())
#define RUN_TOGETHER(test) (std::puts(#test), together(test))

void layers(); // the tests of cpp_layers_test.cpp

#endif
