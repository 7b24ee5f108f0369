/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The conformance suite: what net.h promises, asked of every network. A network
 * is under test between two ends, the sender's and the receiver's, which are the
 * same where it reaches nobody else.
 */
#include "net/net.h"

#include <errno.h>
#include <poll.h>

#include "base/clock.h"
#include "base/world.h"
#include "lib/check.h"
#include "net/ofi/ofi.h"
#include "net/self/self.h"
#include "net/shm/shm.h"
#include "net/sim/sim.h"
#include "net/udp/udp.h"
#include "open/nets.h"

enum { RANKS = 3, HANDLER = 5, SOON_NS = 2000000, NAP_NS = 1000000000 };

#define PATIENCE_NS UINT64_C(100000000000) /* a provider may take its time to connect */

struct end {
	struct site site;
	struct tern_lane lane[RANKS], refuse;
	struct peer peer[RANKS];
	_Atomic uint64_t bell;
	struct net *net;
};

static struct end ends[RANKS];
static struct end *from, *to; /* who sends, who receives */
static struct job job;

static void end_open(uint32_t rank)
{
	struct end *e = &ends[rank];
	*e = (struct end){ .site = { .rank = rank, .size = RANKS, .member = rank } };
	e->site.lane = e->lane;
	e->site.peer = e->peer;
	e->site.refuse = &e->refuse;
}

static void self_set_up(void)
{
	end_open(0);
	from = to = &ends[0];
	pollset_begin(&from->site, &from->bell);
	REQUIRE(self_ops.open(&from->net, &from->site, NULL, NULL, "") == 0);
}

static void self_tear_down(void)
{
	from->net->ops->close(from->net);
}

static void job_set_up(const struct net_ops *ops, const char *how)
{
	setenv("TERN_WORKERS", "0", 1); /* an end has peers for the ranks alone */
	REQUIRE(job_create(&job, RANKS, 0) == 0);
	for (uint32_t r = 0; r < RANKS; r++) {
		end_open(r);
		CHECK(job_rank_opens(&job, r));
		int rc = ops->open(&ends[r].net, &ends[r].site, &job, NULL, how);
		if (rc)
			printf("    %s %s: %s\n", ops->name, how, tern_strerror(rc));
		REQUIRE(rc == 0);
	}
	from = &ends[0];
	to = &ends[1];
}

static void shm_set_up(void)
{
	job_set_up(&shm_ops, "");
}

static void udp_set_up(void)
{
	job_set_up(&udp_ops, "");
}

/* Its clock is the machine's, and what has been sent comes while somebody looks. */
static void sim_set_up(const char *profile)
{
	setenv("TERN_SIM", profile, 1);
	job_set_up(&sim_ops, "");
	world_use(sim_ops.world);
}

static void sim_cluster_set_up(void)
{
	sim_set_up("cluster");
}

static void sim_scmp_set_up(void)
{
	sim_set_up("scmp,room=0"); /* a lane that can be full */
}

static void sim_flash_set_up(void)
{
	sim_set_up("flash");
}

static void sim_lossy_set_up(void)
{
	sim_set_up("cluster,drop=20000,jitter=3us");
}

static void ofi_set_up(void)
{
	job_set_up(&ofi_ops, getenv("TERN_NET") + 4);
}

static void job_tear_down(void)
{
	for (uint32_t r = 0; r < RANKS; r++)
		if (ends[r].net)
			ends[r].net->ops->close(ends[r].net);
	job_unmap(&job);
	job_forget(&job);
}

static void sim_tear_down(void)
{
	job_tear_down();
	world_use(&world_real);
}

static const struct {
	const char *name; /* as in TERN_NET */
	const struct net_ops *ops;
	void (*set_up)(void), (*tear_down)(void);
} suite[] = {
	{ "self", &self_ops, self_set_up, self_tear_down },
	{ "sim", &sim_ops, sim_cluster_set_up, sim_tear_down },
	{ "sim", &sim_ops, sim_scmp_set_up, sim_tear_down },
	{ "sim", &sim_ops, sim_flash_set_up, sim_tear_down },
	{ "sim", &sim_ops, sim_lossy_set_up, sim_tear_down },
	{ "shm", &shm_ops, shm_set_up, job_tear_down },
	{ "udp", &udp_ops, udp_set_up, job_tear_down },
	{ "ofi/tcp", &ofi_ops, ofi_set_up, job_tear_down },
	{ "ofi/shm", &ofi_ops, ofi_set_up, job_tear_down },
};
enum { NETS = sizeof suite / sizeof *suite };

