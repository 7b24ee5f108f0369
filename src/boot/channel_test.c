/* SPDX-License-Identifier: BSD-3-Clause */
/* Streams between heralds: what is believed, and what is not. */
#include "boot/channel.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "../../tests/chance.h"
#include "../../tests/check.h"

enum { CALLER = 3, CALLED = 1, MANY = 500 };

static struct job job;
static struct sockaddr_in6 address;
static int listener;
static struct channel caller, called;

static void job_open(void)
{
	char why[200];
	if (!channel_usable(why, sizeof why))
		check_skip(why);
	REQUIRE(job_create(&job, 4, 0) == 0);
	address = (struct sockaddr_in6){ .sin6_family = AF_INET };
	((struct sockaddr_in *)(void *)&address)->sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	listener = channel_listen(&address);
	REQUIRE(listener >= 0);
}

static void job_close(void)
{
	channel_close(&caller);
	channel_close(&called);
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
static void channels_open(void)
{
	job_open();
	REQUIRE(channel_call(&caller, &address, &job, CALLER, 30) == 0);
	wait_for(listener);
	REQUIRE(channel_accept(&called, listener, &job, CALLED, 30) == 0);
}

static void said(struct channel *c, uint32_t rank, uint32_t serial)
{
	struct bulletin b = { .rank = rank, .serial = serial };
	chance_fill((unsigned char *)b.card, sizeof b.card, serial);
	CHECK_IS(channel_send(c, &b), 0);
}

/* What the other hears next; 0 and the errno that ended it. */
static uint32_t heard(struct channel *from, struct channel *to, int *rc)
{
	struct bulletin b;
	for (int i = 0; i < 1000; i++) {
		channel_flush(from);
		channel_flush(to);
		struct bulletin back;
		channel_receive(from, &back); /* the greeting; nothing else comes that way here */
		*rc = channel_receive(to, &b);
		if (*rc < 0)
			return 0;
		if (*rc) {
			CHECK(chance_filled((unsigned char *)b.card, sizeof b.card, b.serial));
			return b.serial;
		}
		usleep(1000);
	}
	return 0;
}

TEST(bulletins_come_whole_and_in_order_in_both_directions)
{
	int rc;
	channels_open();
	for (uint32_t i = 1; i <= MANY; i++) /* before anybody has greeted */
		said(&caller, 2, i);
	for (uint32_t i = 1; i <= MANY; i++)
		CHECK_IS(heard(&caller, &called, &rc), i);
	CHECK_IS(called.peer, CALLER);
	CHECK_IS(caller.peer, CALLED);
	for (uint32_t i = 1; i <= MANY; i++)
		said(&called, 0, i);
	for (uint32_t i = 1; i <= MANY; i++)
		CHECK_IS(heard(&called, &caller, &rc), i);
	job_close();
}

TEST(the_end_of_the_other_is_noticed_behind_its_last_word)
{
	int rc;
	channels_open();
	said(&caller, 2, 7);
	CHECK_IS(heard(&caller, &called, &rc), 7);
	said(&caller, 2, 8);
	channel_flush(&caller);
	channel_close(&caller);
	caller.fd = -1;
	struct bulletin b;
	wait_for(called.fd);
	CHECK_IS(channel_receive(&called, &b), 1);
	CHECK_IS(b.serial, 8);
	usleep(10000);
	CHECK_IS(channel_receive(&called, &b), -ECONNRESET);
	job_close();
}

TEST(whoever_has_another_key_is_not_believed)
{
	int rc;
	struct job other;
	job_open();
	REQUIRE(job_create(&other, 4, 0) == 0);
	REQUIRE(channel_call(&caller, &address, &other, CALLER, 30) == 0);
	wait_for(listener);
	REQUIRE(channel_accept(&called, listener, &job, CALLED, 30) == 0);
	said(&caller, 2, 1);
	CHECK_IS(heard(&caller, &called, &rc), 0);
	CHECK_IS(rc, -EPROTO);
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
	REQUIRE(channel_accept(&called, listener, &job, CALLED, 30) == 0);
	return fd;
}

static int bare_says(const void *bytes, size_t len)
{
	struct bulletin b;
	int fd = bare_call(), rc = 0;
	CHECK_IS(write(fd, bytes, len), (ssize_t)len);
	for (int i = 0; i < 100 && rc == 0; i++) {
		channel_flush(&called);
		rc = channel_receive(&called, &b);
		usleep(200);
	}
	close(fd);
	channel_close(&called);
	return rc;
}

TEST(whatever_bytes_a_stranger_sends_nothing_of_them_is_believed)
{
	struct chance c = { check_seed() };
	unsigned char bytes[sizeof(struct greeting) + 2 * sizeof(struct sealed)];
	job_open();
	caller.fd = -1;
	for (int round = 0; round < 60; round++) {
		chance_fill(bytes, sizeof bytes, chance_next(&c));
		if (round % 2) /* a greeting that is one */
			memcpy(bytes, &(struct greeting){ .version = 1, .rank = CALLER },
			       sizeof(struct greeting));
		CHECK_IS(bare_says(bytes, sizeof bytes), -EPROTO);
	}
	job_close();
}

/* A stream that was overheard is of no use in another connection, nor once more in the same. */
TEST(what_was_said_in_one_stream_cannot_be_said_again_in_another)
{
	struct channel overheard;
	unsigned char bytes[sizeof(struct greeting) + sizeof(struct sealed)];
	int rc;
	channels_open();
	said(&caller, 2, 1);
	CHECK_IS(heard(&caller, &called, &rc), 1);
	overheard = caller;
	memcpy(bytes, &overheard.mine, sizeof overheard.mine);
	memcpy(bytes + sizeof overheard.mine, overheard.out, sizeof(struct sealed));
	CHECK_IS(send(caller.fd, overheard.out, sizeof(struct sealed), 0), (ssize_t)sizeof(struct sealed));
	CHECK_IS(heard(&caller, &called, &rc), 0);
	CHECK_IS(rc, -EPROTO);
	channel_close(&called);
	CHECK_IS(bare_says(bytes, sizeof bytes), -EPROTO);
	job_close();
}
