/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Whoever calls a leader, and whatever it answers, the others are neither harmed nor
 * kept from joining.
 */
#include "fuzz.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <tern/tern.h>

#include "boot/leader.h"

static void job_end(struct job *job)
{
	job_unmap(job);
	close(job->fd);
}

/* -- Knocks ------------------------------------------------------------------------------- */

static int call(const struct card *leader, const void *bytes, size_t len)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	memcpy(name.sun_path, leader->door, CARD_DOOR);
	REQUIRE(connect(fd, (struct sockaddr *)&name,
			(socklen_t)sizeof name.sun_family + CARD_DOOR) == 0);
	REQUIRE(send(fd, bytes, len, MSG_NOSIGNAL) == (ssize_t)len);
	return fd;
}

static int begins(struct job *job, void *arg)
{
	(void)job, (void)arg;
	return 0;
}

/* Somebody calls with these bytes, and then rank 1 as it should. */
static void callers(const uint8_t *bytes, size_t len)
{
	const uint32_t good = 1;
	struct card card[2] = { { .fabric = 0 } };
	uint32_t machine[2] = { 0 };
	const struct joiners all = { .size = 2, .card = card, .machine = machine, .machines = 1 };
	struct job job;
	int fd;
	REQUIRE(leader_listen(&fd, card[0].door) == 0);
	card[1].process = (struct process_name){ .pid = getpid(), .born = process_born(getpid()) };
	int one = call(card, bytes, len < 256 ? len : 256), two = call(card, &good, sizeof good);
	REQUIRE(leader_share(fd, &all, begins, NULL, &job) == 0);
	job_end(&job);
	close(one);
	close(two);
	close(fd);
}

/* -- Answers ------------------------------------------------------------------------------- */

struct answer {
	int fd; /* where the leader listens */
	const uint8_t *bytes;
	size_t len;
	int beside; /* a descriptor, or -1 */
};

static void *leader_answers(void *arg)
{
	const struct answer *a = arg;
	union {
		struct cmsghdr head;
		char room[CMSG_SPACE(sizeof(int))];
	} beside = { .head = { CMSG_LEN(sizeof(int)), SOL_SOCKET, SCM_RIGHTS } };
	struct iovec text = { (void *)(uintptr_t)a->bytes, a->len };
	struct msghdr m = { .msg_iov = &text, .msg_iovlen = 1 };
	int fd = accept4(a->fd, NULL, NULL, SOCK_CLOEXEC);
	if (fd < 0)
		return NULL;
	if (a->beside >= 0) {
		memcpy(CMSG_DATA(&beside.head), &a->beside, sizeof a->beside);
		m.msg_control = &beside;
		m.msg_controllen = sizeof beside.room;
	}
	sendmsg(fd, &m, MSG_NOSIGNAL);
	close(fd);
	return NULL;
}

/* A job's memory, whole or cut off, some other file, or none. */
static int memory_make(unsigned kind)
{
	struct job job;
	if (kind % 4 == 0)
		return -1;
	if (kind % 4 == 1)
		return memfd_create("none", MFD_CLOEXEC);
	REQUIRE(job_create(&job, 2, 0) == 0);
	job_unmap(&job);
	REQUIRE(kind % 4 == 2 || ftruncate(job.fd, 8192) == 0);
	return job.fd;
}

static void answers(const uint8_t *bytes, size_t len, unsigned kind)
{
	struct answer says = { .bytes = bytes, .len = len, .beside = memory_make(kind) };
	struct card card[2] = { { .process = { .pid = INT32_MAX } } }; /* nobody's number */
	const struct joiners all = { .rank = 1, .size = 2, .card = card };
	struct job job;
	pthread_t leader;
	REQUIRE(leader_listen(&says.fd, card[0].door) == 0);
	REQUIRE(pthread_create(&leader, NULL, leader_answers, &says) == 0);
	int rc = leader_join(&all, 0, &job);
	REQUIRE(rc <= 0 && (rc == 0 || *tern_strerror(rc)));
	if (!rc)
		job_end(&job);
	shutdown(says.fd, SHUT_RDWR); /* if nobody came */
	pthread_join(leader, NULL);
	close(says.fd);
	if (says.beside >= 0)
		close(says.beside);
}

static void fuzz_one(const uint8_t *bytes, size_t len)
{
	unsigned what = fuzz_byte(&bytes, &len);
	if (what & 1)
		callers(bytes, len);
	else
		answers(bytes, len, what >> 1);
}

FUZZ_TARGET(leader, 300)
