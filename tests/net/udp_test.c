/* SPDX-License-Identifier: BSD-3-Clause */
/* ctest: TIMEOUT 120 */
/* Jobs whose ranks talk over UDP: many of them, ranks that die or fall silent, strangers. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "job/exchange.h"
#include "lib/chance.h"
#include "lib/handed.h"
#include "net/udp/socket.h"
#include "tern/thread.h"
#include "udp_ranks.h"

enum { MANY = 64 };

static void all_to_all(void)
{
	tern *t = ranks_open();
	CHECK_IS(tern_on(t, TELL, tell), 0);
	for (uint32_t r = 0; r < tern_size(t); r++)
		CHECK_IS(tern_request(t, r, TELL, tern_rank(t)), 0);
	CHECK_IS(tern_wait(t, &told, tern_size(t)), 0);
	CHECK_IS(tern_barrier(t), 0);
	CHECK_IS(told, 0);
	CHECK_IS(tern_close(t), 0);
}

TEST(sixty_four_ranks_talk_all_to_all)
{
	far_use(NULL);
	uint64_t began = clock_ns();
	ranks_run(MANY, all_to_all);
	printf("    %u ms\n", (unsigned)((clock_ns() - began) / 1000000));
}

static void barriers(void)
{
	tern *t = ranks_open();
	for (int i = 0; i < 100; i++)
		CHECK_IS(tern_barrier(t), 0);
	CHECK_IS(tern_close(t), 0);
}

TEST(a_barrier_over_udp_holds_any_number_of_ranks)
{
	far_use(NULL);
	for (uint32_t n = 1; n < 10; n++)
		ranks_run(n, barriers);
}

/* -- Payloads ------------------------------------------------------------------------------- */

enum { KEEP = 2, KEPT = 30, MORE = 200 };

static const tern_msg *kept[KEPT];
static unsigned keeps;

static void keep(tern *t, const tern_msg *m)
{
	if (keeps < KEPT)
		kept[keeps] = handed_keep(t, m);
	CHECK(keeps < KEPT && kept[keeps] != NULL);
	keeps++;
}

static void payloads_send(tern *from, unsigned id, unsigned n)
{
	static unsigned char bytes[TERN_PAYLOAD_MAX];
	for (unsigned i = 0; i < n; i++) {
		memset(bytes, (int)i, sizeof bytes);
		CHECK_IS(tern_request_data(from, 1, id, bytes, i % 5 ? sizeof bytes - i % 3 : i),
			 0);
	}
}

/* How many of those kept lie where they came. */
static unsigned kept_check(tern *t)
{
	const struct wire *w = net_of(t)->wire;
	unsigned stay = 0;
	for (unsigned i = 0; i < KEPT; i++) {
		size_t len;
		const unsigned char *data = tern_msg_data(kept[i], &len);
		CHECK_IS(len, i % 5 ? TERN_PAYLOAD_MAX - i % 3 : i);
		CHECK_IS((uintptr_t)data % 64, 0);
		unsigned changed = 0;
		for (size_t k = 0; k < len; k++)
			changed += data[k] != i;
		CHECK_IS(changed, 0);
		stay += data >= w->pinnable && data < w->pinnable + w->pinnable_len;
	}
	return stay;
}

TEST(payloads_stay_where_they_came_for_as_long_as_they_are_kept)
{
	far_use(NULL);
	tern *t[2];
	REQUIRE(tern_open_local(2, t) == 0);
	for (int i = 0; i < 2; i++) {
		CHECK_IS(tern_on(t[i], TELL, tell), 0);
		CHECK_IS(tern_on(t[i], KEEP, keep), 0);
	}
	for (int round = 0; round < 3; round++) {
		keeps = 0;
		payloads_send(t[0], KEEP, KEPT);
		payloads_send(t[0], TELL, MORE); /* over which the others must not be written */
		CHECK_IS(tern_wait(t[1], &told, MORE), 0);
		REQUIRE(keeps == KEPT);
		CHECK(kept_check(t[1]) > 0);
		for (unsigned i = 0; i < KEPT; i++)
			CHECK_IS(tern_msg_drop(t[1], kept[i]), 0);
	}
	CHECK_IS(tern_close(t[0]), 0);
	CHECK_IS(tern_close(t[1]), 0);
}

