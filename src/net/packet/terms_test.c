/* SPDX-License-Identifier: BSD-3-Clause */
/* Ranks that meet: what they must have in common, and datagrams of those that are not known yet. */
#include "net/packet/terms.h"

#include <errno.h>

#include <tern/tern.h>

#include "job/exchange.h"
#include "lib/check.h"
#include "net/packet/packet.h"
#include "net/packet/service.h"
#include "service/service.h"

enum { RANKS = 5, ME = 1, MS = 1000000 };

static struct job job;
static struct site site = { .rank = ME, .size = RANKS };
static struct packet_net *net;
static struct pulse pulse;

static void net_begin(const char *name)
{
	REQUIRE(job_create(&job, RANKS, 0) == 0);
	net = calloc(1, sizeof *net);
	REQUIRE(net);
	net->job = &job;
	net->net.site = &site;
	net->services = PROVIDES_RELIABLE | PROVIDES_ORDER;
	net->service_table = service_all;
	net->pulse = &pulse;
	net->met = calloc(RANKS, sizeof *net->met);
	REQUIRE(net->met);
	terms_write(&net->terms, false, name, "");
	net->terms.protects = GUARD_AUTH;
}

static void publish(uint32_t rank, const char *name, unsigned services, enum guard_mode mode)
{
	struct card_front card = { 0 };
	terms_write(&card.terms, false, name, "");
	snprintf(card.terms.host, sizeof card.terms.host, "there");
	card.terms.services = (uint8_t)services;
	card.terms.protects = (uint8_t)mode;
	card_publish(&job, rank, &card, sizeof card);
}

TEST(terms_name_the_networks_and_the_provider_as_tern_net_would)
{
	struct terms t = { .services = 0 };
	char host[TERMS_HOST_MOST] = "";
	terms_write(&t, true, "udp", "");
	CHECK(strcmp(t.net, "shm,udp") == 0);
	terms_write(&t, false, "ofi", "tcp");
	CHECK(strcmp(t.net, "ofi/tcp") == 0);
	terms_write(&t, true, "", "");
	CHECK(strcmp(t.net, "shm") == 0);
	gethostname(host, sizeof host - 1);
	CHECK(strcmp(t.host, host) == 0);
}

TEST(a_rank_of_shared_memory_alone_tells_so_on_its_card)
{
	struct card_front card;
	net_begin("udp");
	CHECK(!card_read(&job, 2, &card, sizeof card));
	terms_publish_local(&job, 2);
	REQUIRE(card_read(&job, 2, &card, sizeof card));
	CHECK(strcmp(card.terms.net, "shm") == 0);
}

TEST(a_protection_is_one_that_there_is)
{
	enum guard_mode mode = GUARD_AUTH;
	unsetenv("TERN_PROTECT");
	CHECK_IS(guard_mode_read(&mode), 0);
	CHECK_IS(mode, GUARD_AUTH); /* as it was */
	setenv("TERN_PROTECT", "none", 1);
	CHECK_IS(guard_mode_read(&mode), 0);
	CHECK_IS(mode, GUARD_NONE);
	setenv("TERN_PROTECT", "encrypt", 1);
	CHECK_IS(guard_mode_read(&mode), 0);
	CHECK_IS(mode, GUARD_ENCRYPT);
	setenv("TERN_PROTECT", "encrypted", 1);
	CHECK_IS(guard_mode_read(&mode), -EINVAL);
	CHECK(strstr(tern_strerror(-EINVAL), "TERN_PROTECT is 'encrypted'"));
	CHECK_IS(mode, GUARD_ENCRYPT);
}

TEST(cards_are_looked_for_ever_more_rarely_until_all_have_come)
{
	net_begin("udp");
	terms_open(net);
	CHECK_IS(net->unmet, RANKS - 1);
	net->now = 1000 * MS;
	uint64_t gap = 10 * MS, due = terms_review(net);
	for (int i = 0; i < 12; i++) {
		CHECK_IS(due, net->now + gap);
		net->now = due - 1;
		CHECK_IS(terms_review(net), due); /* not yet */
		net->now = due;
		due = terms_review(net);
		gap = 2 * gap < 1000 * MS ? 2 * gap : 1000 * MS;
	}
	for (uint32_t r = 0; r < RANKS; r++)
		if (r != ME)
			publish(r, "udp", net->services, GUARD_AUTH);
	net->now = due;
	CHECK_IS(terms_review(net), DUE_NEVER);
	CHECK_IS(net->unmet, 0);
	CHECK_IS(net->strangers, 0);
	CHECK_IS(terms_review(net), DUE_NEVER);
	for (uint32_t r = 0; r < RANKS; r++)
		CHECK_IS(terms_check(net, r), 0);
	free(net->met);
}

TEST(ranks_that_shared_memory_reaches_are_not_met)
{
	static const uint32_t machine[RANKS] = { 0, 0, 1, 0, 1 };
	struct net local;
	net_begin("udp");
	job_spread(&job, machine, 0, 2);
	net->local = &local;
	terms_open(net);
	CHECK_IS(net->unmet, 2);
	memset(net->met, 0, RANKS * sizeof *net->met);
	net->unmet = 0;
	net->terms.net[0] = '\0'; /* a network without a name */
	terms_open(net);
	CHECK_IS(net->unmet, 0);
	CHECK_IS(terms_review(net), DUE_NEVER);
	free(net->met);
}

