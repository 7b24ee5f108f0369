/* SPDX-License-Identifier: BSD-3-Clause */
/* Connections between machines: what is believed, and what is not. */
#include "boot/link/connection.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/stamp.h"
#include "lib/chance.h"
#include "lib/left.h"

enum { CALLER = 3, CALLED = 1, MANY = 500 };

static struct job job, theirs;
static struct job_head theirs_head;
static struct sockaddr_in6 address;
static int listener;
static struct connection caller, called;

static void job_open(void)
{
	char why[200];
	if (!seal_usable(why, sizeof why))
		check_skip(why);
	REQUIRE(job_create(&job, 4, 0) == 0);
	job.head->machine = CALLED;
	theirs = job; /* the same job on another machine, as far as a connection can tell */
	theirs.head = &theirs_head;
	theirs_head = *job.head;
	theirs_head.machine = CALLER;
	address = (struct sockaddr_in6){ .sin6_family = AF_INET };
	((struct sockaddr_in *)(void *)&address)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	listener = connection_listen(&address);
	REQUIRE(listener >= 0);
}

static void job_close(void)
{
	connection_close(&caller);
	connection_close(&called);
	close(listener);
	job_unmap(&job);
	job_forget(&job);
}

static void wait_for(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	CHECK_IS(poll(&p, 1, 5000), 1);
}

/* Both sides, connected. */
static void connections_open(void)
{
	job_open();
	REQUIRE(connection_call(&caller, &address, &theirs, 30) == 0);
	wait_for(listener);
	REQUIRE(connection_accept(&called, listener, &job, 30) == 0);
}

/* Lets both ends do what they can; what `to` has heard, or 0, and the errno that ended it. */
static uint32_t turn(struct connection *from, struct connection *to, int *rc)
{
	struct rank_status b, back;
	connection_flush(from);
	connection_flush(to);
	connection_receive(from, &back); /* the greeting; nothing else comes that way here */
	*rc = connection_receive(to, &b);
	if (*rc <= 0)
		return 0;
	CHECK(chance_filled((unsigned char *)b.card, sizeof b.card, b.serial));
	return b.serial;
}

/* Says one thing, and what the other hears next; 0 and the errno that ended it. */
static uint32_t passes(struct connection *from, struct connection *to, uint32_t serial, int *rc)
{
	struct rank_status b = { .rank = 2, .serial = serial };
	uint32_t heard = 0;
	chance_fill((unsigned char *)b.card, sizeof b.card, serial);
	*rc = 0;
	for (int i = 0; i < 5000 && !connection_room(from) && *rc >= 0; i++, usleep(1000))
		CHECK_IS(turn(from, to, rc), 0);
	if (*rc < 0)
		return 0;
	connection_send(from, &b);
	for (int i = 0; i < 5000 && !heard && *rc >= 0; i++) {
		heard = turn(from, to, rc);
		if (!heard)
			usleep(1000);
	}
	return heard;
}

TEST(status_records_come_whole_and_in_order_in_both_directions)
{
	int rc;
	connections_open();
	CHECK(!connection_room(&caller)); /* before anybody has greeted */
	for (uint32_t i = 1; i <= MANY; i++)
		CHECK_IS(passes(&caller, &called, i, &rc), i);
	CHECK_IS(called.peer, CALLER);
	CHECK_IS(caller.peer, CALLED);
	for (uint32_t i = 1; i <= MANY; i++)
		CHECK_IS(passes(&called, &caller, i, &rc), i);
	job_close();
}

TEST(the_end_of_the_other_is_noticed_behind_its_last_word)
{
	int rc;
	struct rank_status b = { .serial = 8 };
	connections_open();
	CHECK_IS(passes(&caller, &called, 7, &rc), 7);
	connection_send(&caller, &b);
	connection_flush(&caller);
	connection_close(&caller);
	wait_for(called.fd);
	CHECK_IS(connection_receive(&called, &b), 1);
	CHECK_IS(b.serial, 8);
	usleep(10000);
	CHECK_IS(connection_receive(&called, &b), -ECONNRESET);
	job_close();
}

TEST(whoever_has_another_key_is_not_believed)
{
	int rc;
	struct job other;
	job_open();
	REQUIRE(job_create(&other, 4, 0) == 0);
	REQUIRE(connection_call(&caller, &address, &other, 30) == 0);
	wait_for(listener);
	REQUIRE(connection_accept(&called, listener, &job, 30) == 0);
	CHECK_IS(passes(&caller, &called, 1, &rc), 0);
	CHECK_IS(rc, -EPROTO);
	CHECK_IS(called.received, 0);
	job_unmap(&other);
	job_forget(&other);
	job_close();
}

/* The caller is played by a socket, so that its bytes can be changed. */
static int bare_call(void)
{
	int fd = socket(AF_INET, SOCK_STREAM, 0);
	REQUIRE(connect(fd, (struct sockaddr *)(void *)&address, sizeof(struct sockaddr_in)) == 0);
	wait_for(listener);
	REQUIRE(connection_accept(&called, listener, &job, 30) == 0);
	return fd;
}

static int bare_says(const void *bytes, size_t len)
{
	struct rank_status b;
	int fd = bare_call(), rc = 0;
	CHECK_IS(write(fd, bytes, len), (ssize_t)len);
	for (int i = 0; i < 100 && rc == 0; i++) {
		connection_flush(&called);
		rc = connection_receive(&called, &b);
		usleep(200);
	}
	close(fd);
	connection_close(&called);
	return rc;
}