static void on_every_network(void (*check)(void))
{
	for (int i = 0; i < NETS; i++) {
		char why[400];
		setenv("TERN_NET", suite[i].name, 1);
		if (!suite[i].ops->usable(why, sizeof why))
			continue;
		unsigned before = atomic_load(&check_failures);
		suite[i].set_up();
		check();
		suite[i].tear_down();
		if (atomic_load(&check_failures) != before)
			printf("    on the network %s\n", suite[i].name);
	}
}

static void ask_all(void);

/* As the core does these. */
static void lane_say(struct end *e, struct tern_lane *lane, uint64_t word)
{
	struct parcel p = { .bits = HANDLER << TERN_ID_SHIFT | 2, .n = 2, .word = { word, ~word } };
	uint64_t until = clock_ns() + PATIENCE_NS;
	while (e->site.asks && !lane_ready(lane) && clock_ns() < until)
		ask_all();
	REQUIRE(lane_ready(lane));
	lane_put(lane, &p);
	if (tern_unheeded_(lane))
		e->net->ops->knock(e->net, lane);
}

static void say(uint64_t word)
{
	lane_say(from, &from->lane[to->site.rank], word);
}

static void hear_bell(struct end *e)
{
	if (inlet_arrived(&e->site.bell))
		e->net->ops->answer(e->net);
}

/* Packets go there and back only while both sides ask. */
static void ask_all(void)
{
	for (uint32_t r = 0; r < RANKS; r++)
		if (ends[r].net && ends[r].site.asks)
			hear_bell(&ends[r]);
}

/* The next message of that kind that the receiver's poll set holds; 0 if there is none. */
static uint64_t heard_now(struct end *e, enum tern_kind kind)
{
	hear_bell(e);
	for (struct tern_inlet *in = e->site.bell.next; in != &e->site.bell; in = in->next) {
		if (in->kind != kind)
			continue;
		for (;;) {
			const tern_msg *m = inlet_at(in);
			uint64_t x =
				atomic_load_explicit(&m->head, memory_order_acquire) ^ in->expect;
			if (x >> TERN_LAP_SHIFT)
				break;
			if (inlet_control(in, x) || inlet_grown(in, x))
				continue;
			in->cursor += message_bytes(inlet_at(in), x);
			CHECK_IS(tern_msg_word(m, 1), ~tern_msg_word(m, 0));
			return tern_msg_word(m, 0);
		}
	}
	return 0;
}

static uint64_t heard(struct end *e, enum tern_kind kind)
{
	uint64_t word = heard_now(e, kind), until = clock_ns() + PATIENCE_NS;
	while (!word && e->site.asks && clock_ns() < until) {
		ask_all();
		word = heard_now(e, kind);
	}
	return word;
}

/* Nothing comes that should not. */
static void hush(struct end *e, enum tern_kind kind)
{
	for (int i = 0; i < (e->site.asks ? 50 : 1); i++) {
		ask_all();
		CHECK_IS(heard_now(e, kind), 0);
	}
}

static void connect_ends(void)
{
	REQUIRE(from->net->ops->connect(from->net, to->site.rank) == 0);
}

TEST(every_network_of_the_table_is_in_this_suite_and_says_what_it_is)
{
	for (int n = 0; net_table[n]; n++) {
		char why[400] = "";
		int there = 0;
		for (int i = 0; i < NETS; i++)
			there += net_table[n] == suite[i].ops;
		CHECK(there >= 1);
		CHECK(net_table[n]->name && net_table[n]->reach);
		CHECK(net_table[n]->usable(why, sizeof why) || strlen(why) > 0);
	}
}

