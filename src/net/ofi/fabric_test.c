/* SPDX-License-Identifier: BSD-3-Clause */
/* Opening what a rank needs of libfabric, which is played here: each step can fail. */
#include "net/ofi/fabric.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdlib.h>

#include <tern/tern.h>

#include "lib/check.h"
#include "net/ofi/port.h"

enum step { NONE, FABRIC, DOMAIN, TABLE, QUEUE, ENDPOINT, BIND, ENABLE, REGISTER, MR_BIND, STEPS };
static enum step fails;
static unsigned opened, closed, queues; /* objects */
static bool sleepless;                  /* the queue has no descriptor */
static uint64_t able = UINT64_MAX;      /* capabilities of the provider */

static int step(enum step s)
{
	return s == fails ? -FI_ENOMEM : 0;
}

/* -- The library ------------------------------------------------------------------------------- */

/* The library's own dlopen() is this one. */
void *dlopen(const char *name, int flags)
{
	void *(*real)(const char *, int);
	void *found = dlsym(RTLD_NEXT, "dlopen");
	memcpy(&real, &found, sizeof real);
	return real(name && strncmp(name, "libfabric", 9) == 0 ? NULL : name, flags);
}

struct all_of_info {
	struct fi_info info;
	struct fi_tx_attr tx;
	struct fi_rx_attr rx;
	struct fi_ep_attr ep;
	struct fi_domain_attr domain;
	struct fi_fabric_attr fabric;
};
static char provider[] = "toy", device[] = "toy0";

struct fi_info *fi_dupinfo(const struct fi_info *info)
{
	struct all_of_info *a = calloc(1, sizeof *a);
	REQUIRE(a);
	a->info.tx_attr = &a->tx;
	a->info.rx_attr = &a->rx;
	a->info.ep_attr = &a->ep;
	a->info.domain_attr = &a->domain;
	a->info.fabric_attr = &a->fabric;
	a->fabric.prov_name = provider;
	a->domain.name = device;
	a->ep.max_msg_size = 4096;
	if (info) {
		a->info.caps = info->caps;
		a->domain.mr_mode = info->domain_attr->mr_mode;
	}
	return &a->info;
}

void fi_freeinfo(struct fi_info *info)
{
	free(info);
}

int fi_getinfo(uint32_t version, const char *node, const char *service, uint64_t flags,
	       const struct fi_info *hints, struct fi_info **info)
{
	(void)version, (void)node, (void)service, (void)flags;
	if (hints->caps & ~able)
		return -FI_ENODATA;
	*info = fi_dupinfo(hints);
	return 0;
}

const char *fi_strerror(int code)
{
	return strerror(code);
}

/* -- Its objects ------------------------------------------------------------------------------- */

static int fid_close(struct fid *fid)
{
	CHECK(fid->context == NULL); /* once */
	fid->context = fid;
	closed++;
	return 0;
}

static int ep_bind(struct fid *fid, struct fid *to, uint64_t flags)
{
	(void)fid, (void)to, (void)flags;
	return step(BIND);
}

static int mr_bind(struct fid *fid, struct fid *to, uint64_t flags)
{
	(void)fid, (void)to, (void)flags;
	return step(MR_BIND);
}

static int control(struct fid *fid, int command, void *arg)
{
	(void)fid;
	if (command == FI_ENABLE)
		return step(ENABLE);
	if (sleepless)
		return -FI_ENOSYS;
	*(int *)arg = 77;
	return 0;
}

static struct fi_ops ops = { .size = sizeof ops, .close = fid_close, .control = control };
static struct fi_ops ep_ops = {
	.size = sizeof ep_ops, .close = fid_close, .bind = ep_bind, .control = control
};
static struct fi_ops mr_ops = {
	.size = sizeof mr_ops, .close = fid_close, .bind = mr_bind, .control = control
};

static ssize_t receive_none(struct fid_ep *ep, void *bytes, size_t len, void *desc, fi_addr_t from,
			    void *context)
{
	(void)ep, (void)bytes, (void)len, (void)desc, (void)from, (void)context;
	return -FI_EAGAIN;
}

static struct fi_ops_msg ep_msg_ops = { .size = sizeof ep_msg_ops, .recv = receive_none };

static struct fid_fabric fabric;
static struct fid_domain domain;
static struct fid_av table;
static struct fid_cq queue[2];
static struct fid_ep endpoint;
static struct fid_mr region[8];
static unsigned regions;

/* What cannot be opened leaves `out` as it was. */
static int object_open(enum step s, struct fid *fid, struct fi_ops *its, void *out)
{
	if (step(s))
		return step(s);
	*fid = (struct fid){ .ops = its };
	memcpy(out, &fid, sizeof fid); /* it begins with its fid */
	opened++;
	return 0;
}

static int table_open(struct fid_domain *d, struct fi_av_attr *attr, struct fid_av **out, void *c)
{
	(void)c;
	CHECK(d == &domain && attr->count == 2);
	return object_open(TABLE, &table.fid, &ops, out);
}

static int queue_open(struct fid_domain *d, struct fi_cq_attr *attr, struct fid_cq **out, void *c)
{
	(void)c;
	CHECK(d == &domain && attr->wait_obj == (queues ? FI_WAIT_NONE : FI_WAIT_FD));
	return object_open(QUEUE, &queue[queues++].fid, &ops, out);
}

static int endpoint_open(struct fid_domain *d, struct fi_info *info, struct fid_ep **out, void *c)
{
	(void)c;
	CHECK(d == &domain && info);
	endpoint.msg = &ep_msg_ops;
	return object_open(ENDPOINT, &endpoint.fid, &ep_ops, out);
}

