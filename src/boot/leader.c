/* SPDX-License-Identifier: BSD-3-Clause */
/* The socket of a leader, through which the members of its machine get the memory. */
#include "boot/leader.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <tern/tern.h>

#include "base/address.h"
#include "base/clock.h"
#include "base/error.h"
#include "base/process.h"
#include "base/setting.h"
#include "base/world.h"

enum {
	LOOK_MS = 100, /* how often the leader looks whether absent members live */
	HELLO_S = 5,   /* how long a connection may say nothing */
	END_NS = 1000000000,
	NAP_NS = 1000000,
};

/*
 * A member says its rank. The leader answers with what came of making the job, an error or none,
 * and the descriptor beside it.
 */

/* -- Sockets ------------------------------------------------------------------------ */

static uint64_t patience_s(void)
{
	uint64_t seconds;
	return setting_number(SETTING_JOIN, &seconds) == 0 ? seconds : 0;
}

/* 0, for ever, is what TERN_JOIN means by it, too. */
static void socket_patience(int fd, uint64_t seconds)
{
	const struct timeval most = { .tv_sec = (time_t)seconds };
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof most);
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &most, sizeof most);
}

/* The process at the other end, as the kernel knows it: -EPERM if it is another user's. */
static int peer_pid(int fd, pid_t *pid)
{
	struct ucred who;
	socklen_t len = sizeof who;
	if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &who, &len) != 0)
		return -errno;
	*pid = who.pid;
	return who.uid == geteuid() ? 0 : -EPERM;
}

/* Bound without a name: the kernel finds one that nobody has, beside the file system. */
int leader_listen(int *out, char door[CARD_DOOR])
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	*out = socket_bound(SOCK_SEQPACKET, (struct sockaddr *)&name, sizeof name.sun_family,
			    sizeof name);
	if (*out < 0)
		return error_set(*out, "opening a socket for the ranks of this machine: %s",
				 strerror(-*out));
	memcpy(door, name.sun_path, CARD_DOOR);
	return 0;
}

static int answer_send(int fd, const struct error_kept *w, int job)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} beside = { .head = { .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS } };
	struct iovec text = { .iov_base = (void *)(uintptr_t)w, .iov_len = sizeof *w };
	struct msghdr m = { .msg_iov = &text, .msg_iovlen = 1 };
	if (job >= 0) {
		beside.head.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&beside.head), &job, sizeof job);
		m.msg_control = &beside;
		m.msg_controllen = sizeof beside.room;
	}
	return sendmsg(fd, &m, MSG_NOSIGNAL) == (ssize_t)sizeof *w ? 0 : -errno;
}

/* *job is -1 if no descriptor came. */
static int answer_receive(int fd, struct error_kept *w, int *job)
{
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} beside;
	struct iovec text = { .iov_base = w, .iov_len = sizeof *w };
	struct msghdr m = { .msg_iov = &text,
			    .msg_iovlen = 1,
			    .msg_control = &beside,
			    .msg_controllen = sizeof beside };
	ssize_t n;
	*job = -1;
	do
		n = recvmsg(fd, &m, MSG_CMSG_CLOEXEC);
	while (n < 0 && errno == EINTR);
	struct cmsghdr *c = n > 0 ? CMSG_FIRSTHDR(&m) : NULL;
	if (c && c->cmsg_type == SCM_RIGHTS)
		memcpy(job, CMSG_DATA(c), sizeof *job);
	w->text[sizeof w->text - 1] = '\0';
	return n == (ssize_t)sizeof *w ? 0 : n < 0 ? -errno : -ECONNRESET;
}

/* -- The leader --------------------------------------------------------------------- */

struct leader {
	int fd;
	const struct joiners *all;
	int *member;     /* one a rank: its connection; -1: it has not come, or is not to come */
	cpu_set_t cores; /* that any of them may use: launchers bind ranks before they begin */
};

static bool is_member(const struct leader *l, uint32_t rank)
{
	const struct joiners *all = l->all;
	return rank < all->size && rank != all->rank &&
	       all->machine[rank] == all->machine[all->rank];
}

static void leader_note_cores(struct leader *l, pid_t pid)
{
	cpu_set_t cores;
	if (sched_getaffinity(pid, sizeof cores, &cores) == 0)
		CPU_OR(&l->cores, &l->cores, &cores);
}

/*
 * True if the caller is a rank of the job that had not come yet: the process that its card names.
 * The others are refused.
 */
static bool leader_admit(struct leader *l, int fd)
{
	uint32_t rank;
	pid_t pid;
	socket_patience(fd, HELLO_S);
	if (peer_pid(fd, &pid) != 0 || recv(fd, &rank, sizeof rank, 0) != (ssize_t)sizeof rank ||
	    !is_member(l, rank) || l->member[rank] >= 0)
		return false;
	const struct process_name *process = &l->all->card[rank].process;
	if (pid != process->pid || process_born(pid) != process->born)
		return false;
	leader_note_cores(l, pid);
	l->member[rank] = fd;
	return true;
}

/* Who has not come; UINT32_MAX: all have. */
static uint32_t leader_awaits(const struct leader *l)
{
	for (uint32_t r = 0; r < l->all->size; r++)
		if (is_member(l, r) && l->member[r] < 0)
			return r;
	return UINT32_MAX;
}

static int leader_missing(const struct leader *l)
{
	return error_set(-ETIMEDOUT,
			 "rank %u has not come to meet rank %u within %llu s (TERN_JOIN)",
			 leader_awaits(l), l->all->rank, (unsigned long long)patience_s());
}

