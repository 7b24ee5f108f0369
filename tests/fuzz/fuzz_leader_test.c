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

static int call(const struct leader_address *a, const void *bytes, size_t len)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	memcpy(name.sun_path, a->name, a->name_len);
	REQUIRE(connect(fd, (struct sockaddr *)&name,
			(socklen_t)sizeof name.sun_family + a->name_len) == 0);
	REQUIRE(send(fd, bytes, len, MSG_NOSIGNAL) == (ssize_t)len);
	return fd;
}

/* Somebody calls with these bytes, and then rank 1 as it should. */
static void callers(const uint8_t *bytes, size_t len, bool knows_key)
{
	struct {
		uint8_t key[LEADER_KEY];
		uint32_t rank;
	} good = { .rank = 1 };
	static const uint32_t machine[2];
	const struct leader_plan plan = { .size = 2, .machine = machine, .machines = 1 };
	struct leader_address a;
	struct job job;
	uint8_t first[256];
	int fd;
	REQUIRE(leader_listen(&fd, &a) == 0);
	len = len < sizeof first ? len : sizeof first;
	memcpy(first, bytes, len);
	if (knows_key)
		memcpy(first, a.key, len < LEADER_KEY ? len : LEADER_KEY);
	memcpy(good.key, a.key, LEADER_KEY);
	int one = call(&a, first, len), two = call(&a, &good, sizeof good);
	REQUIRE(leader_share(fd, &a, 0, &plan, &job) == 0);
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

static void answers(const uint8_t *bytes, size_t len, unsigned kind, unsigned name_len)
{
	struct answer says = { .bytes = bytes, .len = len, .beside = memory_make(kind) };
	struct leader_address a;
	struct job job;
	pthread_t leader;
	REQUIRE(leader_listen(&says.fd, &a) == 0);
	REQUIRE(pthread_create(&leader, NULL, leader_answers, &says) == 0);
	a.name_len = name_len ? (uint8_t)name_len : a.name_len;
	struct leader_name lost = { .address = a,
				    .process = { .pid = INT32_MAX } }; /* nobody's number */
	int rc = leader_join(&lost, 1, &job);
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
	unsigned what = fuzz_byte(&bytes, &len), name_len = what & 1 ? 0 : fuzz_byte(&bytes, &len);
	if (what & 1)
		callers(bytes, len, what & 2);
	else
		answers(bytes, len, what >> 1, name_len);
}

FUZZ_TARGET(leader, 300)
