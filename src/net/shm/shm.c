/* SPDX-License-Identifier: BSD-3-Clause */
/* Rings in the job's memory: who looks at which, knocks, sleeps and leaves. */
#include "net/shm/shm.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/error.h"
#include "base/numa.h"
#include "base/setting.h"
#include "base/world.h"
#include "net/talk.h"

struct shm {
	struct net net;
	struct job *job;
	bool sleeping; /* counted among the job's sleepers */
	struct ring_growth growth;
	size_t spare_bytes; /* committed for spares */
};

static struct shm *shm_of(struct net *net)
{
	return (struct shm *)(void *)net;
}

static struct small_talk *talk_at(const struct shm *s, uint32_t from, uint32_t to)
{
	return (struct small_talk *)(void *)(s->job->base + job_small_at(s->job, from, to));
}

/* What the talk's rings grow into. */
static struct rings larger_at(const struct shm *s, uint32_t from, uint32_t to)
{
	char *at = s->job->base + job_talk_at(s->job, from, to);
	return large_rings(talk_at(s, from, to), (struct large_talk *)(void *)at);
}

static struct block *spares_of(const struct shm *s, uint32_t member)
{
	return job_part_in(s->job, &s->job->spare, member);
}

static struct pool *pool_of(const struct shm *s, uint32_t rank)
{
	return job_part_in(s->job, &s->job->pool, rank);
}

/* Large blocks begin a page each, so that they can be committed one by one. */
static struct block_range large_of(const struct shm *s, uint32_t rank)
{
	struct job_part *p = &s->job->large;
	return (struct block_range){ (uintptr_t)job_part_in(s->job, p, rank * TERN_POOL_BLOCKS),
				     TERN_POOL_BLOCKS * p->bytes, p->bytes, TERN_REQUEST_MAX };
}

/* Entries of the site: those whose rings we may have ends of. */
static uint32_t peers_of(const struct shm *s)
{
	return job_members(s->job);
}

static _Atomic uint8_t *heed_at(const struct shm *s, uint32_t receiver, uint32_t sender)
{
	return &s->job->heed[receiver * s->job->heed_row + sender];
}

static _Atomic uint8_t *begun_at(const struct shm *s, uint32_t server, uint32_t requester)
{
	return &s->job->begun[server * s->job->heed_row + requester];
}

static void heed_set(struct shm *s, uint32_t sender, uint8_t value)
{
	atomic_store_explicit(heed_at(s, s->net.site->member, sender), value, memory_order_relaxed);
}

static bool shm_usable(char *why, size_t len)
{
	struct job j;
	int rc = job_create(&j, 1, 0);
	if (rc) {
		snprintf(why, len, "%s", tern_strerror(rc));
		return false;
	}
	job_unmap(&j);
	job_forget(&j);
	return true;
}

/* -- Peers come and go --------------------------------------------------------- */

/* A peer of ours that is polled. */
static bool peer_hot(const struct shm *s, const struct peer *p)
{
	return p->net == &s->net && (p->requests.hot || p->replies.hot);
}

/* Opens our ends of what `rank` asks. */
static void peer_serve(struct shm *s, uint32_t rank)
{
	struct site *site = s->net.site;
	struct peer *p = &site->peer[rank];
	struct rings rings = small_rings(talk_at(s, rank, site->member)),
		     larger = larger_at(s, rank, site->member);
	job_dump(s->job, job_pair_at(s->job, rank, site->member), 2 * SMALL_TALK_BYTES);
	talk_serve(site, &rings, rank, job_member_rank(s->job, rank),
		   heed_at(s, rank, site->member));
	inlet_may_grow(&p->requests, &larger.requests);
	p->answer.growth = &s->growth;
	if (!spare_find(&s->net))
		p->requests.accept = 0;
}

/*
 * Polls every ring that `rank` has to us from now on. Rings it makes later are
 * announced by a knock of their own.
 */
static void peer_heed(struct shm *s, uint32_t rank)
{
	struct site *site = s->net.site;
	struct peer *p = &site->peer[rank];
	p->pool = pool_of(s, rank);
	if (rank >= site->size)
		p->net = &s->net; /* a worker's; those of ranks are known */
	if (!p->requests.base &&
	    atomic_load_explicit(begun_at(s, site->member, rank), memory_order_acquire) &
		    TALK_BEGUN)
		peer_serve(s, rank);
	if (p->requests.base)
		pollset_add(site, &p->requests);
	if (p->replies.base)
		pollset_add(site, &p->replies);
	if (peer_hot(s, p))
		heed_set(s, rank, 1);
}

