/* SPDX-License-Identifier: BSD-3-Clause */
/* Comparing the terms on cards: see terms.h. */
#include "net/packet/terms.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/error.h"
#include "base/setting.h"
#include "job/exchange.h"
#include "net/packet/packet.h"
#include "net/packet/service.h"

/*
 * Ranks that are to talk open at about the same time; one that never opens is asked for ever more
 * rarely.
 */
enum { REVIEW_FIRST_NS = 10000000, REVIEW_MOST_NS = 1000000000 };

static const char *const protections[] = { "none", "auth", "encrypt" };
enum { PROTECTIONS = sizeof protections / sizeof *protections };

enum meeting { MEETING_NOT_YET, MEETING_FITS, MEETING_STRANGE };

int guard_mode_read(enum guard_mode *mode)
{
	const char *text = setting_text(SETTING_PROTECT);
	if (strcmp(text, "auto") == 0)
		return 0;
	for (unsigned i = 0; i < PROTECTIONS; i++)
		if (strcmp(text, protections[i]) == 0) {
			*mode = (enum guard_mode)i;
			return 0;
		}
	return error_set(-EINVAL, "TERN_PROTECT is '%s'; it can be auto, none, auth or encrypt",
			 text);
}

void terms_write(struct terms *t, bool local, const char *net, const char *provider)
{
	snprintf(t->net, sizeof t->net, "%s%s%s%s%s", local ? "shm" : "", local && *net ? "," : "",
		 net, *provider ? "/" : "", provider);
	gethostname(t->host, sizeof t->host - 1);
}

void terms_publish_local(struct job *job, uint32_t rank)
{
	struct card_front card = { 0 };
	terms_write(&card.terms, true, "", "");
	card_publish(job, rank, &card, sizeof card);
}

/* Ranks that shared memory reaches are not met here; nobody is, if the network has no name. */
void terms_open(struct packet_net *n)
{
	uint32_t size = n->net.site->size;
	n->terms.services = (uint8_t)n->services;
	for (uint32_t r = 0; r < size; r++)
		if (!*n->terms.net || r == n->net.site->rank || (n->local && job_here(n->job, r)))
			n->met[r] = MEETING_FITS;
		else
			n->unmet++;
	n->review_gap = REVIEW_FIRST_NS;
}

static bool terms_same(const struct terms *a, const struct terms *b)
{
	return strncmp(a->net, b->net, sizeof a->net) == 0 && a->services == b->services &&
	       a->protects == b->protects;
}

static void terms_meet(struct packet_net *n, uint32_t rank)
{
	struct card_front card;
	if (!card_read(n->job, rank, &card, sizeof card))
		return;
	bool same = terms_same(&card.terms, &n->terms);
	n->met[rank] = same ? MEETING_FITS : MEETING_STRANGE;
	n->unmet--;
	n->strangers += !same;
}

bool terms_fit(struct packet_net *n, uint32_t rank)
{
	if (n->met[rank] == MEETING_NOT_YET)
		terms_meet(n, rank);
	return n->met[rank] != MEETING_STRANGE;
}

uint64_t terms_review(struct packet_net *n)
{
	if (!n->unmet || n->now < n->review)
		return n->unmet ? n->review : DUE_NEVER;
	for (uint32_t r = 0; r < n->net.site->size; r++)
		terms_fit(n, r);
	n->review = n->now + n->review_gap;
	n->review_gap = 2 * n->review_gap < REVIEW_MOST_NS ? 2 * n->review_gap : REVIEW_MOST_NS;
	return n->unmet ? n->review : DUE_NEVER;
}

static int strange(uint32_t rank, const struct terms *t, const char *what, const char *theirs,
		   const char *ours, const char *settings)
{
	return error_set(
		-EPROTO,
		"rank %u on %.*s has %s %s, and this rank %s, so they cannot talk: set %s to the "
		"same for all ranks",
		rank, (int)sizeof t->host, t->host, what, theirs, ours, settings);
}

int terms_check(const struct packet_net *n, uint32_t rank)
{
	struct card_front card;
	char theirs[SERVICE_WORDS], ours[SERVICE_WORDS];
	if (n->met[rank] != MEETING_STRANGE)
		return 0;
	/* It may have left since, for its next session. */
	if (!card_read(n->job, rank, &card, sizeof card))
		return error_set(-EPROTO,
				 "rank %u had another network, or other services: "
				 "set TERN_NET, TERN_SERVICE, "
				 "TERN_FLOW and TERN_PROTECT to the same for all ranks",
				 rank);
	const struct terms *t = &card.terms;
	if (strncmp(t->net, n->terms.net, sizeof t->net) != 0) {
		snprintf(theirs, sizeof theirs, "%.*s", (int)sizeof t->net, t->net);
		return strange(rank, t, "the network", theirs, n->terms.net, "TERN_NET");
	}
	if (t->services != n->terms.services) {
		service_words(n->service_table, t->services, theirs);
		service_words(n->service_table, n->terms.services, ours);
		return strange(rank, t, "the services", theirs, ours, "TERN_SERVICE and TERN_FLOW");
	}
	return strange(rank, t, "the protection", protections[t->protects % PROTECTIONS],
		       protections[n->terms.protects % PROTECTIONS], "TERN_PROTECT");
}
