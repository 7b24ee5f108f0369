/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Every TERN_* variable of the environment, in one table: what `tern info`
 * prints is what the library reads.
 */
#ifndef TERN_BASE_SETTING_H
#define TERN_BASE_SETTING_H

#include <stdbool.h>
#include <stdint.h>

enum setting {
	SETTING_MEMORY,       /* bytes of shared memory the job may commit */
	SETTING_HEAP,         /* bytes of addresses for each rank's heap */
	SETTING_CORE,         /* own, all: what of the job's memory is in a core dump */
	SETTING_SPIN,         /* polls before a wait yields */
	SETTING_GRACE,        /* ms of silence before a wait blames a dead rank */
	SETTING_STUCK,        /* s after which a wait says what is under way */
	SETTING_DELIVERY,     /* poll, thread, interrupt */
	SETTING_SIGNAL,       /* for interrupts */
	SETTING_AGENT_CORE,   /* where progress threads run */
	SETTING_SHARED,       /* 1: endpoints are shared by threads */
	SETTING_WORKERS,      /* workers that the ranks of a machine may open */
	SETTING_WATCHDOG,     /* ms that a handler or a hold may last */
	SETTING_WATCHDOG_END, /* 0: the job does not end when one lasts longer */
	SETTING_OVERDUE,      /* s that a handler may last before the launcher ends the job */
	SETTING_STATS,        /* 0, 1, 2: count, and print at close */
	SETTING_GRANT,        /* 1: heaps of other ranks are read-only unless granted */
	SETTING_SPILL,        /* bytes for typed messages that found no buffer */
	SETTING_CHECK,        /* 1: notice buffers that change while they must not */
	SETTING_TRACE,        /* the files that record what ranks do */
	SETTING_CONTEXTS,     /* threads that can have started and not ended, on each rank */
	SETTING_STACK,        /* bytes of each thread's stack */
	SETTING_SLICE,        /* ms after which a thread that computes is preempted; 0: never */
	SETTING_SSH,          /* the command that `tern run` reaches other hosts with */
	SETTING_NET,          /* auto, shm, udp, ofi, ofi/PROVIDER */
	SETTING_SIM,          /* the profile of the simulated machine */
	SETTING_UDP_BIND,     /* the address that UDP sockets have */
	SETTING_PROTECT,      /* auto, none, auth, encrypt */
	SETTING_JOIN, /* s that tern_open() waits for the other ranks of another launcher's job */
	SETTING_KEEPALIVE,   /* s of silence after which another machine is taken for lost */
	SETTING_UNREACHABLE, /* wait or fail: what follows when a rank that lives does not answer */
	/* What changes Tern itself, for those who study or test it: tern-developer(7). */
	SETTING_DEVELOPERS,
	SETTING_RANK = SETTING_DEVELOPERS, /* set by the launcher */
	SETTING_SIZE,                      /* set by the launcher */
	SETTING_JOB_FD,                    /* set by the launcher */
	SETTING_MEMBARRIER,                /* 0: never rely on membarrier */
	SETTING_GROW,                      /* leaves of a small ring before it grows */
	SETTING_SINGLE_COPY, /* 0: do not move bytes between processes by the kernel */
	SETTING_SERVE,       /* 1: a thread serves memory messages of networks */
	SETTING_ALONE,       /* 1: be a job of one although another launcher started us */
	SETTING_MACHINE,     /* the machine that this process counts as on */
	SETTING_LINK,        /* path of the program that watches ranks under another launcher */
	SETTING_LIBRARY,     /* path of the library, for bindings of other languages */
	SETTING_SIM_USE,     /* the file that gets what its parts were used for */
	SETTING_OFI_WAIT,    /* 0: no descriptor of a provider to sleep on */
	SETTING_SERVICE,     /* which services are added */
	SETTING_FLOW,        /* how receivers are not overrun */
	SETTING_FAULT,       /* what a packet network shall do wrong */
	SETTING_WRAP,        /* how far before their wrap numbers start; see base/wrap.h */
	SETTING_COUNT
};

struct setting_info {
	const char *name;     /* TERN_... */
	const char *fallback; /* the value when unset, as text; "" for none */
	const char *meaning;  /* one line */
	bool is_text;         /* its value is no number */
};

extern const struct setting_info setting_table[SETTING_COUNT];

/* The value as text: the environment's, or the fallback. Never NULL. */
const char *setting_text(enum setting s);
/* Whether the environment sets it. */
int setting_given(enum setting s);
/*
 * The value as a whole number with an optional suffix K, M or G (of 1024).
 * -EINVAL with a sentence that names the variable if it is none.
 */
int setting_number(enum setting s, uint64_t *value);
/* Warns once a process about every TERN_* variable that no setting has, naming the nearest. */
void setting_warn_unknown(void);

#endif
