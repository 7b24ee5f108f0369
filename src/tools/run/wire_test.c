/* SPDX-License-Identifier: BSD-3-Clause */
/* Frames, orders and cards between the launcher and its hosts. */
#include "boot/link/wire.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>

#include <tern/tern.h>

#include "base/stamp.h"
#include "job/exchange.h"
#include "lib/chance.h"
#include "lib/check.h"
#include "lib/tools_free.h"
#include "tools/run/hosts.h"
#include "tools/run/order.h"

/* A wire, and the bare end that the test holds. */
static int wire_to_test(struct wire *w)
{
	int pair[2];
	REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	wire_open(w, pair[0], pair[0]);
	return pair[1];
}

static void put(int fd, uint32_t type, uint32_t len, const char *data, size_t there)
{
	uint32_t head[2] = { type, len };
	CHECK_IS(write(fd, head, sizeof head), sizeof head);
	if (there)
		CHECK_IS(write(fd, data, there), (ssize_t)there);
}

TEST(frames_come_whole_however_the_stream_is_cut)
{
	struct wire w;
	struct frame f;
	int fd = wire_to_test(&w);
	char bytes[] = { 6, 0, 0, 0, 3, 0, 0, 0, 'a', 'b', 'c', 3, 0, 0, 0, 0, 0, 0, 0 };
	unsigned frames = 0;
	for (size_t i = 0; i < sizeof bytes; i++) {
		CHECK_IS(write(fd, bytes + i, 1), 1);
		CHECK(wire_read(&w));
		while (wire_next(&w, &f)) {
			CHECK_IS(f.type, frames ? FRAME_TAKEN : FRAME_RANK_STATUS);
			CHECK_IS(f.len, frames ? 0 : 3);
			CHECK(frames || memcmp(f.data, "abc", 3) == 0);
			frames++;
		}
	}
	CHECK_IS(frames, 2);
	close(fd);
	CHECK(!wire_read(&w));
	wire_close(&w);
}

TEST(a_frame_of_an_unknown_kind_or_length_breaks_the_wire)
{
	struct wire w;
	struct frame f;
	int fd = wire_to_test(&w);
	put(fd, FRAME_TYPES, 0, NULL, 0);
	CHECK(wire_read(&w) && !wire_next(&w, &f));
	CHECK_IS(w.error, EPROTO);
	wire_close(&w);
	fd = wire_to_test(&w);
	put(fd, FRAME_RANK_STATUS, FRAME_MOST + 1, NULL, 0);
	CHECK(wire_read(&w) && !wire_next(&w, &f));
	CHECK_IS(w.error, EPROTO);
	CHECK(!wire_read(&w));
	wire_close(&w);
}

TEST(a_reader_that_does_not_read_costs_the_writer_no_time_and_nothing_is_lost)
{
	struct wire w, r;
	struct frame f;
	static char text[10000];
	int fd = wire_to_test(&w);
	unsigned sent = 0, came = 0;
	while (!wire_backlog(&w) && sent < 10000) {
		memset(text, (int)sent, sizeof text);
		wire_send(&w, FRAME_OUT, text, sizeof text);
		sent++;
	}
	CHECK(wire_backlog(&w) > 0);
	wire_open(&r, fd, fd);
	while (came < sent) {
		REQUIRE(wire_read(&r));
		while (wire_next(&r, &f)) {
			CHECK_IS((unsigned char)f.data[9999], came % 256);
			came++;
		}
		wire_flush(&w);
	}
	CHECK_IS(wire_backlog(&w), 0);
	wire_close(&w);
	wire_close(&r);
}

/* -- Orders ----------------------------------------------------------------------------- */

static char *words[] = { (char *)"./a program", (char *)"", (char *)"x=y", (char *)"a\nb'\"$",
			 NULL };

