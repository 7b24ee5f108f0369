/* SPDX-License-Identifier: BSD-3-Clause */
/* Loading libfabric, and opening what a rank needs of it. */
#include "net/ofi/fabric.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/clock.h"
#include "base/error.h"

static struct library library;
static pthread_once_t loaded = PTHREAD_ONCE_INIT;
static char why[200];

static bool symbol_find(void *handle, const char *name, void *to)
{
	void *found = dlsym(handle, name);
	memcpy(to, &found, sizeof found); /* a function's pointer, which C does not convert */
	return found;
}

static void library_load(void)
{
	struct library l;
	struct library_signals s = library_signals_keep();
	void *handle = dlopen("libfabric.so.1", RTLD_NOW | RTLD_LOCAL);
	library_signals_restore(&s);
	if (!handle) {
		strncpy(why, dlerror(), sizeof why - 1);
		return;
	}
	if (symbol_find(handle, "fi_getinfo", &l.getinfo) &&
	    symbol_find(handle, "fi_freeinfo", &l.freeinfo) &&
	    symbol_find(handle, "fi_dupinfo", &l.dupinfo) &&
	    symbol_find(handle, "fi_fabric", &l.fabric) &&
	    symbol_find(handle, "fi_strerror", &l.strerror))
		library = l;
	else
		strcpy(why, "libfabric.so.1 lacks a function");
}

const struct library *library_open(void)
{
	pthread_once(&loaded, library_load);
	if (library.getinfo)
		return &library;
	error_set(-ENOTSUP,
		  "the network ofi needs libfabric (package libfabric1), which does not load: %s",
		  why);
	return NULL;
}

struct library_signals library_signals_keep(void)
{
	struct library_signals s;
	for (int i = 1; i < LIBRARY_SIGNALS; i++)
		sigaction(i, NULL, &s.action[i]);
	return s;
}

void library_signals_restore(const struct library_signals *s)
{
	struct sigaction now;
	for (int i = 1; i < LIBRARY_SIGNALS; i++)
		if (sigaction(i, NULL, &now) == 0 && now.sa_handler != s->action[i].sa_handler)
			sigaction(i, &s->action[i], NULL);
}

enum { QUEUE = 4096 }; /* completions that wait to be read, at least */

static int fabric_failed(const struct fabric *f, const char *what, int rc)
{
	return error_set(-EIO, "the provider %s of libfabric cannot %s: %s", fabric_name(f), what,
			 f->library->strerror(-rc));
}

static int queue_open(struct fabric *f, bool waits)
{
	struct fi_cq_attr attr = { .size = QUEUE,
				   .format = FI_CQ_FORMAT_DATA,
				   .wait_obj = FI_WAIT_FD };
	int rc = waits ? fi_cq_open(f->domain, &attr, &f->cq, NULL) : -FI_ENOSYS;
	if (rc == 0 && fi_control(&f->cq->fid, FI_GETWAIT, &f->wait_fd) == 0)
		return 0;
	f->wait_fd = -1;
	if (rc == 0)
		fi_close(&f->cq->fid);
	f->cq = NULL;
	attr.wait_obj = FI_WAIT_NONE;
	return fi_cq_open(f->domain, &attr, &f->cq, NULL);
}

static int endpoint_open(struct fabric *f)
{
	int rc = fi_endpoint(f->domain, f->info, &f->ep, NULL);
	if (!rc)
		rc = fi_ep_bind(f->ep, &f->av->fid, 0);
	if (!rc)
		rc = fi_ep_bind(f->ep, &f->cq->fid, FI_TRANSMIT | FI_RECV);
	return rc ? rc : fi_enable(f->ep);
}

static int objects_open(struct fabric *f, uint32_t size, bool waits)
{
	struct fi_av_attr av = { .type = FI_AV_TABLE, .count = size };
	int rc = f->library->fabric(f->info->fabric_attr, &f->fabric, NULL);
	if (rc)
		return fabric_failed(f, "be opened", rc);
	rc = fi_domain(f->fabric, f->info, &f->domain, NULL);
	if (rc)
		return fabric_failed(f, "open a domain", rc);
	rc = fi_av_open(f->domain, &av, &f->av, NULL);
	if (rc)
		return fabric_failed(f, "make a table of addresses", rc);
	rc = queue_open(f, waits);
	if (rc)
		return fabric_failed(f, "make a queue of completions", rc);
	rc = endpoint_open(f);
	return rc ? fabric_failed(f, "open an endpoint", rc) : 0;
}

int fabric_open(struct fabric *f, const char *name, uint32_t size, bool waits)
{
	*f = (struct fabric){ .library = library_open(), .wait_fd = -1 };
	if (!f->library)
		return -ENOTSUP;
	int rc = provider_find(f->library, name, &f->info);
	if (rc)
		return rc;
	struct library_signals s = library_signals_keep();
	rc = objects_open(f, size, waits);
	library_signals_restore(&s);
	return rc;
}

void fabric_close(struct fabric *f)
{
	if (f->ep)
		fi_close(&f->ep->fid);
	if (f->cq)
		fi_close(&f->cq->fid);
	if (f->av)
		fi_close(&f->av->fid);
	if (f->domain)
		fi_close(&f->domain->fid);
	if (f->fabric)
		fi_close(&f->fabric->fid);
	if (f->info)
		f->library->freeinfo(f->info);
}

/*
 * Whoever can reach the endpoint and has the key can reach the memory, so it must not be guessed.
 */
static uint64_t key_new(const struct fabric *f)
{
	uint64_t key = 0;
	size_t bytes = f->info->domain_attr->mr_key_size;
	if (getrandom(&key, bytes < sizeof key ? bytes : sizeof key, 0) < 0)
		key = clock_ns();
	return key;
}

int fabric_register(struct fabric *f, void *base, size_t bytes, uint64_t access,
		    struct fid_mr **out)
{
	int rc = fi_mr_reg(f->domain, base, bytes, access, 0, key_new(f), 0, out, NULL);
	if (rc || !fabric_asks(f, FI_MR_ENDPOINT))
		return rc;
	rc = fi_mr_bind(*out, &f->ep->fid, 0);
	if (!rc)
		rc = fi_mr_enable(*out);
	if (rc) {
		fi_close(&(*out)->fid);
		*out = NULL;
	}
	return rc;
}