/* Mappings of jobs in this process. */
static unsigned mappings(void)
{
	char line[4096];
	unsigned n = 0;
	FILE *f = fopen("/proc/self/maps", "r");
	REQUIRE(f);
	while (fgets(line, sizeof line, f))
		n += strstr(line, "/memfd:tern") != NULL;
	fclose(f);
	return n;
}

TEST(asking_whether_there_is_shared_memory_leaves_none_behind)
{
	char why[400];
	CHECK(shm_ops.usable(why, sizeof why));
	CHECK_IS(mappings(), 0);
	REQUIRE(job_create(&job, RANKS, 0) == 0);
	CHECK(mappings() > 0); /* which would be seen */
	job_unmap(&job);
	job_forget(&job);
}

static void requests_arrive(void)
{
	connect_ends();
	hush(to, TERN_KIND_REQUEST);
	for (uint64_t i = 1; i < 5000; i++) { /* several laps */
		say(i);
		CHECK_IS(heard(to, TERN_KIND_REQUEST), i);
	}
	hush(to, TERN_KIND_REQUEST);
}

TEST(requests_arrive_in_order)
{
	on_every_network(requests_arrive);
}

static void replies_return(void)
{
	connect_ends();
	say(1);
	CHECK_IS(heard(to, TERN_KIND_REQUEST), 1);
	struct peer *back = &to->peer[from->site.rank];
	CHECK(back->requests.answer == &back->answer);
	CHECK(back->answer.gate == &back->requests);
	CHECK_IS(back->answer.peer, from->site.rank);
	CHECK(from->peer[to->site.rank].replies.answer == &from->refuse);
	for (uint64_t i = 1; i < 2000; i++) {
		lane_say(to, &back->answer, i);
		CHECK_IS(heard(from, TERN_KIND_REPLY), i);
	}
}

TEST(replies_return_and_cannot_be_answered)
{
	on_every_network(replies_return);
}

static void full_and_room(void)
{
	connect_ends();
	struct tern_lane *lane = &from->lane[to->site.rank];
	uint64_t sent = 0, got = 0;
	while (lane_ready(lane))
		say(++sent);
	CHECK(sent >= 64);
	while (got < sent && CHECK_IS(heard(to, TERN_KIND_REQUEST), got + 1))
		got++;
	hush(to, TERN_KIND_REQUEST);
	CHECK(lane_ready(lane));
}

TEST(a_full_lane_loses_nothing_and_has_room_again)
{
	on_every_network(full_and_room);
}

/* Of the class that `len` bytes need. */
static void blocks_of(size_t len)
{
	struct block *taken[TERN_POOL_BLOCKS], *more = NULL;
	struct net *net = from->net;
	for (int i = 0; i < TERN_POOL_BLOCKS; i++) {
		CHECK_IS(net->ops->take(net, len, &taken[i]), 0);
		CHECK(block_is(taken[i], BLOCK_CLAIMED));
		CHECK(net_ours(net, taken[i]));
		memset(block_bytes(taken[i]), i, len);
	}
	CHECK_IS(net->ops->take(net, len, &more), -ENOBUFS); /* nobody else could give one back */
	block_set(taken[3], BLOCK_SENT);
	CHECK_IS(net->ops->take(net, len, &more), -EAGAIN);
	block_set(taken[3], BLOCK_FREE);
	CHECK_IS(net->ops->take(net, len, &more), 0);
	CHECK(more == taken[3]);
}

static void blocks(void)
{
	connect_ends();
	blocks_of(TERN_PAYLOAD_MAX);
	blocks_of(TERN_REQUEST_MAX);
}

TEST(a_pool_gives_each_block_once_and_again_when_it_is_free)
{
	on_every_network(blocks);
}

static void named_large_blocks(void)
{
	struct block *b = NULL;
	uint32_t sender = from->site.rank;
	connect_ends();
	say(1);
	heard(to, TERN_KIND_REQUEST);
	CHECK_IS(from->net->ops->take(from->net, TERN_REQUEST_MAX, &b), 0);
	if (!(to->net->ops->provides & PROVIDES_SHARED)) {
		CHECK(!net_owns(to->net, sender, b->data, 0));
		b = (struct block *)to->peer[sender].may[1].at;
	}
	char *bytes = block_bytes(b);
	CHECK(net_owns(to->net, sender, bytes, TERN_REQUEST_MAX));
	CHECK(net_owns(to->net, sender, bytes, 0));
	CHECK(!net_owns(to->net, sender, bytes, TERN_REQUEST_MAX + 1));
	CHECK(!net_owns(to->net, sender, bytes + 64, 1));
	CHECK(!net_owns(to->net, sender, bytes - 64, 1));
}

