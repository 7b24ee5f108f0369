/* SPDX-License-Identifier: BSD-3-Clause */
/* Knocks at a sleeper's port. */
#include "base/kernel.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "lib/check.h"

enum { KNOCKS = 100, DRAINS_MOST = 1000 };

static bool knocked(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };
	return poll(&p, 1, 0) > 0;
}

static bool names_fail;

/* In place of the C library's. */
int getsockname(int fd, struct sockaddr *restrict at, socklen_t *restrict len)
{
	if (!names_fail)
		return (int)syscall(SYS_getsockname, fd, at, len);
	errno = ENOBUFS;
	return -1;
}

TEST(a_port_that_cannot_be_had_is_an_error_and_leaves_no_descriptor)
{
	uint16_t port;
	close(STDIN_FILENO); /* so that the socket is number 0 */
	names_fail = true;
	CHECK_IS(loopback_listen(&port), -ENOBUFS);
	names_fail = false;
	CHECK_IS(fcntl(STDIN_FILENO, F_GETFD), -1);
	int fd = loopback_listen(&port);
	CHECK_IS(fd, STDIN_FILENO);
	loopback_knock(port);
	CHECK(knocked(fd));
	close(fd);
}

TEST(a_drain_takes_in_knocks_and_ends_however_many_there_are)
{
	uint16_t port;
	int fd = loopback_listen(&port);
	REQUIRE(fd >= 0);
	CHECK(!knocked(fd));
	loopback_drain(fd); /* of nothing */
	loopback_knock(port);
	CHECK(knocked(fd));
	loopback_drain(fd);
	CHECK(!knocked(fd));
	for (int i = 0; i < KNOCKS; i++)
		loopback_knock(port);
	loopback_drain(fd);
	CHECK(knocked(fd)); /* the rest is for the next one */
	int drains = 1;
	for (; drains < DRAINS_MOST && knocked(fd); drains++)
		loopback_drain(fd);
	CHECK_IS(drains, 2);
	close(fd);
}

static uint64_t now_ns(void)
{
	struct timespec now;
	clock_gettime(CLOCK_MONOTONIC, &now);
	return (uint64_t)now.tv_sec * 1000000000 + (uint64_t)now.tv_nsec;
}

/* A time that is too long only hangs; a wait that nobody ends may not be too short. */
enum { SHORT_NS = 3000000 };
#define FOREVER_NS (UINT64_C(100000) * 1000000000)

TEST(a_wait_for_words_lasts_its_time_unless_one_has_another_value)
{
	static _Atomic uint64_t word[4] = { 7, 7, 7, 7 };
	_Atomic uint64_t *const words[] = { &word[0], &word[1], &word[2], &word[3] };
	for (unsigned n = 1; n <= 4; n++) {
		uint64_t began = now_ns();
		int rc = futex_wait_many(words, n, 7, SHORT_NS);
		if (n > 1 && rc == -ENOSYS)
			break; /* this kernel waits for one word only */
		CHECK_IS(rc, 0);
		CHECK(now_ns() - began >= SHORT_NS);
		word[n - 1] = 8;
		CHECK_IS(futex_wait_many(words, n, 7, FOREVER_NS), 0);
		word[n - 1] = 7;
	}
	CHECK(futex_wait_many(words, FUTEX_MANY + 1, 7, FOREVER_NS) != 0);
	_Atomic uint32_t small = 5;
	uint64_t began = now_ns();
	futex_wait(&small, 5, SHORT_NS);
	CHECK(now_ns() - began >= SHORT_NS);
	futex_wait(&small, 6, FOREVER_NS);
}

static void *wake_soon(void *arg)
{
	_Atomic uint64_t *word = arg;
	nanosleep(&(struct timespec){ .tv_nsec = SHORT_NS }, NULL);
	atomic_store(word, 8);
	futex_wake(word);
	return NULL;
}

/* Nearly a second: whenever it begins, it ends in the second after that. */
TEST(a_wait_for_words_lasts_its_time_over_the_end_of_a_second)
{
	enum { LONG_NS = 999999999 };
	static _Atomic uint64_t word[2] = { 7, 7 };
	_Atomic uint64_t *const words[] = { &word[0], &word[1] };
	pthread_t thread;
	REQUIRE(pthread_create(&thread, NULL, wake_soon, &word[1]) == 0);
	uint64_t began = now_ns();
	int rc = futex_wait_many(words, 2, 7, LONG_NS);
	CHECK(rc == -ENOSYS || atomic_load(&word[1]) == 8 || now_ns() - began >= LONG_NS);
	pthread_join(thread, NULL);
}

TEST(whether_a_byte_can_be_written_is_asked_without_writing_it)
{
	static uint32_t mine = 0x12345678;
	CHECK(futex_can_write(&mine));
	CHECK(futex_can_write((char *)&mine + 3));
	CHECK_IS(mine, 0x12345678);
	CHECK(!futex_can_write((void *)(uintptr_t) "constant"));
	CHECK(!futex_can_write((void *)64));
}

TEST(the_time_of_a_thread_on_a_core_grows_while_it_computes)
{
	int32_t me = thread_id();
	CHECK_IS(me, getpid()); /* the first thread */
	uint64_t before = thread_ran(me);
	while (thread_ran(me) == before)
		;
	CHECK(thread_ran(me) > before);
	CHECK_IS(thread_ran(1 << 22 | 54321), 0);
}

TEST(a_signal_that_waits_is_forgotten)
{
	sigset_t set;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	sigaddset(&set, SIGUSR2);
	sigprocmask(SIG_BLOCK, &set, NULL);
	thread_signal(getpid(), thread_id(), SIGUSR1);
	thread_signal(getpid(), thread_id(), SIGUSR2);
	signal_forget(SIGUSR1);
	sigpending(&set);
	CHECK(!sigismember(&set, SIGUSR1) && sigismember(&set, SIGUSR2));
	signal_forget(SIGUSR2);
}