TEST(an_order_says_what_was_meant_whatever_the_words_are)
{
	const char *env[] = { "SAID=a=b", "SECRET_OF_THIS_HOST" };
	struct run_options o = { .order = { .host_count = 3,
					    .share = { 3, 4, 2 },
					    .survive = SURVIVE_ANY,
					    .signal = 12,
					    .id = 5,
					    .key = { 1, 2, 3 },
					    .binding = BINDING_NONE,
					    .tag = true },
				 .env = env,
				 .env_count = 1,
				 .program = words };
	struct run_options read;
	size_t len;
	setenv("TERN_SPIN", "77", 1);
	setenv("SECRET_OF_THIS_HOST", "1", 1);
	char *order = order_write(&o, 1, &len);
	REQUIRE(order != NULL);
	CHECK(!memmem(order, len, "SECRET", 6));
	free(order);
	o.env_count = 2;
	order = order_write(&o, 1, &len);
	REQUIRE(order != NULL);
	unsetenv("TERN_SPIN");
	unsetenv("SECRET_OF_THIS_HOST");
	REQUIRE(chdir("/") == 0);
	REQUIRE(order_read(&read, order, len) == 0);
	CHECK_IS(read.first, 3);
	CHECK_IS(read.ranks, 4);
	CHECK_IS(read.total, 9);
	CHECK_IS(read.order.host, 1);
	CHECK_IS(read.order.host_count, 3);
	CHECK_IS(read.order.share[2], 2);
	CHECK_IS(read.order.id, 5);
	CHECK(memcmp(read.order.key, o.order.key, sizeof o.order.key) == 0);
	CHECK_IS(read.order.binding, BINDING_NONE);
	CHECK(read.order.tag);
	CHECK_IS(read.order.survive, SURVIVE_ANY);
	CHECK_IS(read.order.signal, 12);
	for (int i = 0; i < 4; i++)
		CHECK(strcmp(read.program[i], words[i]) == 0);
	CHECK(read.program[4] == NULL);
	CHECK(strcmp(getenv("TERN_SPIN"), "77") == 0);
	CHECK(strcmp(getenv("SAID"), "a=b") == 0);
	CHECK(strcmp(getenv("SECRET_OF_THIS_HOST"), "1") == 0);
	char folder[4096];
	CHECK(getcwd(folder, sizeof folder) && strcmp(folder, "/") != 0);
	free(read.program);
	free(order);
}

/* An order to one host with one rank, changed in its head or with other words behind it. */
static void check_refused(const struct order *order, const char *text, size_t len)
{
	struct run_options o;
	char *copy = malloc(sizeof *order + len);
	memcpy(copy, order, sizeof *order);
	memcpy(copy + sizeof *order, text, len);
	CHECK(order_read(&o, copy, sizeof *order + len) < 0);
	free(o.program);
	free(copy);
}

TEST(an_order_that_is_none_is_refused)
{
	static const char rest[] = "/\0PATH=/bin\0\0true";
	const struct order good = { .version = TERN_VERSION,
				    .stamp = build_stamp,
				    .host_count = 1,
				    .share = { 1 },
				    .signal = SIGTERM };
	struct order bad;
	struct run_options o;
	char short_one[] = "x";
#define CHANGED(change) (bad = good, (change), check_refused(&bad, rest, sizeof rest))
	CHANGED(bad.version[0]++);
	CHANGED(bad.stamp++);
	CHANGED(bad.host = 1);
	CHANGED(bad.host_count = 0);
	CHANGED(bad.host_count = 2);
	CHANGED(bad.host_count = TERN_RANKS_MAX + 1);
	CHANGED(bad.share[0] = 0);
	CHANGED(bad.share[0] = TERN_RANKS_MAX + 1);
	CHANGED(bad.binding = BINDING_CORE + 1);
	CHANGED(bad.survive = SURVIVE_ANY + 1);
	CHANGED(bad.signal = 0);
	CHANGED(bad.signal = SIGRTMAX + 1);
#define REFUSED(text) check_refused(&good, text, sizeof(text) - 1)
	REFUSED("");
	REFUSED("/\0PATH=/bin\0\0true"); /* its end is missing */
	REFUSED("/\0");
	REFUSED("/\0PATH=/bin\0");
	REFUSED("/\0PATH=/bin\0\0");
	REFUSED("/\0NOTHING\0\0true\0");
	REFUSED("/\0=x\0\0true\0");
	REFUSED("/nowhere/at/all\0\0true\0");
	CHECK(order_read(&o, short_one, 0) < 0);
	CHECK(order_read(&o, short_one, sizeof short_one) < 0);
}

