/* SPDX-License-Identifier: BSD-3-Clause */
#include "boot/meet.h"

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
	LOOK_MS = 100, /* how often the host looks whether those live who have not come */
	KNOCK_S = 5,   /* how long one that has come may say nothing */
	END_NS = 1000000000,
	NAP_NS = 1000000,
};

/* What a guest says, and what the host answers; the descriptor comes beside it. */
struct knock {
	uint8_t key[MEET_KEY];
	uint32_t rank;
};

struct welcome {
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
		return error_set(-errno, "making a socket for the ranks to meet at: %s",
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
int meet_open(int *out, struct meet_address *a)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	socklen_t len = sizeof name;
	int fd = socket_open();
	if (fd < 0)
		return fd;
	*a = (struct meet_address){ .name_len = 0 };
	if (bind(fd, (struct sockaddr *)&name, sizeof name.sun_family) != 0 ||
	    listen(fd, TERN_RANKS_MAX) != 0 ||
	    getsockname(fd, (struct sockaddr *)&name, &len) != 0 ||
	    getrandom(a->key, sizeof a->key, 0) != sizeof a->key) {
		int rc = error_set(-errno, "opening a socket for the ranks to meet at: %s",
				   strerror(errno));
		close(fd);
		return rc;
	}
	a->name_len = (uint8_t)(len - sizeof name.sun_family);
	memcpy(a->name, name.sun_path, a->name_len < MEET_NAME ? a->name_len : MEET_NAME);
	*out = fd;
	return 0;
}

static int welcome_send(int fd, const struct welcome *w, int job)
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
static int welcome_receive(int fd, struct welcome *w, int *job)
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

/* -- The host ----------------------------------------------------------------------- */

/* A rank, as the host sees it. */
struct guest {
	int fd; /* -1: it has not come, or is the host itself */
	pid_t pid;
	uint64_t born;
};

struct host {
	int fd;
	const struct meet_address *address;
	uint32_t rank;
	const struct meet_plan *plan;
	struct guest *guest; /* one a rank */
	cpu_set_t cores;     /* that any of them may use: launchers bind ranks before they begin */
};

static bool is_guest(const struct host *h, uint32_t rank)
{
	return rank < h->plan->size && rank != h->rank &&
	       h->plan->machine[rank] == h->plan->machine[h->rank];
}

static bool host_note(struct host *h, struct guest *g, pid_t pid)
{
	cpu_set_t cores;
	g->pid = pid;
	g->born = process_born(pid);
	if (!g->born || sched_getaffinity(pid, sizeof cores, &cores) != 0)
		return false;
	CPU_OR(&h->cores, &h->cores, &cores);
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
	for (int i = 0; i < MEET_KEY; i++)
		differ |= a[i] ^ b[i];
	return !differ;
}

/* True if whoever knocked is a rank of the job that had not come yet. Anybody else is sent away. */
static bool host_admit(struct host *h, int fd)
{
	struct knock k;
	pid_t pid;
	socket_patience(fd, KNOCK_S);
	if (peer_pid(fd, &pid) != 0 || recv(fd, &k, sizeof k, 0) != (ssize_t)sizeof k ||
	    !key_equal(k.key, h->address->key) || !is_guest(h, k.rank))
		return false;
	struct guest *g = &h->guest[k.rank];
	if (g->fd >= 0 || !host_note(h, g, pid) || !still_there(fd))
		return false;
	g->fd = fd;
	return true;
}

/* Who has not come; UINT32_MAX: all have. */
static uint32_t host_awaits(const struct host *h)
{
	for (uint32_t r = 0; r < h->plan->size; r++)
		if (is_guest(h, r) && h->guest[r].fd < 0)
			return r;
	return UINT32_MAX;
}

static int host_missing(const struct host *h)
{
	return error_set(-ETIMEDOUT,
			 "rank %u has not come to meet rank %u within %llu s (TERN_JOIN)",
			 host_awaits(h), h->rank, (unsigned long long)patience_s());
}

/* Everybody lived when the cards were exchanged; a card says which process that was. */
static int host_look(const struct host *h)
{
	for (uint32_t r = 0; h->plan->process && r < h->plan->size; r++) {
		if (!is_guest(h, r) || h->guest[r].fd >= 0 || !process_ended(&h->plan->process[r]))
			continue;
		return error_set(-EOWNERDEAD, "rank %u ended while the ranks joined their job", r);
	}
	return 0;
}

static int host_collect(struct host *h)
{
	uint64_t patience = patience_s(), end = clock_ns() + patience * UINT64_C(1000000000);
	int rc = 0;
	while (!rc && host_awaits(h) != UINT32_MAX) {
		struct pollfd p = { .fd = h->fd, .events = POLLIN };
		if (patience && clock_ns() >= end)
			return host_missing(h);
		if (world_poll(&p, 1, LOOK_MS) == 0) {
			rc = host_look(h);
			continue;
		}
		int fd = accept4(h->fd, NULL, NULL, SOCK_CLOEXEC);
		if (fd >= 0 && !host_admit(h, fd))
			close(fd);
	}
	return rc;
}

static int host_make(const struct host *h, struct job *job)
{
	uint64_t budget;
	int rc = setting_number(SETTING_MEMORY, &budget);
	if (!rc)
		rc = job_create(job, h->plan->size, budget);
	if (rc)
		return rc;
	job_spread(job, h->plan->machine, h->plan->machine[h->rank], h->plan->machines);
	job_identify(job, h->plan->id, h->plan->key);
	job->head->cores = (uint32_t)CPU_COUNT(&h->cores);
	for (uint32_t r = 0; r < h->plan->size; r++) {
		atomic_store(&job->rank[r].pid, h->guest[r].pid);
		atomic_store(&job->rank[r].born, h->guest[r].born);
	}
	return 0;
}

/* One that has died since then is noticed by the link. */
static void host_answer(struct host *h, int rc, int memory)
{
	struct welcome w = { .rc = rc };
	if (rc)
		snprintf(w.text, sizeof w.text, "%s", tern_strerror(rc));
	for (uint32_t r = 0; r < h->plan->size; r++)
		if (h->guest[r].fd >= 0) {
			welcome_send(h->guest[r].fd, &w, memory);
			close(h->guest[r].fd);
		}
}

int meet_host(int fd, const struct meet_address *a, uint32_t rank, const struct meet_plan *plan,
	      struct job *job)
{
	struct host h = { .fd = fd, .address = a, .rank = rank, .plan = plan };
	h.guest = calloc(plan->size, sizeof *h.guest);
	if (!h.guest)
		return error_set(-ENOMEM, "meeting %u ranks: no memory", plan->size);
	for (uint32_t r = 0; r < plan->size; r++)
		h.guest[r].fd = -1;
	host_note(&h, &h.guest[rank], getpid());
	int rc = host_collect(&h);
	if (!rc)
		rc = host_make(&h, job);
	if (!rc && plan->begin && (rc = plan->begin(job, plan->arg)) != 0) {
		job_unmap(job);
		job_forget(job);
	}
	host_answer(&h, rc, rc ? -1 : job->fd);
	free(h.guest);
	return rc;
}

/* -- The guests --------------------------------------------------------------------- */

static int guest_connect(const struct meet_address *host, uint32_t rank, int *out)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	struct knock k = { .rank = rank };
	pid_t pid;
	if (host->name_len > MEET_NAME)
		return -EPROTO; /* what else came with the card is not to be trusted either */
	int fd = socket_open();
	if (fd < 0)
		return fd;
	memcpy(name.sun_path, host->name, MEET_NAME);
	memcpy(k.key, host->key, sizeof k.key);
	socklen_t len = (socklen_t)sizeof name.sun_family + host->name_len;
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
static bool host_ended(const struct meet_host *host)
{
	uint64_t end = clock_ns() + END_NS;
	while (!process_ended(&host->process))
		if (clock_ns() < end)
			world_nap(NAP_NS);
		else
			return false;
	return true;
}

static int guest_failed(const struct meet_host *host, uint32_t rank, int rc)
{
	if (rc == -EAGAIN)
		return error_set(-ETIMEDOUT,
				 "rank %u has given rank %u no memory within %llu s (TERN_JOIN)",
				 host->rank, rank, (unsigned long long)patience_s());
	if ((rc == -ECONNRESET || rc == -ECONNREFUSED || rc == -EPIPE) && host_ended(host))
		return error_set(-EOWNERDEAD, "rank %u ended while the ranks joined their job",
				 host->rank);
	return error_set(rc, "rank %u cannot get the job's memory from rank %u: %s", rank,
			 host->rank, strerror(-rc));
}

int meet_guest(const struct meet_host *host, uint32_t rank, struct job *job)
{
	struct welcome w;
	int fd, memory = -1;
	int rc = guest_connect(&host->address, rank, &fd);
	if (!rc) {
		rc = welcome_receive(fd, &w, &memory);
		close(fd);
	}
	if (rc)
		rc = guest_failed(host, rank, rc);
	else if (w.rc < 0 && *w.text)
		rc = error_set(w.rc, "%s", w.text);
	else if (w.rc || memory < 0)
		rc = error_set(
			-EPROTO,
			"rank %u was welcomed without the job's memory: do all ranks run one Tern?",
			rank);
	else
		rc = job_map(job, memory);
	if (rc && memory >= 0)
		close(memory);
	return rc;
}
