/* SPDX-License-Identifier: BSD-3-Clause */
#include "base/kernel.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"

#ifndef SYS_futex_waitv
#define SYS_futex_waitv 449
#endif

/* Linux 5.16; spelled out because headers of that age do not have it. */
struct waiter {
	uint64_t value;
	uint64_t address;
	uint32_t flags;
	uint32_t reserved;
};
enum { WAITER_32_BITS = 2 };

static struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / 1000000000u), .tv_nsec = (long)(ns % 1000000000u) };
}

static int wait_many(_Atomic uint64_t *const *words, unsigned n, uint32_t value, uint64_t ns)
{
	struct waiter waiters[FUTEX_MANY];
	struct timespec deadline = timespec_of(clock_ns() + ns);
	for (unsigned i = 0; i < n; i++)
		waiters[i] = (struct waiter){ .value = value,
					      .address = (uintptr_t)words[i],
					      .flags = WAITER_32_BITS };
	long rc = syscall(SYS_futex_waitv, waiters, n, 0, &deadline, CLOCK_MONOTONIC);
	return rc < 0 && errno == ENOSYS ? -ENOSYS : 0;
}

int futex_wait_many(_Atomic uint64_t *const *words, unsigned n, uint32_t value, uint64_t ns)
{
	if (n > FUTEX_MANY)
		return -ENOSYS;
	if (n > 1)
		return wait_many(words, n, value, ns);
	struct timespec limit = timespec_of(ns);
	syscall(SYS_futex, (uint32_t *)(void *)words[0], FUTEX_WAIT, value, &limit, NULL, 0);
	return 0;
}

void futex_wake(_Atomic uint64_t *word)
{
	syscall(SYS_futex, (uint32_t *)(void *)word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

void loopback_knock(uint16_t port)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons(port),
				  .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return; /* the sleep is bounded */
	sendto(fd, "", 1, MSG_DONTWAIT, (struct sockaddr *)(void *)&to, sizeof to);
	close(fd);
}

bool barrier_register(void)
{
	return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
}

void barrier_all(void)
{
	syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
}