/* Everybody lived when the cards were exchanged. */
static int leader_look(const struct leader *l)
{
	for (uint32_t r = 0; r < l->all->size; r++)
		if (is_member(l, r) && l->member[r] < 0 && process_ended(&l->all->card[r].process))
			return error_set(-EOWNERDEAD,
					 "rank %u ended while the ranks joined their job", r);
	return 0;
}

static int leader_collect(struct leader *l)
{
	uint64_t patience = patience_s(), end = clock_ns() + patience * UINT64_C(1000000000);
	int rc = 0;
	while (!rc && leader_awaits(l) != UINT32_MAX) {
		struct pollfd p = { .fd = l->fd, .events = POLLIN };
		if (patience && clock_ns() >= end)
			return leader_missing(l);
		if (world_poll(&p, 1, LOOK_MS) == 0) {
			rc = leader_look(l);
			continue;
		}
		int fd = accept4(l->fd, NULL, NULL, SOCK_CLOEXEC);
		if (fd >= 0 && !leader_admit(l, fd))
			close(fd);
	}
	return rc;
}

static int leader_make(const struct leader *l, struct job *job)
{
	const struct joiners *all = l->all;
	uint64_t budget;
	int rc = setting_number(SETTING_MEMORY, &budget);
	if (!rc)
		rc = job_create(job, all->size, budget);
	if (rc)
		return rc;
	job_spread(job, all->machine, all->machine[all->rank], all->machines);
	job_identify(job, all->card[0].id, all->card[0].key);
	if (CPU_COUNT(&l->cores))
		job->head->cores = (uint32_t)CPU_COUNT(&l->cores);
	for (uint32_t r = 0; r < all->size; r++) {
		const struct card *c = &all->card[r];
		memcpy(job->rank[r].link, &c->link, sizeof c->link);
		if (!job_here(job, r))
			continue;
		/* seq_cst by default: nobody else has the memory yet. */
		atomic_store(&job->rank[r].pid, c->process.pid);
		atomic_store(&job->rank[r].born, c->process.born);
	}
	return 0;
}

/* One that has died since then is noticed by the link. */
static void leader_answer(struct leader *l, int rc, int memory)
{
	struct error_kept w = { .rc = 0 };
	if (rc)
		error_keep(&w);
	for (uint32_t r = 0; r < l->all->size; r++)
		if (l->member[r] >= 0) {
			answer_send(l->member[r], &w, memory);
			close(l->member[r]);
		}
}

int leader_share(int fd, const struct joiners *all, int (*begin)(struct job *job, void *arg),
		 void *arg, struct job *job)
{
	struct leader l = { .fd = fd, .all = all };
	l.member = malloc(all->size * sizeof *l.member);
	if (!l.member)
		return error_set(-ENOMEM, "joining %u ranks: no memory", all->size);
	memset(l.member, -1, all->size * sizeof *l.member);
	leader_note_cores(&l, getpid());
	int rc = leader_collect(&l);
	if (!rc)
		rc = leader_make(&l, job);
	if (!rc && (rc = begin(job, arg)) != 0) {
		job_unmap(job);
		job_forget(job);
	}
	leader_answer(&l, rc, rc ? -1 : job->fd);
	free(l.member);
	return rc;
}

/* -- The members -------------------------------------------------------------------- */

/* The connection, or a negative errno. */
static int member_connect(const struct card *leader, uint32_t rank)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	pid_t pid;
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	socket_patience(fd, patience_s());
	memcpy(name.sun_path, leader->door, CARD_DOOR);
	socklen_t len = (socklen_t)sizeof name.sun_family + CARD_DOOR;
	int rc = connect(fd, (struct sockaddr *)&name, len) == 0 ? peer_pid(fd, &pid) : -errno;
	if (!rc && send(fd, &rank, sizeof rank, MSG_NOSIGNAL) != (ssize_t)sizeof rank)
		rc = -errno;
	if (!rc)
		return fd;
	close(fd);
	return rc;
}

/* A process that ends closes its sockets a moment before it has ended. */
static bool leader_ended(const struct card *leader)
{
	uint64_t end = clock_ns() + END_NS;
	while (!process_ended(&leader->process))
		if (clock_ns() < end)
			world_nap(NAP_NS);
		else
			return false;
	return true;
}

static int member_failed(const struct joiners *all, uint32_t leader, int rc)
{
	if (rc == -EAGAIN)
		return error_set(-ETIMEDOUT,
				 "rank %u has given rank %u no memory within %llu s (TERN_JOIN)",
				 leader, all->rank, (unsigned long long)patience_s());
	if ((rc == -ECONNRESET || rc == -ECONNREFUSED || rc == -EPIPE) &&
	    leader_ended(&all->card[leader]))
		return error_set(-EOWNERDEAD, "rank %u ended while the ranks joined their job",
				 leader);
	return error_set(rc, "rank %u cannot get the job's memory from rank %u: %s", all->rank,
			 leader, strerror(-rc));
}

int leader_join(const struct joiners *all, uint32_t leader, struct job *job)
{
	struct error_kept w;
	int memory = -1, fd = member_connect(&all->card[leader], all->rank);
	int rc = fd < 0 ? fd : answer_receive(fd, &w, &memory);
	if (fd >= 0)
		close(fd);
	if (rc)
		rc = member_failed(all, leader, rc);
	else if (w.rc < 0 && *w.text)
		rc = error_set(w.rc, "%s", w.text);
	else if (w.rc || memory < 0)
		rc = error_set(
			-EPROTO,
			"rank %u was answered without the job's memory: do all ranks run one Tern?",
			all->rank);
	else
		rc = job_map(job, memory);
	if (rc && memory >= 0)
		close(memory);
	return rc;
}
