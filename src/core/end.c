/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The program's last function when its process is ended from outside. Launchers end ranks with a
 * signal, and a signal handler can do next to nothing, so this one only rings the rank's own bell:
 * the next poll defers the function, and then the process ends as the signal would have ended it.
 * Whoever sent the signal sends SIGKILL to a process that does not poll.
 */
#include <errno.h>
#include <signal.h>
#include <unistd.h>

#include "base/error.h"
#include "core/scope.h"

_Atomic int end_raised; /* the signal that has come */

/* A process has one: a signal is for all of it. */
static struct {
	_Atomic(struct endpoint *) e; /* NULL: nobody asks */
	tern_end_handler *fn;
	void *arg;
	pid_t pid; /* a forked child is ended as it would be without the function */
	int signal;
	bool deferred;
	struct sigaction before;
} hook;

static void end_again(int number)
{
	const struct sigaction usual = { .sa_handler = SIG_DFL };
	sigset_t only;
	sigemptyset(&only);
	sigaddset(&only, number);
	sigaction(number, &usual, NULL);
	raise(number);
	pthread_sigmask(SIG_UNBLOCK, &only, NULL);
}

/* The second one ends the process at once. */
static void on_signal(int number)
{
	struct endpoint *e = atomic_load(&hook.e);
	int before = errno;
	if (!e || hook.pid != getpid() || atomic_exchange(&end_raised, number))
		end_again(number);
	else
		job_ring(&e->group->job, e->site.member);
	errno = before;
}

static void end_tell(tern *t, void *arg)
{
	int number = atomic_load(&end_raised);
	(void)arg;
	if (hook.fn)
		hook.fn(t, number, hook.arg);
	end_again(number);
	_exit(128 + number); /* the program ignores it, or blocks it elsewhere */
}

void end_look(struct endpoint *e)
{
	if (atomic_load(&hook.e) != e || hook.deferred)
		return;
	hook.deferred = true;
	defer_add(e, end_tell, NULL);
}

bool end_deferred(const struct endpoint *e)
{
	return atomic_load(&hook.e) == e && hook.deferred;
}

void end_close(struct endpoint *e)
{
	if (atomic_load(&hook.e) != e || hook.pid != getpid())
		return;
	atomic_store(&hook.e, NULL);
	sigaction(hook.signal, &hook.before, NULL);
	if (atomic_load(&end_raised)) /* it came too late for the function */
		raise(hook.signal);
}

static int end_begin(struct endpoint *e, tern_end_handler *fn, void *arg)
{
	const struct sigaction action = { .sa_handler = on_signal, .sa_flags = SA_RESTART };
	uint32_t chosen = e->group->job.head->end_signal;
	hook.fn = fn;
	hook.arg = arg;
	hook.pid = getpid();
	hook.signal = chosen ? (int)chosen : SIGTERM;
	atomic_store(&hook.e, e);
	if (sigaction(hook.signal, &action, &hook.before) == 0)
		return 0;
	int rc = -errno;
	atomic_store(&hook.e, NULL);
	return error_set(rc,
			 "tern_end_on(): this job ends its ranks with signal %d, which a "
			 "process cannot catch: choose another with `tern run --signal`",
			 hook.signal);
}

int tern_end_on(tern *t, tern_end_handler *fn, void *arg)
{
	INSIDE struct scope scope = scope_given(t);
	struct endpoint *e = t->own, *now = atomic_load(&hook.e);
	int rc = rules_forked(e);
	if (!rc)
		rc = rules_rank(e, "tern_end_on()");
	if (rc)
		return rc;
	if (now && hook.pid == getpid()) {
		if (now != e && fn)
			return error_set(-EBUSY,
					 "tern_end_on(): another endpoint of this process has "
					 "a function for its end already");
		end_close(e);
	}
	return fn ? end_begin(e, fn, arg) : 0;
}