/* -- Claims that are shortened -------------------------------------------------------------- */

static struct wire_ops counting;
static void (*wire_send)(struct wire *w, const struct outgoing *o, unsigned n);
static size_t wire_bytes;

static void send_and_count(struct wire *w, const struct outgoing *o, unsigned n)
{
	for (unsigned i = 0; i < n; i++)
		for (int k = 0; k < o[i].parts; k++)
			wire_bytes += o[i].part[k].iov_len;
	wire_send(w, o, n);
}

static size_t shortened_to;

static void reply_shortened(tern *t, const tern_msg *m)
{
	size_t len;
	tern_msg_data(m, &len);
	CHECK_IS(len, shortened_to);
	void *reply = handed_reply_claim(t, m, TERN_PAYLOAD_MAX);
	memset(reply, 7, TERN_PAYLOAD_MAX);
	CHECK_IS(tern_claim_shorten(t, reply, shortened_to), 0);
	CHECK_IS(tern_reply_commit(t, m, reply, TELL), 0);
}

/* How many bytes both send until a claim of the longest payload, and its reply, have arrived. */
static size_t bytes_of_claim(tern *t[2], size_t len)
{
	wire_bytes = 0;
	shortened_to = len;
	void *claimed = handed_claim(t[0], 1, TERN_PAYLOAD_MAX);
	memset(claimed, 8, TERN_PAYLOAD_MAX);
	CHECK_IS(tern_claim_shorten(t[0], claimed, len), 0);
	CHECK_IS(tern_commit(t[0], claimed, KNOW), 0);
	CHECK_IS(tern_wait(t[0], &told, 1), 0);
	return wire_bytes;
}

TEST(of_a_shortened_claim_only_what_is_left_travels)
{
	far_use(NULL);
	tern *t[2];
	REQUIRE(tern_open_local(2, t) == 0);
	for (int i = 0; i < 2; i++) {
		CHECK_IS(tern_on(t[i], TELL, tell), 0);
		CHECK_IS(tern_on(t[i], KNOW, reply_shortened), 0);
		struct wire *w = net_of(t[i])->wire;
		counting = *w->ops;
		wire_send = counting.send;
		counting.send = send_and_count;
	}
	const struct wire_ops *plain = net_of(t[0])->wire->ops;
	net_of(t[0])->wire->ops = net_of(t[1])->wire->ops = &counting;
	size_t whole = bytes_of_claim(t, TERN_PAYLOAD_MAX), some = bytes_of_claim(t, 100);
	size_t none = bytes_of_claim(t, 0);
	CHECK(whole >= 2 * TERN_PAYLOAD_MAX);
	CHECK(some >= 200 && some < 2000);
	CHECK(none < some);
	net_of(t[0])->wire->ops = net_of(t[1])->wire->ops = plain;
	CHECK_IS(tern_close(t[0]), 0);
	CHECK_IS(tern_close(t[1]), 0);
}

TEST(a_poll_handles_what_has_come_also_after_a_rank_has_left)
{
	far_use(NULL);
	tern *t[3];
	REQUIRE(tern_open_local(3, t) == 0);
	for (int i = 0; i < 3; i++)
		CHECK_IS(tern_on(t[i], TELL, tell), 0);
	CHECK_IS(tern_request(t[2], 1, TELL), 0);
	CHECK_IS(tern_wait(t[1], &told, 1), 0);
	CHECK_IS(tern_close(t[2]), 0);
	for (int i = 0; i < 200; i++)
		poll_both(t);
	for (int i = 0; i < 5; i++) {
		CHECK_IS(tern_request(t[0], 1, TELL), 0);
		CHECK_IS(tern_poll(t[1]), 1);
		tern_poll(t[0]);
	}
	CHECK_IS(tern_close(t[0]), 0);
	CHECK_IS(tern_close(t[1]), 0);
}

