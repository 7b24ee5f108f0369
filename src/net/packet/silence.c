/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Peers that do not answer. A peer owes an answer while something sent to it is not acknowledged;
 * where nothing is acknowledged, it is asked from time to time. After TERN_KEEPALIVE seconds the
 * user is told, and told again when the peer is back. The peer may compute, or the network may be
 * cut, and nobody can tell from here; so the peer is never taken for dead. It is given up, and
 * calls that need it return -EHOSTUNREACH,
 *
 *   - if the user wants that (TERN_UNREACHABLE=fail);
 *   - if this machine refuses to send to it, which waiting does not change;
 *   - if messages were lost on a wire that promised to lose none, because nobody will send them
 *     again.
 *
 * A peer of this machine shows in the job's memory whether it polls: while it does not, it
 * computes, and all is well.
 */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/setting.h"
#include "job/exchange.h"
#include "net/packet/packet.h"
#include "net/packet/service.h"

enum {
	REVIEWS = 4,            /* in the time after which a peer counts as silent */
	DOUBLINGS_MOST = 10,    /* of that time, once for each time that it came back */
	RECENT_NS = 1000000000, /* retry sends at least every 0.4 s, so an older failure is over */
};
#define SECOND UINT64_C(1000000000)
#define LOSSY_NS \
	(30 * SECOND) /* without TERN_KEEPALIVE: time for the news that the peer has ended */

int unreachable_judge(void)
{
	const char *text = setting_text(SETTING_UNREACHABLE);
	if (strcmp(text, "wait") == 0 || strcmp(text, "fail") == 0)
		return 0;
	return error_set(-EINVAL, "TERN_UNREACHABLE is '%s'; it is wait or fail", text);
}

int silence_open(struct packet_net *n)
{
	uint64_t seconds;
	int rc = setting_number(SETTING_KEEPALIVE, &seconds);
	if (!rc)
		rc = unreachable_judge();
	if (rc)
		return rc;
	n->patience = seconds * SECOND;
	n->fails = strcmp(setting_text(SETTING_UNREACHABLE), "fail") == 0;
	return 0;
}

/* -- What is known --------------------------------------------------------------------------- */

static struct failure failure_of(const struct path *p)
{
	struct failure f = { 0 };
	struct wire *w = p->net->wire;
	if (w->ops->failed)
		w->ops->failed(w, p->rank, &f);
	return f;
}

/*
 * Errors that come and go with the network between the machines; all others are this machine's own.
 */
static bool error_of_way(int error)
{
	switch (error) {
	case ENETUNREACH:
	case EHOSTUNREACH:
	case ENETDOWN:
	case EHOSTDOWN:
	case ECONNREFUSED:
	case EAGAIN:
	case ENOBUFS:
	case ENOMEM:
	case EMSGSIZE:
		return true;
	default:
		return false;
	}
}

/* Since when it has owed an answer, ns; 0: it does not. */
static uint64_t owing_since(const struct path *p)
{
	if (p->silence.lossy)
		return p->silence.lossy;
	if (p->transit.tries)
		return p->transit.overdue;
	if (p->net->confirms)
		return p->confirm.asked ? p->confirm.since : 0;
	return p->spoken && !p->heard ? p->spoken : 0;
}

/*
 * Where nothing is acknowledged. A question that was not answered may have been lost itself. So may
 * the news of a loss, and whoever found a loss answers no questions.
 */
static void silence_ask(struct path *p)
{
	uint64_t sent = p->confirm.sent + p->confirm.moves;
	if (p->silence.lossy) {
		p->pending_control |= 1u << NEWS_LOST;
		path_mark_dirty(p);
	} else if (p->confirm.asked) {
		p->pending_control |= 1u << NEWS_ASK;
		path_mark_dirty(p);
	} else if (sent != p->silence.asked) {
		p->silence.asked = sent;
		path_question(p);
	}
}

static uint64_t polls_of(const struct path *p)
{
	return stats_get(&p->net->job->pulse[p->rank].count[PULSE_BELLS]);
}

void silence_watch(struct path *p)
{
	p->silence.polls = polls_of(p);
}

bool silence_computes(const struct path *p)
{
	return job_here(p->net->job, p->rank) && polls_of(p) == p->silence.polls;
}

/* -- What is said ---------------------------------------------------------------------------- */

enum { PEER_MOST = TERMS_HOST_MOST + 32, ADVICE_MOST = 400 };

static const char *peer_text(const struct path *p, char text[PEER_MOST])
{
	struct card_front card;
	bool known = card_read(p->net->job, p->rank, &card, sizeof card);
	snprintf(text, PEER_MOST, "rank %u on %.*s", p->rank, known ? TERMS_HOST_MOST : 20,
		 known ? card.terms.host : "an unknown machine");
	return text;
}

