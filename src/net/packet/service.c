/* SPDX-License-Identifier: BSD-3-Clause */
/* Which services a network has, and how packets go down and up through them. */
#include "net/packet/service.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/setting.h"

static const struct {
	const char *name;
	enum provides adds;
} services[] = { { "flow", PROVIDES_ROOM },
		 { "order", PROVIDES_ORDER },
		 { "retry", PROVIDES_RELIABLE } };
enum { SERVICES = sizeof services / sizeof *services };

/* What a service adds; 0 if it is none. */
static unsigned service_named(const char *name, size_t len)
{
	for (unsigned i = 0; i < SERVICES; i++)
		if (strlen(services[i].name) == len && memcmp(services[i].name, name, len) == 0)
			return services[i].adds;
	return 0;
}

static int services_read(const char *text, unsigned *adds)
{
	*adds = 0;
	if (strcmp(text, "none") == 0)
		return 0;
	for (;;) {
		size_t len = strcspn(text, ",");
		unsigned more = service_named(text, len);
		if (!more)
			return error_set(
				-EINVAL,
				"TERN_SERVICE has '%.*s', which is no service; "
				"there are order, flow and retry, and none and auto by themselves",
				(int)len, text);
		*adds |= more;
		if (!text[len])
			return 0;
		text += len + 1;
	}
}

/* -- Flow: one of several strategies ------------------------------------------------------- */

/* The strategy with that number, or the next behind it; NULL if there is none. */
static const struct service *strategy_from(service_list all, unsigned number)
{
	for (; number < FLOW_NUMBERS; number++)
		for (unsigned i = 0; all[i]; i++)
			if (all[i]->kind == SERVICE_FLOW && all[i]->number == number)
				return all[i];
	return NULL;
}

static const char *flow_name(service_list all, unsigned added)
{
	const struct service *s = strategy_from(all, added >> FLOW_SHIFT);
	return s && s->number == added >> FLOW_SHIFT ? s->name : "an unknown strategy";
}

/* The names of all strategies, as in "credit, drop and nack". */
static void strategies_write(service_list all, char *text, size_t len)
{
	const struct service *s = strategy_from(all, 0), *next;
	size_t used = 0;
	for (; s && used < len; s = next) {
		next = strategy_from(all, s->number + 1);
		bool last = !next || !strategy_from(all, next->number + 1);
		used += (size_t)snprintf(text + used, len - used, "%s%s", s->name,
					 !next  ? ""
					 : last ? " and "
						: ", ");
	}
}

/* The strategy that TERN_FLOW names; -EINVAL with a sentence. */
static int flow_read(service_list all, const struct service **out)
{
	char names[160] = "";
	const char *text = setting_text(SETTING_FLOW);
	for (unsigned i = 0; all[i]; i++)
		if (all[i]->kind == SERVICE_FLOW && strcmp(all[i]->name, text) == 0) {
			*out = all[i];
			return 0;
		}
	strategies_write(all, names, sizeof names);
	return error_set(-EINVAL, "TERN_FLOW is '%s'; there are %s", text, names);
}

int strategies_judge(service_list all)
{
	const struct service *flow;
	return flow_read(all, &flow);
}

/* There is no flow: -EINVAL with a sentence if TERN_FLOW is set all the same. */
static int flow_absent(void)
{
	return setting_given(SETTING_FLOW)
		       ? error_set(-EINVAL,
				   "TERN_FLOW is '%s', but TERN_SERVICE has no flow; "
				   "add flow to it, or unset one of them",
				   setting_text(SETTING_FLOW))
		       : 0;
}

/* The strategy that TERN_FLOW names, into n->flow; -EINVAL with a sentence. */
static int flow_choose(struct packet_net *n, service_list all)
{
	n->flow = NULL;
	if (!(n->services & PROVIDES_ROOM))
		return flow_absent();
	int rc = flow_read(all, &n->flow);
	if (!rc)
		n->services |= n->flow->number << FLOW_SHIFT;
	return rc;
}

/* -- All of them ---------------------------------------------------------------------------- */

int service_judge(void)
{
	const char *text = setting_text(SETTING_SERVICE);
	unsigned adds = PROVIDES_ROOM;
	int rc = strcmp(text, "auto") == 0 ? 0 : services_read(text, &adds);
	return rc || adds & PROVIDES_ROOM ? rc : flow_absent();
}

static void service_add(struct packet_net *n, const struct service *s)
{
	n->layer[n->layers++] = s;
	n->up[n->layers] = s->up;
	if (s->ready)
		n->ready = s->ready;
}

int service_choose(struct packet_net *n, service_list all)
{
	const char *text = setting_text(SETTING_SERVICE);
	unsigned adds = (PROVIDES_ORDER | PROVIDES_ROOM | PROVIDES_RELIABLE) & ~n->wire->provides;
	int rc = strcmp(text, "auto") == 0 ? 0 : services_read(text, &adds);
	n->services = adds;
	n->layers = 0;
	n->ready = NULL;
	if (!rc)
		rc = flow_choose(n, all);
	n->up[0] = landing_take;
	for (unsigned kind = 0; kind < SERVICE_KINDS; kind++) /* the highest first */
		for (unsigned i = 0; all[i]; i++)
			if (all[i]->kind == kind && adds & all[i]->adds &&
			    (kind != SERVICE_FLOW || all[i] == n->flow))
				service_add(n, all[i]);
	return rc;
}

void service_words(service_list all, unsigned added, char text[SERVICE_WORDS])
{
	size_t used = 0;
	strcpy(text, "none");
	for (unsigned i = 0; i < SERVICES; i++)
		if (services[i].adds & added)
			used += (size_t)snprintf(
				text + used, SERVICE_WORDS - used, "%s%s%s%s", used ? "," : "",
				services[i].name, services[i].adds == PROVIDES_ROOM ? " by " : "",
				services[i].adds == PROVIDES_ROOM ? flow_name(all, added) : "");
}

bool service_ready(struct path *p)
{
	return !p->net->ready || p->net->ready(p);
}

void service_down(struct packet *k, unsigned level)
{
	struct packet_net *n = k->path->net;
	struct path *p = k->path;
	for (; level < n->layers; level++)
		n->layer[level]->down(p, k);
	post_end(k);
	if (n->services & PROVIDES_RELIABLE)
		return;
	post_flush(n);
	record_landed(p, &k->flight.slice);
	record_acked(p, &k->flight.slice); /* nobody will ask for it again */
}

uint64_t service_tick(struct path *p, uint64_t now)
{
	uint64_t first = DUE_NEVER;
	for (unsigned i = 0; i < p->net->layers; i++) {
		uint64_t due = p->net->layer[i]->tick(p, now);
		first = due < first ? due : first;
	}
	return first;
}
