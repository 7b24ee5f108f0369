/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The connections of a machine among strangers, without a way, and without descriptors. Ours is
 * machine 0; the test plays machine 1.
 */
#include "boot/link/mesh.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/socket.h>

#include "base/clock.h"
#include "base/stamp.h"
#include "lib/left.h"
#include "lib/local.h"

enum { RANKS = 3, MACHINES = 2 };

static struct job job, theirs;
static struct job_head theirs_head;
static struct sockaddr_in6 address[MACHINES];
static int listener, their_listener;
static struct mesh *mesh;

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
	static const uint32_t machine[RANKS] = { 0, 1, 1 };
	static const uint8_t key[JOB_KEY] = { 1 };
	char why[200];
	if (!seal_usable(why, sizeof why))
		check_skip(why);
	REQUIRE(job_create(&job, RANKS, 0) == 0);
	job_spread(&job, machine, 0, MACHINES);
	job_identify(&job, 7, key);
	theirs = job; /* for connections: they look at the head alone */
	theirs.head = &theirs_head;
	theirs_head = *job.head;
	theirs_head.machine = 1;
	loopback(&address[0], 0, 0);
	loopback(&address[1], 0, 0);
	listener = connection_listen(&address[0]);
	their_listener = connection_listen(&address[1]);
	REQUIRE(listener >= 0 && their_listener >= 0);
}

static void mesh_begin(uint64_t silence)
{
	for (uint32_t r = 0; r < RANKS; r++)
		memcpy(job.rank[r].link, &address[job.rank[r].machine], sizeof *address);
	mesh = mesh_open(&job, listener, silence);
	REQUIRE(mesh);
}

static void job_begin(uint64_t silence)
{
	job_open();
	mesh_begin(silence);
}

static void round_play(void)
{
	struct pollfd p[1 + MACHINES + STRANGERS];
	REQUIRE(mesh_polls_most(&job) <= sizeof p / sizeof *p);
	poll(p, mesh_polls(mesh, p), 10);
	mesh_serve(mesh);
}

static int stranger_calls(void)
{
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	REQUIRE(connect(fd, (struct sockaddr *)(void *)&address[0], sizeof(struct sockaddr_in)) ==
		0);
	return fd;
}

/*
 * What machine 1 does, as far as it can now: says something of rank 1, and hears. How many status
 * records have come.
 */
static unsigned machine_1(struct connection *c, uint32_t serial)
{
	struct rank_status b = { .rank = 1, .serial = serial, .session = 1, .state = RANK_OPEN };
	unsigned n = 0;
	connection_flush(c);
	while (connection_receive(c, &b) > 0)
		n++;
	b = (struct rank_status){ .rank = 1, .serial = serial, .session = 1, .state = RANK_OPEN };
	if (connection_room(c) && !c->sent) {
		connection_send(c, &b);
		connection_flush(c);
	}
	return n;
}

static bool connected(struct connection *c, uint32_t serial)
{
	for (int i = 0; i < 3000 && !(mesh->peer[1].stream.received && c->received); i++) {
		round_play();
		machine_1(c, serial);
	}
	return mesh->peer[1].stream.received && c->received;
}

/* The connection that machine 0 has called for. */
static void machine_1_accepts(struct connection *c)
{
	int rc = -EAGAIN;
	for (int i = 0; i < 3000 && rc; i++) {
		round_play();
		rc = connection_accept(c, their_listener, &theirs, 0);
	}
	REQUIRE(rc == 0);
}

static bool closed(int fd)
{
	char bytes[256];
	ssize_t n;
	while ((n = recv(fd, bytes, sizeof bytes, MSG_DONTWAIT)) > 0)
		;
	return n == 0 || errno != EAGAIN;
}

TEST(machines_tell_each_other_of_their_ranks)
{
	struct connection c;
	job_begin(30);
	machine_1_accepts(&c);
	CHECK(connected(&c, 1));
	CHECK_IS(job_rank_state(&job, 1), RANK_OPEN);
	CHECK(mesh_told(mesh, true));
	job_tell(&job, 0);
	CHECK(!mesh_told(mesh, false));
	while (!machine_1(&c, 1))
		round_play();
	CHECK(mesh_told(mesh, true));
	connection_close(&c);
}