static void peer_ignore(struct shm *s, uint32_t rank)
{
	pollset_remove(s->net.site, &s->net.site->peer[rank].requests);
	pollset_remove(s->net.site, &s->net.site->peer[rank].replies);
}

static bool peer_arrived(const struct peer *p)
{
	return (p->requests.hot && inlet_has(&p->requests)) ||
	       (p->replies.hot && inlet_has(&p->replies));
}

/*
 * Knocker bits and bells are sequentially consistent, here and in job_ring(), because each side
 * writes one word and then reads another: a sender sets its bit, then the bell, and reads what the
 * bell was; a receiver clears its bell, then takes the bits; a rank that goes to sleep writes its
 * bell only if it has not rung (models/sleep.pml). No message into a ring that is polled pays.
 */

/* Where `rank` finds that we have knocked. */
static _Atomic uint64_t *knocker_at(const struct shm *s, uint32_t rank)
{
	return &s->job->knocker[rank * s->job->knocker_row + s->net.site->member / 64];
}

static uint64_t knocker_bit(const struct shm *s)
{
	return UINT64_C(1) << s->net.site->member % 64;
}

/* The whole knock. Whatever we wrote before it is seen by the receiver that takes the bit. */
static void knock_hard(struct shm *s, uint32_t rank)
{
	atomic_fetch_or(knocker_at(s, rank), knocker_bit(s));
	job_ring(s->job, rank);
}

static void shm_knock(struct net *net, struct tern_lane *lane)
{
	struct shm *s = shm_of(net);
	uint32_t rank = lane->peer;
	/*
	 * Our bit may be up already, and the bell rung, because the receiver does not poll
	 * at the moment. It will take the bit later than now, and from then on poll our
	 * ring, so there is nothing to add: a stream into a busy rank is not slowed down, and a
	 * burst costs a rank that is called by signals one of them.
	 */
	if (atomic_load(knocker_at(s, rank)) & knocker_bit(s) &&
	    (atomic_load(job_bell(s->job, rank)) & (BELL_RUNG | BELL_ASLEEP)) == BELL_RUNG)
		return;
	knock_hard(s, rank);
}

static int shm_check(struct net *net, uint32_t rank)
{
	if (rank == NET_ALL)
		return (int)job_left(shm_of(net)->job);
	return job_rank_check(shm_of(net)->job, job_member_rank(shm_of(net)->job, rank));
}

static int shm_connect(struct net *net, uint32_t rank)
{
	struct shm *s = shm_of(net);
	uint32_t me = net->site->member;
	struct rings rings = small_rings(talk_at(s, me, rank)), larger = larger_at(s, me, rank);
	char what[64];
	uint32_t of = job_member_rank(s->job, rank);
	snprintf(what, sizeof what, "talking from rank %u to rank %u", net->site->rank, of);
	int rc = shm_check(net, rank);
	if (!rc)
		rc = job_pair_commit(s->job, me, rank, what);
	if (rc)
		return rc;
	talk_ask(net->site, &rings, rank, of, heed_at(s, rank, me));
	net->site->lane[rank].growth = &s->growth;
	inlet_may_grow(&net->site->peer[rank].replies, &larger.replies);
	atomic_fetch_or_explicit(begun_at(s, rank, me), TALK_BEGUN, memory_order_release);
	peer_heed(s, rank); /* its replies will come soon */
	/* In full: a knock that is up already may be answered before `begun` is seen. */
	knock_hard(s, rank);
	return 0;
}

/* The memory that one of our lanes goes on in. It lies near the rank that reads it. */
static bool lane_larger(const struct ring_growth *g, const struct tern_lane *lane,
			struct ring_memory *m)
{
	struct shm *s = (struct shm *)(void *)((char *)(uintptr_t)g - offsetof(struct shm, growth));
	uint32_t me = s->net.site->member, peer = lane->peer;
	*m = lane->gate ? larger_at(s, peer, me).replies : larger_at(s, me, peer).requests;
	return !job_commit_near(s->job, (size_t)(m->lines - s->job->base),
				(size_t)RING_LEAVES * m->leaf_lines * TERN_LINE,
				job_member_rank(s->job, peer), "a larger ring");
}

