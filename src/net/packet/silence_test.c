/* SPDX-License-Identifier: BSD-3-Clause */
/* Peers that do not answer: when the user is told, and when one is given up, and why. */
#include "net/packet/silence.h"

#include <errno.h>
#include <fcntl.h>

#include <tern/tern.h>

#include "base/clock.h"
#include "base/memory.h"
#include "lib/check.h"
#include "net/packet/packet.h"
#include "net/packet/service.h"

enum { RANKS = 4, MARKS = 16, ME = 0, PEER = 1 };
#define SECOND UINT64_C(1000000000)
static const uint64_t patience = 8 * SECOND;

static struct job job;
static struct peer peers[RANKS];
static struct site site = { .rank = ME, .size = RANKS, .peer = peers };
static struct packet_net *net;
static struct pulse pulse;
static struct failure failure; /* of sending to PEER */
static uint64_t begun;         /* ns */
static char said[2000];        /* at the last review */

static void wire_failed(struct wire *w, uint32_t rank, struct failure *f)
{
	(void)w;
	*f = rank == PEER ? failure : (struct failure){ 0 };
}

static const struct wire_ops wire_ops = { .failed = wire_failed };
static struct wire wire = { .ops = &wire_ops };

static struct path *net_begin(void)
{
	REQUIRE(job_create(&job, RANKS, 0) == 0);
	REQUIRE(job_rank_opens(&job, PEER));
	net = calloc(1, sizeof *net);
	REQUIRE(net);
	net->job = &job;
	net->net.site = &site;
	net->wire = &wire;
	net->pulse = &pulse;
	net->path = calloc(RANKS, sizeof *net->path);
	net->active = calloc(RANKS, sizeof *net->active);
	net->dirty = calloc(MARKS, sizeof *net->dirty);
	REQUIRE(net->path && net->active && net->dirty);
	net->patience = patience;
	failure = (struct failure){ 0 };
	begun = net->now = clock_ns() - 1000 * SECOND;
	return path_to(net, PEER);
}

static void net_end(void)
{
	for (uint32_t i = 0; i < net->actives; i++)
		memory_free(net->path[net->active[i]]);
	free(net->path);
	free(net->active);
	free(net->dirty);
	free(net);
	job_unmap(&job);
	job_forget(&job);
}

/* Reviews all at `now`, and keeps what is said; when the next review is due. */
static uint64_t review(uint64_t now)
{
	int pair[2], before = dup(STDERR_FILENO);
	REQUIRE(pipe2(pair, O_NONBLOCK) == 0 && before >= 0);
	dup2(pair[1], STDERR_FILENO);
	net->now = now;
	uint64_t due = silence_review(net);
	dup2(before, STDERR_FILENO);
	ssize_t n = read(pair[0], said, sizeof said - 1);
	said[n > 0 ? n : 0] = '\0';
	close(pair[0]);
	close(pair[1]);
	close(before);
	return due;
}

static bool says(const char *text)
{
	if (strstr(said, text))
		return true;
	printf("    it says: %s\n", said);
	return false;
}

/* The peer polls, so it does not compute. */
static void peer_polls(void)
{
	stats_add(&job.pulse[PEER].count[PULSE_BELLS], 1);
}

/* It has owed an answer since `since`, and polls, until it has for `ns`; when review is due. */
static uint64_t owe(struct path *p, uint64_t since, uint64_t ns)
{
	p->transit.tries = 1;
	p->transit.overdue = since;
	CHECK_IS(review(since + ns - 1), since + ns);
	CHECK(!*said && p->silence.over == VERDICT_WAIT);
	peer_polls();
	return review(since + ns);
}

/* -- Those that are waited for ----------------------------------------------------------------- */

TEST(who_owes_nothing_is_looked_at_four_times_in_its_patience_and_not_at_all_without_one)
{
	net_begin();
	CHECK_IS(review(begun), begun + patience / 4);
	CHECK(!*said);
	net->patience = 0;
	CHECK_IS(review(begun), DUE_NEVER);
	net_end();
}

TEST(who_does_not_answer_is_warned_of_once_and_so_is_its_return)
{
	struct path *p = net_begin();
	CHECK_IS(owe(p, begun, patience), begun + patience + patience / 4);
	CHECK(says("rank 0 has had no answer from rank 1 on an unknown machine for ") &&
	      says("it polls, so something in this machine") && says("rank 0 waits for it"));
	review(begun + 2 * patience);
	CHECK(!*said);
	p->transit.tries = 0;
	review(begun + 3 * patience);
	CHECK(says("rank 1 on an unknown machine answers rank 0 again"));
	review(begun + 4 * patience);
	CHECK(!*said);
	CHECK(p->silence.over == VERDICT_WAIT && !net->unreachable);
	net_end();
}