/* What stands in the way, and what to do about it. */
static const char *advice_text(const struct path *p, const struct failure *f,
			       char text[ADVICE_MOST])
{
	if (p->silence.lossy)
		snprintf(text, ADVICE_MOST,
			 "messages were lost, as when a connection breaks%s%s; with "
			 "TERN_SERVICE=order,flow,retry "
			 "Tern sends again what is lost",
			 f->error ? ": " : "", f->error ? strerror(f->error) : "");
	else if (!f->error && job_here(p->net->job, p->rank))
		snprintf(text, ADVICE_MOST,
			 "it polls, so something in this machine "
			 "lets nothing through, such as a firewall");
	else if (!f->error)
		snprintf(text, ADVICE_MOST,
			 "it computes and does not poll, or something between the two lets nothing "
			 "through, such as a "
			 "cable, a firewall or a wrong interface, see tern-net(7)");
	else
		snprintf(
			text, ADVICE_MOST, "sending to %s fails: %s; %s", f->where,
			strerror(f->error),
			error_of_way(f->error)
				? "look at this machine's interfaces and routes (ip link, ip route)"
				: "a firewall or a sandbox of this machine must allow it");
	return text;
}

int silence_check(struct path *p)
{
	char peer[PEER_MOST], advice[ADVICE_MOST];
	bool left = job_rank_state(p->net->job, p->rank) > RANK_OPEN;
	return error_set(-EHOSTUNREACH, "rank %u cannot reach %s, %s: %s", p->net->net.site->rank,
			 peer_text(p, peer),
			 left ? "which has left" : "though that rank is not known to have ended",
			 advice_text(p, &p->silence.f, advice));
}

static void silence_warn(const struct path *p, const struct failure *f, uint64_t since)
{
	char peer[PEER_MOST], advice[ADVICE_MOST];
	error_warn("rank %u has had no answer from %s for %llu s: %s; rank %u waits for it "
		   "(TERN_UNREACHABLE)",
		   p->net->net.site->rank, peer_text(p, peer),
		   (unsigned long long)((clock_ns() - since) / SECOND), advice_text(p, f, advice),
		   p->net->net.site->rank);
}

static void silence_ended(struct path *p)
{
	struct silence *s = &p->silence;
	char peer[PEER_MOST];
	if (s->warned)
		error_warn("%s answers rank %u again", peer_text(p, peer), p->net->net.site->rank);
	s->again += s->warned && s->again < DOUBLINGS_MOST;
	s->warned = false;
}

/* -- Reviews ----------------------------------------------------------------------------------- */

/* A failure that is over explains nothing, but where nobody sends again it was a loss. */
static enum verdict path_judge(struct path *p, struct failure *f)
{
	const struct packet_net *n = p->net;
	if (n->confirms && f->first && !p->silence.lossy)
		p->silence.lossy = f->first;
	if (p->silence.lossy)
		return VERDICT_LOSSY;
	if (f->error && clock_ns() - f->last > RECENT_NS)
		f->error = 0;
	bool refused = f->error && !error_of_way(f->error);
	return refused || n->fails ? VERDICT_CUT : VERDICT_WAIT;
}

/* It has owed an answer for too long. */
static void silence_over(struct path *p, struct failure *f, enum verdict v)
{
	struct silence *s = &p->silence;
	if (v == VERDICT_WAIT) {
		if (!s->warned)
			silence_warn(p, f, s->owing);
		s->warned = true;
		return;
	}
	s->f = *f;
	s->over = v;
	p->net->unreachable++;
	/* The program may never call what this rank is needed for, and so not learn of it. */
	error_warn("%s", tern_strerror(silence_check(p)));
}

/* When this peer wants to be looked at again, ns. */
static uint64_t path_review(struct path *p, uint64_t now)
{
	const struct packet_net *n = p->net;
	struct silence *s = &p->silence;
	struct failure f = failure_of(p);
	enum verdict v = path_judge(p, &f);
	uint64_t since = owing_since(p);
	uint64_t patience = n->patience << (v == VERDICT_WAIT ? s->again : 0);
	if (n->confirms && n->patience)
		silence_ask(p);
	if (!since) {
		silence_ended(p);
		return DUE_NEVER;
	}
	if (s->owing != since) {
		s->owing = since;
		silence_watch(p);
	}
	if (!patience && v == VERDICT_LOSSY)
		patience = LOSSY_NS;
	if (!patience)
		return DUE_NEVER;
	if (now - since < patience)
		return since + patience;
	if (v == VERDICT_LOSSY || !silence_computes(p))
		silence_over(p, &f, v);
	return DUE_NEVER;
}

uint64_t silence_review(struct packet_net *n)
{
	uint64_t due = n->patience ? n->now + n->patience / REVIEWS : DUE_NEVER;
	for (uint32_t i = 0; i < n->actives; i++) {
		struct path *p = n->path[n->active[i]];
		uint64_t at = p->gone || p->silence.over ? DUE_NEVER : path_review(p, n->now);
		due = at < due ? at : due;
	}
	return due;
}

/* -- Losses on a wire that promised none ------------------------------------------------------- */

void silence_missed(struct packet_net *n, uint32_t rank)
{
	struct path *p = path_to(n, rank);
	if (p)
		p->silence.missed = true;
	if (!p || p->silence.lossy)
		return;
	p->silence.lossy = n->now;
	p->pending_control |= 1u << NEWS_LOST;
	path_mark_dirty(p);
}

void silence_told(struct path *p)
{
	if (p->net->confirms && !p->silence.lossy)
		p->silence.lossy = p->net->now;
}
