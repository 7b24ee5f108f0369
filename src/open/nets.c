/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * TERN_NET, read with the table of networks, and opening those that it names. No network is named
 * here. `fabric` is seq_cst: it is written once a job, and read while ranks open.
 */
#include "open/nets.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "base/setting.h"
#include "net/packet/terms.h"

enum { AGREE_NAP_NS = 1000000 };

/*
 * The first network of that span in the table; `devices`: the first that has some, or that has
 * none.
 */
static const struct net_ops *net_with(enum net_span span, bool devices)
{
	for (unsigned i = 0; net_table[i]; i++)
		if (net_table[i]->span == span && !net_table[i]->device == !devices)
			return net_table[i];
	return NULL;
}

/* -- TERN_NET -------------------------------------------------------------------------------- */

/*
 * The network that `text` names, and in *how what stands behind its name and a slash. NULL if there
 * is none.
 */
static const struct net_ops *net_named(const char *text, enum net_span span, const char **how)
{
	for (unsigned i = 0; net_table[i]; i++) {
		const struct net_ops *ops = net_table[i];
		size_t len = strlen(ops->name);
		bool named = ops->span == span && strncmp(text, ops->name, len) == 0;
		if (!named || (text[len] && (text[len] != '/' || !ops->variants)))
			continue;
		*how = text[len] ? text + len + 1 : "";
		return ops;
	}
	return NULL;
}

/* NEAR; FAR; or NEAR,FAR. */
static bool nets_text_read(struct nets *n, const char *text)
{
	const struct net_ops *near = net_with(SPAN_MACHINE, false);
	size_t len = near ? strlen(near->name) : 0;
	bool local =
		near && strncmp(text, near->name, len) == 0 && (!text[len] || text[len] == ',');
	if (local)
		n->near = near;
	if (local && !text[len])
		return true;
	n->far = net_named(local ? text + len + 1 : text, SPAN_JOB, &n->how);
	return n->far;
}

/* Every name that TERN_NET can have, as in "shm, udp". */
static void net_names_write(char *text, size_t len)
{
	size_t used = 0;
	*text = 0;
	for (unsigned i = 0; net_table[i]; i++) {
		const struct net_ops *ops = net_table[i];
		if (ops->span != SPAN_SELF && used < len)
			used += (size_t)snprintf(text + used, len - used, ", %s",
						 ops->variants ? ops->variants : ops->name);
	}
}

static int nets_read(struct nets *n)
{
	char names[200];
	const char *text = setting_text(SETTING_NET);
	*n = (struct nets){ .self = net_with(SPAN_SELF, false), .how = "" };
	if (strcmp(text, "auto") == 0) {
		n->near = net_with(SPAN_MACHINE, false);
		return 0;
	}
	if (nets_text_read(n, text))
		return 0;
	net_names_write(names, sizeof names);
	return error_set(
		-EINVAL,
		"TERN_NET is '%s'; it can be auto%s, or %s and one of these with a comma between",
		text, names, net_with(SPAN_MACHINE, false)->name);
}

int nets_judge(void)
{
	struct nets n;
	return nets_read(&n);
}

void nets_world(void)
{
	struct nets n;
	if (nets_read(&n) == 0 && n.far && n.far->world)
		world_use(n.far->world);
}

/* Waits, if this machine has a fabric, until it is known whether all have. */
static const struct net_ops *far_auto(struct job_head *head, const struct world *w)
{
	if (head->machines == 1)
		return NULL;
	if (!nets_fabric_here())
		return net_with(SPAN_JOB, false);
	while (!atomic_load(&head->fabric))
		w->nap(AGREE_NAP_NS);
	return net_with(SPAN_JOB, atomic_load(&head->fabric) == FABRIC_ALL);
}

/* -EINVAL with a sentence. */
static int nets_select(struct nets *n, struct job_head *head, const struct world *w)
{
	const char *text = setting_text(SETTING_NET);
	int rc = nets_read(n);
	if (rc)
		return rc;
	if (strcmp(text, "auto") == 0)
		n->far = far_auto(head, w);
	if (head->machines > 1 && !n->far)
		return error_set(
			-EINVAL,
			"TERN_NET is '%s', which reaches the ranks of one machine, and the job "
			"has %u "
			"machines: leave it alone, or say %s,%s",
			text, head->machines, text, net_with(SPAN_JOB, false)->name);
	return 0;
}

/* -- Opening them ----------------------------------------------------------------------------- */

/* No packet can be lost if shared memory reaches every rank. */
static void fault_warn(const struct endpoint *e)
{
	if (e->site.rank == 0 && *setting_text(SETTING_FAULT))
		error_warn(
			"TERN_FAULT is set, but shared memory has no packets to harm, so nothing "
			"goes wrong: "
			"set TERN_NET=%s beside it",
			net_with(SPAN_JOB, false)->name);
}

/* `near`: the network among the ranks of this machine, or NULL. */
static int net_open(struct endpoint *e, struct group *g, const struct net_ops *ops,
		    struct net *near, const char *how)
{
	int rc = ops->open(&e->net[e->nets], &e->site, &g->job, near, how);
	e->nets += !rc;
	return rc;
}

int nets_open(struct endpoint *e, struct group *g)
{
	struct nets nets;
	struct net *near = NULL;
	int rc = nets_select(&nets, g->job.head, e->world);
	if (!rc)
		rc = net_open(e, g, nets.self, NULL, "");
	if (!rc && nets.near) {
		rc = net_open(e, g, nets.near, NULL, "");
		near = rc ? NULL : e->net[1];
	}
	if (rc)
		return rc;
	if (near && g->job.head->machines == 1)
		fault_warn(e);
	if (nets.far)
		return net_open(e, g, nets.far, near, nets.how);
	terms_publish_local(&g->job, e->site.rank);
	return 0;
}

void nets_close(struct endpoint *e)
{
	for (; e->nets; e->nets--)
		e->net[e->nets - 1]->ops->close(e->net[e->nets - 1]);
}