static void check_strange(uint32_t rank, const char *a, const char *b, const char *setting)
{
	CHECK(!terms_fit(net, rank));
	CHECK(!terms_fit(net, rank)); /* and is counted once */
	CHECK_IS(terms_check(net, rank), -EPROTO);
	const char *text = tern_strerror(-EPROTO);
	if (!strstr(text, a) || !strstr(text, b) || !strstr(text, setting))
		printf("    %s\n", text);
	CHECK(strstr(text, a) && strstr(text, b) && strstr(text, setting) && strstr(text, "there"));
}

TEST(a_rank_with_other_terms_is_named_with_what_differs)
{
	net_begin("udp");
	terms_open(net);
	publish(0, "ofi", net->services, GUARD_AUTH);
	publish(2, "udp", PROVIDES_RELIABLE, GUARD_AUTH);
	publish(3, "udp", net->services, GUARD_ENCRYPT);
	check_strange(0, "rank 0", "has the network ofi, and this rank udp", "set TERN_NET");
	check_strange(2, "rank 2", "has the services retry, and this rank order,retry",
		      "TERN_SERVICE");
	check_strange(3, "rank 3", "has the protection encrypt, and this rank auth",
		      "TERN_PROTECT");
	publish(2, "udp", 0, GUARD_AUTH); /* for its next session */
	check_strange(2, "rank 2", "has the services none, and this rank order,retry",
		      "TERN_SERVICE");
	CHECK_IS(net->strangers, 3);
	CHECK_IS(net->unmet, 1);
	CHECK(terms_fit(net, 4)); /* it has not come */
	CHECK_IS(terms_check(net, 4), 0);
	free(net->met);
}

/* -- Datagrams of ranks whose card has not come ------------------------------------------------ */

static bool known[RANKS];
static unsigned char took[100][2]; /* rank, number */
static unsigned taken;

static bool guard_open(struct packet_net *n, uint32_t rank)
{
	(void)n;
	return known[rank];
}

static enum seal guard_unseal(struct packet_net *n, struct datagram *d, uint32_t *rank,
			      struct arrival *a)
{
	(void)n, (void)a;
	REQUIRE(taken < 100 && d->len == 2 && d->from == 77);
	*rank = d->bytes[0];
	if (!known[*rank])
		return SEAL_UNMET;
	memcpy(took[taken++], d->bytes, 2);
	return SEAL_BROKEN; /* that is all there is to it here */
}

static const struct guard_ops guard = { .open = guard_open, .unseal = guard_unseal };

static void keep(uint32_t rank, unsigned number)
{
	unsigned char bytes[2] = { (unsigned char)rank, (unsigned char)number };
	unmet_keep(net, rank, &(struct datagram){ .bytes = bytes, .len = 2, .from = 77 });
}

TEST(datagrams_of_a_rank_without_a_card_are_taken_in_their_order_when_it_has_come)
{
	net_begin("udp");
	net->guard = &guard;
	net->confirms = true;
	for (unsigned i = 0; i < 5; i++) {
		keep(2, i);
		keep(3, i);
		keep(4, i);
	}
	CHECK_IS(net->unmet_bytes, 30);
	CHECK(unmet_keeps(net, 2) && unmet_keeps(net, 4) && !unmet_keeps(net, 0));
	unmet_review(net);
	CHECK_IS(taken, 0);
	known[3] = true;
	unmet_review(net);
	CHECK_IS(taken, 5);
	for (unsigned i = 0; i < taken; i++)
		CHECK(took[i][0] == 3 && took[i][1] == i);
	CHECK(!unmet_keeps(net, 3) && unmet_keeps(net, 2));
	CHECK_IS(net->unmet_bytes, 20);
	unmet_forget(net, 2);
	CHECK(!unmet_keeps(net, 2));
	CHECK_IS(net->unmet_bytes, 10);
	known[2] = known[4] = true;
	unmet_review(net);
	CHECK_IS(taken, 10);
	CHECK(took[9][0] == 4 && took[9][1] == 4);
	CHECK_IS(net->unmet_bytes, 0);
	CHECK(!net->unmets);
	unmet_close(net);
	CHECK_IS(atomic_load(&pulse.count[PULSE_PACKETS_FOREIGN]), 0);
}

TEST(where_packets_are_sent_again_or_there_is_too_much_none_is_kept)
{
	net_begin("udp");
	keep(2, 0);
	CHECK(!unmet_keeps(net, 2));
	CHECK_IS(atomic_load(&pulse.count[PULSE_PACKETS_FOREIGN]), 1);
	net->confirms = true;
	net->unmet_bytes = ((size_t)256 << 20) - 1;
	keep(2, 0);
	CHECK(!unmet_keeps(net, 2));
	CHECK_IS(atomic_load(&pulse.count[PULSE_PACKETS_FOREIGN]), 2);
	net->unmet_bytes--;
	keep(2, 0);
	CHECK(unmet_keeps(net, 2));
	unmet_close(net);
}
