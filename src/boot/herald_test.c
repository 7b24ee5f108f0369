/* SPDX-License-Identifier: BSD-3-Clause */
/* A herald among strangers, without a way, and without descriptors. Rank 0 is here; the test plays rank 1. */
#include "boot/herald.h"

#include <arpa/inet.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "../../tests/local.h"
#include "boot/channel.h"

enum { RANKS = 2, CROWD = 2 * RANKS + 16 };

static struct job job;
static struct sockaddr_in6 address[RANKS];
static int listener, theirs;

static void loopback(struct sockaddr_in6 *a, uint32_t host, uint16_t port)
{
	struct sockaddr_in *plain = (struct sockaddr_in *)(void *)a;
	*a = (struct sockaddr_in6){ 0 };
	*plain = (struct sockaddr_in){ .sin_family = AF_INET,
				       .sin_port = htons(port),
				       .sin_addr = { htonl(INADDR_LOOPBACK | host) } };
}

static void job_open(void)
{
	static const uint32_t machine[RANKS] = { 0, 1 };
	static const uint8_t key[JOB_KEY] = { 1 };
	char why[200];
	if (!channel_usable(why, sizeof why))
		check_skip(why);
	setenv("TERN_UDP_BIND", "127.0.0.1", 1);
	REQUIRE(job_create(&job, RANKS, 0) == 0);
	job_spread(&job, machine, 0, RANKS);
	job_identify(&job, 7, key);
	REQUIRE(herald_open(&listener, &address[0]) == 0);
	loopback(&address[1], 0, 0);
	theirs = channel_listen(&address[1]);
	REQUIRE(theirs >= 0);
}

static void job_begin(void)
{
	job_open();
	REQUIRE(herald_begin(&job, 0, listener, address) == 0);
}

static int stranger_calls(void)
{
	const struct timeval most = { .tv_sec = 10 };
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
	REQUIRE(connect(fd, (struct sockaddr *)(void *)&address[0], sizeof(struct sockaddr_in)) == 0);
	return fd;
}

/* Whether rank 0's herald greets rank 1's, which has called, within some seconds. */
static bool answered(struct channel *c)
{
	struct bulletin b;
	for (int i = 0; i < 1000 && !c->greeted; i++) {
		CHECK_IS(channel_flush(c), 0);
		CHECK(channel_receive(c, &b) >= 0);
		usleep(10000);
	}
	return c->greeted;
}

static void rank_1_says(struct channel *c)
{
	struct bulletin b;
	bulletin_read(&job, 1, &b);
	CHECK_IS(channel_send(c, &b), 0);
}

static void rank_1_calls(struct channel *c)
{
	REQUIRE(channel_call(c, &address[0], &job, 1, 0) == 0);
	rank_1_says(c);
}

TEST(strangers_who_greet_and_prove_nothing_do_not_keep_others_out)
{
	const struct greeting g = { .version = 1, .rank = 1 };
	struct channel c;
	char bytes[4096];
	int fd[CROWD];
	job_begin();
	for (int i = 0; i < CROWD; i++) {
		fd[i] = stranger_calls();
		CHECK_IS(send(fd[i], &g, sizeof g, 0), sizeof g);
	}
	rank_1_calls(&c);
	CHECK(answered(&c));
	for (int i = 0; i < CROWD; i++) {
		ssize_t n = 1;
		while (n > 0)
			n = recv(fd[i], bytes, sizeof bytes, 0);
		CHECK_IS(n, 0); /* sent away */
	}
	channel_close(&c);
}

/* The stream that rank 0's herald has opened to rank 1's. */
static void rank_1_accepts(struct channel *c)
{
	struct pollfd p = { .fd = theirs, .events = POLLIN };
	REQUIRE(poll(&p, 1, 10000) == 1);
	REQUIRE(channel_accept(c, theirs, &job, 1, 0) == 0);
}

TEST(one_that_was_sent_away_before_it_could_speak_calls_again_and_takes_nobody_for_dead)
{
	struct channel c;
	struct bulletin b;
	int rc = 0;
	job_begin();
	rank_1_accepts(&c);
	channel_close(&c);
	rank_1_accepts(&c);
	for (int i = 0; i < 1000 && rc == 0; i++) {
		CHECK_IS(channel_flush(&c), 0);
		rc = channel_receive(&c, &b);
		usleep(10000);
	}
	CHECK_IS(rc, 1);
	CHECK_IS(b.rank, 0);
	usleep(600000); /* longer than anybody is in doubt */
	CHECK_IS(job_rank_state(&job, 1), RANK_EXPECTED);
	channel_close(&c);
}