TEST(strangers_are_sent_away_and_keep_nobody_out)
{
	enum { CROWD = STRANGERS + 64 };
	const struct {
		uint32_t type, len;
		struct greeting g;
	} g = { FRAME_GREETING, sizeof g.g, { .stamp = build_stamp, .machine = 1 } };
	struct connection c;
	int fd[CROWD];
	job_begin(30);
	for (int i = 0; i < CROWD; i++) {
		fd[i] = stranger_calls();
		if (i % 2)
			CHECK_IS(send(fd[i], &g, sizeof g, 0), sizeof g);
		round_play();
	}
	for (int i = 0; i < CROWD - STRANGERS; i++) /* displaced */
		CHECK(closed(fd[i]));
	machine_1_accepts(&c);
	CHECK(connected(&c, 1));
	for (int i = 0; i < 3000 && mesh_must_retry(mesh); i++) /* they are given some seconds */
		round_play();
	for (int i = 0; i < CROWD; i++) {
		CHECK(closed(fd[i]));
		close(fd[i]);
	}
	connection_close(&c);
}

TEST(strangers_displace_no_machine_of_the_job)
{
	struct connection c;
	int fd[STRANGERS + 1];
	job_begin(30);
	machine_1_accepts(&c);
	CHECK(connected(&c, 1));
	int ours = mesh->peer[1].stream.fd;
	for (int i = 0; i <= STRANGERS; i++) {
		fd[i] = stranger_calls();
		round_play();
	}
	job_tell(&job, 0);
	while (!machine_1(&c, 1))
		round_play();
	CHECK_IS(mesh->peer[1].stream.fd, ours);
	for (int i = 0; i <= STRANGERS; i++)
		close(fd[i]);
	connection_close(&c);
}

TEST(a_machine_gets_in_while_strangers_call_all_the_time)
{
	struct connection c;
	int fd[64];
	unsigned n = 0;
	job_open();
	close(their_listener); /* it is machine 1 that calls */
	mesh_begin(30);
	REQUIRE(connection_call(&c, &address[0], &theirs, 0) == 0);
	for (; n < 60000 && !mesh->peer[1].stream.received; n++) {
		if (n >= 64)
			close(fd[n % 64]);
		fd[n % 64] = stranger_calls();
		round_play();
		machine_1(&c, 1);
	}
	CHECK(mesh->peer[1].stream.received);
	for (unsigned i = 0; i < (n < 64 ? n : 64); i++)
		close(fd[i]);
	connection_close(&c);
}

TEST(a_broken_connection_is_made_again_and_nobody_is_dead)
{
	struct connection c;
	job_begin(30);
	for (uint32_t i = 1; i <= 5; i++) {
		machine_1_accepts(&c);
		CHECK(connected(&c, i));
		CHECK_IS(job_rank_state(&job, 1), RANK_OPEN);
		CHECK_IS(atomic_load(&job.rank[1].serial), i);
		connection_close(&c);
	}
	CHECK_IS(job_rank_state(&job, 2), RANK_EXPECTED);
}

TEST(of_two_connections_the_one_that_the_lower_machine_called_stays)
{
	struct connection c, mine;
	job_begin(30);
	machine_1_accepts(&c);
	CHECK(connected(&c, 1));
	REQUIRE(connection_call(&mine, &address[0], &theirs, 0) == 0);
	for (int i = 0; i < 3000 && !closed(mine.fd); i++) {
		round_play();
		machine_1(&mine, 2);
		if (mine.greeted && !mine.received && mine.sent)
			usleep(1000);
	}
	job_tell(&job, 0);
	while (!machine_1(&c, 1))
		round_play();
	CHECK(mesh->peer[1].stream.caller);
	connection_close(&mine);
	connection_close(&c);
}

/* Some turns, which are to take less than the second after which silence is too long. */
static void check_waits(enum rank_state state)
{
	uint64_t begun = clock_ns();
	for (int i = 0; i < 20; i++)
		round_play();
	if (clock_ns() - begun < 800000000)
		CHECK_IS(job_rank_state(&job, 1), state);
}