TEST(whatever_bytes_come_as_an_order_are_survived)
{
	struct chance c = { check_seed() };
	struct run_options o = { .order = { .host_count = 1, .share = { 2 }, .signal = SIGTERM },
				 .program = words };
	size_t len;
	char *order = order_write(&o, 0, &len);
	for (int round = 0; round < 2000; round++) {
		size_t cut = chance_below(&c, (uint32_t)len) + 1;
		char *copy = malloc(cut); /* to the byte, so that reading behind it is noticed */
		struct run_options read;
		memcpy(copy, order, cut);
		for (uint32_t i = chance_below(&c, 4); i; i--) /* rarely where it has the build */
			copy[chance_below(&c, (uint32_t)cut)] = (char)chance_next(&c);
		order_read(&read, copy, cut);
		free(read.program);
		free(copy);
	}
	free(order);
}

/* -- Hosts ------------------------------------------------------------------------------ */

/* 0 ranks: as many as the list says. */
static void hosts_of(struct hosts *h, const char *names, uint32_t ranks)
{
	struct run_options o = {
		.total = ranks, .hosts = names, .shell = "ssh  -x", .program = words
	};
	REQUIRE(hosts_open(h, &o, NULL) == 0);
}

TEST(ranks_are_divided_in_order_and_in_equal_parts)
{
	struct hosts h;
	hosts_of(&h, "a,b,c", 8);
	CHECK_IS(h.count, 3);
	uint32_t next = 0;
	for (uint32_t i = 0; i < 3; i++) {
		CHECK_IS(h.host[i].first, next);
		CHECK(h.host[i].ranks == 2 || h.host[i].ranks == 3);
		next += h.host[i].ranks;
	}
	CHECK_IS(next, 8);
	hosts_close(&h);
	hosts_of(&h, "a,b,c", 2);
	CHECK_IS(h.count, 2);
	hosts_close(&h);
}

TEST(hosts_with_a_number_of_ranks_are_filled_in_order)
{
	struct hosts h;
	hosts_of(&h, "a:2,b:5,c:1", 4);
	CHECK_IS(h.count, 2);
	CHECK(strcmp(h.host[0].name, "a") == 0 && h.host[0].ranks == 2);
	CHECK(strcmp(h.host[1].name, "b") == 0 && h.host[1].first == 2 && h.host[1].ranks == 2);
	hosts_close(&h);
	hosts_of(&h, "[::1]:2,[fe80::1]:3,b:2", 0);
	CHECK_IS(h.count, 3);
	CHECK(strcmp(h.host[0].name, "::1") == 0 && strcmp(h.host[1].name, "fe80::1") == 0);
	CHECK(h.host[0].ranks == 2 && h.host[1].ranks == 3 && h.host[2].first == 5);
	hosts_close(&h);
	hosts_of(&h, "::1,[::2]", 3);
	CHECK(strcmp(h.host[0].name, "::1") == 0 && strcmp(h.host[1].name, "::2") == 0);
	hosts_close(&h);
}

TEST(a_list_with_a_hole_an_option_a_name_twice_or_too_few_places_is_refused)
{
	static const char *const bad[] = {
		"",       "a,",      ",a",     "a,,b",   "-oProxyCommand=x",
		"a,b,a",  "a:",      "a:0",    "a:x",    "a:-1",
		"a:1025", "a:4x",    ":4",     "[a]4",   "a:4,b",
		"a,b:4",  "a:1,b:2", "[-x]:4", "a:2,a:2"
	};
	for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
		struct hosts h;
		struct run_options o = {
			.total = 4, .hosts = bad[i], .shell = "ssh", .program = words
		};
		CHECK_IS(hosts_open(&h, &o, NULL), -EINVAL);
		hosts_close(&h);
	}
}

TEST(nothing_of_the_job_is_on_the_command_line_of_the_remote_shell)
{
	struct hosts h;
	hosts_of(&h, "a,b", 4);
	char **word = hosts_command(&h, 1);
	CHECK(strcmp(word[0], "ssh") == 0 && strcmp(word[1], "-x") == 0 &&
	      strcmp(word[2], "b") == 0);
	CHECK(word[3][0] == '\'' && strstr(word[3], "/tern-link'") && word[4] == NULL);
	free(word);
	hosts_close(&h);
}

