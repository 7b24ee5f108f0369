/* SPDX-License-Identifier: BSD-3-Clause */
/* The process that watches a machine's ranks and talks with the other machines. */
#include "boot/link/link.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/address.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/kernel.h"
#include "base/setting.h"
#include "base/world.h"
#include "boot/link/daemon.h"
#include "boot/link/mesh.h"
#include "boot/link/monitor.h"

/*
 * Words of the job's memory are read and written seq_cst in this folder: a link looks at them a few
 * times a second, or when a rank leaves.
 */

#define SECOND UINT64_C(1000000000)

enum {
	ROUND_MS = 100,         /* while something is to be looked after that wakes nobody */
	LOOK_MS = 1000,         /* a notice may get lost */
	SETTLE_NS = 1000000000, /* how long a rank that leaves waits for its link, at most */
	NAP_NS = 200000,
	AGAIN_NS = 10000000, /* between looks, or links, when something is wrong */
	PART_S = 1,          /* how long others may take to see that a link has ended */
	/* How long an unreachable machine is tried at the end, where TERN_KEEPALIVE is 0. */
	LAST_S = 30,
	LINKS = 100, /* that a guard starts, at most */
};

struct link {
	struct job job;
	struct process_name launcher;
	int listener, notice;
	uint64_t silence; /* s */
	struct monitor monitor;
	struct watched *watched;
	struct pollfd *polls;
	struct sockaddr_in6 *address;
	void *mesh_memory;
	struct mesh *mesh; /* NULL on one machine */
};

static struct link *self; /* in a link */

/* -- The process -------------------------------------------------------------------------- */

/* The rank that makes the memory new may die over it, and nobody else would notice. */
static void link_check_renewer(struct job *j)
{
	uint32_t rank = job_renewer(j);
	if (rank)
		monitor_check(&self->monitor, rank - 1);
	world_nap(NAP_NS);
}

static void link_sleep(struct link *l)
{
	bool retry = monitor_must_retry(&l->monitor) || (l->mesh && mesh_must_retry(l->mesh)) ||
		     !l->monitor.left;
	unsigned n = 1;
	l->polls[0] = (struct pollfd){ .fd = l->notice, .events = POLLIN };
	n += monitor_polls(&l->monitor, l->polls + n);
	if (l->mesh)
		n += mesh_polls(l->mesh, l->polls + n);
	if (world_poll(l->polls, n, retry ? ROUND_MS : l->mesh ? LOOK_MS : -1) < 0)
		world_nap(AGAIN_NS);
}

static void link_serve(struct link *l)
{
	uint32_t asked = atomic_load(&l->job.head->asked);
	if (l->notice >= 0)
		loopback_drain(l->notice);
	monitor_serve(&l->monitor, l->polls + 1);
	if (!l->mesh)
		return;
	mesh_serve(l->mesh);
	if (mesh_told(l->mesh, false))
		atomic_store(&l->job.head->carried, asked);
}

/* Nobody is left here: the others are to know. */
static void link_end(struct link *l)
{
	uint64_t end = clock_ns() + (l->silence ? l->silence : LAST_S) * SECOND;
	while (!mesh_told(l->mesh, true) && clock_ns() < end) {
		link_sleep(l);
		link_serve(l);
	}
	mesh_finish(l->mesh);
	end = clock_ns() + PART_S * SECOND;
	while (!mesh_over(l->mesh) && clock_ns() < end)
		world_nap(AGAIN_NS);
}

static void files_raise(void)
{
	struct rlimit r;
	if (getrlimit(RLIMIT_NOFILE, &r) != 0)
		return;
	r.rlim_cur = r.rlim_max;
	setrlimit(RLIMIT_NOFILE, &r);
}

__attribute__((noreturn)) static void link_main(struct link *l)
{
	self = l;
	prctl(PR_SET_NAME, "tern-link");
	files_raise();
	l->job.meanwhile = link_check_renewer;
	atomic_store(&l->job.head->link, getpid());
	monitor_open(&l->monitor, &l->job, l->watched, &l->launcher);
	if (l->mesh_memory)
		l->mesh = mesh_open(l->mesh_memory, &l->job, l->listener, l->address, l->silence);
	while (l->monitor.left) {
		link_sleep(l);
		link_serve(l);
	}
	if (l->mesh)
		link_end(l);
	_exit(0);
}

/* -- Its guard ---------------------------------------------------------------------------- */

__attribute__((noreturn)) static void guard_main(struct link *l)
{
	int status = 0, keep[] = { l->job.fd, l->listener, l->notice };
	daemon_close_files(keep, 3);
	l->job.fd = keep[0];
	l->listener = keep[1];
	l->notice = keep[2];
	prctl(PR_SET_NAME, "tern-guard");
	(void)!chdir("/");
	for (int i = 0; i < LINKS; i++, world_nap(AGAIN_NS)) {
		pid_t pid = daemon_fork(SIGCHLD);
		if (pid <= 0)
			link_main(l);
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
		if (WIFEXITED(status))
			break;
	}
	_exit(0);
}