static void answer_word(struct shm *s, uint32_t word)
{
	_Atomic uint64_t *knockers =
		&s->job->knocker[s->net.site->member * s->job->knocker_row + word];
	if (!atomic_load_explicit(knockers, memory_order_relaxed))
		return;
	uint64_t bits = atomic_exchange(knockers, 0);
	for (; bits; bits &= bits - 1)
		peer_heed(s, word * 64 + (uint32_t)__builtin_ctzll(bits));
}

static void shm_answer(struct net *net)
{
	struct shm *s = shm_of(net);
	/* The bell first: a knock between the two rings it again and costs one more look. */
	atomic_exchange(job_bell(s->job, net->site->member), BELL_QUIET);
	for (uint32_t word = 0; word * 64 < peers_of(s); word++)
		answer_word(s, word);
}

/* -- Payloads ------------------------------------------------------------------- */

/* One more, if there is room for it. */
static int large_make(struct shm *s)
{
	uint32_t m = s->net.site->member;
	char what[64];
	snprintf(what, sizeof what, "payload of rank %u above %d bytes", s->net.site->rank,
		 TERN_PAYLOAD_MAX);
	size_t at = job_part_at(&s->job->large, m * TERN_POOL_BLOCKS + s->net.larges);
	int rc = job_commit(s->job, at, s->job->large.bytes, what);
	if (rc)
		return rc;
	s->net.large = s->net.any[1] = large_of(s, m);
	s->net.larges++;
	return 0;
}

/* Whoever has one waits for it when there is no memory for another. */
static int large_take(struct shm *s, struct block **out)
{
	int rc = pool_take(&s->net, TERN_REQUEST_MAX, out);
	if (!rc || s->net.larges == TERN_POOL_BLOCKS)
		return rc;
	int made = large_make(s);
	if (made)
		return s->net.larges && rc == -EAGAIN ? rc : made;
	return pool_take(&s->net, TERN_REQUEST_MAX, out);
}

static int shm_take(struct net *net, size_t len, struct block **out)
{
	struct shm *s = shm_of(net);
	if (len > TERN_PAYLOAD_MAX)
		return large_take(s, out);
	if (!s->net.pool) {
		char what[64];
		snprintf(what, sizeof what, "the first payload of rank %u", net->site->rank);
		int rc = job_commit(s->job, job_part_at(&s->job->pool, net->site->member),
				    s->job->pool.bytes, what);
		if (rc)
			return rc;
		s->net.pool = pool_of(s, net->site->member);
		s->net.blocks = TERN_POOL_BLOCKS;
		s->net.own = s->net.any[0] = blocks_short(s->net.pool, TERN_POOL_BLOCKS);
	}
	return pool_take(net, len, out);
}

/* Makes SPARES more, so that whoever holds one, however long, holds up nobody else. */
static int spare_make(struct shm *s)
{
	size_t page = 2 * SMALL_TALK_BYTES, need = (s->net.spares + SPARES) * sizeof(struct block);
	char what[64];
	need = (need + page - 1) / page * page;
	if (need > s->job->spare.bytes)
		return -ENOMEM; /* every peer has one */
	snprintf(what, sizeof what, "replies of rank %u", s->net.site->rank);
	size_t at = job_part_at(&s->job->spare, s->net.site->member) + s->spare_bytes;
	int rc = job_commit(s->job, at, need - s->spare_bytes, what);
	if (rc)
		return rc;
	s->spare_bytes = need;
	s->net.spares += SPARES;
	return 0;
}

static bool spare_more(struct net *net)
{
	return !spare_make(shm_of(net));
}

/* -- Not polling ------------------------------------------------------------------ */

/* Whether the peer has sent nothing since the last look. */
static bool peer_silent(struct peer *p)
{
	bool moved = p->requests.cursor != p->requests.seen || p->replies.cursor != p->replies.seen;
	p->requests.seen = p->requests.cursor;
	p->replies.seen = p->replies.cursor;
	return !moved && !peer_arrived(p);
}

