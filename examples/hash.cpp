// SPDX-License-Identifier: BSD-3-Clause
// A hash table that is dealt out to all ranks. Every rank adds to entries and then looks some up,
// with gathered messages whose items are structs. An answer names the lookup that it is for.
#include <cstdio>
#include <cstdlib>
#include <tern/tern.hpp>
#include <unordered_map>
#include <vector>

namespace {

struct addition {
	uint64_t key;
	int64_t value;
};
struct lookup {
	uint64_t key;
	uint32_t number; // of those of the rank that asks
};
struct found {
	int64_t value;
	uint32_t number;
};
constexpr tern::handler<addition> on_add{ 0, "add" };
constexpr tern::handler<lookup> on_lookup{ 1, "lookup" };
constexpr tern::handler<found> on_found{ 2, "found" };

constexpr uint64_t keys = 5000;
constexpr uint32_t lookups = 20000;

// What rank `rank` adds to entry `key`; the check adds it up again.
int64_t share(uint32_t rank, uint64_t key)
{
	return int64_t(key % 7) - 3 * int64_t(rank);
}

class table {
	std::unordered_map<uint64_t, int64_t> mine;
	std::vector<int64_t> answers;
	tern::endpoint t = tern::open();
	tern::team all = t.team();

	uint32_t owner(uint64_t key) const
	{
		return uint32_t(key * 0x9e3779b97f4a7c15u >> 32) % t.size();
	}

public:
	table()
	{
		t.on(on_add, [this](const addition &a) { mine[a.key] += a.value; });
		t.on(on_lookup, [this](tern::message m, lookup l) {
			m.reply(on_found, found{ mine[l.key], l.number });
		});
		t.on(on_found, [this](found f) { answers[f.number] = f.value; });
		t.barrier(); // everybody has handlers
	}

	void add_all()
	{
		for (uint64_t key = 0; key < keys; key++)
			t.post(owner(key), on_add, { key, share(t.rank(), key) });
		all.quiet(); // every addition has been handled
	}

	void look_up(const std::vector<uint64_t> &wanted)
	{
		answers.resize(wanted.size());
		for (uint32_t i = 0; i < wanted.size(); i++)
			t.post(owner(wanted[i]), on_lookup, { wanted[i], i });
		all.quiet(); // and every lookup answered
	}

	uint64_t check(const std::vector<uint64_t> &wanted)
	{
		uint64_t wrong = 0;
		for (size_t i = 0; i < wanted.size(); i++) {
			int64_t expected = 0;
			for (uint32_t rank = 0; rank < t.size(); rank++)
				expected += share(rank, wanted[i]);
			wrong += answers[i] != expected;
		}
		wrong = all.allreduce(wrong, TERN_REDUCE_SUM);
		if (t.rank() == 0)
			std::printf("%u lookups, %llu wrong\n", lookups * t.size(),
				    (unsigned long long)wrong);
		return wrong;
	}
};

} // namespace

int main()
try {
	table entries;
	std::vector<uint64_t> wanted(lookups);
	for (uint64_t &key : wanted)
		key = uint64_t(std::rand()) % keys;
	entries.add_all();
	entries.look_up(wanted);
	return entries.check(wanted) != 0;
} catch (const tern::error &e) {
	std::fprintf(stderr, "hash_cpp: %s\n", e.what());
	return 1;
}