/* -- Patience ------------------------------------------------------------------------------- */

/*
 * How long rank 0 waits before it sends the next time, after many in vain, on a way of that length.
 */
static uint64_t patience(tern *t, uint64_t round_trip)
{
	struct path *p = net_of(t)->path[1];
	p->transit.pace.smooth = round_trip;
	p->transit.pace.spread = 0;
	p->transit.tries = 5;
	p->transit.timer = 1;
	path_wake(p, 1);
	CHECK_IS(tern_poll(t), 0);
	return p->transit.timer - net_of(t)->now;
}

TEST(losses_in_a_row_do_not_make_a_sender_wait_for_seconds)
{
	far_use(NULL);
	tern *t[2];
	REQUIRE(tern_open_local(2, t) == 0);
	for (int i = 0; i < 2; i++)
		CHECK_IS(tern_on(t[i], TELL, tell), 0);
	CHECK_IS(tern_request(t[0], 1, TELL), 0);
	CHECK(patience(t[0], 100000) > 10000000);
	CHECK_IS(patience(t[0], 100000000), 400000000);
	CHECK_IS(patience(t[0], 1000000000), 2000000000); /* unless the way itself is that long */
	CHECK_IS(tern_close(t[1]), 0);
	CHECK_IS(tern_close(t[0]), 0);
}

/* -- Ranks that die ------------------------------------------------------------------------ */

enum { VICTIM = 1, RANKS = 3 };

static void wait_for_the_dead(void)
{
	tern *t = ranks_open();
	CHECK_IS(tern_on(t, TELL, tell), 0);
	CHECK_IS(tern_on(t, KNOW, know), 0);
	CHECK_IS(tern_barrier(t), 0);
	if (tern_rank(t) == VICTIM)
		raise(SIGKILL);
	int rc = tern_wait(t, &told, 1);
	CHECK_IS(rc, -EOWNERDEAD);
	CHECK(strstr(tern_strerror(rc), "rank 1") != NULL);
	CHECK_IS(tern_request(t, VICTIM, TELL), -EOWNERDEAD);
	CHECK_IS(tern_forgive(t, VICTIM), 0);
	CHECK_IS(tern_request(t, 2 - tern_rank(t), KNOW), 0); /* the others go on */
	CHECK_IS(tern_wait(t, &known, 1), 0);
	CHECK_IS(tern_close(t), 0);
}

TEST(a_rank_that_dies_is_named_and_the_others_go_on)
{
	far_use(NULL);
	ranks_start(RANKS, 0, wait_for_the_dead);
	CHECK_IS(ranks_reap(RANKS, 0), 1);
	ranks_end();
}

/* Long enough for packets to be sent again and again. */
enum { STOPPED_US = 1500000 };

static void wait_for_the_silent(void)
{
	tern *t = ranks_open();
	CHECK_IS(tern_on(t, TELL, tell), 0);
	CHECK_IS(tern_on(t, KNOW, know), 0);
	CHECK_IS(tern_barrier(t), 0);
	if (tern_rank(t) == VICTIM)
		raise(SIGSTOP);
	CHECK_IS(tern_request(t, VICTIM, TELL), 0);
	CHECK_IS(tern_barrier(t), 0);
	CHECK_IS(tern_close(t), 0);
}