/* A greeting that is one, as it goes over the wire. */
static size_t greeting_write(unsigned char *to, const struct greeting *g)
{
	const uint32_t head[2] = { FRAME_GREETING, sizeof *g };
	memcpy(to, head, sizeof head);
	memcpy(to + sizeof head, g, sizeof *g);
	return sizeof head + sizeof *g;
}

enum { GREETING = 8 + sizeof(struct greeting), SEALED = 8 + sizeof(struct rank_status) + SEAL_TAG };

TEST(whatever_bytes_a_stranger_sends_nothing_of_them_is_believed)
{
	struct chance c = { check_seed() };
	unsigned char bytes[GREETING + 2 * SEALED];
	job_open();
	caller.fd = -1;
	for (int round = 0; round < 60; round++) {
		const uint32_t head[2] = { FRAME_RANK_STATUS, sizeof(struct rank_status) };
		chance_fill(bytes, sizeof bytes, chance_next(&c));
		if (round % 2)
			greeting_write(bytes, &(struct greeting){ .stamp = build_stamp,
								  .machine = CALLER });
		if (round % 4 == 1) /* and a frame whose tag alone is wrong */
			memcpy(bytes + GREETING, head, sizeof head);
		CHECK_IS(bare_says(bytes, sizeof bytes), -EPROTO);
	}
	job_close();
}

/* What is no frame of a link's is not waited for, and a long one takes no memory. */
TEST(a_frame_that_links_do_not_send_ends_the_connection)
{
	unsigned char bytes[GREETING + 8];
	job_open();
	caller.fd = -1;
	greeting_write(bytes, &(struct greeting){ .stamp = build_stamp + 1, .machine = CALLER });
	CHECK_IS(bare_says(bytes, GREETING), -EPROTO); /* of another version */
	memcpy(bytes, (const uint32_t[]){ FRAME_ORDER, 0 }, 8);
	CHECK_IS(bare_says(bytes, 8), -EPROTO);
	memcpy(bytes, (const uint32_t[]){ FRAME_GREETING, sizeof(struct rank_status) + 1 }, 8);
	CHECK_IS(bare_says(bytes, 8), -EPROTO);
	job_close();
}

/* A stream that was overheard is of no use in another connection, nor once more in the same. */
TEST(what_was_said_in_one_stream_cannot_be_said_again_in_another)
{
	unsigned char bytes[GREETING + SEALED];
	int rc;
	connections_open();
	CHECK_IS(passes(&caller, &called, 1, &rc), 1);
	greeting_write(bytes, &caller.mine);
	/* What was written last lies in the wire until the next frame is. */
	CHECK_IS(caller.wire.out.len, SEALED);
	memcpy(bytes + GREETING, caller.wire.out.bytes, SEALED);
	CHECK_IS(send(caller.fd, bytes + GREETING, SEALED, 0), SEALED);
	wait_for(called.fd);
	CHECK_IS(turn(&caller, &called, &rc), 0);
	CHECK_IS(rc, -EPROTO);
	connection_close(&called);
	CHECK_IS(bare_says(bytes, sizeof bytes), -EPROTO);
	job_close();
}

static int option(int level, int name)
{
	int value = -1;
	socklen_t len = sizeof value;
	CHECK_IS(getsockopt(called.fd, level, name, &value, &len), 0);
	return value;
}

/* Three questions of the kernel's within the time, and no word that is not taken for longer. */
TEST(the_kernel_asks_whether_the_other_machine_is_there_as_often_as_it_may_be_silent)
{
	static const struct {
		uint64_t silence;
		int asks, third, ms;
	} rows[] = { { 30, 1, 10, 30000 }, { 2, 1, 1, 2000 }, { 0, 0, 0, 0 } };
	job_open();
	for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
		REQUIRE(connection_call(&caller, &address, &theirs, 0) == 0);
		wait_for(listener);
		REQUIRE(connection_accept(&called, listener, &job, rows[i].silence) == 0);
		CHECK(option(IPPROTO_TCP, TCP_NODELAY));
		CHECK_IS(option(SOL_SOCKET, SO_KEEPALIVE), rows[i].asks);
		CHECK_IS(option(IPPROTO_TCP, TCP_USER_TIMEOUT), rows[i].ms);
		if (rows[i].asks) {
			CHECK_IS(option(IPPROTO_TCP, TCP_KEEPIDLE), rows[i].third);
			CHECK_IS(option(IPPROTO_TCP, TCP_KEEPINTVL), rows[i].third);
			CHECK_IS(option(IPPROTO_TCP, TCP_KEEPCNT), 3);
		}
		connection_close(&called);
		connection_close(&caller);
	}
	job_close();
}

TEST(a_socket_that_cannot_be_had_is_an_error_and_leaves_nothing)
{
	struct sockaddr_in6 there;
	struct left before;
	job_open();
	caller.fd = called.fd = -1;
	there = address;
	((struct sockaddr_in *)(void *)&there)->sin_addr.s_addr = htonl(0xc0000201); /* no host's */
	left_before(&before);
	CHECK_IS(connection_listen(&there), -EADDRNOTAVAIL);
	there.sin6_family = AF_UNSPEC;
	CHECK(connection_listen(&there) < 0);
	there.sin6_family = AF_INET; /* nobody calls everybody */
	((struct sockaddr_in *)(void *)&there)->sin_addr.s_addr = htonl(INADDR_BROADCAST);
	CHECK(connection_call(&caller, &there, &theirs, 30) < 0);
	CHECK_IS(caller.fd, -1);
	CHECK_IS(connection_accept(&called, listener, &job, 30), -EAGAIN);
	left_nothing_since(&before);
	job_close();
}