/* The next frame that a host gets. */
static bool agent_next(struct hosts *h, struct wire *agent, struct frame *f)
{
	for (int i = 0; i < 100; i++) {
		hosts_serve(h);
		if (wire_next(agent, f))
			return true;
		struct pollfd p = { .fd = agent->from, .events = POLLIN };
		if (poll(&p, 1, 20) == 1 && !wire_read(agent))
			return false;
	}
	return false;
}

/* Four hosts with two ranks each, whose agents have got their order. */
enum { HOSTS = 4, RANKS = 8 };

static void agents_open(struct hosts *h, struct wire agent[HOSTS])
{
	struct run_options o = {
		.total = RANKS, .hosts = "a,b,c,d", .shell = "ssh", .program = words
	};
	static struct output output;
	struct frame f;
	REQUIRE(hosts_open(h, &o, &output) == 0 &&
		output_open(&output, HOSTS, 0, HOSTS, false, NULL) == 0);
	for (uint32_t i = 0; i < HOSTS; i++) {
		int pair[2];
		REQUIRE(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
		REQUIRE(hosts_begin(h, i, getpid(), pair[0], dup(pair[0]), &o) == 0);
		wire_open(&agent[i], pair[1], pair[1]);
		REQUIRE(agent_next(h, &agent[i], &f));
		CHECK_IS(f.type, FRAME_ORDER);
	}
}

static void agents_close(struct hosts *h, struct wire agent[HOSTS])
{
	for (uint32_t i = 0; i < HOSTS; i++)
		wire_close(&agent[i]);
	hosts_close(h);
}

TEST(each_hosts_cards_come_to_all_the_others_in_their_order)
{
	enum { CARDS = 300 };
	struct hosts h;
	struct wire agent[HOSTS];
	struct frame f;
	struct rank_status b = { 0 };
	agents_open(&h, agent);
	for (uint32_t n = 0; n < CARDS; n++)
		for (uint32_t i = 0; i < HOSTS; i++) {
			b.rank = h.host[i].first;
			b.serial = n;
			wire_send(&agent[i], FRAME_RANK_STATUS, &b, sizeof b);
			hosts_serve(&h);
		}
	for (uint32_t i = 0; i < HOSTS; i++) {
		uint32_t next[HOSTS] = { 0 };
		for (uint32_t left = (HOSTS - 1) * CARDS; left; left--) {
			for (uint32_t j = 0; j < HOSTS; j++)
				wire_flush(&agent[j]);
			REQUIRE(agent_next(&h, &agent[i], &f));
			REQUIRE(f.type == FRAME_RANK_STATUS && f.len == sizeof b);
			memcpy(&b, f.data, sizeof b);
			uint32_t from = b.rank / (RANKS / HOSTS);
			REQUIRE(from < HOSTS && from != i);
			CHECK_IS(b.serial, next[from]++);
		}
	}
	agents_close(&h, agent);
}

/* Agent 1 gets the records that agent 0 has sent, and what its end means. */
static void host_leaves(bool ended)
{
	struct hosts h;
	struct wire agent[HOSTS];
	struct frame f;
	struct rank_status b = { .end = ended ? 1 << 8 | 5 : 0 }; /* by rank 0, with status 5 */
	agents_open(&h, agent);
	wire_send(&agent[0], FRAME_RANK_STATUS, &b, sizeof b);
	wire_flush(&agent[0]);
	REQUIRE(agent_next(&h, &agent[1], &f) && f.type == FRAME_RANK_STATUS);
	wire_close(&agent[0]);
	for (uint32_t r = 0; r < RANKS / HOSTS && !ended; r++) {
		REQUIRE(agent_next(&h, &agent[1], &f) && f.type == FRAME_RANK_STATUS);
		memcpy(&b, f.data, sizeof b);
		CHECK(b.rank == r && b.state == RANK_DEAD);
	}
	while (h.host[0].wire.from >= 0)
		hosts_serve(&h);
	hosts_end(&h);
	REQUIRE(agent_next(&h, &agent[1], &f));
	CHECK_IS(f.type, FRAME_END);
	agents_close(&h, agent);
}

TEST(the_ranks_of_a_host_that_has_gone_are_lost)
{
	host_leaves(false);
}

TEST(in_a_job_that_a_rank_has_ended_no_rank_is_told_of_as_lost_before_the_order_to_end)
{
	host_leaves(true);
}