TEST(a_rank_that_is_silent_is_not_taken_for_dead)
{
	far_use(NULL);
	setenv("TERN_GRACE", "100", 1);
	ranks_start(RANKS, 0, wait_for_the_silent);
	int status;
	REQUIRE(waitpid(ranks_pid[VICTIM], &status, WUNTRACED) == ranks_pid[VICTIM] &&
		WIFSTOPPED(status));
	usleep(STOPPED_US);
	kill(ranks_pid[VICTIM], SIGCONT);
	CHECK_IS(ranks_reap(RANKS, 0), 0);
	ranks_end();
}

/* Nobody waits for what it has sent, so last tokens are lost; but whoever left had passed. */
static void pass_and_leave(void)
{
	tern *t = ranks_open();
	CHECK_IS(tern_barrier(t), 0);
	CHECK_IS(tern_close(t), 0);
}

TEST(a_barrier_ends_though_the_last_token_of_a_rank_that_left_is_lost)
{
	far_use(NULL);
	setenv("TERN_GRACE", "1", 1);
	for (int i = 0; i < 10; i++) {
		char fault[40];
		snprintf(fault, sizeof fault, "drop=0.5,seed=%d", i + 1);
		setenv("TERN_FAULT", fault, 1);
		ranks_run(RANKS, pass_and_leave);
	}
}

/* -- What is counted ------------------------------------------------------------------------- */

static void tell_back(tern *t, const tern_msg *m)
{
	CHECK_IS(tern_reply(t, m, KNOW), 0);
}

enum { LOSSY_TRIPS = 200 };

static void ask_over_a_bad_link(void)
{
	tern *t = ranks_open();
	CHECK_IS(tern_on(t, TELL, tell_back), 0);
	CHECK_IS(tern_on(t, KNOW, know), 0);
	for (int i = 0; i < LOSSY_TRIPS; i++) {
		CHECK_IS(tern_request(t, 1 - tern_rank(t), TELL), 0);
		CHECK_IS(tern_wait(t, &known, 1), 0);
	}
	CHECK_IS(tern_barrier(t), 0);
	tern_stats_net_data d = stats_of(t);
	CHECK(d.sent >= LOSSY_TRIPS && d.received >= LOSSY_TRIPS);
	CHECK(d.again > 0 && d.again < d.sent);
	CHECK_IS(d.malformed + d.foreign + d.old + d.forged, 0);
	CHECK_IS(tern_close(t), 0);
}

TEST(what_is_lost_is_counted_as_sent_again)
{
	far_use(NULL);
	setenv("TERN_FAULT", "drop=0.3,seed=7", 1);
	ranks_run(2, ask_over_a_bad_link);
	unsetenv("TERN_FAULT");
}

/* -- Strangers ------------------------------------------------------------------------------ */

static void send_to(tern *t, const void *bytes, size_t len)
{
	struct card card;
	CHECK(card_read(&t->own->group->job, tern_rank(t), &card, sizeof card));
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = card.address.sin6_port,
				  .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int fd = socket(AF_INET, SOCK_DGRAM, 0);
	sendto(fd, bytes, len, 0, (struct sockaddr *)(void *)&to, sizeof to);
	close(fd);
}

TEST(what_strangers_send_is_counted_and_dropped)
{
	far_use(NULL);
	struct chance c = { check_seed() };
	tern *t[2];
	REQUIRE(tern_open_local(2, t) == 0);
	CHECK_IS(tern_on(t[0], TELL, tell), 0);
	CHECK_IS(tern_on(t[1], TELL, tell), 0);
	for (unsigned i = 0; i < check_scaled(2000); i++) {
		unsigned char bytes[200];
		for (unsigned k = 0; k < sizeof bytes; k++)
			bytes[k] = (unsigned char)chance_next(&c);
		if (chance_one_in(&c,
				  2)) { /* looks like one of ours, but for what only ranks know */
			bytes[0] = 0x21;
			bytes[1] = 7;
			bytes[2] = 1;
			bytes[3] = 0;
		}
		send_to(t[0], bytes, 2 + chance_below(&c, sizeof bytes - 2));
		CHECK_IS(tern_poll(t[0]), 0);
		CHECK_IS(tern_poll(t[0]), 0);
	}
	tern_stats_net_data n = stats_of(t[0]);
	CHECK_IS(n.received, 0);
	CHECK(n.malformed && n.foreign && n.old);
	CHECK_IS(n.malformed + n.foreign + n.old + n.forged, check_scaled(2000));
	CHECK_IS(tern_request(t[1], 0, TELL), 0); /* and nobody was disturbed */
	CHECK_IS(tern_wait(t[0], &told, 1), 0);
	CHECK_IS(tern_close(t[0]), 0);
	CHECK_IS(tern_close(t[1]), 0);
}

