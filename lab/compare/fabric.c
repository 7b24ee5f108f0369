/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The back end for libfabric: reliable datagrams, through the provider that COMPARE_PROVIDER names
 * (shm, tcp). Every message is a send into a receive that was posted before.
 */
#include <rdma/fabric.h>
#include <rdma/fi_cm.h>
#include <rdma/fi_domain.h>
#include <rdma/fi_endpoint.h>
#include <rdma/fi_errno.h>
#include <rdma/fi_rma.h>
#include <rdma/fi_tagged.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "pair.h"
#include "peer.h"

enum { NAME = 256, KEY_OWN = 7, TAG_WORD = 1, TAG_STREAM };

/* An operation under way. libfabric gives `context` back with its completion. */
struct op {
	struct fi_context context;
	uint64_t done;
};

static struct fi_info *info;
static struct fid_fabric *fabric;
static struct fid_domain *domain;
static struct fid_ep *end;
static struct fid_av *addresses;
static struct fid_cq *queue;
static fi_addr_t other;

static void must(int64_t rc, const char *call)
{
	if (rc < 0)
		pair_fail(call, fi_strerror((int)-rc));
}

void pair_progress(void)
{
	struct fi_cq_entry entry[PEER_WINDOW];
	ssize_t n = fi_cq_read(queue, entry, PEER_WINDOW);
	if (n == -FI_EAGAIN)
		pair_idle();
	else
		must(n, "fi_cq_read");
	for (ssize_t i = 0; i < n; i++)
		((struct op *)entry[i].op_context)->done = 1;
}

static void finish(struct op *op)
{
	while (!op->done)
		pair_progress();
}

