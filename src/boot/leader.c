/* SPDX-License-Identifier: BSD-3-Clause */
/* The socket of a leader, through which the members of its machine get the memory. */
#include "boot/leader.h"

#include <errno.h>
#include <poll.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <tern/tern.h>

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

/* What a member says, and what the leader answers; the descriptor comes with the answer. */
struct hello {
	uint8_t key[LEADER_KEY];
	uint32_t rank;
};

struct grant {
	int32_t rc; /* 0, or why there is no job */
	char text[400];
};

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

static int socket_open(void)
{
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return error_set(-errno, "making a socket for the ranks of this machine: %s",
				 strerror(errno));
	socket_patience(fd, patience_s());
	return fd;
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
int leader_listen(int *out, struct leader_address *a)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	socklen_t len = sizeof name;
	int fd = socket_open();
	if (fd < 0)
		return fd;
	*a = (struct leader_address){ .name_len = 0 };
	if (bind(fd, (struct sockaddr *)&name, sizeof name.sun_family) != 0 ||
	    listen(fd, TERN_RANKS_MAX) != 0 ||
	    getsockname(fd, (struct sockaddr *)&name, &len) != 0 ||
	    getrandom(a->key, sizeof a->key, 0) != sizeof a->key) {
		int rc = error_set(-errno, "opening a socket for the ranks of this machine: %s",
				   strerror(errno));
		close(fd);
		return rc;
	}
	a->name_len = (uint8_t)(len - sizeof name.sun_family);
	memcpy(a->name, name.sun_path, a->name_len < LEADER_NAME ? a->name_len : LEADER_NAME);
	*out = fd;
	return 0;
}

static int grant_send(int fd, const struct grant *w, int job)
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
static int grant_receive(int fd, struct grant *w, int *job)
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

/* A rank, as the leader sees it. */
struct member {
	int fd; /* -1: it has not come, or is the leader itself */
	pid_t pid;
	uint64_t born;
};

struct leader {
	int fd;
	const struct leader_address *address;
	uint32_t rank;
	const struct leader_plan *plan;
	struct member *member; /* one a rank */
	cpu_set_t cores; /* that any of them may use: launchers bind ranks before they begin */
};

static bool is_member(const struct leader *l, uint32_t rank)
{
	return rank < l->plan->size && rank != l->rank &&
	       l->plan->machine[rank] == l->plan->machine[l->rank];
}

static bool leader_note(struct leader *l, struct member *g, pid_t pid)
{
	cpu_set_t cores;
	g->pid = pid;
	g->born = process_born(pid);
	if (!g->born || sched_getaffinity(pid, sizeof cores, &cores) != 0)
		return false;
	CPU_OR(&l->cores, &l->cores, &cores);
	return true;
}

/* Asked after a process was looked at under its number: if it is there now, it was the one. */
static bool still_there(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	return world_poll(&p, 1, 0) == 0;
}

static bool key_equal(const uint8_t *a, const uint8_t *b)
{
	unsigned differ = 0;
	for (int i = 0; i < LEADER_KEY; i++)
		differ |= a[i] ^ b[i];
	return !differ;
}

/* True if the caller is a rank of the job that had not come yet. The others are refused. */
static bool leader_admit(struct leader *l, int fd)
{
	struct hello k;
	pid_t pid;
	socket_patience(fd, HELLO_S);
	if (peer_pid(fd, &pid) != 0 || recv(fd, &k, sizeof k, 0) != (ssize_t)sizeof k ||
	    !key_equal(k.key, l->address->key) || !is_member(l, k.rank))
		return false;
	struct member *g = &l->member[k.rank];
	if (g->fd >= 0 || !leader_note(l, g, pid) || !still_there(fd))
		return false;
	g->fd = fd;
	return true;
}

/* Who has not come; UINT32_MAX: all have. */
static uint32_t leader_awaits(const struct leader *l)
{
	for (uint32_t r = 0; r < l->plan->size; r++)
		if (is_member(l, r) && l->member[r].fd < 0)
			return r;
	return UINT32_MAX;
}

static int leader_missing(const struct leader *l)
{
	return error_set(-ETIMEDOUT,
			 "rank %u has not come to meet rank %u within %llu s (TERN_JOIN)",
			 leader_awaits(l), l->rank, (unsigned long long)patience_s());
}

