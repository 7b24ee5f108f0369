/* SPDX-License-Identifier: BSD-3-Clause */
/* The machine without processes: events come in their order, packets when they should. */
#include "net/sim/machine/machine.h"

#include <tern/tern.h>

#include "base/chance.h"
#include "lib/sim_play.h"

enum { NODES = 4, EVENTS = 5000 };

static uint64_t last;
static unsigned happened;

static void in_order(struct machine *machine, const struct event *e)
{
	CHECK(machine->shared->clock == e->time && e->time >= last);
	last = e->time;
	happened++;
}

static void begin(const char *profile)
{
	begin_with(profile, NODES);
	m.resume = in_order;
	last = happened = 0;
}

TEST(events_happen_in_the_order_of_their_times)
{
	struct chance c = { check_seed() };
	begin("cluster");
	for (unsigned i = 0; i < EVENTS; i++)
		event_network(&m, chance_below(&c, 1000), EVENT_RESUME, 0, 0);
	play();
	CHECK_IS(happened, EVENTS);
}

static uint32_t order_seen[EVENTS];
static void note_order(struct machine *machine, const struct event *e)
{
	(void)machine;
	order_seen[happened++] = e->what;
}

TEST(events_of_one_time_happen_in_the_order_of_their_numbers)
{
	begin("cluster");
	m.resume = note_order;
	for (uint32_t i = 0; i < EVENTS; i++)
		event_network(&m, 7, EVENT_RESUME, i, 0);
	play();
	for (uint32_t i = 0; i < EVENTS; i++)
		CHECK_IS(order_seen[i], i);
}

TEST(a_packet_alone_takes_the_latency_and_its_bytes)
{
	begin("cluster,network=logp,latency=1us,gap=200ns,gap_byte=2ns");
	send_at(5000, 0, 1, 100);
	play();
	CHECK_IS(count[1], 1);
	CHECK_IS(came[1][0], 5000 + 1000000 + 100 * 2000);
}

TEST(packets_of_one_node_leave_a_gap_apart)
{
	begin("cluster,network=logp,latency=1us,gap=200ns,gap_byte=2ns");
	for (uint32_t dst = 1; dst < NODES; dst++)
		send_at(0, 0, dst, 100);
	play();
	for (uint32_t dst = 1; dst < NODES; dst++)
		CHECK_IS(came[dst][0], (dst - 1) * (200000 + 200000) + 1000000 + 200000);
}

TEST(packets_to_one_node_meet_in_a_crossbar_and_not_in_logp)
{
	begin("cluster,network=logp,latency=1us,gap=200ns,gap_byte=0");
	send_at(0, 1, 0, 8);
	send_at(0, 2, 0, 8);
	play();
	CHECK_IS(came[0][0], came[0][1]);
	begin("cluster,network=crossbar,latency=1us,gap=200ns,gap_byte=0");
	send_at(0, 1, 0, 8);
	send_at(0, 2, 0, 8);
	play();
	CHECK_IS(came[0][1] - came[0][0], 200000);
}

TEST(memory_of_packets_is_used_again)
{
	begin("cluster");
	for (unsigned i = 0; i < EVENTS; i++) {
		send_at(0, 0, 1, 1 + i % 60000);
		count[1] = 0;
		play();
	}
	CHECK(m.shared->travels <= 1);
	CHECK(m.shared->cells < 4096);
}

TEST(a_packet_of_whole_cells_takes_no_more_of_them)
{
	begin("cluster");
	for (uint32_t cells = 1; cells <= 1024; cells *= 2) {
		uint32_t before = m.shared->cells;
		send_at(0, 0, 1, cells * CELL);
		CHECK_IS(m.shared->cells - before, cells);
	}
}

TEST(every_built_in_profile_can_be_read)
{
	struct profile p;
	for (const struct profile_text *t = profile_text; t->name; t++)
		CHECK_IS(profile_load(&p, t->name), 0);
}

static bool refused(const char *text, const char *words)
{
	struct profile p;
	int rc = profile_load(&p, text);
	if (rc < 0 && strstr(tern_strerror(rc), words))
		return true;
	printf("    %s: %d, %s\n", text, rc, tern_strerror(rc));
	return false;
}

TEST(what_a_profile_cannot_say_is_refused_with_the_key_and_what_it_can_be)
{
	CHECK(refused("cluster,latency=fast", "latency is 'fast'; it must be a time"));
	CHECK(refused("cluster,latency=5", "ps, ns, us, ms, s or cycles"));
	CHECK(refused("cluster,network=ether", "network is 'ether'; it can be logp"));
	CHECK(refused("cluster,lateness=2us", "no key 'lateness'"));
	CHECK(refused("cluster,seed=-1", "whole number"));
	CHECK(refused("cluster,channels=0", "channels is '0'; it must be a whole number from 1"));
	CHECK(refused("cluster,channels=17", "whole number from 1 to 16"));
	CHECK(refused("cluster,cycle=2ms", "cycle is '2ms'; it must be a time"));
	CHECK(refused("cluster,latency", "no line 'key = value'"));
	CHECK(refused("/nowhere.conf", "no file that can be read"));
}

TEST(a_file_names_the_line_that_is_wrong)
{
	char name[] = "/tmp/tern-profile-XXXXXX";
	int fd = mkstemp(name);
	REQUIRE(fd >= 0);
	FILE *f = fdopen(fd, "w");
	fputs("# a machine\nlatency = 2us # slow\n\ngap = much\n", f);
	fclose(f);
	CHECK(refused(name, ":4: gap is 'much'"));
	unlink(name);
}