static int region_open(struct fid *fid, const void *base, size_t len, uint64_t access, uint64_t at,
		       uint64_t key, uint64_t flags, struct fid_mr **out, void *c)
{
	(void)base, (void)len, (void)access, (void)at, (void)key, (void)flags, (void)c;
	CHECK(fid == &domain.fid);
	REQUIRE(regions < sizeof region / sizeof *region);
	return object_open(REGISTER, &region[regions++].fid, &mr_ops, out);
}

static struct fi_ops_domain domain_ops = { .size = sizeof domain_ops,
					   .av_open = table_open,
					   .cq_open = queue_open,
					   .endpoint = endpoint_open };
static struct fi_ops_mr domain_mr_ops = { .size = sizeof domain_mr_ops, .reg = region_open };

static int domain_open(struct fid_fabric *f, struct fi_info *info, struct fid_domain **out, void *c)
{
	(void)c;
	CHECK(f == &fabric && info);
	domain.ops = &domain_ops;
	domain.mr = &domain_mr_ops;
	return object_open(DOMAIN, &domain.fid, &ops, out);
}

static struct fi_ops_fabric fabric_ops = { .size = sizeof fabric_ops, .domain = domain_open };

int fi_fabric(struct fi_fabric_attr *attr, struct fid_fabric **out, void *c)
{
	(void)c;
	CHECK(strcmp(attr->prov_name, provider) == 0);
	fabric.ops = &fabric_ops;
	return object_open(FABRIC, &fabric.fid, &ops, out);
}

/* -- Opening ----------------------------------------------------------------------------------- */

static int begin(struct fabric *f, enum step s)
{
	fails = s;
	opened = closed = queues = 0;
	return fabric_open(f, "toy", 2, true);
}

static void end(struct fabric *f)
{
	fabric_close(f);
	CHECK_IS(closed, opened);
}

TEST(a_queue_is_slept_on_where_the_provider_can)
{
	struct fabric f;
	for (unsigned i = 0; i < 2; i++) {
		sleepless = i;
		CHECK_IS(begin(&f, NONE), 0);
		CHECK_IS(f.wait_fd, sleepless ? -1 : 77);
		CHECK(f.cq == &queue[i]);
		end(&f);
	}
}

TEST(what_cannot_be_opened_is_named_and_all_before_it_is_closed)
{
	static const char *const words[STEPS] = {
		[FABRIC] = "be opened",
		[DOMAIN] = "open a domain",
		[TABLE] = "make a table of addresses",
		[QUEUE] = "make a queue of completions",
		[ENDPOINT] = "open an endpoint",
		[BIND] = "open an endpoint",
		[ENABLE] = "open an endpoint",
	};
	char sentence[100];
	struct fabric f;
	for (enum step s = FABRIC; s <= ENABLE; s++) {
		CHECK_IS(begin(&f, s), -EIO);
		snprintf(sentence, sizeof sentence, "the provider toy of libfabric cannot %s: %s",
			 words[s], strerror(ENOMEM));
		CHECK(strcmp(tern_strerror(-EIO), sentence) == 0);
		end(&f);
	}
}

TEST(memory_that_cannot_be_registered_is_nothing_to_be_closed)
{
	static const enum step steps[] = { REGISTER, MR_BIND, ENABLE };
	struct fabric f;
	struct fid_mr *mr;
	char bytes[8];
	REQUIRE(begin(&f, NONE) == 0);
	f.info->domain_attr->mr_mode = FI_MR_ENDPOINT;
	for (unsigned i = 0; i < sizeof steps / sizeof *steps; i++) {
		mr = NULL;
		fails = steps[i];
		CHECK_IS(fabric_register(&f, bytes, sizeof bytes, FI_SEND, &mr), -FI_ENOMEM);
		CHECK(!mr);
	}
	fails = NONE;
	CHECK_IS(fabric_register(&f, bytes, sizeof bytes, FI_SEND, &mr), 0);
	REQUIRE(mr == &region[regions - 1]);
	fi_close(&mr->fid);
	end(&f);
}

/* -- What a provider can do ----------------------------------------------------------------- */

TEST(a_provider_can_do_what_it_must_and_as_much_of_the_rest_as_there_is)
{
	static const uint64_t some[] = { FI_MSG | FI_RMA | FI_SOURCE, FI_MSG | FI_RMA, FI_MSG };
	const struct library *l = library_open();
	struct fi_info *info;
	REQUIRE(l);
	for (unsigned i = 0; i < sizeof some / sizeof *some; i++) {
		able = some[i];
		REQUIRE(provider_find(l, "", &info) == 0);
		CHECK_IS(info->caps, some[i]);
		l->freeinfo(info);
	}
	able = FI_RMA;
	CHECK_IS(provider_find(l, "", &info), -ENOTSUP);
	CHECK(!info);
}

TEST(memory_that_peers_may_reach_is_closed_with_the_port)
{
	static char bytes[4096];
	struct ofi o = { .port = NULL };
	struct window w;
	opened = closed = 0;
	REQUIRE(port_open(&o.port, NULL, 2, "toy") == 0);
	CHECK(rma_able(o.port));
	unsigned before = opened;
	CHECK_IS(ofi_rma.expose(&o.packet.net, bytes, sizeof bytes, &w), 0);
	CHECK_IS(opened, before + 1);
	o.port->wire.ops->close(&o.port->wire);
	CHECK_IS(closed, opened);
}
