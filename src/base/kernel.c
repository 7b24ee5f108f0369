/* SPDX-License-Identifier: BSD-3-Clause */
/* System calls that the C library has no function for: futexes, membarrier, descriptors. */
#include "base/kernel.h"

#include <arpa/inet.h>
#include <errno.h>
#include <limits.h>
#include <linux/futex.h>
#include <linux/membarrier.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/address.h"

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

static int wait_many(_Atomic uint64_t *const *words, unsigned n, uint32_t value, uint64_t ns)
{
	struct waiter waiters[FUTEX_MANY];
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	uint64_t begun = (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
	struct timespec deadline = timespec_of(ns < UINT64_MAX - begun ? begun + ns : UINT64_MAX);
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
	syscall(SYS_futex, (uint32_t *)(void *)words[0], FUTEX_WAIT, value,
		ns == UINT64_MAX ? NULL : &limit, NULL, 0);
	return 0;
}

void futex_wake(_Atomic uint64_t *word)
{
	syscall(SYS_futex, (uint32_t *)(void *)word, FUTEX_WAKE, 1, NULL, NULL, 0);
}

int loopback_listen(uint16_t *port)
{
	struct sockaddr_in at = { .sin_family = AF_INET, .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int fd = socket_bound(SOCK_DGRAM | SOCK_NONBLOCK, (struct sockaddr *)(void *)&at, sizeof at,
			      sizeof at);
	if (fd >= 0)
		*port = ntohs(at.sin_port);
	return fd;
}

/*
 * At most DRAINED knocks: anybody on this machine can send to the port, and as fast as it is
 * drained. What is left makes the next sleep end at once.
 */
void loopback_drain(int fd)
{
	enum { DRAINED = 64 };
	char byte;
	for (int i = 0; i < DRAINED && recv(fd, &byte, 1, MSG_DONTWAIT) >= 0; i++)
		;
}

void loopback_knock(uint16_t port)
{
	struct sockaddr_in to = { .sin_family = AF_INET,
				  .sin_port = htons(port),
				  .sin_addr = { htonl(INADDR_LOOPBACK) } };
	int fd = port ? socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0) : -1;
	if (fd < 0)
		return; /* the sleep is bounded */
	sendto(fd, "", 1, MSG_DONTWAIT, (struct sockaddr *)(void *)&to, sizeof to);
	close(fd);
}

void futex_wait(_Atomic uint32_t *word, uint32_t value, uint64_t ns)
{
	struct timespec limit = timespec_of(ns);
	syscall(SYS_futex, word, FUTEX_WAIT_PRIVATE, value, &limit, NULL, 0);
}

void futex_wake32(_Atomic uint32_t *word)
{
	syscall(SYS_futex, word, FUTEX_WAKE_PRIVATE, INT_MAX, NULL, NULL, 0);
}

bool futex_can_write(void *p)
{
	uint32_t nobody = 0, *word = (uint32_t *)((uintptr_t)p & ~(uintptr_t)3);
	return syscall(SYS_futex, &nobody, FUTEX_WAKE_OP_PRIVATE, 0, NULL, word,
		       FUTEX_OP(FUTEX_OP_OR, 0, FUTEX_OP_CMP_EQ, 1)) >= 0;
}

bool barrier_register(void)
{
	return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_GLOBAL_EXPEDITED, 0, 0) == 0;
}

void barrier_all(void)
{
	syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL_EXPEDITED, 0, 0);
}

bool barrier_process_register(void)
{
	return syscall(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
}

void barrier_process(void)
{
	syscall(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0);
}

int32_t thread_id(void)
{
	return (int32_t)syscall(SYS_gettid);
}

/* The clock of a thread, as pthread_getcpuclockid() makes it of one that is known to live. */
uint64_t thread_ran(int32_t thread)
{
	enum { PER_THREAD = 4, ON_A_CORE = 2 };
	struct timespec ran;
	clockid_t clock = (clockid_t)(~(uint32_t)thread << 3 | PER_THREAD | ON_A_CORE);
	if (clock_gettime(clock, &ran) != 0)
		return 0;
	return (uint64_t)ran.tv_sec * 1000000000 + (uint64_t)ran.tv_nsec;
}

void thread_signal(int32_t process, int32_t thread, int signal)
{
	syscall(SYS_tgkill, process, thread, signal);
}

void signal_forget(int signal)
{
	struct timespec now = { 0 };
	/* As the kernel has it: sigtimedwait() is not for handlers. */
	uint64_t set = UINT64_C(1) << (signal - 1);
	while (syscall(SYS_rt_sigtimedwait, &set, NULL, &now, sizeof set) > 0)
		;
}