/* -- Damaged datagrams ------------------------------------------------------------------------ */

static uint64_t ask_often(tern *t, const uint64_t word[TERN_WORDS_MAX], void *arg)
{
	(void)arg;
	(void)word;
	for (int i = 0; i < 50; i++) {
		CHECK_IS(tern_request(t, 1 - tern_rank(t), TELL), 0);
		CHECK_IS(tern_wait(t, &known, 1), 0);
	}
	tern_signal(t, &told, 1);
	return 0;
}

static void threads_ask(void)
{
	tern *t = ranks_open();
	CHECK_IS(tern_on(t, TELL, tell_back), 0);
	CHECK_IS(tern_on(t, KNOW, know), 0);
	CHECK_IS(tern_thread_on(t, 0, ask_often, NULL), 0);
	CHECK_IS(tern_barrier(t), 0);
	CHECK_IS(tern_spawn(t, tern_rank(t), 0, NULL, NULL), 0);
	CHECK_IS(tern_wait(t, &told, 1), 0);
	CHECK_IS(tern_barrier(t), 0);
	CHECK_IS(tern_close(t), 0);
}

/* Theirs is small. */
TEST(damaging_what_a_thread_sends_fits_its_stack)
{
	far_use(NULL);
	setenv("TERN_STACK", "48K", 1);
	setenv("TERN_FAULT", "corrupt=0.3,truncate=0.3,seed=1", 1);
	ranks_run(2, threads_ask);
}

/* -- Settings ------------------------------------------------------------------------------- */

static void refused(const char *name, const char *value)
{
	tern *t;
	setenv(name, value, 1);
	int rc = tern_open_local(1, &t);
	CHECK_IS(rc, -EINVAL);
	CHECK(strstr(tern_strerror(rc), name) != NULL);
	unsetenv(name);
}

TEST(settings_that_cannot_be_understood_are_refused_by_name)
{
	far_use(NULL);
	refused("TERN_SERVICE", "order,flaw");
	refused("TERN_FLOW", "luck");
	refused("TERN_FAULT", "drop=2");
	refused("TERN_FAULT", "dorp=0.1");
	refused("TERN_FAULT", "drop=0.1;reorder=0.1");
	refused("TERN_PROTECT", "maybe");
	refused("TERN_UDP_BIND", "localhost");
	refused("TERN_NET", "carrier-pigeon");
	refused("TERN_NET", "udp,shm");
	refused("TERN_STATS", "9");
}

TEST(damage_that_nobody_would_notice_is_refused)
{
	far_use(NULL);
	setenv("TERN_PROTECT", "none", 1);
	refused("TERN_FAULT", "corrupt=0.2");
	refused("TERN_FAULT", "drop=0.1,truncate=0.2");
}

TEST(an_address_that_this_machine_has_not_is_refused_with_what_to_do)
{
	tern *t;
	far_use(NULL);
	setenv("TERN_UDP_BIND", "203.0.113.8", 1);
	int rc = tern_open_local(1, &t);
	CHECK_IS(rc, -EADDRNOTAVAIL);
	CHECK(strstr(tern_strerror(rc), "203.0.113.8") && strstr(tern_strerror(rc), "10.1.0.0/16"));
}
