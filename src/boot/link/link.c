/* SPDX-License-Identifier: BSD-3-Clause */
/* A machine's link, as its ranks see it: how it is started, and waited for. */
#include "boot/link/link.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <tern/tern.h>

#include "base/address.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/kernel.h"
#include "base/setting.h"
#include "base/world.h"
#include "boot/link/connection.h"
#include "boot/link/program.h"

enum {
	SETTLE_NS = 1000000000, /* how long a rank that leaves waits for its link, at most */
	NAP_NS = 200000,
};

/* -- Starting it ---------------------------------------------------------------------------- */

static int start_failed(const char *path, const char *why, int rc)
{
	return error_set(rc, "starting %s, which watches the ranks of this machine: %s", path, why);
}

/* It answers when it watches, or cannot. */
static int answer_read(struct wire *w, const char *path)
{
	struct frame f;
	struct error_kept a;
	if (!wire_wait(w, &f) || f.type != FRAME_OVER || f.len != sizeof a)
		return start_failed(path, "it ended before it watched anybody; run it to see why",
				    -ENOTSUP);
	memcpy(&a, f.data, sizeof a);
	a.text[sizeof a.text - 1] = '\0';
	return a.rc ? start_failed(path, a.text, a.rc < 0 ? a.rc : -EPROTO) : 0;
}

static int notice_open(struct job *job)
{
	uint16_t port = 0;
	int notice = loopback_listen(&port);
	atomic_store(&job->head->notice, port);
	return notice;
}

static int link_start(const struct job *job, const char *path, int listener, int notice)
{
	int pair[2];
	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
		return start_failed(path, strerror(errno), -errno);
	const int fd[] = { job->fd, listener, notice };
	struct wire w;
	int rc = program_start(path, pair[1], fd);
	close(pair[1]);
	wire_open(&w, pair[0], pair[0]);
	wire_send(&w, FRAME_WATCH, NULL, 0);
	rc = rc ? start_failed(path, strerror(-rc), rc) : answer_read(&w, path);
	wire_close(&w);
	return rc;
}

static int link_find(char path[PATH_MAX])
{
	int fd = process_open(getpid(), process_born(getpid()));
	if (fd < 0)
		return error_set(
			fd,
			"ranks that other launchers start are watched with pidfd_open, which "
			"needs Linux 5.3 and the container's consent: %s; use `tern run`",
			strerror(-fd));
	close(fd);
	return program_find(path);
}

int link_begin(struct job *job, int listener, bool closes)
{
	char path[PATH_MAX];
	int notice = -1, rc = link_find(path);
	if (!rc && (job->head->machines > 1 || closes) && (notice = notice_open(job)) < 0)
		rc = start_failed(path, strerror(-notice), notice);
	if (!rc)
		rc = link_start(job, path, listener, notice);
	if (notice >= 0)
		close(notice);
	return rc;
}

int link_listen(int *listener, struct sockaddr_in6 *address)
{
	char why[200] = "";
	if (!seal_usable(why, sizeof why))
		return error_set(-ENOTSUP, "ranks on several machines cannot be joined: %s", why);
	int rc = address_choose(address, true);
	if (rc)
		return rc;
	*listener = connection_listen(address);
	if (*listener >= 0)
		return 0;
	return address_refused(address, *listener, "opening a socket for the other machines");
}

/* -- Waiting for it ------------------------------------------------------------------------- */

void link_settle(struct job *job)
{
	struct job_head *h = job->head;
	uint32_t port = atomic_load(&h->notice);
	if (h->machines == 1 || !port)
		return;
	uint32_t ticket = atomic_fetch_add(&h->asked, 1) + 1;
	uint64_t end = clock_ns() + SETTLE_NS;
	while ((int32_t)(atomic_load(&h->carried) - ticket) < 0 && clock_ns() < end) {
		loopback_knock((uint16_t)port);
		world_nap(NAP_NS);
	}
}