static void check_lost(void)
{
	for (int i = 0; i < 6000 && job_rank_state(&job, 2) != RANK_DEAD; i++)
		round_play();
	for (uint32_t r = 1; r < RANKS; r++) {
		CHECK_IS(job_rank_state(&job, r), RANK_DEAD);
		CHECK_IS(atomic_load(&job.rank[r].status), STATUS_LOST);
	}
	CHECK(mesh_told(mesh, true)); /* there is nobody left to be told */
}

TEST(a_machine_that_does_not_come_back_is_lost_when_it_was_silent_for_too_long)
{
	struct connection c;
	job_begin(1);
	machine_1_accepts(&c);
	CHECK(connected(&c, 1));
	close(their_listener);
	connection_close(&c);
	check_waits(RANK_OPEN);
	check_lost();
}

/*
 * No connection can be had to where a network begins or ends: connect() says at once that there is
 * no way.
 */
static void way_end(void)
{
	struct connection c;
	loopback(&address[1], 0xffffff, 9);
	int rc = connection_call(&c, &address[1], &job, 0);
	if (rc != -ENETUNREACH && rc != -EHOSTUNREACH)
		check_skip("this kernel finds a way to 127.255.255.255");
}

TEST(a_machine_to_which_no_way_leads_is_lost_when_it_was_silent_for_too_long)
{
	job_open();
	way_end();
	mesh_begin(1);
	check_waits(RANK_EXPECTED); /* the way may come back */
	check_lost();
}

TEST(without_a_limit_on_silence_a_machine_to_which_no_way_leads_is_waited_for)
{
	job_open();
	way_end();
	mesh_begin(0);
	for (int i = 0; i < 200; i++)
		round_play();
	CHECK_IS(job_rank_state(&job, 1), RANK_EXPECTED);
}

/* Its kernel has taken the call, and nobody there has answered yet. */
TEST(a_machine_whose_link_has_not_begun_is_not_silent)
{
	struct connection c;
	job_begin(1);
	for (int i = 0; i < 250; i++)
		round_play();
	CHECK_IS(job_rank_state(&job, 1), RANK_EXPECTED);
	machine_1_accepts(&c);
	CHECK(connected(&c, 1));
	connection_close(&c);
}

TEST(a_machine_that_speaks_of_ranks_elsewhere_is_not_believed)
{
	struct connection c;
	struct rank_status b = { .rank = 0, .serial = 9, .session = 1, .state = RANK_DEAD };
	job_begin(30);
	machine_1_accepts(&c);
	CHECK(connected(&c, 1));
	while (!connection_room(&c))
		machine_1(&c, 1);
	connection_send(&c, &b);
	connection_flush(&c);
	for (int i = 0; i < 3000 && !closed(c.fd); i++)
		round_play();
	CHECK(closed(c.fd));
	CHECK_IS(job_rank_state(&job, 0), RANK_EXPECTED);
	connection_close(&c);
}

TEST(a_machine_whose_ranks_have_all_ended_is_not_called_again)
{
	struct connection c;
	job_begin(1);
	machine_1_accepts(&c);
	CHECK(connected(&c, 1));
	for (uint32_t r = 1; r < RANKS; r++) {
		struct rank_status b = { .rank = r, .serial = 9, .session = 1, .state = RANK_GONE };
		while (!connection_room(&c))
			machine_1(&c, 1);
		connection_send(&c, &b);
		connection_flush(&c);
	}
	connection_close(&c);
	for (int i = 0; i < 300; i++)
		round_play();
	for (uint32_t r = 1; r < RANKS; r++)
		CHECK_IS(job_rank_state(&job, r), RANK_GONE);
	CHECK_IS(connection_accept(&c, their_listener, &theirs, 0), -EAGAIN);
	CHECK(!mesh_must_retry(mesh));
}

static void descriptors_limit(rlim_t most)
{
	struct rlimit r;
	REQUIRE(getrlimit(RLIMIT_NOFILE, &r) == 0);
	r.rlim_cur = most ? most : r.rlim_max;
	REQUIRE(setrlimit(RLIMIT_NOFILE, &r) == 0);
}

