/* SPDX-License-Identifier: BSD-3-Clause */
#include "core/fork.h"

#include <pthread.h>
#include <unistd.h>

#include "core/layer.h"
#include "core/progress.h"
#include "core/scope.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_once_t once = PTHREAD_ONCE_INIT;
static struct group *groups; /* of this process */

static void fork_prepare(void)
{
	pthread_mutex_lock(&lock);
}

static void fork_parent(void)
{
	pthread_mutex_unlock(&lock);
}

/* Its memory is the child's own by now, the guard's word included: it keeps interrupts out. */
static void endpoint_disown(struct endpoint *e, pid_t child)
{
	tern *t = e->t;
	e->forked = child;
	e->guarded = true;
	e->shared = NULL; /* another thread may have had the lock */
	e->inlet = NULL;
	t->reach = 0;
	t->current = NULL;
	t->answer = &e->refuse;
	atomic_store(e->guard, GUARD_INSIDE);
	atomic_store(&t->alert, ALERT_LIBRARY);
	attach_disown(e);
	layers_disown(e);
}

static void fork_child(void)
{
	for (struct group *g = groups; g; g = g->next_open) {
		job_disown(&g->job);
		for (uint32_t i = 0; i < g->size; i++)
			endpoint_disown(g->member[i], getpid());
	}
	groups = NULL;
	progress_forget();
	pthread_mutex_unlock(&lock);
}

static void fork_watch(void)
{
	pthread_atfork(fork_prepare, fork_parent, fork_child);
}

void fork_opened(struct group *g)
{
	pthread_once(&once, fork_watch);
	pthread_mutex_lock(&lock);
	g->next_open = groups;
	groups = g;
	pthread_mutex_unlock(&lock);
}

void fork_closed(struct group *g)
{
	pthread_mutex_lock(&lock);
	for (struct group **p = &groups; *p; p = &(*p)->next_open)
		if (*p == g) {
			*p = g->next_open;
			break;
		}
	pthread_mutex_unlock(&lock);
}
