/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Where ranks meet: whoever knocks, and whatever a host answers, the others are neither harmed nor
 * kept from meeting.
 */
#include "fuzz.h"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <tern/tern.h>

#include "boot/meet.h"

static void job_end(struct job *job)
{
	job_unmap(job);
	close(job->fd);
}

/* -- Knocks ------------------------------------------------------------------------------- */

static int knock(const struct meet_address *a, const void *bytes, size_t len)
{
	struct sockaddr_un name = { .sun_family = AF_UNIX };
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	memcpy(name.sun_path, a->name, a->name_len);
	REQUIRE(connect(fd, (struct sockaddr *)&name,
			(socklen_t)sizeof name.sun_family + a->name_len) == 0);
	REQUIRE(send(fd, bytes, len, MSG_NOSIGNAL) == (ssize_t)len);
	return fd;
}

/* Somebody knocks with these bytes, and then rank 1 as it should. */
static void knocks(const uint8_t *bytes, size_t len, bool knows_key)
{
	struct {
		uint8_t key[MEET_KEY];
		uint32_t rank;
	} good = { .rank = 1 };
	static const uint32_t machine[2];
	const struct meet_plan plan = { .size = 2, .machine = machine, .machines = 1 };
	struct meet_address a;
	struct job job;
	uint8_t first[256];
	int fd;
	REQUIRE(meet_open(&fd, &a) == 0);
	len = len < sizeof first ? len : sizeof first;
	memcpy(first, bytes, len);
	if (knows_key)
		memcpy(first, a.key, len < MEET_KEY ? len : MEET_KEY);
	memcpy(good.key, a.key, MEET_KEY);
	int one = knock(&a, first, len), two = knock(&a, &good, sizeof good);
	REQUIRE(meet_host(fd, &a, 0, &plan, &job) == 0);
	job_end(&job);
	close(one);
	close(two);
	close(fd);
}

/* -- Answers ------------------------------------------------------------------------------- */

struct answer {
	int fd; /* where the host listens */
	const uint8_t *bytes;
	size_t len;
	int beside; /* a descriptor, or -1 */
};

static void *host_answers(void *arg)
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
	struct meet_address a;
	struct job job;
	pthread_t host;
	REQUIRE(meet_open(&says.fd, &a) == 0);
	REQUIRE(pthread_create(&host, NULL, host_answers, &says) == 0);
	a.name_len = name_len ? (uint8_t)name_len : a.name_len;
	struct meet_host lost = { .address = a,
				  .process = { .pid = INT32_MAX } }; /* nobody's number */
	int rc = meet_guest(&lost, 1, &job);
	REQUIRE(rc <= 0 && (rc == 0 || *tern_strerror(rc)));
	if (!rc)
		job_end(&job);
	shutdown(says.fd, SHUT_RDWR); /* if nobody came */
	pthread_join(host, NULL);
	close(says.fd);
	if (says.beside >= 0)
		close(says.beside);
}

static void fuzz_one(const uint8_t *bytes, size_t len)
{
	unsigned what = fuzz_byte(&bytes, &len), name_len = what & 1 ? 0 : fuzz_byte(&bytes, &len);
	if (what & 1)
		knocks(bytes, len, what & 2);
	else
		answers(bytes, len, what >> 1, name_len);
}

FUZZ_TARGET(meet, 300)