static void named_blocks(void)
{
	struct block *b = NULL;
	uint32_t sender = from->site.rank;
	connect_ends();
	say(1);
	heard(to, TERN_KIND_REQUEST);
	const struct net_ops *ops = to->net->ops;
	CHECK_IS(from->net->ops->take(from->net, 0, &b), 0);
	if (!(ops->provides &
	      PROVIDES_SHARED)) { /* it names blocks of the receiver then, where payloads land */
		CHECK(!net_owns(to->net, sender, b->data, 0));
		b = (struct block *)(uintptr_t)&to->peer[sender].pool->block[3];
	}
	CHECK(net_owns(to->net, sender, b->data, TERN_PAYLOAD_MAX));
	CHECK(net_owns(to->net, sender, b->data, 0));
	CHECK(!net_owns(to->net, sender, b->data, TERN_PAYLOAD_MAX + 1));
	CHECK(!net_owns(to->net, sender, b->data + 1, 1));
	CHECK(!net_owns(to->net, sender, (char *)b + offsetof(struct block, data) - 64, 1));
	CHECK(!net_owns(to->net, sender, (char *)&b, 1));
	CHECK(!net_owns(to->net, sender, NULL, 1));
	CHECK(!net_ours(from->net, (struct block *)(void *)((char *)b + 64)));
	/* the block that is kept for replies to the sender is named by the receiver */
	struct block *own = to->peer[sender].reserve, *reserve = own ? own : spare_find(to->net);
	REQUIRE(reserve);
	CHECK(!(ops->provides & PROVIDES_SHARED) ||
	      net_owns(from->net, to->site.rank, reserve->data, 1));
}

TEST(a_message_may_name_its_senders_blocks_and_nothing_else)
{
	on_every_network(named_blocks);
	on_every_network(named_large_blocks);
}

static bool any_readable(const struct sleep *s)
{
	struct pollfd p[SLEEP_FDS];
	for (unsigned k = 0; k < s->fds; k++)
		p[k] = (struct pollfd){ .fd = s->fd[k], .events = POLLIN };
	return poll(p, s->fds, 1000) > 0;
}

/* A simulated rank has nothing to sleep on, and naps: what arrives ends that. */
static void napping(uint64_t word)
{
	struct sleep s = { .says = BELL_ASLEEP };
	CHECK(!to->net->ops->arm(to->net, &s));
	net_disarm(to->net);
	say(word);
	uint64_t began = clock_ns();
	world_nap(NAP_NS);
	CHECK(clock_ns() - began < NAP_NS);
	CHECK_IS(heard(to, TERN_KIND_REQUEST), word);
}

static void sleeping(void)
{
	struct sleep s = { .says = BELL_ASLEEP };
	const struct net_ops *ops = to->net->ops;
	connect_ends();
	ask_all();
	say(1);
	CHECK_IS(heard(to, TERN_KIND_REQUEST), 1);
	say(2);
	CHECK(!ops->arm(to->net, &s)); /* something is there */
	net_disarm(to->net);
	CHECK_IS(heard(to, TERN_KIND_REQUEST), 2);
	for (uint64_t i = 3; i < 10; i++) {
		s.bells = s.fds = s.ports = 0;
		s.until = 0;
		for (int k = 0; k < 10; k++)
			ask_all();
		hear_bell(to);
		if (ops == &sim_ops) {
			napping(i);
			continue;
		}
		if (!ops->arm(to->net, &s))
			check_skip("the kernel has no membarrier");
		say(i);
		for (unsigned k = s.ports; k < s.bells;
		     k++) /* whoever sleeps on it would have been woken */
			CHECK(atomic_load(s.bell[k]) != BELL_ASLEEP);
		bool naps = s.until &&
			    s.until < clock_ns() + SOON_NS; /* where there is nothing to sleep on */
		CHECK(!s.fds || naps || any_readable(&s));
		net_disarm(to->net);
		CHECK_IS(heard(to, TERN_KIND_REQUEST), i);
	}
}

