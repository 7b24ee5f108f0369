/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The process manager of another launcher, as its ranks see it.
 *
 * PMIx, PMI-2 and PMI-1 offer the same under different names: a process learns
 * which rank it is of how many, and ranks give each other words through a table:
 * put, fence, get. That is all that Tern needs of them, and only while a
 * process joins its job.
 */
#ifndef TERN_BOOT_PMI_PMI_H
#define TERN_BOOT_PMI_PMI_H

#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Characters of a value, the 0 counted; every manager takes that many. */
enum { PMI_VALUE_MAX = 1000 };

/* One client for each protocol. A process has one conversation, so clients have no objects. */
struct pmi_ops {
	const char *name;     /* "PMIx" */
	const char *starters; /* the commands that speak it */
	const char *sign;  /* the variable that a process finds if it was started by one of these */
	const char *count; /* the variable that says how many ranks there are; may be missing */
	/* What other launchers start inherits `sign`, so it counts only if no other is there. */
	bool outermost;
	bool parallel; /* a thread may call get() while another one is in fence() */
	/*
	 * It counts who has opened it, so that our close() takes nothing from MPI in this process.
	 */
	bool counts;

	/* All return 0, or a negative code with a sentence. First; NULL: there is nothing to load.
	 */
	int (*load)(void);
	int (*open)(uint32_t *rank, uint32_t *size);
	int (*put)(const char *key, const char *value);
	int (*fence)(void); /* what everybody has put can be got behind it */
	/* Does not wait: -ENODATA if that rank has put nothing. */
	int (*get)(uint32_t rank, const char *key, char *value, size_t len);
	void (*close)(void);
	int (*abort)(int status); /* ends the job while it is open; NULL: it cannot */
	/* Whether somebody else has it open; NULL: nobody can tell. */
	bool (*open_already)(void);

	/*
	 * How the processes of the job can be told from others, by variables that they were started
	 * with: one that names the job, another, or NULL, that does so with it, and one that is the
	 * rank. Which ranks are on this node, "0,1,5", is in `neighbours`: false if nobody says.
	 * `started` says the same, and may be called before open(), or while open() waits.
	 */
	const char *mark[2], *number;
	bool (*neighbours)(char *list, size_t len);
	bool (*started)(char *list, size_t len);
};

/* In the order in which they are asked. */
enum { PMI_PROTOCOLS = 3 };
extern const struct pmi_ops *const pmi_table[PMI_PROTOCOLS];

/* Whether it can be spoken here: 0, or -ENOTSUP with what is missing and what to do. */
static inline int pmi_usable(const struct pmi_ops *pmi)
{
	return pmi->load ? pmi->load() : 0;
}

/*
 * Opens the conversation, once in a process. Fails, beside what the manager says, when the manager
 * has not answered: with the names of ranks that have no process on this node any more
 * (-EOWNERDEAD), or after TERN_JOIN seconds (-ETIMEDOUT), which pmi_gather() counts from here too.
 */
int pmi_open(const struct pmi_ops *pmi, uint32_t *rank, uint32_t *size);

/*
 * Gives every rank the `len` bytes of every rank, in `all`, by rank. Each rank calls
 * it with the same `key`, once; `len` is at most PMI_CARD_MAX and the same everywhere.
 *
 * Fails with the names of ranks that have put nothing, that have no process on this node any more
 * (-EOWNERDEAD), or that did not come within TERN_JOIN seconds (-ETIMEDOUT). When either function
 * has given up like that, the manager still waits: it is not to be used again, which pmi_waits()
 * tells.
 */
enum { PMI_CARD_MAX = (PMI_VALUE_MAX - 1) / 2 };
int pmi_gather(const struct pmi_ops *pmi, uint32_t rank, uint32_t size, const char *key,
	       const void *mine, size_t len, void *all);
bool pmi_waits(void);

/*
 * Ends the job through its manager, which stays open. The call that does this allocates and takes
 * locks, so it is not for a handler of a signal: a thread makes it, which is started beforehand and
 * sleeps. pmi_abort() waits until that is done, at most 2 s: what was interrupted may hold a lock
 * that the thread needs.
 */
void pmi_abort_prepare(const struct pmi_ops *pmi);
void pmi_abort(int status);

/*
 * For a client: loads the library `file`, as dlopen() does with `flags`, unless *library is loaded
 * already, and writes the functions of these names, up to a NULL, into the pointers that
 * `functions` begins with. 0, or -ENOTSUP with what stood in the way, and `todo`.
 */
int pmi_load(void **library, const char *file, int flags, const char *const *names, void *functions,
	     const char *todo);

/*
 * For calls that may never return: a thread with room for a manager's library on its stack, and all
 * signals blocked, for they are the program's: 0, or a negative errno. And whether it has set its
 * word `done`, or does within so long.
 */
int pmi_thread(pthread_t *thread, void *(*body)(void *arg), void *arg);
bool pmi_done_within(_Atomic uint32_t *done, uint64_t ns);

bool pmi_slurm_neighbours(char *list, size_t len);
extern const struct pmi_ops pmix_ops, pmi1_ops, pmi_slurm_ops;

#endif
