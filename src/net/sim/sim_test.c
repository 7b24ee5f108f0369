/* SPDX-License-Identifier: BSD-3-Clause */
/* One node of a simulated machine in this process: its clock, and what computing costs there. */
#include "net/sim/sim.h"

#include <errno.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include <tern/sim.h>
#include <tern/tern.h>

#include "base/world.h"
#include "job/job.h"
#include "lib/check.h"
#include "net/packet/packet.h"

enum { NODES = 2 };

#define US UINT64_C(1000000) /* ps */
#define PRICES "cluster,integer=1ns,floating=2ns,load=3ns,store=5ns"

static struct job job;

static void join(const char *profile)
{
	char why[300] = "";
	setenv("TERN_SIM", profile, 1);
	REQUIRE(job_create(&job, NODES, 0) == 0);
	CHECK(sim_ops.usable(why, sizeof why));
	CHECK(!sim_machine());
	REQUIRE(sim_join(&job, 0) == 0);
	REQUIRE(sim_machine());
}

static void leave(void)
{
	sim_leave(0);
	CHECK(!sim_machine());
	job_unmap(&job);
	job_forget(&job);
}

TEST(a_profile_that_cannot_be_understood_is_refused_and_no_machine_is_made)
{
	char why[300] = "";
	struct stat before, after;
	setenv("TERN_SIM", "cluster,latency=soon", 1);
	CHECK(!sim_ops.usable(why, sizeof why));
	CHECK(strstr(why, "latency"));
	REQUIRE(job_create(&job, NODES, 0) == 0);
	REQUIRE(fstat(job.fd, &before) == 0);
	CHECK_IS(sim_join(&job, 0), -EINVAL);
	CHECK(strstr(tern_strerror(-EINVAL), "latency"));
	CHECK(!sim_machine());
	REQUIRE(fstat(job.fd, &after) == 0);
	CHECK_IS(before.st_size, after.st_size);
}

TEST(the_machine_lies_behind_the_memory_of_the_job_and_is_made_once)
{
	struct stat once, twice;
	join("cluster");
	struct machine *m = sim_machine();
	REQUIRE(fstat(job.fd, &once) == 0);
	CHECK((size_t)once.st_size >= job.bytes + m->bytes);
	CHECK_IS(m->shared->nodes, NODES);
	m->shared->clock = 77;
	CHECK_IS(sim_join(&job, 1), 0); /* another node of this process */
	CHECK(sim_machine() == m);
	REQUIRE(fstat(job.fd, &twice) == 0);
	CHECK_IS(once.st_size, twice.st_size);
	CHECK_IS(m->shared->clock, 77);
	sim_leave(1);
	CHECK(sim_machine() == m); /* the other node is still there */
	leave();
}

TEST(a_machine_that_finds_no_room_behind_the_memory_of_the_job_is_refused)
{
	struct rlimit most, less;
	signal(SIGXFSZ, SIG_IGN);
	setenv("TERN_SIM", "cluster", 1);
	REQUIRE(job_create(&job, NODES, 0) == 0);
	REQUIRE(getrlimit(RLIMIT_FSIZE, &most) == 0);
	less = (struct rlimit){ job.bytes, most.rlim_max };
	REQUIRE(setrlimit(RLIMIT_FSIZE, &less) == 0);
	CHECK_IS(sim_join(&job, 0), -EFBIG);
	CHECK(strstr(tern_strerror(-EFBIG), "making the memory of the simulated machine: "));
	CHECK(!sim_machine());
	REQUIRE(setrlimit(RLIMIT_FSIZE, &most) == 0);
	REQUIRE(sim_join(&job, 0) == 0);
	leave();
}

TEST(work_costs_what_the_profile_says)
{
	struct tern_work work = { .integer = 7, .floating = 11, .loads = 13, .stores = 17 };
	uint64_t left = 99;
	CHECK_IS(sim_price(&work, &left), 0); /* it is free where no machine is simulated */
	CHECK_IS(left, 0);
	CHECK_IS(sim_work(&left, 0, false, false), WORK_DONE);
	join(PRICES);
	uint64_t before = baton_time(sim_machine());
	CHECK_IS(sim_price(&work, &left), 0);
	CHECK_IS(left, (7 * 1 + 11 * 2 + 13 * 3 + 17 * 5) * PS_NS);
	CHECK_IS(sim_machine()->working, 1);
	CHECK_IS(sim_work(&left, 0, false, false), WORK_DONE);
	CHECK_IS(left, 0);
	CHECK_IS(sim_machine()->working, 0);
	CHECK_IS(baton_time(sim_machine()) - before, (7 + 22 + 39 + 85) * PS_NS);
	leave();
}