/*
 * peers_demote: knock from now on. The bytes are cleared, the membarrier orders
 * them against what senders have written, and the last look decides. One barrier
 * for all of them.
 */
static void shm_demote(struct net *net)
{
	struct shm *s = shm_of(net);
	uint32_t silent[JOB_MEMBERS_MAX];
	unsigned n = 0;
	if (atomic_load_explicit(&s->job->head->weak, memory_order_relaxed))
		return;
	for (uint32_t r = 0; r < peers_of(s); r++) {
		struct peer *p = &net->site->peer[r];
		if (peer_hot(s, p) && peer_silent(p))
			silent[n++] = r;
	}
	for (unsigned i = 0; i < n; i++)
		heed_set(s, silent[i], 0);
	if (n)
		barrier_all();
	for (unsigned i = 0; i < n; i++)
		if (peer_arrived(&net->site->peer[silent[i]]))
			heed_set(s, silent[i], 1);
		else
			peer_ignore(s, silent[i]);
}

static void heed_all_hot(struct shm *s, uint8_t value)
{
	for (uint32_t r = 0; r < peers_of(s); r++)
		if (peer_hot(s, &s->net.site->peer[r]))
			heed_set(s, r, value);
}

/* Removes every peer, so that waking costs a look at those who knocked and no others. */
static void ignore_all(struct shm *s)
{
	for (uint32_t r = 0; r < peers_of(s); r++)
		if (s->net.site->peer[r].net == &s->net)
			peer_ignore(s, r);
}

/* Lets the bell say that we sleep, or that we are to be called; false if it has rung. */
static bool bell_arm(_Atomic uint64_t *bell, uint32_t says)
{
	uint64_t was = atomic_load(bell);
	while (!(was & BELL_RUNG))
		if (atomic_compare_exchange_weak(bell, &was, says))
			return true;
	return false;
}

static void shm_disarm(struct net *net)
{
	struct shm *s = shm_of(net);
	atomic_fetch_and(job_bell(s->job, net->site->member), (uint64_t)BELL_RUNG);
	if (!s->sleeping)
		return;
	atomic_fetch_sub(&s->job->head->sleepers, 1);
	s->sleeping = false;
}

/* sleep_arm: as shm_demote(), for everybody; then the bell says that we sleep, or compute. */
static bool shm_arm(struct net *net, struct sleep *sleep)
{
	struct shm *s = shm_of(net);
	struct job_rank *own = &s->job->rank[net->site->rank];
	_Atomic uint64_t *bell = job_bell(s->job, net->site->member);
	if (!sleep) {
		shm_disarm(net);
		return true;
	}
	if (sleep->bells == FUTEX_MANY ||
	    atomic_load_explicit(&s->job->head->weak, memory_order_relaxed))
		return false;
	heed_all_hot(s, 0);
	if (net->site->pollset)
		barrier_all();
	if (sleep->says == BELL_CALL) {
		atomic_store(&own->thread, sleep->thread);
		atomic_store(&own->signal, sleep->signal);
	} else if (!s->sleeping) {
		atomic_fetch_add(&s->job->head->sleepers, 1);
		s->sleeping = true;
	}
	if (pollset_has(s->net.site) || !bell_arm(bell, sleep->says)) {
		heed_all_hot(s, 1);
		return false;
	}
	ignore_all(s);
	if (sleep->says != BELL_CALL)
		sleep->bell[sleep->bells++] = bell;
	return true;
}

/* -- Barrier ------------------------------------------------------------------- */

/*
 * One counter and one generation, because with more ranks than cores each rank
 * should have to run once a round, and a tree of messages makes it run several
 * times. The last to arrive wakes those who sleep: it raises the generation, then
 * reads `sleepers`; a sleeper raises `sleepers` and its bell, then reads the
 * generation. All are sequentially consistent, so one of the two sees the other.
 */
static uint64_t shm_arrive(struct net *net)
{
	struct job *j = shm_of(net)->job;
	uint64_t ticket = atomic_fetch_add(&j->head->arrived, 1);
	if ((ticket + 1) % j->head->here == 0) {
		atomic_fetch_add(&j->head->generation, 1);
		for (uint32_t r = 0; atomic_load(&j->head->sleepers) && r < j->size; r++)
			if (atomic_load(&j->rank[r].bell) & BELL_ASLEEP)
				job_ring(j, r);
	}
	return ticket;
}

