/* SPDX-License-Identifier: BSD-3-Clause */
/* libfabric: the library, the provider that is chosen of it, and the objects that a rank has. */
#ifndef TERN_NET_OFI_FABRIC_H
#define TERN_NET_OFI_FABRIC_H

#include <signal.h>
#include <stdbool.h>

#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>

/*
 * libfabric, loaded when it is first needed: programs that do not use this network do not wait for
 * it, and run where it is not installed. Only these few functions are looked up; the others are
 * reached through its objects.
 */
struct library {
	int (*getinfo)(uint32_t version, const char *node, const char *service, uint64_t flags,
		       const struct fi_info *hints, struct fi_info **info);
	void (*freeinfo)(struct fi_info *info);
	struct fi_info *(*dupinfo)(const struct fi_info *info); /* of NULL: an empty one */
	int (*fabric)(struct fi_fabric_attr *attr, struct fid_fabric **fabric, void *context);
	const char *(*strerror)(int code); /* of a positive one */
};

/* NULL with a sentence if it cannot be loaded. */
const struct library *library_open(void);

/*
 * Providers put functions of their own behind signals; these undo that around a call that may do
 * so. Whoever uses Tern has not asked for it.
 */
enum { LIBRARY_SIGNALS = 32 };
struct library_signals {
	struct sigaction action[LIBRARY_SIGNALS];
};
struct library_signals library_signals_keep(void);
void library_signals_restore(const struct library_signals *s);

/*
 * `name` is PROVIDER or PROVIDER/DOMAIN, as in tcp, tcp/lo, shm; empty: whichever. Freed with
 * library->freeinfo. -EINVAL with a sentence that lists what there is.
 */
int provider_find(const struct library *l, const char *name, struct fi_info **out);

/* One endpoint, and what it takes to open it. */
struct fabric {
	const struct library *library;
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_av *av;
	struct fid_cq *cq; /* of everything: one read tells all */
	struct fid_ep *ep;
	int wait_fd; /* readable when the queue is not empty; -1: the provider has none */
};

/*
 * `name` as for provider_find(); `waits`: the queue can be slept on. What was opened is closed by
 * fabric_close(), also after an error.
 */
int fabric_open(struct fabric *f, const char *name, uint32_t size, bool waits);
void fabric_close(struct fabric *f);

static inline const char *fabric_name(const struct fabric *f)
{
	return f->info->fabric_attr->prov_name;
}

static inline bool fabric_asks(const struct fabric *f, int mr_mode)
{
	return f->info->domain_attr->mr_mode & mr_mode;
}

/* Registers memory; 0 or a negative code, without a sentence, and then `out` gets NULL. */
int fabric_register(struct fabric *f, void *base, size_t bytes, uint64_t access,
		    struct fid_mr **out);

/* The same with memory of our own, where the provider asks for that. */
static inline int own_register(struct fabric *f, void *base, size_t bytes, uint64_t access,
			       struct fid_mr **out)
{
	return fabric_asks(f, FI_MR_LOCAL) ? fabric_register(f, base, bytes, access, out) : 0;
}

#endif
