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
} services[SERVICE_KINDS] = { [SERVICE_FLOW] = { "flow", PROVIDES_ROOM },
			      [SERVICE_ORDER] = { "order", PROVIDES_ORDER },
			      [SERVICE_RETRY] = { "retry", PROVIDES_RELIABLE } };

/* What a service adds; 0 if it is none. */
static unsigned service_named(const char *name, size_t len)
{
	for (unsigned i = 0; i < SERVICE_KINDS; i++)
		if (strlen(services[i].name) == len && memcmp(services[i].name, name, len) == 0)
			return services[i].adds;
	return 0;
}

/* What TERN_SERVICE adds, into *adds, which stays as it is for auto; -EINVAL with a sentence. */
static int services_read(unsigned *adds)
{
	const char *text = setting_text(SETTING_SERVICE);
	if (strcmp(text, "auto") == 0)
		return 0;
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

/* The strategy with that name, or, if that is NULL, with that number; NULL if there is none. */
static const struct service *strategy_find(service_list all, const char *name, unsigned number)
{
	for (unsigned i = 0; all[i]; i++)
		if (all[i]->kind == SERVICE_FLOW &&
		    (name ? strcmp(all[i]->name, name) == 0 : all[i]->number == number))
			return all[i];
	return NULL;
}

/* The strategy that TERN_FLOW names; -EINVAL with a sentence. */
static int flow_read(service_list all, const struct service **out)
{
	char names[160] = "";
	size_t used = 0;
	const char *text = setting_text(SETTING_FLOW);
	*out = strategy_find(all, text, 0);
	if (*out)
		return 0;
	for (unsigned i = 0; all[i] && used < sizeof names; i++)
		if (all[i]->kind == SERVICE_FLOW)
			used += (size_t)snprintf(names + used, sizeof names - used, "%s%s",
						 used ? ", " : "", all[i]->name);
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

/* -- All of them ---------------------------------------------------------------------------- */

int service_judge(void)
{
	unsigned adds = PROVIDES_ROOM;
	int rc = services_read(&adds);
	return rc || adds & PROVIDES_ROOM ? rc : flow_absent();
}

static void service_add(struct packet_net *n, const struct service *s)
{
	n->layer[n->layers++] = s;
	n->up[n->layers] = s->up;
	if (s->ready)
		n->ready = s->ready;
}

int service_choose(struct packet_net *n)
{
	const struct service *const *all = n->service_table;
	unsigned adds = (PROVIDES_ORDER | PROVIDES_ROOM | PROVIDES_RELIABLE) & ~n->wire->provides;
	int rc = services_read(&adds);
	if (!rc)
		rc = adds & PROVIDES_ROOM ? flow_read(all, &n->flow) : flow_absent();
	n->services = adds | (n->flow ? n->flow->number << FLOW_SHIFT : 0);
	n->up[0] = landing_take;
	for (unsigned kind = 0; kind < SERVICE_KINDS; kind++) /* the highest first */
		for (unsigned i = 0; all[i]; i++)
			if (all[i]->kind == kind && adds & services[kind].adds &&
			    (kind != SERVICE_FLOW || all[i] == n->flow))
				service_add(n, all[i]);
	return rc;
}

void service_words(service_list all, unsigned added, char text[SERVICE_WORDS])
{
	const struct service *flow = strategy_find(all, NULL, added >> FLOW_SHIFT);
	const char *by = flow ? flow->name : "an unknown strategy";
	size_t used = 0;
	strcpy(text, "none");
	for (unsigned i = 0; i < SERVICE_KINDS; i++)
		if (services[i].adds & added)
			used += (size_t)snprintf(text + used, SERVICE_WORDS - used, "%s%s%s%s",
						 used ? "," : "", services[i].name,
						 i == SERVICE_FLOW ? " by " : "",
						 i == SERVICE_FLOW ? by : "");
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
