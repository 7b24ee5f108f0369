/* SPDX-License-Identifier: BSD-3-Clause */
/* The objects of libfabric that a rank has: one endpoint, and what it takes to open it. */
#ifndef TERN_NET_OFI_FABRIC_H
#define TERN_NET_OFI_FABRIC_H

#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

#include "net/ofi/library.h"

struct fabric {
	const struct library *library;
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq; /* of everything: one read tells all */
	struct fid_ep *ep;
	int wait_fd; /* readable when the queue is not empty; -1 where the provider has no such
			thing */
};

/*
 * `name` and `also` as for provider_find(); `waits`: the queue can be slept on. What was opened is
 * closed by fabric_close(), also after an error.
 */
int fabric_open(struct fabric *f, const char *name, uint64_t also, uint32_t size, bool waits);
void fabric_close(struct fabric *f);

static inline const char *fabric_name(const struct fabric *f)
{
	return f->info->fabric_attr->prov_name;
}

static inline bool fabric_asks(const struct fabric *f, int mr_mode)
{
	return f->info->domain_attr->mr_mode & mr_mode;
}

/* Registers memory; 0 or a negative code, without a sentence. */
int fabric_register(struct fabric *f, void *base, size_t bytes, uint64_t access,
		    struct fid_mr **out);

#endif
