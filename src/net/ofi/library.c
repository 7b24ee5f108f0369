/* SPDX-License-Identifier: BSD-3-Clause */
#include "net/ofi/library.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

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
	struct library_signals *s = library_signals_keep();
	void *handle = dlopen("libfabric.so.1", RTLD_NOW | RTLD_LOCAL);
	library_signals_restore(s);
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

struct library_signals {
	struct sigaction action[LIBRARY_SIGNALS];
};

struct library_signals *library_signals_keep(void)
{
	struct library_signals *s = calloc(1, sizeof *s);
	for (int i = 1; s && i < LIBRARY_SIGNALS; i++)
		sigaction(i, NULL, &s->action[i]);
	return s;
}

void library_signals_restore(struct library_signals *s)
{
	struct sigaction now;
	for (int i = 1; s && i < LIBRARY_SIGNALS; i++)
		if (sigaction(i, NULL, &now) == 0 && now.sa_handler != s->action[i].sa_handler)
			sigaction(i, &s->action[i], NULL);
	free(s);
}

/* cost: base setup */