TEST(work_of_more_than_ten_days_is_refused_and_less_is_not)
{
	static const uint64_t most = UINT64_C(1000000000000000); /* ns, as ps a million seconds */
	uint64_t left;
	join(PRICES);
	struct tern_work work = { .integer = most };
	CHECK_IS(sim_price(&work, &left), 0);
	CHECK_IS(left, most * PS_NS);
	CHECK_IS(sim_machine()->working, 1);
	const struct tern_work much[] = {
		{ .integer = most + 1 },         { .integer = most, .floating = 1 },
		{ .integer = most, .loads = 1 }, { .integer = most, .stores = 1 },
		{ .floating = UINT64_MAX },      { .stores = UINT64_MAX / 1000 }
	};
	for (unsigned i = 0; i < sizeof much / sizeof *much; i++) {
		CHECK_IS(sim_price(&much[i], &left), -EINVAL);
		CHECK(strstr(tern_strerror(-EINVAL), "more than ten days"));
	}
	CHECK_IS(sim_machine()->working, 1);
	leave();
}

TEST(a_light_thread_computes_for_its_quantum_while_others_wait)
{
	struct tern_work work = { .integer = 2500 };
	uint64_t left;
	join(PRICES ",quantum=1us");
	CHECK_IS(sim_price(&work, &left), 0);
	CHECK_IS(sim_work(&left, 1, false, true), WORK_SWITCH);
	CHECK_IS(left, 1500 * PS_NS);
	CHECK_IS(sim_work(&left, 1, false, true), WORK_SWITCH);
	CHECK_IS(left, 500 * PS_NS);
	CHECK_IS(sim_work(&left, 1, false, true), WORK_DONE);
	CHECK_IS(left, 0);
	CHECK_IS(sim_price(&work, &left), 0);
	CHECK_IS(sim_work(&left, 1, false, false), WORK_DONE); /* nobody waits */
	leave();
}

TEST(the_clock_of_a_node_is_the_machines_and_never_goes_back)
{
	uint64_t real = sim_world.now();
	CHECK(real + UINT64_C(60000000000) > world_real.now()); /* before a node has joined */
	join("cluster");
	struct machine *m = sim_machine();
	uint64_t now = sim_world.now();
	CHECK_IS(now, baton_time(m) / PS_NS);
	baton_charge(m, 5 * US);
	CHECK_IS(sim_world.now(), now + 5000);
	m->serving = true; /* a controller's handler, at an earlier time */
	m->served = baton_time(m) - 2 * US;
	CHECK_IS(sim_world.now(), now + 5000);
	m->served = baton_time(m) + US;
	CHECK_IS(sim_world.now(), now + 6000);
	m->serving = false;
	CHECK_IS(sim_world.now(), now + 6000);
	leave();
	CHECK_IS(sim_world.now(), now + 5000); /* closing takes no virtual time */
}

TEST(what_a_program_computed_before_a_rest_is_charged)
{
	join("cluster,cpu=100");
	struct machine *m = sim_machine();
	uint64_t before = m->process[0].time;
	m->measured = -UINT64_C(1000000000); /* a second ago */
	m->shared->present = NODES;          /* the other waits */
	sim_world.nap(1000);
	m->shared->present = 1;
	CHECK(m->process[0].time - before >= 1000000 * US);
	leave();
}

TEST(a_handler_that_another_processor_runs_computes_there)
{
	const struct tern_work work = { .integer = 7 };
	uint64_t left = 0;
	join(PRICES ",controller=dual");
	struct machine *m = sim_machine();
	uint64_t now = m->process[0].time;
	m->serving = true;
	m->served = now;
	CHECK_IS(sim_price(&work, &left), 0);
	CHECK_IS(sim_work(&left, 0, false, false), WORK_DONE);
	CHECK_IS(left, 0);
	CHECK_IS(m->served - now, 7 * PS_NS);
	m->serving = false;
	CHECK_IS(m->process[0].time, now);
	leave();
}

/* -- Turns ------------------------------------------------------------------------------------- */

enum { STEP = 10 * PS_NS };