/* Calls until there is room for the operation. */
#define START(op, call)                              \
	do {                                         \
		ssize_t rc_;                         \
		(op)->done = 0;                      \
		while ((rc_ = (call)) == -FI_EAGAIN) \
			pair_progress();             \
		must(rc_, #call);                    \
	} while (0)

static void info_find(void)
{
	struct fi_info *hints = fi_allocinfo();
	const char *provider = getenv("COMPARE_PROVIDER");
	hints->ep_attr->type = FI_EP_RDM;
	hints->caps = FI_TAGGED | FI_RMA;
	hints->mode = FI_CONTEXT;
	hints->domain_attr->mr_mode = FI_MR_VIRT_ADDR | FI_MR_ALLOCATED | FI_MR_PROV_KEY;
	hints->domain_attr->threading = FI_THREAD_DOMAIN;
	hints->fabric_attr->prov_name = strdup(provider ? provider : "shm");
	must(fi_getinfo(FI_VERSION(1, 17), NULL, NULL, 0, hints, &info), "fi_getinfo");
	fi_freeinfo(hints);
}

static void end_open(void)
{
	struct fi_av_attr table = { .type = FI_AV_TABLE };
	struct fi_cq_attr contexts = { .format = FI_CQ_FORMAT_CONTEXT, .size = 1024 };
	must(fi_fabric(info->fabric_attr, &fabric, NULL), "fi_fabric");
	must(fi_domain(fabric, info, &domain, NULL), "fi_domain");
	must(fi_endpoint(domain, info, &end, NULL), "fi_endpoint");
	must(fi_av_open(domain, &table, &addresses, NULL), "fi_av_open");
	must(fi_cq_open(domain, &contexts, &queue, NULL), "fi_cq_open");
	must(fi_ep_bind(end, &addresses->fid, 0), "fi_ep_bind");
	must(fi_ep_bind(end, &queue->fid, FI_TRANSMIT | FI_RECV), "fi_ep_bind");
	must(fi_enable(end), "fi_enable");
}

void pair_open(void)
{
	char name[NAME] = { 0 };
	size_t len = sizeof name;
	info_find();
	end_open();
	must(fi_getname(&end->fid, name, &len), "fi_getname");
	pair_exchange(name, name, sizeof name);
	if (fi_av_insert(addresses, name, 1, &other, 0, NULL) != 1)
		pair_fail("fi_av_insert", "the other rank's address is refused");
}

/* The end of the process frees the rest. */
void pair_close(void)
{
	fi_close(&end->fid);
}

/* -- Messages ------------------------------------------------------------------------ */

static void op_send(struct op *op, const void *data, size_t len, uint64_t tag)
{
	START(op, fi_tsend(end, data, len, NULL, other, tag, &op->context));
}

static void op_receive(struct op *op, void *data, size_t len, uint64_t tag)
{
	START(op, fi_trecv(end, data, len, NULL, other, tag, 0, &op->context));
}

/* A word needs no completion at the sender. */
static void word_send(uint64_t word)
{
	struct op op;
	START(&op, fi_tinject(end, &word, sizeof word, other, TAG_WORD));
}

/* There is no shorter message than a send. */
uint64_t peer_trips(uint64_t count)
{
	struct op op;
	uint64_t sum = 0, word;
	for (uint64_t i = 0; i < count; i++) {
		op_receive(&op, &word, sizeof word, TAG_WORD);
		if (peer_rank() == 0)
			word_send(i);
		finish(&op);
		sum += word;
		if (peer_rank() == 1)
			word_send(word + 1);
	}
	return sum;
}

void peer_words_send(uint64_t count)
{
	for (uint64_t i = 0; i < count; i++)
		word_send(i);
}

/* PEER_BURST receives are posted ahead. */
uint64_t peer_words_take(uint64_t count)
{
	struct op op[PEER_BURST];
	uint64_t word[PEER_BURST], sum = 0, posted = 0;
	for (uint64_t i = 0; i < count; i++) {
		for (; posted < count && posted < i + PEER_BURST; posted++)
			op_receive(&op[posted % PEER_BURST], &word[posted % PEER_BURST],
				   sizeof *word, TAG_WORD);
		finish(&op[i % PEER_BURST]);
		sum += word[i % PEER_BURST];
	}
	return sum;
}

void peer_stream(double *data, size_t n, size_t apart, size_t places, uint64_t count)
{
	struct op op[PEER_WINDOW] = { 0 };
	for (uint64_t i = 0; i < count + PEER_WINDOW; i++) {
		double *at = data + i % places * apart;
		if (i >= PEER_WINDOW && i - PEER_WINDOW < count)
			finish(&op[i % PEER_WINDOW]);
		if (i >= count)
			continue;
		if (peer_rank() == 0)
			op_send(&op[i % PEER_WINDOW], at, n * sizeof *at, TAG_STREAM);
		else
			op_receive(&op[i % PEER_WINDOW], at, n * sizeof *at, TAG_STREAM);
	}
}

/* -- Memory of the other rank ---------------------------------------------------------- */

static double *memory;
static struct {
	uint64_t key, base; /* of rank 1's memory */
} theirs;

double *peer_memory(size_t bytes)
{
	struct fid_mr *region;
	memory = aligned_alloc(4096, bytes);
	if (!memory)
		pair_fail("aligned_alloc", "no memory");
	must(fi_mr_reg(domain, memory, bytes, FI_REMOTE_WRITE | FI_REMOTE_READ, 0, KEY_OWN, 0,
		       &region, NULL),
	     "fi_mr_reg");
	theirs.key = fi_mr_key(region);
	theirs.base = info->domain_attr->mr_mode & FI_MR_VIRT_ADDR ? (uintptr_t)memory : 0;
	pair_exchange(&theirs, &theirs, sizeof theirs);
	return memory;
}

void peer_put(double *at, size_t n)
{
	struct op op;
	struct iovec from = { at, n * sizeof *at };
	struct fi_rma_iov to = { theirs.base + (uint64_t)(at - memory) * sizeof *at, from.iov_len,
				 theirs.key };
	struct fi_msg_rma put = { .msg_iov = &from,
				  .iov_count = 1,
				  .addr = other,
				  .rma_iov = &to,
				  .rma_iov_count = 1,
				  .context = &op.context };
	START(&op, fi_writemsg(end, &put, FI_DELIVERY_COMPLETE | FI_COMPLETION));
	finish(&op);
}

void peer_get(double *at, size_t n)
{
	struct op op;
	uint64_t from = theirs.base + (uint64_t)(at - memory) * sizeof *at;
	START(&op, fi_read(end, at, n * sizeof *at, NULL, other, from, theirs.key, &op.context));
	finish(&op);
}
