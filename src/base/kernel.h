/* SPDX-License-Identifier: BSD-3-Clause */
/* The system calls that the C library has no function for. */
#ifndef TERN_BASE_KERNEL_H
#define TERN_BASE_KERNEL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <time.h>

static inline struct timespec timespec_of(uint64_t ns)
{
	return (struct timespec){ .tv_sec = (time_t)(ns / 1000000000u),
				  .tv_nsec = (long)(ns % 1000000000u) };
}

enum { FUTEX_MANY = 128 };

/*
 * Sleeps until woken, until `ns` have passed, or at once if the low half of a word
 * is not `value` any more. Several words at once, up to FUTEX_MANY; -ENOSYS where
 * the kernel cannot wait for several. Spurious returns are normal.
 */
int futex_wait_many(_Atomic uint64_t *const *words, unsigned n, uint32_t value, uint64_t ns);
void futex_wake(_Atomic uint64_t *word);
/* The same for a word of 32 bits, within a process; wakes everybody. */
void futex_wait(_Atomic uint32_t *word, uint32_t value, uint64_t ns);
void futex_wake32(_Atomic uint32_t *word);
/* Whether the byte at `p` can be written: the kernel adds no bits to the word that has it. */
bool futex_can_write(void *p);

/* A socket at a port of loopback, to sleep on; -errno. */
int loopback_listen(uint16_t *port);
/* Sends one byte there: whoever sleeps on it wakes. 0: nobody does. */
void loopback_knock(uint16_t port);
void loopback_drain(int fd); /* takes in what has come */

/*
 * Makes this process answer barrier_all() and tells whether the kernel has it.
 * Cheap while the process has one thread, milliseconds later.
 */
bool barrier_register(void);
/* A full memory barrier on every core that runs a registered process. */
void barrier_all(void);
/* The same among the threads of this process. */
bool barrier_process_register(void);
void barrier_process(void);

int32_t thread_id(void);             /* as the kernel numbers threads */
uint64_t thread_ran(int32_t thread); /* ns that it was on a core; 0 if it is gone */
void thread_signal(int32_t process, int32_t thread, int signal);
void signal_forget(int signal); /* those that wait for this thread, which blocks it */

#endif