/*
 * Twice, so that the program has no child that it does not know of, and in a session of its own:
 * what a terminal or a launcher sends to the program's group is not meant for it. Another thread of
 * the program may wait for any child, or the program may ignore SIGCHLD: so the first child is one
 * of which nothing but our own wait is told.
 */
static int guard_start(struct link *l)
{
	sigset_t all, before;
	int status = 0;
	sigfillset(&all);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	pid_t pid = daemon_fork(0);
	if (pid == 0) {
		daemon_drop_memory(l); /* before anything else: the program waits for this child */
		signal(SIGCHLD, SIG_DFL);
		setsid();
		pid = daemon_fork(SIGCHLD);
		if (pid == 0)
			guard_main(l);
		_exit(pid < 0 ? errno : 0);
	}
	int rc = pid < 0 ? -errno : 0;
	while (!rc && waitpid(pid, &status, __WALL) < 0 && errno == EINTR)
		;
	pthread_sigmask(SIG_SETMASK, &before, NULL);
	return rc ? rc : WIFEXITED(status) ? -WEXITSTATUS(status) : -EAGAIN; /* it was killed */
}

/* -- Beginning ---------------------------------------------------------------------------- */

static size_t part_take(size_t *at, size_t bytes)
{
	size_t mine = *at;
	*at += (bytes + 63) / 64 * 64;
	return mine;
}

/* All that it will ever need, so that nothing is left to be refused when it runs. */
static struct link *link_make(const struct link_plan *plan, size_t *bytes)
{
	const struct job *j = plan->job;
	bool several = j->head->machines > 1;
	size_t link_at, watched_at, polls_at, address_at, mesh_at;
	*bytes = 0;
	link_at = part_take(bytes, sizeof(struct link));
	watched_at = part_take(bytes, j->head->here * sizeof(struct watched));
	polls_at =
		part_take(bytes, (2 + j->head->here + mesh_polls_most(j)) * sizeof(struct pollfd));
	address_at = part_take(bytes, j->head->machines * sizeof(struct sockaddr_in6));
	mesh_at = part_take(bytes, several ? mesh_bytes(j) : 0);
	char *base = mmap(NULL, *bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	if (base == MAP_FAILED)
		return NULL;
	struct link *l = (struct link *)(void *)(base + link_at);
	*l = (struct link){
		.job = *j, .launcher = plan->launcher, .listener = plan->listener, .notice = -1
	};
	l->watched = (struct watched *)(void *)(base + watched_at);
	l->polls = (struct pollfd *)(void *)(base + polls_at);
	l->address = (struct sockaddr_in6 *)(void *)(base + address_at);
	l->mesh_memory = several ? base + mesh_at : NULL;
	if (several)
		memcpy(l->address, plan->address, j->head->machines * sizeof *l->address);
	return l;
}

static int notice_open(struct link *l)
{
	uint16_t port = 0;
	if (!l->mesh_memory)
		return 0;
	l->notice = loopback_listen(&port);
	for (uint32_t r = 0; l->notice >= 0 && r < l->job.size; r++)
		if (job_here(&l->job, r))
			atomic_store(&l->job.rank[r].notice, port);
	return l->notice < 0 ? l->notice : 0;
}

static int link_start(struct link *l)
{
	int rc = setting_number(SETTING_KEEPALIVE, &l->silence);
	if (rc)
		return rc;
	rc = notice_open(l);
	if (!rc)
		rc = guard_start(l);
	if (l->notice >= 0)
		close(l->notice);
	return rc ? error_set(rc, "starting the process that watches the ranks of this machine: %s",
			      strerror(-rc))
		  : 0;
}

int link_begin(const struct link_plan *plan)
{
	size_t bytes;
	int fd = process_open(getpid(), process_born(getpid()));
	if (fd < 0)
		return error_set(
			fd,
			"ranks that other launchers start are watched with pidfd_open, which "
			"needs Linux 5.3 and the container's consent: %s; use `tern run`",
			strerror(-fd));
	close(fd);
	struct link *l = link_make(plan, &bytes);
	if (!l)
		return error_set(-ENOMEM, "watching the ranks of this machine: no memory");
	int rc = link_start(l);
	munmap(l, bytes);
	return rc;
}

int link_listen(int *listener, struct sockaddr_in6 *address)
{
	char why[200] = "";
	if (!connection_usable(why, sizeof why))
		return error_set(-ENOTSUP, "ranks on several machines cannot be joined: %s", why);
	int rc = address_choose(address, true);
	if (rc)
		return rc;
	*listener = connection_listen(address);
	if (*listener >= 0)
		return 0;
	return address_refused(address, *listener, "opening a socket for the other machines");
}

void link_settle(struct job *job, uint32_t rank)
{
	struct job_head *h = job->head;
	uint32_t port = atomic_load(&job->rank[rank].notice);
	if (h->machines == 1 || !port)
		return;
	uint32_t ticket = atomic_fetch_add(&h->asked, 1) + 1;
	uint64_t end = clock_ns() + SETTLE_NS;
	while ((int32_t)(atomic_load(&h->carried) - ticket) < 0 && clock_ns() < end) {
		loopback_knock((uint16_t)port);
		world_nap(NAP_NS);
	}
}