/* A packet of the other node, which has come to the network; when it arrives. */
static uint64_t packet_on_its_way(struct machine *m)
{
	uint32_t i = travel_new(m, 8);
	REQUIRE(i != NOTHING);
	m->travel[i].src = 1;
	m->travel[i].dst = 0;
	m->travel[i].size = 8;
	m->node[0].coming++;
	event_skip(m);
	event_network(m, baton_time(m), EVENT_INJECT, i, 0);
	REQUIRE(machine_step(m));
	CHECK(m->travel[i].arrived > baton_time(m) + 5 * STEP);
	return m->travel[i].arrived;
}

static void arrived_take(struct machine *m)
{
	uint32_t i = baton_take(m, 0);
	REQUIRE(i != NOTHING);
	travel_free(m, i);
	CHECK_IS(baton_take(m, 0), NOTHING);
}

TEST(a_packet_that_arrives_at_a_look_ends_the_wait_unless_that_ends_then)
{
	join("cluster,network=logp,latency=1us,gap=0,gap_byte=0");
	struct machine *m = sim_machine();
	m->shared->present = NODES; /* the other waits */
	uint64_t at = packet_on_its_way(m);
	m->process[0].time = at - 5 * STEP;
	CHECK(baton_wait(m, at + STEP, STEP));
	CHECK_IS(baton_time(m), at);
	arrived_take(m);
	at = packet_on_its_way(m);
	m->process[0].time = at - 5 * STEP - 1;
	CHECK(baton_wait(m, at + STEP, STEP));
	CHECK_IS(baton_time(m), at + STEP - 1);
	arrived_take(m);
	at = packet_on_its_way(m);
	m->process[0].time = at - 5 * STEP;
	CHECK(!baton_wait(m, at, STEP));
	CHECK_IS(baton_time(m), at);
	CHECK(baton_wait(m, at + STEP, STEP));
	CHECK_IS(baton_time(m), at);
	arrived_take(m);
	at = packet_on_its_way(m);
	CHECK_IS(packet_on_its_way(m), at);
	CHECK(baton_wait(m, at + 10 * STEP, STEP));
	arrived_take(m); /* and the next look finds the second */
	CHECK(baton_wait(m, at + 10 * STEP, STEP));
	arrived_take(m);
	m->shared->present = 1;
	leave();
}

static void *join_other(void *of)
{
	baton_join(of, 1);
	return NULL;
}

static void *leave_other(void *of)
{
	baton_leave(of, 1);
	return NULL;
}

/* Whether it waits for the lock of the machine before it changes `what`. */
static void check_locks(struct machine *m, void *(*call)(void *), const bool *what)
{
	pthread_t thread;
	machine_lock(m);
	REQUIRE(pthread_create(&thread, NULL, call, m) == 0);
	world_real.nap(20000000);
	CHECK(!*what);
	machine_unlock(m);
	pthread_join(thread, NULL);
	CHECK(*what);
}

TEST(nodes_come_and_go_while_nobody_else_touches_the_machine)
{
	join("cluster");
	struct machine *m = sim_machine();
	check_locks(m, join_other, &m->node[1].present);
	check_locks(m, leave_other, &m->node[1].left);
	leave();
}

static unsigned provides(const char *profile)
{
	struct wire *w;
	join(profile);
	REQUIRE(sim_wire(&w, 0, NULL) == 0);
	unsigned found = w->provides;
	w->ops->close(w);
	CHECK(!sim_machine()); /* its last node has left */
	job_unmap(&job);
	job_forget(&job);
	return found;
}

TEST(a_network_promises_what_its_profile_does_not_take_away)
{
	enum { ALL = PROVIDES_ORDER | PROVIDES_ROOM | PROVIDES_RELIABLE };
	CHECK_IS(provides("cluster,network=logp,order=1,room=1"), ALL);
	CHECK_IS(provides("cluster,network=logp,order=0,room=1"), ALL & ~PROVIDES_ORDER);
	CHECK_IS(provides("cluster,network=logp,order=1,room=0"), ALL & ~PROVIDES_ROOM);
	CHECK_IS(provides("cluster,network=logp,order=1,room=1,drop=10"), ALL & ~PROVIDES_RELIABLE);
	CHECK_IS(provides("cluster,network=logp,order=1,room=1,corrupt=10"),
		 ALL & ~PROVIDES_RELIABLE);
	CHECK_IS(provides("cluster,network=logp,order=1,room=1,jitter=1us"), PROVIDES_ROOM);
	CHECK_IS(provides("cluster,network=mesh,order=1,room=1,channels=1"), ALL);
	CHECK_IS(provides("cluster,network=mesh,order=1,room=1,channels=2"), ALL & ~PROVIDES_ORDER);
}
