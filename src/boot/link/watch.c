/* SPDX-License-Identifier: BSD-3-Clause */
/* What tern-link does: it watches a machine's ranks and talks with the other machines. */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <tern/tern.h>

#include "base/clock.h"
#include "base/error.h"
#include "base/kernel.h"
#include "base/setting.h"
#include "base/world.h"
#include "boot/link/link.h"
#include "boot/link/mesh.h"
#include "boot/link/monitor.h"
#include "boot/link/program.h"

/*
 * Words of the job's memory are read and written seq_cst in this folder: a link looks at them a few
 * times a second, or when a rank leaves.
 */

#define SECOND UINT64_C(1000000000)

enum {
	ROUND_MS = 100,      /* while something is to be looked after that wakes nobody */
	LOOK_MS = 1000,      /* a notice may get lost */
	AGAIN_NS = 10000000, /* between looks, or links, when something is wrong */
	PART_S = 1,          /* how long others may take to see that a link has ended */
	/* How long an unreachable machine is tried at the end, where TERN_KEEPALIVE is 0. */
	LAST_S = 30,
	LINKS = 100, /* that a guard starts, at most */
};

/* All the memory that it will ever need, so that nothing is left to be refused when it runs. */
struct link {
	struct job job;
	uint64_t silence; /* TERN_KEEPALIVE, s */
	int notice;
	struct monitor monitor;
	struct watched *watched;
	struct pollfd *polls;
	struct mesh *mesh; /* NULL on one machine */
};

static struct link self;

/* -- Watching ------------------------------------------------------------------------------- */

static void link_sleep(struct link *l)
{
	bool retry = monitor_must_retry(&l->monitor) || (l->mesh && mesh_must_retry(l->mesh)) ||
		     !l->monitor.left;
	unsigned n = 1;
	l->polls[0] = (struct pollfd){ .fd = l->notice, .events = POLLIN };
	n += monitor_polls(&l->monitor, l->polls + n);
	if (l->mesh)
		n += mesh_polls(l->mesh, l->polls + n);
	if (world_poll(l->polls, n, retry ? ROUND_MS : l->notice >= 0 ? LOOK_MS : -1) < 0)
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

static void link_run(struct link *l)
{
	prctl(PR_SET_NAME, "tern-link");
	files_raise();
	l->job.watches = true;
	atomic_store(&l->job.head->link, getpid());
	monitor_open(&l->monitor, &l->job, l->watched);
	while (l->monitor.left) {
		link_sleep(l);
		link_serve(l);
	}
	if (l->mesh)
		link_end(l);
}

/* -- Beginning ------------------------------------------------------------------------------ */

static int mesh_begin(struct link *l)
{
	char why[200] = "";
	if (!seal_usable(why, sizeof why))
		return error_set(-ENOTSUP, "%s", why);
	l->mesh = mesh_open(&l->job, PROGRAM_LISTENER, l->silence);
	return l->mesh ? 0 : error_set(-ENOMEM, "no memory");
}

static bool is_open(int fd)
{
	return fcntl(fd, F_GETFD) >= 0;
}

static int link_open(struct link *l)
{
	bool calls = is_open(PROGRAM_LISTENER);
	l->notice = is_open(PROGRAM_NOTICE) ? PROGRAM_NOTICE : -1;
	int rc = setting_number(SETTING_KEEPALIVE, &l->silence);
	if (!rc)
		rc = job_map(&l->job, PROGRAM_MEMORY);
	if (rc)
		return rc;
	l->watched = calloc(l->job.head->here, sizeof *l->watched);
	l->polls = calloc(2 + l->job.head->here + mesh_polls_most(&l->job), sizeof *l->polls);
	if (!l->watched || !l->polls)
		return error_set(-ENOMEM, "no memory");
	return calls ? mesh_begin(l) : 0;
}

/* The rank that has started this waits for it. */
static void link_answer(struct wire *w, int rc)
{
	struct error_kept a = { .rc = 0 };
	if (rc)
		error_keep(&a);
	wire_send(w, FRAME_OVER, &a, sizeof a);
	wire_close(w);
	dup2(STDERR_FILENO, STDIN_FILENO);
	dup2(STDERR_FILENO, STDOUT_FILENO);
}

/* The guard. Where no second process can be had, it watches by itself. */
int link_watch(struct wire *wire)
{
	int status = 0;
	prctl(PR_SET_NAME, "tern-guard");
	signal(SIGCHLD, SIG_DFL); /* the program may have ignored it */
	int rc = link_open(&self);
	link_answer(wire, rc);
	for (int i = 0; !rc && i < LINKS; i++, world_nap(AGAIN_NS)) {
		pid_t pid = fork();
		if (pid <= 0) {
			link_run(&self);
			return 0;
		}
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
		if (WIFEXITED(status))
			break;
	}
	return rc != 0;
}