/* No stream can be had to where a network begins or ends: connect() says at once that there is no way. */
static void way_end(void)
{
	struct channel c;
	loopback(&address[1], 0xffffff, 9);
	int rc = channel_call(&c, &address[1], &job, 0, 0);
	if (rc != -ENETUNREACH && rc != -EHOSTUNREACH)
		check_skip("this kernel finds a way to 127.255.255.255");
}

TEST(a_machine_to_which_no_way_leads_is_lost_when_it_was_silent_for_too_long)
{
	setenv("TERN_KEEPALIVE", "1", 1);
	job_open();
	way_end();
	REQUIRE(herald_begin(&job, 0, listener, address) == 0);
	usleep(300000);
	CHECK_IS(job_rank_state(&job, 1), RANK_EXPECTED); /* the way may come back */
	for (int i = 0; i < 1000 && job_rank_state(&job, 1) != RANK_DEAD; i++)
		usleep(10000);
	CHECK_IS(job_rank_state(&job, 1), RANK_DEAD);
	CHECK_IS(atomic_load(&job.rank[1].status), STATUS_LOST);
}

TEST(without_a_limit_on_silence_a_machine_to_which_no_way_leads_is_waited_for)
{
	setenv("TERN_KEEPALIVE", "0", 1);
	job_open();
	way_end();
	REQUIRE(herald_begin(&job, 0, listener, address) == 0);
	usleep(700000);
	CHECK_IS(job_rank_state(&job, 1), RANK_EXPECTED);
}

static void descriptors_limit(rlim_t most)
{
	struct rlimit r;
	REQUIRE(getrlimit(RLIMIT_NOFILE, &r) == 0);
	r.rlim_cur = most ? most : r.rlim_max;
	REQUIRE(setrlimit(RLIMIT_NOFILE, &r) == 0);
}

static double seconds_computed(void)
{
	struct timespec t;
	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* Waits for a second, in which nobody else should do anything. */
static void check_idle(void)
{
	double before = seconds_computed();
	usleep(1000000);
	CHECK(seconds_computed() - before < 0.2);
}

/* Both streams are there, and rank 0's herald has nothing to do. */
static void job_settle(struct channel *called, struct channel *calls)
{
	job_begin();
	rank_1_accepts(called);
	rank_1_calls(calls);
	CHECK(answered(calls));
}

TEST(whoever_calls_when_no_descriptor_is_left_waits_for_one_and_costs_nothing)
{
	struct channel called, calls, again;
	job_settle(&called, &calls);
	int last = dup(STDIN_FILENO);
	close(last);
	descriptors_limit((rlim_t)last + 1);
	rank_1_calls(&again);
	CHECK_IS(channel_flush(&again), 0);
	check_idle();
	descriptors_limit(0);
	CHECK(answered(&again));
	channel_close(&again);
	channel_close(&calls);
	channel_close(&called);
}

TEST(a_limit_below_the_descriptors_that_there_are_costs_nothing)
{
	struct channel called, calls;
	job_settle(&called, &calls);
	descriptors_limit(3);
	rank_1_says(&calls); /* which wakes it, and it cannot sleep again */
	CHECK_IS(channel_flush(&calls), 0);
	check_idle();
	descriptors_limit(0);
	channel_close(&calls);
	channel_close(&called);
}

static unsigned descriptors(void)
{
	unsigned n = 0;
	DIR *d = opendir("/proc/self/fd");
	while (readdir(d))
		n++;
	closedir(d);
	return n;
}

TEST(a_herald_that_cannot_begin_says_why_and_keeps_nothing)
{
	job_open();
	unsigned before = descriptors();
	setenv("TERN_KEEPALIVE", "soon", 1);
	int rc = herald_begin(&job, 0, listener, address);
	CHECK_IS(rc, -EINVAL);
	CHECK(sentence_has(rc, "TERN_KEEPALIVE") && sentence_has(rc, "soon"));
	unsetenv("TERN_KEEPALIVE");
	descriptors_limit(3);
	CHECK_IS(herald_begin(&job, 0, listener, address), -EMFILE);
	descriptors_limit(0);
	CHECK_IS(descriptors(), before);
	CHECK(fcntl(STDIN_FILENO, F_GETFD) >= 0);
	CHECK_IS(herald_begin(&job, 0, listener, address), 0);
}
