// SPDX-License-Identifier: BSD-3-Clause
// hello.c in C++: every rank greets the next one, which answers.
#include <cstdio>
#include <tern/tern.hpp>

// The same numbers on every rank. Both handlers take an int, at the sender and at the receiver.
constexpr tern::handler<int> greeting{ 0, "greeting" }, answer{ 1, "answer" };

int main()
try {
	tern::flag answers;
	tern::endpoint t = tern::open();
	t.on(greeting, [](tern::message m, int n) { m.reply(answer, n + 1); });
	t.on(answer, [&](tern::message m, int n) {
		std::printf("rank %u: rank %u says %d\n", t.rank(), m.src(), n);
		m.signal(answers);
	});
	t.request((t.rank() + 1) % t.size(), greeting, 41);
	t.wait(answers);
	t.barrier(); // answers the others until they have been answered too
} catch (const tern::error &e) {
	std::fprintf(stderr, "hello_cpp: %s\n", e.what());
	return 1;
}