static bool shm_passed(struct net *net, uint64_t ticket, uint32_t rank)
{
	struct job *j = shm_of(net)->job;
	return rank == NET_ALL && atomic_load(&j->head->generation) > ticket / j->head->here;
}

/* -- Opening and closing -------------------------------------------------------- */

static void shm_close(struct net *net)
{
	struct shm *s = shm_of(net);
	if (net->site->member >= s->job->size) { /* a worker's; its seat stays taken */
		free(s);
		return;
	}
	/* Not if opening failed behind this network. */
	if (job_rank_state(s->job, net->site->rank) == RANK_OPEN)
		job_rank_leaves(s->job, net->site->rank, RANK_CLOSED);
	for (uint32_t r = 0; r < s->job->size; r++)
		if (job_here(s->job, r) &&
		    (net->site->lane[r].base || net->site->peer[r].requests.base))
			job_ring(s->job, r);
	for (uint32_t m = s->job->size; m < job_members(s->job); m++)
		if ((net->site->lane[m].base || net->site->peer[m].requests.base) &&
		    job_member_rank(s->job, m) < s->job->size) /* not in the next session */
			job_ring(s->job, m);
	free(s);
}

/*
 * A message names a block of its sender's pool, one of its sender's spares for replies, or our own
 * block on its way back. A rank's messages to itself come through another network, which has said
 * what they may name.
 */
static void payloads_expect(struct shm *s)
{
	struct site *site = s->net.site;
	uint32_t members = site->size + s->job->seats;
	for (uint32_t m = 0; m < members; m++) {
		struct block_range *may = site->peer[m].may;
		if (m == site->rank && m == site->member)
			continue;
		may[0] = blocks_short(pool_of(s, m), TERN_POOL_BLOCKS);
		may[1] = blocks_short(spares_of(s, m), members);
		may[2] = large_of(s, m);
	}
}

static int shm_open_rank(struct net **out, struct site *site, struct job *job, struct net *local,
			 const char *how)
{
	uint64_t wanted, leaves;
	(void)local, (void)how;
	int rc = setting_number(SETTING_MEMBARRIER, &wanted);
	if (!rc)
		rc = setting_number(SETTING_GROW, &leaves);
	if (rc)
		return rc;
	struct shm *s = calloc(1, sizeof *s);
	if (!s)
		return error_set(-ENOMEM, "opening shared memory for rank %u: no memory",
				 site->rank);
	s->net = (struct net){ .ops = &shm_ops, .site = site };
	s->net.provides = shm_ops.provides;
	if (job->head->grant) /* layers store in nobody's heap */
		s->net.provides &= ~(unsigned)PROVIDES_SHARED;
	s->job = job;
	s->growth = (struct ring_growth){ lane_larger, leaves };
	s->net.spare_more = spare_more;
	s->net.spare = spares_of(s, site->member);
	s->net.served = site->size + job->seats;
	rc = spare_make(s);
	if (rc) {
		free(s);
		return rc;
	}
	payloads_expect(s);
	if (!wanted || !barrier_register())
		atomic_store(&job->head->weak, 1);
	atomic_store(&job->rank[site->rank].pid, getpid());
	if (site->member < site->size)
		atomic_store(&job->rank[site->rank].node, (uint32_t)(numa_node() + 1));
	pollset_begin(site, job_bell(job, site->member));
	*out = &s->net;
	return 0;
}

const struct net_ops shm_ops = {
	.name = "shm",
	.reach = "ranks of this machine",
	.span = SPAN_MACHINE,
	.provides = PROVIDES_ORDER | PROVIDES_ROOM | PROVIDES_RELIABLE | PROVIDES_SHARED,
	.open = shm_open_rank,
	.usable = shm_usable,
	.connect = shm_connect,
	.knock = shm_knock,
	.answer = shm_answer,
	.check = shm_check,
	.take = shm_take,
	.reclaim = pool_reclaim,
	.demote = shm_demote,
	.arm = shm_arm,
	.arrive = shm_arrive,
	.passed = shm_passed,
	.close = shm_close,
};