TEST(what_arrives_at_a_sleeper_ends_its_sleep)
{
	on_every_network(sleeping);
}

static void silence(void)
{
	connect_ends();
	say(1);
	CHECK_IS(heard(to, TERN_KIND_REQUEST), 1);
	for (uint64_t i = 2; i < 20; i++) {
		for (int k = 0; k < 3; k++)
			to->net->ops->demote(to->net);
		say(i);
		CHECK_IS(heard(to, TERN_KIND_REQUEST), i);
		say(i + 100);
		to->net->ops->demote(to->net); /* not silent: something lies there */
		to->net->ops->demote(to->net);
		CHECK_IS(heard(to, TERN_KIND_REQUEST), i + 100);
	}
}

TEST(a_silent_peer_is_heard_when_it_speaks_again)
{
	on_every_network(silence);
}

/* Asked again, for a while, if it should. */
static bool passes(struct end *e, uint64_t ticket, bool should)
{
	uint64_t until = clock_ns() + PATIENCE_NS;
	while (should && !e->net->ops->passed(e->net, ticket, NET_ALL) && clock_ns() < until)
		ask_all();
	return e->net->ops->passed(e->net, ticket, NET_ALL);
}

static void barriers(void)
{
	uint64_t ticket[RANKS] = { 0 };
	int n = from == to ? 1 : RANKS;
	for (int round = 0; round < 10; round++) {
		for (int r = 0; r < n; r++) {
			ticket[r] = ends[r].net->ops->arrive(ends[r].net);
			for (int k = 0; k < 100; k++)
				ask_all();
			for (int k = 0; k <= r; k++)
				CHECK_IS(passes(&ends[k], ticket[k], r == n - 1), r == n - 1);
		}
	}
}

TEST(a_barrier_is_passed_when_everybody_has_arrived)
{
	on_every_network(barriers);
}

static void leaving(void)
{
	connect_ends();
	say(1);
	CHECK_IS(heard(to, TERN_KIND_REQUEST), 1);
	CHECK_IS(from->net->ops->check(from->net, to->site.rank), 0);
	CHECK_IS(net_left(from->net), 0);
	if (from == to)
		return;
	hear_bell(from);
	to->net->ops->close(to->net);
	to->net = NULL;
	CHECK_IS(net_left(from->net), 1);
	CHECK(inlet_arrived(&from->site.bell)); /* it is told */
	int rc = from->net->ops->check(from->net, to->site.rank);
	for (int i = 0; i < 100 && !rc;
	     i++) { /* a network may first look for what it sent before */
		hear_bell(from);
		rc = from->net->ops->check(from->net, to->site.rank);
	}
	CHECK_IS(rc, -ESHUTDOWN);
	CHECK(strstr(tern_strerror(rc), "rank 1") != NULL);
	CHECK_IS(from->net->ops->check(from->net, 2), 0);
}

TEST(a_rank_that_leaves_is_noticed)
{
	on_every_network(leaving);
}

static void pinned(void)
{
	struct block *b = NULL;
	connect_ends();
	for (int i = 0; i < 2 * TERN_POOL_BLOCKS; i++) {
		REQUIRE(from->net->ops->take(from->net, i % 2 ? TERN_REQUEST_MAX : 0, &b) == 0);
		b->peer = to->site.rank;
		block_set(b, BLOCK_SENT);
	}
	CHECK(from->net->ops->take(from->net, 0, &b) < 0);
	CHECK(from->net->ops->take(from->net, TERN_REQUEST_MAX, &b) < 0);
	from->net->ops->reclaim(from->net, to->site.rank);
	CHECK(from == to || from->net->ops->take(from->net, 0, &b) == 0);
	CHECK(from == to || from->net->ops->take(from->net, TERN_REQUEST_MAX, &b) == 0);
}

TEST(the_blocks_of_a_rank_that_has_left_come_back)
{
	on_every_network(pinned);
}
