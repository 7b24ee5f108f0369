/* SPDX-License-Identifier: BSD-3-Clause */
/* The endpoint that refuses every call, and the sentences about it. */
#include "endpoint/misuse.h"

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

union misuse_state misuse_state = { .e = &misuse_endpoint };

static struct tern no_head = { .own = &misuse_endpoint,
			       .answer = &misuse_endpoint.refuse,
			       .alert = ALERT_LIBRARY,
			       .guard = &misuse_endpoint.owner.scratch,
			       .looks = UINT32_MAX };

struct endpoint misuse_endpoint = { .t = &no_head,
				    .forked = NO_ENDPOINT,
				    .owner.guard = &misuse_endpoint.owner.scratch,
				    .attached = UINTPTR_MAX - 1, /* nobody's */
				    .layer = { [0 ... LAYERS_MOST - 1] = &misuse_state },
				    .owner.delivery = TERN_DELIVERY_POLL,
				    .owner.guarded = true };

/* What this thread's call was given, until misuse_error() has said so. */
static _Thread_local struct {
	const char *call, *what;
} last;

tern *misuse_of(const char *call, const char *what)
{
	last.call = call;
	last.what = what;
	return &no_head;
}

tern *misuse_given(const tern *t, const char *call)
{
	if (t == &no_head || (t && t->own->forked != NO_ENDPOINT))
		return t->own->t; /* a call of the call's own, or one in a forked child */
	return misuse_of(call, t ? "an endpoint that is closed" : "an endpoint that is NULL");
}

int misuse_error(const char *call)
{
	const char *named = last.call;
	last.call = NULL;
	if (named)
		return error_set(-EINVAL, "%s%s was given %s", named,
				 strncmp(named, "tern_", 5) || strchr(named, '(') ? "" : "()",
				 last.what);
	return error_set(-EINVAL, "%s was given an endpoint that is closed",
			 call ? call : "a call");
}

/* Its rank can still be asked for. */
void misuse_close(tern *t)
{
	t->own = no_head.own;
	t->reach = t->size = 0;
	t->looks = no_head.looks;
	t->current = NULL;
	t->answer = no_head.answer;
	t->guard = no_head.guard;
	t->heaps = NULL;
	atomic_store(&t->alert, ALERT_LIBRARY); /* nobody goes by it: any order would do */
}

/* -- With TERN_CHECK: what the inline paths, which do not look, are given --------------------- */

enum { NULL_MOST = 1 << 16 }; /* the members of an object at NULL are below this */
static struct sigaction before;

/* Says what has happened, and lets it happen again with the action that there was. */
static void null_used(int signal, siginfo_t *info, void *context)
{
	Dl_info where = { 0 };
	(void)context;
	if (info->si_code > 0 && (uintptr_t)info->si_addr < NULL_MOST) {
#if defined(__x86_64__)
		dladdr((void *)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP], &where);
#elif defined(__aarch64__)
		dladdr((void *)((ucontext_t *)context)->uc_mcontext.pc, &where);
#endif
		dprintf(STDERR_FILENO,
			"tern: NULL was used, at address %p, %s%s: an endpoint, a message or "
			"memory that an inline call was given, if it is one of Tern's\n",
			info->si_addr, where.dli_sname ? "in " : "in the program",
			where.dli_sname ? where.dli_sname : "");
	}
	sigaction(signal, &before, NULL);
}

static void null_watch(void)
{
	struct sigaction action = { .sa_sigaction = null_used,
				    .sa_flags = SA_SIGINFO | SA_ONSTACK };
	sigaction(SIGSEGV, &action, &before);
}

void misuse_watch(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	pthread_once(&once, null_watch);
}
