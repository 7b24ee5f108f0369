/* SPDX-License-Identifier: BSD-3-Clause */
#include "service/service.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/setting.h"

static const struct {
	const char *name;
	enum provides adds;
} services[] = { { "flow", PROVIDES_ROOM }, { "order", PROVIDES_ORDER }, { "retry", PROVIDES_RELIABLE } };
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
				"TERN_SERVICE has '%.*s', which is no service; there are order, flow and "
				"retry, and none and auto by themselves",
				(int)len, text);
		*adds |= more;
		if (!text[len])
			return 0;
		text += len + 1;
	}
}

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
	if (s->ready)
		n->ready[n->readies++] = s->ready;
}

int service_choose(struct packet_net *n)
{
	const char *text = setting_text(SETTING_SERVICE);
	unsigned adds = (PROVIDES_ORDER | PROVIDES_ROOM | PROVIDES_RELIABLE) & ~n->wire->provides;
	int rc = strcmp(text, "auto") == 0 ? 0 : services_read(text, &adds);
	n->services = adds;
	n->layers = n->readies = 0;
	if (!rc)
		rc = flow_choose(n);
	if (n->flow) /* the highest first */
		service_add(n, n->flow);
	if (adds & PROVIDES_ORDER)
		service_add(n, &order_service);
	if (adds & PROVIDES_RELIABLE)
		service_add(n, &retry_service);
	return rc;
}

void service_words(unsigned added, char text[SERVICE_WORDS])
{
	size_t used = 0;
	strcpy(text, "none");
	for (unsigned i = 0; i < SERVICES; i++)
		if (services[i].adds & added)
			used += (size_t)snprintf(text + used, SERVICE_WORDS - used, "%s%s%s%s",
						 used ? "," : "", services[i].name,
						 services[i].adds == PROVIDES_ROOM ? " by " : "",
						 services[i].adds == PROVIDES_ROOM ? flow_name(added) : "");
}

bool service_ready(struct path *p)
{
	for (unsigned i = 0; i < p->net->readies; i++)
		if (!p->net->ready[i](p))
			return false;
	return true;
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

bool service_up(struct path *p, struct arrival *a, unsigned level)
{
	return level ? p->net->layer[level - 1]->up(p, a, level - 1) : landing_take(p, a);
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

/* cost: base control */