TEST(who_comes_back_is_given_twice_the_time_the_next_time_and_not_for_ever)
{
	struct path *p = net_begin();
	uint64_t time = begun;
	for (unsigned again = 0; again < 12; again++) {
		uint64_t ns = patience << (again < 10 ? again : 10);
		owe(p, time, ns);
		CHECK(says("has had no answer"));
		p->transit.tries = 0;
		review(time += ns);
		CHECK(says("again"));
	}
	net_end();
}

TEST(a_peer_of_this_machine_that_computes_is_not_warned_of)
{
	struct path *p = net_begin();
	p->transit.tries = 1;
	p->transit.overdue = begun;
	review(begun);
	review(begun + patience);
	CHECK(!*said);
	peer_polls();
	review(begun + patience + 1);
	CHECK(says("has had no answer"));
	net_end();
}

TEST(nobody_knows_of_a_peer_of_another_machine_whether_it_computes)
{
	static const uint32_t machine[RANKS] = { 0, 1, 0, 0 };
	struct path *p = net_begin();
	job_spread(&job, machine, 0, 2);
	p->transit.tries = 1;
	p->transit.overdue = begun;
	review(begun);
	review(begun + patience);
	CHECK(says("it computes and does not poll, or something between the two"));
	net_end();
}

TEST(who_was_spoken_to_and_has_never_answered_is_warned_of_too)
{
	struct path *p = net_begin();
	p->spoken = begun;
	p->heard = true;
	review(begun + patience);
	peer_polls();
	review(begun + patience);
	CHECK(!*said);
	p->heard = false;
	review(begun + patience);
	peer_polls();
	review(begun + patience);
	CHECK(says("has had no answer"));
	net_end();
}

TEST(one_who_is_given_up_is_not_looked_at_and_the_others_are)
{
	struct path *p = net_begin(), *other = path_to(net, 2);
	other->gone = true;
	other->transit.tries = 1;
	other->transit.overdue = begun - 1;
	other = path_to(net, 3);
	other->transit.tries = 1;
	other->transit.overdue = begun + 1;
	p->transit.tries = 1;
	p->transit.overdue = begun;
	CHECK_IS(review(begun + patience - 1), begun + patience);
	p->silence.over = VERDICT_CUT;
	CHECK_IS(review(begun + patience - 1), begun + 1 + patience);
	CHECK(!*said);
	net_end();
}

/* -- Those that are given up ------------------------------------------------------------------- */

TEST(with_fail_who_does_not_answer_is_given_up_and_named)
{
	struct path *p = net_begin();
	net->fails = true;
	owe(p, begun, patience);
	CHECK(says("rank 0 cannot reach rank 1 on ") && says("though that rank is not known to") &&
	      says("it polls"));
	CHECK_IS(p->silence.over, VERDICT_CUT);
	CHECK_IS(net->unreachable, 1);
	p->transit.tries = 0;
	CHECK_IS(review(begun + 2 * patience), begun + 2 * patience + patience / 4);
	CHECK(!*said);
	CHECK_IS(silence_check(p), -EHOSTUNREACH);
	CHECK(strstr(tern_strerror(-EHOSTUNREACH), "is not known to have ended"));
	job_rank_leaves(&job, PEER, RANK_CLOSED);
	CHECK_IS(silence_check(p), -EHOSTUNREACH);
	CHECK(strstr(tern_strerror(-EHOSTUNREACH), "which has left"));
	net_end();
}

/* What becomes of a peer that owes an answer after sending to it has failed `ago`. */
static enum verdict after_failure(int error, uint64_t ago)
{
	struct path *p = net_begin();
	uint64_t at = clock_ns() - ago;
	failure = (struct failure){ error, at, at, "the address" };
	owe(p, begun, patience);
	CHECK_IS(p->silence.lossy, 0); /* who sends again has lost nothing */
	enum verdict v = p->silence.over;
	net_end();
	return v;
}

TEST(only_an_error_of_this_machine_that_is_not_over_gives_a_peer_up)
{
	static const int of_way[] = { ENETUNREACH, EHOSTUNREACH, ENETDOWN, EHOSTDOWN, ECONNREFUSED,
				      EAGAIN,      ENOBUFS,      ENOMEM,   EMSGSIZE };
	for (unsigned i = 0; i < sizeof of_way / sizeof *of_way; i++) {
		CHECK_IS(after_failure(of_way[i], 0), VERDICT_WAIT);
		CHECK(says("sending to the address fails: ") && says("interfaces and routes"));
	}
	CHECK_IS(after_failure(EPERM, 0), VERDICT_CUT);
	CHECK(says("sending to the address fails: Operation not permitted; a firewall"));
	CHECK_IS(after_failure(EPERM, 2 * SECOND), VERDICT_WAIT);
	CHECK(says("it polls"));
}

