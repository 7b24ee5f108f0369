/* SPDX-License-Identifier: BSD-3-Clause */
/* The wire of UDP by itself: datagrams of any lengths between three sockets of this process. */
#include "net/udp/socket.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <tern/tern.h>

#include "base/chance.h"
#include "job/exchange.h"
#include "lib/check.h"
#include "net/packet/packet.h"
#include "net/packet/service.h"

enum { RANKS = 3, MTU = 1500, IP4_UDP = 28 };

static struct job job;
static struct wire *wire[RANKS];
static struct card card[RANKS];

/* -- A network of this test alone ------------------------------------------------------------- */

static void loopback_set(int mtu)
{
	struct ifreq r = { .ifr_name = "lo" };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	REQUIRE(fd >= 0);
	r.ifr_mtu = mtu;
	REQUIRE(ioctl(fd, SIOCSIFMTU, &r) == 0);
	r.ifr_flags = IFF_UP | IFF_RUNNING | IFF_LOOPBACK;
	REQUIRE(ioctl(fd, SIOCSIFFLAGS, &r) == 0);
	close(fd);
}

static void own_network(void)
{
	if (unshare(CLONE_NEWNET) != 0 && unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
		check_skip("this process may not have a network of its own");
}

static void wires_open(void)
{
	REQUIRE(job_create(&job, RANKS, 0) == 0);
	for (uint32_t r = 0; r < RANKS; r++) {
		int rc = socket_open(&wire[r], &job, RANKS, &card[r].address);
		if (rc)
			printf("    %s\n", tern_strerror(rc));
		REQUIRE(rc == 0);
		for (uint32_t to = 0; r == 0 && to < RANKS; to++)
			CHECK_IS(wire[0]->ops->most(wire[0], to), 0); /* it has no card yet */
	}
	for (uint32_t r = 0; r < RANKS; r++)
		card_publish(&job, r, &card[r], sizeof card[r]);
}

static void wires_close(void)
{
	for (uint32_t r = 0; r < RANKS; r++)
		wire[r]->ops->close(wire[r]);
	job_unmap(&job);
	job_forget(&job);
}

/* -- Datagrams -------------------------------------------------------------------------------- */

static unsigned char sent[PACKET_BATCH][DATAGRAM_MAX];
static size_t sent_len[PACKET_BATCH];

/* Each to its rank, in one call; a long one in several parts. */
static void send_all(const uint32_t *to, unsigned n)
{
	static struct iovec part[PACKET_BATCH][3];
	struct outgoing o[PACKET_BATCH];
	for (unsigned i = 0; i < n; i++) {
		size_t len = sent_len[i], third = len / 3;
		bool whole = len % 2;
		for (size_t b = 0; b < len; b++)
			sent[i][b] = (unsigned char)(b * 7 + i * 31 + 1);
		part[i][0] = (struct iovec){ sent[i], whole ? len : third };
		part[i][1] = (struct iovec){ sent[i] + third, third };
		part[i][2] = (struct iovec){ sent[i] + 2 * third, len - 2 * third };
		o[i] = (struct outgoing){ .rank = to[i], .part = part[i], .parts = whole ? 1 : 3 };
	}
	wire[0]->ops->send(wire[0], o, n);
}

/* Takes the datagrams that were sent to `rank`, in their order. */
static void check_received(uint32_t rank, const uint32_t *to, unsigned n)
{
	struct wire *w = wire[rank];
	struct datagram d[PACKET_BATCH];
	for (unsigned i = 0; i < n;) {
		struct pollfd p = { .fd = w->ops->descriptor(w), .events = POLLIN };
		if (to[i] != rank) {
			i++;
			continue;
		}
		if (w->ops->due(w) == DUE_NEVER)
			REQUIRE(poll(&p, 1, 20000) == 1);
		unsigned got = w->ops->receive(w, d, 5);
		CHECK(got <= 5);
		for (unsigned k = 0; k < got; i++) {
			REQUIRE(i < n);
			if (to[i] != rank)
				continue;
			CHECK_IS(d[k].len, sent_len[i]);
			CHECK(memcmp(d[k].bytes, sent[i], sent_len[i]) == 0);
			k++;
		}
	}
	CHECK_IS(w->ops->receive(w, d, PACKET_BATCH), 0);
	CHECK_IS(w->ops->due(w), DUE_NEVER);
}

static void check_batches(size_t most)
{
	struct chance c = { .state = check_seed() };
	size_t usual[] = { 1, 100, most / 2, most - 1, most };
	for (unsigned round = 0; round < 300; round++) {
		uint32_t to[PACKET_BATCH];
		unsigned n = 1 + chance_below(&c, PACKET_BATCH), alike = chance_below(&c, 2);
		size_t len = usual[chance_below(&c, 5)];
		n = len * n > 400000 ? 400000 / (unsigned)len : n; /* what a socket has room for */
		for (unsigned i = 0; i < n; i++) {
			bool other = !alike && chance_below(&c, 4) == 0;
			sent_len[i] = other ? 1 + chance_below(&c, (uint32_t)len) : len;
			to[i] = round % 3 ? 1 : 1 + chance_below(&c, 2);
		}
		send_all(to, n);
		check_received(1, to, n);
		check_received(2, to, n);
	}
}

TEST(each_datagram_of_a_batch_arrives_whole_and_in_order)
{
	wires_open();
	CHECK_IS(wire[0]->ops->most(wire[0], 1), DATAGRAM_MAX);
	CHECK_IS(wire[0]->ops->most(wire[0], 2), DATAGRAM_MAX);
	check_batches(DATAGRAM_MAX);
	wires_close();
}

/* A program may have closed its standard input: then a socket gets its number. */
TEST(the_sockets_of_peers_are_closed_with_the_wire_whichever_numbers_they_have)
{
	REQUIRE(dup2(STDERR_FILENO, STDIN_FILENO) == STDIN_FILENO);
	wires_open();
	close(STDIN_FILENO);
	CHECK(wire[0]->ops->most(wire[0], 1) > 0);
	CHECK(wire[0]->ops->most(wire[0], 2) > 0);
	CHECK(fcntl(STDIN_FILENO, F_GETFD) >= 0);
	wires_close();
	CHECK_IS(fcntl(STDIN_FILENO, F_GETFD), -1);
}

TEST(datagrams_that_the_kernel_cuts_and_joins_arrive_as_they_were_sent)
{
	own_network();
	loopback_set(MTU);
	wires_open();
	for (uint32_t r = 0; r < RANKS; r++)
		for (uint32_t to = 0; to < RANKS; to++)
			CHECK_IS(wire[r]->ops->most(wire[r], to), MTU - IP4_UDP);
	check_batches(MTU - IP4_UDP);
	wires_close();
}

TEST(what_may_be_sent_follows_a_way_that_gets_narrow)
{
	own_network();
	loopback_set(MTU);
	wires_open();
	size_t most = wire[0]->ops->most(wire[0], 1);
	CHECK_IS(wire[0]->ops->narrow(wire[0], 1, most, false), most);
	loopback_set(1400);
	CHECK_IS(wire[0]->ops->narrow(wire[0], 1, most, true), 1400 - IP4_UDP);
	CHECK_IS(wire[0]->ops->narrow(wire[0], 1, 1000, false), 1000);
	CHECK_IS(wire[0]->ops->narrow(wire[0], 2, most, false), most); /* nobody knows that way */
	CHECK_IS(wire[0]->ops->most(wire[0], 2), 1400 - IP4_UDP);
	check_batches(1400 - IP4_UDP);
	wires_close();
}

/* A datagram that stays is not written over, and others arrive meanwhile. */
TEST(a_datagram_that_is_kept_stays_as_it_came_and_others_still_come)
{
	enum { KEPT = 20 };
	static struct block block[KEPT];
	struct datagram kept[KEPT], d;
	uint32_t to[PACKET_BATCH] = { 1 };
	unsigned pinned = 0;
	wires_open();
	CHECK(wire[0]->ops->most(wire[0], 1) > 0);
	for (unsigned i = 0; i < KEPT; i++) {
		struct pollfd p = { .fd = wire[1]->ops->descriptor(wire[1]), .events = POLLIN };
		sent_len[0] = 1001 + 2 * i;
		send_all(to, 1);
		CHECK_IS(poll(&p, 1, 20000), 1);
		REQUIRE(wire[1]->ops->receive(wire[1], &kept[i], 1) == 1);
		CHECK_IS(kept[i].len, 1001 + 2 * i);
		kept[i].bytes[0] = (unsigned char)i;
		if (!kept[i].pinned)
			continue;
		block_set(&block[i], BLOCK_SENT);
		kept[i].pinned->block[kept[i].pinned->n++] = &block[i];
		pinned++;
		CHECK(kept[i].bytes >= (unsigned char *)wire[1]->pinnable &&
		      kept[i].bytes + kept[i].len <=
			      (unsigned char *)wire[1]->pinnable + wire[1]->pinnable_len);
	}
	CHECK_IS(pinned, KEPT); /* there are 32 */
	for (unsigned i = 0; i < KEPT; i++)
		CHECK_IS(kept[i].bytes[0], i);
	for (unsigned i = 0; i < KEPT; i++)
		block_set(&block[i], BLOCK_FREE);
	for (unsigned i = 0; i < 3; i++) { /* the first place is used again */
		struct pollfd p = { .fd = wire[1]->ops->descriptor(wire[1]), .events = POLLIN };
		send_all(to, 1);
		CHECK_IS(poll(&p, 1, 20000), 1);
		CHECK_IS(wire[1]->ops->receive(wire[1], &d, 1), 1);
	}
	wires_close();
}

TEST(what_could_not_be_sent_is_remembered_with_its_cause_and_its_address)
{
	struct failure f;
	char text[64];
	uint32_t to[PACKET_BATCH] = { 2, 2, 2 };
	wires_open();
	CHECK(wire[0]->ops->most(wire[0], 2) > 0);
	wire[0]->ops->failed(wire[0], 2, &f);
	CHECK_IS(f.error, 0);
	CHECK(f.first == 0 && f.last == 0);
	wire[2]->ops->close(wire[2]); /* its port is nobody's now */
	for (unsigned i = 0; i < 3; i++)
		sent_len[i] = 101;
	for (unsigned i = 0; i < 10; i++) {
		send_all(to, i % 2 ? 1 : 3);
		usleep(1000);
	}
	wire[0]->ops->failed(wire[0], 2, &f);
	CHECK_IS(f.error, ECONNREFUSED);
	CHECK(f.first && f.first < f.last);
	const struct sockaddr_in *a = (const struct sockaddr_in *)(const void *)&card[2].address;
	snprintf(text, sizeof text, "UDP address 127.0.0.1, port %u,", ntohs(a->sin_port));
	CHECK(strcmp(f.where, text) == 0);
	wire[0]->ops->failed(wire[0], 1, &f);
	CHECK_IS(f.error, 0); /* nothing went wrong on the way to another */
	REQUIRE(socket_open(&wire[2], &job, RANKS, &card[2].address) == 0);
	wires_close();
}

/* The way out refuses so many calls, with that errno. */
static int refusal;
static unsigned refusals, calls;

ssize_t sendmsg(int fd, const struct msghdr *m, int flags)
{
	calls++;
	if (calls > refusals)
		return syscall(SYS_sendmsg, fd, m, flags);
	errno = refusal;
	return -1;
}

TEST(what_finds_no_room_or_cannot_be_sent_is_lost_alone)
{
	enum { BATCH = 3, LONG = 33000 }; /* too long for two to go as one */
	static const struct {
		int error;
		unsigned refusals, come;
	} c[] = { { EAGAIN, 1, 2 }, { ENOBUFS, 2, 1 }, { EPERM, 3, 0 }, { 0, 0, 3 } };
	uint32_t to[] = { 1, 1, 1 };
	struct failure f;
	wires_open();
	CHECK(wire[0]->ops->most(wire[0], 1) > LONG);
	for (unsigned i = 0; i < BATCH; i++)
		sent_len[i] = LONG;
	for (unsigned i = 0; i < sizeof c / sizeof *c; i++) {
		refusal = c[i].error;
		refusals = c[i].refusals;
		calls = 0;
		send_all(to, BATCH);
		CHECK_IS(calls, BATCH);
		uint32_t come[BATCH] = { 0 }; /* the last of them */
		for (unsigned k = BATCH - c[i].come; k < BATCH; k++)
			come[k] = 1;
		check_received(1, come, BATCH);
		wire[0]->ops->failed(wire[0], 1, &f);
		CHECK(c[i].come == BATCH || f.error == c[i].error);
	}
	wires_close();
}

TEST(a_loopback_interface_that_is_down_is_named_with_what_to_do)
{
	own_network();
	int rc = socket_open(&wire[0], NULL, RANKS, &card[0].address);
	CHECK_IS(rc, -ENETDOWN);
	CHECK(strstr(tern_strerror(rc), "loopback interface is down"));
	CHECK(strstr(tern_strerror(rc), "TERN_NET=shm"));
	loopback_set(MTU);
	REQUIRE(socket_open(&wire[0], NULL, RANKS, &card[0].address) == 0);
	wire[0]->ops->close(wire[0]);
}

/* -- Warnings ------------------------------------------------------------------------------ */

static char warned[1000];

/* What is said of rank 1, on another machine, of a host. */
static void warning_of(const char *host, const char *address)
{
	static const uint32_t machine[RANKS] = { 0, 1, 0 };
	int pair[2], before = dup(STDERR_FILENO);
	struct sockaddr_in *a = (struct sockaddr_in *)(void *)&card[1].address;
	REQUIRE(pipe(pair) == 0 && before >= 0);
	REQUIRE(job_create(&job, RANKS, 0) == 0);
	job_spread(&job, machine, 0, 2);
	setenv("TERN_UDP_BIND", "127.0.0.1", 1);
	REQUIRE(socket_open(&wire[0], &job, RANKS, &card[0].address) == 0);
	card[1].address = card[0].address;
	REQUIRE(inet_pton(AF_INET, address, &a->sin_addr) == 1);
	snprintf(card[1].front.terms.host, sizeof card[1].front.terms.host, "%s", host);
	card_publish(&job, 1, &card[1], sizeof card[1]);
	dup2(pair[1], STDERR_FILENO);
	CHECK(wire[0]->ops->most(wire[0], 1) > 0);
	dup2(before, STDERR_FILENO);
	close(pair[1]);
	ssize_t n = read(pair[0], warned, sizeof warned - 1);
	warned[n > 0 ? n : 0] = '\0';
	close(pair[0]);
	close(before);
	wire[0]->ops->close(wire[0]);
	job_unmap(&job);
	job_forget(&job);
}

TEST(an_address_that_only_another_machine_reaches_is_warned_of)
{
	char here[64] = "";
	gethostname(here, sizeof here - 1);
	warning_of("elsewhere", "127.0.0.1");
	CHECK(strstr(warned, "rank 1 on elsewhere has the address 127.0.0.1") &&
	      strstr(warned, "TERN_UDP_BIND"));
	warning_of(here, "127.0.0.1"); /* processes of one host may stand for machines */
	CHECK_IS(warned[0], '\0');
	warning_of("elsewhere", "192.0.2.1");
	CHECK_IS(warned[0], '\0');
}