/* Everybody lived when the cards were exchanged; a card says which process that was. */
static int leader_look(const struct leader *l)
{
	for (uint32_t r = 0; l->plan->process && r < l->plan->size; r++) {
		if (!is_member(l, r) || l->member[r].fd >= 0 ||
		    !process_ended(&l->plan->process[r]))
			continue;
		return error_set(-EOWNERDEAD, "rank %u ended while the ranks joined their job", r);
	}
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
	uint64_t budget;
	int rc = setting_number(SETTING_MEMORY, &budget);
	if (!rc)
		rc = job_create(job, l->plan->size, budget);
	if (rc)
		return rc;
	job_spread(job, l->plan->machine, l->plan->machine[l->rank], l->plan->machines);
	job_identify(job, l->plan->id, l->plan->key);
	job->head->cores = (uint32_t)CPU_COUNT(&l->cores);
	/* seq_cst by default: nobody else has the memory yet. */
	for (uint32_t r = 0; r < l->plan->size; r++) {
		atomic_store(&job->rank[r].pid, l->member[r].pid);
		atomic_store(&job->rank[r].born, l->member[r].born);
	}
	return 0;
}

/* One that has died since then is noticed by the link. */
static void leader_answer(struct leader *l, int rc, int memory)
{
	struct grant w = { .rc = rc };
	if (rc)
		snprintf(w.text, sizeof w.text, "%s", tern_strerror(rc));
	for (uint32_t r = 0; r < l->plan->size; r++)
		if (l->member[r].fd >= 0) {
			grant_send(l->member[r].fd, &w, memory);
			close(l->member[r].fd);
		}
}

int leader_share(int fd, const struct leader_address *a, uint32_t rank,
		 const struct leader_plan *plan, struct job *job)
{
	struct leader l = { .fd = fd, .address = a, .rank = rank, .plan = plan };
	l.member = calloc(plan->size, sizeof *l.member);
	if (!l.member)
		return error_set(-ENOMEM, "joining %u ranks: no memory", plan->size);
	for (uint32_t r = 0; r < plan->size; r++)
		l.member[r].fd = -1;
	leader_note(&l, &l.member[rank], getpid());
	int rc = leader_collect(&l);
	if (!rc)
		rc = leader_make(&l, job);
	if (!rc && plan->begin && (rc = plan->begin(job, plan->arg)) != 0) {
		job_unmap(job);
		job_forget(job);
	}
	leader_answer(&l, rc, rc ? -1 : job->fd);
	free(l.member);
	return rc;
}

/* -- The members -------------------------------------------------------------------- */

static int member_connect(const struct leader_address *leader, uint32_t rank, int *out)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	struct hello k = { .rank = rank };
	pid_t pid;
	if (leader->name_len > LEADER_NAME)
		return -EPROTO; /* what else came with the card is not to be trusted either */
	int fd = socket_open();
	if (fd < 0)
		return fd;
	memcpy(name.sun_path, leader->name, LEADER_NAME);
	memcpy(k.key, leader->key, sizeof k.key);
	socklen_t len = (socklen_t)sizeof name.sun_family + leader->name_len;
	int rc = connect(fd, (struct sockaddr *)&name, len) == 0 ? peer_pid(fd, &pid) : -errno;
	if (!rc && send(fd, &k, sizeof k, MSG_NOSIGNAL) != (ssize_t)sizeof k)
		rc = -errno;
	if (rc)
		close(fd);
	else
		*out = fd;
	return rc;
}

/* A process that ends closes its sockets a moment before it has ended. */
static bool leader_ended(const struct leader_name *leader)
{
	uint64_t end = clock_ns() + END_NS;
	while (!process_ended(&leader->process))
		if (clock_ns() < end)
			world_nap(NAP_NS);
		else
			return false;
	return true;
}

static int member_failed(const struct leader_name *leader, uint32_t rank, int rc)
{
	if (rc == -EAGAIN)
		return error_set(-ETIMEDOUT,
				 "rank %u has given rank %u no memory within %llu s (TERN_JOIN)",
				 leader->rank, rank, (unsigned long long)patience_s());
	if ((rc == -ECONNRESET || rc == -ECONNREFUSED || rc == -EPIPE) && leader_ended(leader))
		return error_set(-EOWNERDEAD, "rank %u ended while the ranks joined their job",
				 leader->rank);
	return error_set(rc, "rank %u cannot get the job's memory from rank %u: %s", rank,
			 leader->rank, strerror(-rc));
}

int leader_join(const struct leader_name *leader, uint32_t rank, struct job *job)
{
	struct grant w;
	int fd, memory = -1;
	int rc = member_connect(&leader->address, rank, &fd);
	if (!rc) {
		rc = grant_receive(fd, &w, &memory);
		close(fd);
	}
	if (rc)
		rc = member_failed(leader, rank, rc);
	else if (w.rc < 0 && *w.text)
		rc = error_set(w.rc, "%s", w.text);
	else if (w.rc || memory < 0)
		rc = error_set(
			-EPROTO,
			"rank %u was answered without the job's memory: do all ranks run one Tern?",
			rank);
	else
		rc = job_map(job, memory);
	if (rc && memory >= 0)
		close(memory);
	return rc;
}