/* -- Wires that are reliable by themselves ----------------------------------------------------- */

static bool news(const struct path *p, enum news what)
{
	return p->dirty && p->pending_control == 1u << what;
}

TEST(where_nothing_is_acknowledged_a_peer_is_asked_until_it_answers_once_for_all_that_was_sent)
{
	struct path *p = net_begin();
	net->confirms = true;
	p->confirm.sent = 3;
	for (int i = 0; i < 2; i++) {
		CHECK_IS(review(begun), begun + patience / 4);
		CHECK(news(p, NEWS_ASK));
		CHECK_IS(p->confirm.asked, 4);
		CHECK_IS(p->confirm.since, begun);
		p->pending_control = p->dirty = 0;
	}
	p->confirm.asked = 0;
	review(begun);
	CHECK(!p->pending_control && !p->confirm.asked);
	p->confirm.moves++;
	review(begun);
	CHECK(news(p, NEWS_ASK));
	CHECK_IS(review(begun + patience - 1), begun + patience);
	peer_polls();
	review(begun + patience);
	CHECK(says("has had no answer"));
	p->confirm.asked = p->pending_control = 0;
	p->confirm.moves++;
	net->patience = 0;
	CHECK_IS(review(begun), DUE_NEVER);
	CHECK(!p->pending_control);
	net_end();
}

/* It is given up when `ns` have passed, though it computes and TERN_UNREACHABLE is wait. */
static void check_lossy(struct path *p, uint64_t ns)
{
	CHECK_IS(review(begun + ns - 1), begun + ns);
	CHECK(!*said && p->silence.over == VERDICT_WAIT);
	review(begun + ns);
	CHECK(says("messages were lost, as when a connection breaks") &&
	      says("TERN_SERVICE=order"));
	CHECK_IS(p->silence.over, VERDICT_LOSSY);
}

TEST(a_peer_to_which_messages_were_lost_is_given_up_and_told_until_then)
{
	for (unsigned patient = 0; patient < 2; patient++) {
		struct path *p = net_begin();
		net->confirms = true;
		net->patience = patient ? patience : 0;
		failure = (struct failure){ ECONNRESET, begun, clock_ns(), "the address" };
		check_lossy(p, patient ? patience : 30 * SECOND);
		CHECK(says("breaks: Connection reset by peer"));
		CHECK_IS(p->silence.lossy, begun);
		CHECK_IS(news(p, NEWS_LOST), patient);
		net_end();
	}
}

TEST(a_loss_counts_from_when_it_was_first_found_or_told)
{
	struct path *p = net_begin();
	net->confirms = true;
	silence_missed(net, PEER);
	CHECK(p->silence.missed && news(p, NEWS_LOST));
	CHECK_IS(p->silence.lossy, begun);
	p->pending_control = 0;
	net->now++;
	silence_missed(net, PEER);
	silence_told(p);
	CHECK_IS(p->silence.lossy, begun);
	CHECK(!p->pending_control);
	check_lossy(p, patience);
	CHECK(says("connection breaks; with"));
	p = path_to(net, 2);
	silence_told(p);
	CHECK_IS(p->silence.lossy, net->now);
	CHECK(!p->silence.missed && !p->pending_control);
	silence_missed(net, 3); /* nobody has talked with it yet */
	CHECK(net->path[3] && net->path[3]->silence.missed);
	p->silence.lossy = 0;
	net->confirms = false;
	silence_told(p);
	CHECK_IS(p->silence.lossy, 0);
	net_end();
}

/* -- Settings ---------------------------------------------------------------------------------- */

TEST(settings_say_how_long_a_peer_is_waited_for_and_whether_it_is_given_up_then)
{
	net_begin();
	setenv("TERN_KEEPALIVE", "7", 1);
	setenv("TERN_UNREACHABLE", "fail", 1);
	CHECK_IS(silence_open(net), 0);
	CHECK(net->patience == 7 * SECOND && net->fails);
	setenv("TERN_UNREACHABLE", "wait", 1);
	CHECK_IS(silence_open(net), 0);
	CHECK(!net->fails);
	setenv("TERN_UNREACHABLE", "hope", 1);
	CHECK_IS(silence_open(net), -EINVAL);
	CHECK(strstr(tern_strerror(-EINVAL), "'hope'; it is wait or fail"));
	setenv("TERN_UNREACHABLE", "wait", 1);
	setenv("TERN_KEEPALIVE", "soon", 1);
	CHECK_IS(silence_open(net), -EINVAL);
	net_end();
}