TEST(whoever_calls_when_no_descriptor_is_left_waits_for_one_and_costs_nothing)
{
	struct pollfd p[1 + MACHINES + STRANGERS];
	struct connection c;
	job_begin(30);
	machine_1_accepts(&c);
	CHECK(connected(&c, 1));
	int fd = stranger_calls(), last = dup(STDIN_FILENO);
	close(last);
	descriptors_limit((rlim_t)last);
	round_play();
	CHECK(mesh_must_retry(mesh)); /* it looks again, */
	mesh_polls(mesh, p);
	CHECK_IS(p[0].fd, -1); /* and is not woken by the call */
	descriptors_limit(0);
	round_play();
	mesh_polls(mesh, p);
	CHECK_IS(p[0].fd, listener);
	close(fd);
	connection_close(&c);
}

/* Whether the mesh waits for this of a descriptor. */
static bool waits_for(int fd, short events)
{
	struct pollfd p[1 + MACHINES + STRANGERS];
	unsigned n = mesh_polls(mesh, p);
	bool waits = false;
	CHECK(n <= mesh_polls_most(&job));
	for (unsigned i = 0; i < n; i++)
		waits |= p[i].fd == fd && (p[i].events & events) == events;
	return waits;
}

TEST(whoever_may_say_something_is_listened_to)
{
	struct connection c;
	job_begin(30);
	CHECK(waits_for(listener, POLLIN));
	CHECK(mesh_must_retry(mesh)); /* to call */
	machine_1_accepts(&c);
	CHECK(connected(&c, 1));
	CHECK(waits_for(mesh->peer[1].stream.fd, POLLIN));
	CHECK(!mesh_must_retry(mesh));
	int fd = stranger_calls();
	while (mesh->stranger[0].fd < 0)
		round_play();
	CHECK(waits_for(mesh->stranger[0].fd, POLLIN));
	CHECK(mesh_must_retry(mesh)); /* to send it away */
	close(fd);
	connection_close(&c);
}

/* There is no queue: what is told then is the newest. */
TEST(a_machine_that_does_not_read_is_told_when_it_does)
{
	struct connection c;
	struct rank_status b = { .serial = 0 };
	job_begin(30);
	machine_1_accepts(&c);
	CHECK(connected(&c, 1));
	while (!connection_waits(&mesh->peer[1].stream)) {
		job_tell(&job, 0);
		mesh_serve(mesh);
	}
	for (int i = 0; i < 100000; i++)
		job_tell(&job, 0);
	CHECK(waits_for(mesh->peer[1].stream.fd, POLLIN | POLLOUT));
	CHECK(!mesh_told(mesh, false));
	uint32_t newest = (uint32_t)atomic_load(&job.rank[0].serial), records = 0;
	while (b.serial != newest) {
		mesh_serve(mesh);
		while (connection_receive(&c, &b) > 0)
			records++;
	}
	CHECK(records < newest);
	CHECK(mesh_told(mesh, true) && !waits_for(mesh->peer[1].stream.fd, POLLOUT));
	connection_close(&c);
}

TEST(a_machine_whose_link_ends_has_heard_everything_before_the_end)
{
	struct connection c;
	struct rank_status b;
	int rc;
	job_begin(30);
	machine_1_accepts(&c);
	CHECK(connected(&c, 1));
	job_tell(&job, 0);
	mesh_serve(mesh);
	mesh_finish(mesh);
	unsigned records = 0;
	while ((rc = connection_receive(&c, &b)) >= 0)
		records += rc > 0;
	CHECK(rc == -ECONNRESET && records > 0);
	CHECK(!mesh_over(mesh)); /* it has not seen that the other has */
	connection_close(&c);
	while (!mesh_over(mesh))
		usleep(1000);
	CHECK_IS(mesh->peer[1].stream.fd, -1);
}

TEST(what_a_mesh_has_taken_it_gives_back)
{
	struct left before;
	job_open();
	left_before(&before);
	mesh_begin(30);
	mesh_close(mesh);
	mesh = NULL;
	left_nothing_since(&before);
}
