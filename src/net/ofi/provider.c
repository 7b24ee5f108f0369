/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Which provider of libfabric's carries the messages: the one that is named, or the best that there
 * is.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "net/ofi/fabric.h"

/* What is asked of a provider first, and what is done without if there is none such. */
static const uint64_t wishes[] = {
	FI_MSG | FI_RMA | FI_SOURCE,
	FI_MSG | FI_RMA,
	FI_MSG,
};

/*
 * Not chosen unless they are named: they reach one machine only, are for tests, or do slowly what
 * tern's own udp does.
 */
static const char *const lesser[] = { "shm", "sockets", "net", "udp", "UDP" };

static struct fi_info *hints_for(const struct library *l, uint64_t caps, bool ordered)
{
	struct fi_info *h = l->dupinfo(NULL);
	if (!h)
		return NULL;
	h->caps = caps;
	h->mode = FI_CONTEXT | FI_CONTEXT2;
	h->ep_attr->type = FI_EP_RDM;
	h->domain_attr->mr_mode =
		FI_MR_LOCAL | FI_MR_VIRT_ADDR | FI_MR_PROV_KEY | FI_MR_ALLOCATED | FI_MR_ENDPOINT;
	/* An endpoint is used by one thread at a time */
	h->domain_attr->threading = FI_THREAD_DOMAIN;
	h->domain_attr->resource_mgmt = FI_RM_ENABLED;
	h->domain_attr->av_type = FI_AV_TABLE;
	if (ordered)
		h->tx_attr->msg_order = h->rx_attr->msg_order = FI_ORDER_SAS;
	return h;
}

/*
 * The layers of a provider's name, as in tcp;ofi_rxm: the first carries, and is what people call
 * it.
 */
static bool provider_is(const struct fi_info *info, const char *name, size_t len)
{
	const char *full = info->fabric_attr->prov_name;
	return strncmp(full, name, len) == 0 && (full[len] == '\0' || full[len] == ';');
}

static bool provider_lesser(const struct fi_info *info)
{
	for (unsigned i = 0; i < sizeof lesser / sizeof *lesser; i++)
		if (provider_is(info, lesser[i], strlen(lesser[i])))
			return true;
	return false;
}

static bool provider_fits(const struct fi_info *info, const char *name)
{
	size_t len = strcspn(name, "/");
	if (!len)
		return !provider_lesser(info);
	return provider_is(info, name, len) &&
	       (!name[len] || strcmp(info->domain_attr->name, name + len + 1) == 0);
}

static struct fi_info *provider_pick(const struct library *l, struct fi_info *all, const char *name)
{
	for (struct fi_info *i = all; i; i = i->next)
		if (provider_fits(i, name))
			return l->dupinfo(i);
	return NULL;
}

static struct fi_info *provider_all(const struct library *l, uint64_t caps, bool ordered)
{
	struct fi_info *hints = hints_for(l, caps, ordered), *all = NULL;
	struct library_signals s = library_signals_keep();
	if (hints && l->getinfo(FI_VERSION(1, 11), NULL, NULL, 0, hints, &all) != 0)
		all = NULL;
	library_signals_restore(&s);
	if (hints)
		l->freeinfo(hints);
	return all;
}

static bool text_has(const char *text, const char *word, size_t len)
{
	for (size_t n; *text; text += n + strspn(text + n, ", ")) {
		n = strcspn(text, ",");
		if (n == len && memcmp(text, word, len) == 0)
			return true;
	}
	return false;
}

/* Adds a name that `text` does not have. */
static void name_add(char *text, size_t size, const char *name, size_t len)
{
	size_t used = strlen(text);
	if (used + len + 3 <= size && !text_has(text, name, len))
		snprintf(text + used, size - used, "%s%.*s", used ? ", " : "", (int)len, name);
}

static int provider_none(const struct library *l, const char *name)
{
	char names[300] = "", domains[300] = ""; /* that can be asked for, once each */
	struct fi_info *all = provider_all(l, FI_MSG, false);
	size_t len = strcspn(name, "/");
	for (const struct fi_info *i = all; i; i = i->next) {
		const char *full = i->fabric_attr->prov_name, *domain = i->domain_attr->name;
		name_add(names, sizeof names, full, strcspn(full, ";"));
		if (name[len] && provider_is(i, name, len))
			name_add(domains, sizeof domains, domain, strlen(domain));
	}
	if (all)
		l->freeinfo(all);
	if (*domains)
		return error_set(-EINVAL,
				 "libfabric's provider %.*s has no domain "
				 "(interface or device) '%s' here; it has %s",
				 (int)len, name, name + len + 1, domains);
	if (*name)
		return error_set(
			-EINVAL,
			"libfabric has no provider '%s' for reliable messages here; it has %s",
			name, *names ? names : "none at all");
	return error_set(-ENOTSUP,
			 "libfabric has no provider for a cluster here; "
			 "with TERN_NET=ofi/NAME one can be named of: %s",
			 *names ? names : "none");
}

int provider_find(const struct library *l, const char *name, struct fi_info **out)
{
	*out = NULL;
	for (int ordered = 1; ordered >= 0 && !*out; ordered--)
		for (unsigned i = 0; i < sizeof wishes / sizeof *wishes && !*out; i++) {
			struct fi_info *all = provider_all(l, wishes[i], ordered);
			*out = provider_pick(l, all, name);
			if (all)
				l->freeinfo(all);
		}
	return *out ? 0 : provider_none(l, name);
}
