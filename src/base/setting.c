/* SPDX-License-Identifier: BSD-3-Clause */
/* The table of all settings, and how each is read. */
#include "base/setting.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/text.h"

#ifdef TERN_DEBUG
#define CHECK_UNLESS_SET "1"
#else
#define CHECK_UNLESS_SET "0"
#endif

const struct setting_info setting_table[SETTING_COUNT] = {
	[SETTING_RANK] = { "TERN_RANK", "", "this process's rank; set by the launcher" },
	[SETTING_SIZE] = { "TERN_SIZE", "", "the number of ranks; set by the launcher" },
	[SETTING_JOB_FD] = { "TERN_JOB_FD", "",
			     "the descriptor of the job's memory; set by the launcher" },
	[SETTING_MEMORY] = { "TERN_MEMORY", "0",
			     "bytes of shared memory the job may commit (K, M, G); "
			     "0: half of what is free" },
	[SETTING_HEAP] = { "TERN_HEAP", "1G", "bytes that each rank's heap may grow to (K, M, G)" },
	[SETTING_CORE] = { "TERN_CORE", "own",
			   "what of the job's shared memory a core dump has: own, "
			   "what the rank itself uses, up to 32 MiB; or all",
			   true },
	[SETTING_SPIN] = { "TERN_SPIN", "20000",
			   "looks at the rings before a wait yields its core; "
			   "not used when there are more ranks than cores" },
	[SETTING_GRACE] = { "TERN_GRACE", "500",
			    "milliseconds of silence after which a wait blames a dead rank" },
	[SETTING_STUCK] = { "TERN_STUCK", "0",
			    "seconds before a stuck wait prints its call, "
			    "the rank it waits for and pending operations to stderr; 0: never" },
	[SETTING_DELIVERY] = { "TERN_DELIVERY", "poll",
			       "who runs handlers while the program computes: poll (nobody), "
			       "thread, interrupt",
			       true },
	[SETTING_SERVE] = { "TERN_SERVE", "1",
			    "0: puts, gets and atomic operations over a network wait until their "
			    "target polls; "
			    "1: a thread of the target serves them while it computes" },
	[SETTING_SIGNAL] = { "TERN_SIGNAL", "0",
			     "the number of a signal for interrupts, which nothing else uses; "
			     "0: none" },
	[SETTING_AGENT_CORE] = { "TERN_AGENT_CORE", "",
				 "the core that progress threads are bound to; unset: any" },
	[SETTING_SHARED] = { "TERN_SHARED", "0",
			     "1: endpoints may be used by several threads, one call at a time" },
	[SETTING_WORKERS] = { "TERN_WORKERS", "64",
			      "workers that all ranks of a machine may open, 0 to 1024" },
	[SETTING_WATCHDOG] = { "TERN_WATCHDOG", "0",
			       "milliseconds that a handler or a hold may last, "
			       "without time that it waits for a core; "
			       "then the job ends with status 70; 0: for ever" },
	[SETTING_WATCHDOG_END] = { "TERN_WATCHDOG_END", "1",
				   "0: what TERN_WATCHDOG or TERN_HANDLER_LIMIT finds is only "
				   "reported" },
	[SETTING_OVERDUE] = { "TERN_HANDLER_LIMIT", "300",
			      "seconds that a handler may last; "
			      "then tern run ends the job with status 70; 0: for ever" },
	[SETTING_STATS] = { "TERN_STATS", "0",
			    "1: count messages, bytes and time, "
			    "and print them when the rank closes; 2: print them as JSON" },
	[SETTING_MEMBARRIER] = { "TERN_MEMBARRIER", "1",
				 "0: do not use membarrier; ranks then nap instead of sleeping" },
	[SETTING_GROW] = { "TERN_GROW", "16",
			   "leaves that a ring goes through before it gets the memory of a large "
			   "one" },
	[SETTING_GRANT] = { "TERN_GRANT", "0",
			    "1: heaps of other ranks are mapped read-only, "
			    "but for what tern_grant() opens" },
	[SETTING_SINGLE_COPY] = { "TERN_SINGLE_COPY", "1",
				  "0: copy through messages, without process_vm_readv or RMA" },
	[SETTING_SPILL] = { "TERN_SPILL", "256K",
			    "bytes of each rank's heap for typed messages that found no buffer (K, "
			    "M, G)" },
	[SETTING_CHECK] = { "TERN_CHECK", CHECK_UNLESS_SET,
			    "1: notice when data under way or a free buffer is written to, "
			    "when members of a team do not make the same call, "
			    "when a second thread uses an endpoint, and when NULL is used" },
	[SETTING_WRAP] = { "TERN_WRAP", "0",
			   "for tests of a debug build, the same at every rank: "
			   "numbers that wrap (of laps, packets, messages, names) "
			   "start so many before their wrap; 0: where they always start" },
	[SETTING_TRACE] = { "TERN_TRACE", "",
			    "record what each rank does in the file of this name and its rank; "
			    "for tern trace",
			    true },
	[SETTING_CONTEXTS] = { "TERN_CONTEXTS", "16",
			       "threads of each rank that can have started and not ended; "
			       "further ones wait" },
	[SETTING_STACK] = { "TERN_STACK", "64K", "bytes of each thread's stack (K, M, G)" },
	[SETTING_SLICE] = { "TERN_SLICE", "0",
			    "milliseconds of computing after which another thread of the rank has "
			    "a turn, by a timer and a signal; 0: only when one waits" },
	[SETTING_SSH] = { "TERN_SSH", "ssh -o BatchMode=yes",
			  "the command by which tern run --hosts reaches a host", true },
	[SETTING_ALONE] = { "TERN_ALONE", "0",
			    "1: "
			    "be a job of one rank although another launcher started this process" },
	[SETTING_NET] = { "TERN_NET", "auto",
			  "the network between ranks: shm, udp, ofi, ofi/PROVIDER; "
			  "two, as in shm,udp: within machines and between them; or auto",
			  true },
	[SETTING_SIM] = { "TERN_SIM", "cluster",
			  "the simulated machine of TERN_NET=sim: "
			  "a profile that is built in (tern sim --profiles), or a file",
			  true },
	[SETTING_SIM_USE] = { "TERN_SIM_USE", "",
			      "the file that gets what the parts of the simulated machine were "
			      "used for, when the last rank closes; see tern-sim(7)",
			      true },
	[SETTING_UDP_BIND] = { "TERN_UDP_BIND", "auto",
			       "the address that UDP is to use, in numbers, "
			       "or a network such as 10.1.0.0/16",
			       true },
	[SETTING_OFI_WAIT] = { "TERN_OFI_WAIT", "1",
			       "0: do not ask a provider of libfabric for a descriptor to sleep "
			       "on; ranks look every half millisecond instead, "
			       "and some providers are quicker then" },
	[SETTING_SERVICE] = { "TERN_SERVICE", "auto",
			      "services added to a network: of order, flow, retry, "
			      "with commas between them; none; or auto, those that it lacks",
			      true },
	[SETTING_FLOW] = { "TERN_FLOW", "credit",
			   "what the flow service does: credit, return, drop, nack, token, "
			   "permit or reserve; see tern-net(7)",
			   true },
	[SETTING_FAULT] = { "TERN_FAULT", "",
			    "what goes wrong with packets, as in drop=0.01,reorder=0.05,seed=42; "
			    "see tern-net(7)",
			    true },
	[SETTING_PROTECT] = { "TERN_PROTECT", "auto",
			      "datagrams are authenticated (auth), encrypted too (encrypt), "
			      "or neither (none); auto is auth over udp, and none over ofi",
			      true },
	[SETTING_MACHINE] = { "TERN_MACHINE", "",
			      "under another launcher: ranks with different values share no "
			      "memory, as if on different machines",
			      true },
	[SETTING_JOIN] = { "TERN_JOIN", "300",
			   "under another launcher: seconds that tern_open() waits for the other "
			   "ranks to call it, and for the launcher to answer; 0: for ever" },
	[SETTING_KEEPALIVE] = { "TERN_KEEPALIVE", "30",
				"seconds of silence after which another machine is taken for lost; "
				"0: never" },
	[SETTING_UNREACHABLE] = { "TERN_UNREACHABLE", "wait",
				  "when a rank that lives has not answered for TERN_KEEPALIVE "
				  "seconds: wait for it, or fail the calls that need it",
				  true },
	[SETTING_LINK] = { "TERN_LINK", "",
			   "under another launcher: the path of the program tern-link, which "
			   "watches the ranks of a machine; unset: the library looks for it",
			   true },
	[SETTING_LIBRARY] = { "TERN_LIBRARY", "",
			      "the path of libtern.so for bindings of other languages; "
			      "unset: they look for it",
			      true },
};

int setting_given(enum setting s)
{
	const char *text = getenv(setting_table[s].name);
	return text && *text; /* as in a shell, empty is not set: TERN_NET= tern run ... */
}

const char *setting_text(enum setting s)
{
	return setting_given(s) ? getenv(setting_table[s].name) : setting_table[s].fallback;
}

/* 0 if it is none. */
static uint64_t suffix_scale(char c)
{
	static const char suffixes[] = "KkMmGg";
	const char *at = strchr(suffixes, c);
	return at ? UINT64_C(1024) << (at - suffixes) / 2 * 10 : 0;
}

int setting_number(enum setting s, uint64_t *value)
{
	const char *text = setting_text(s);
	char *end;
	errno = 0;
	unsigned long long number = strtoull(text, &end, 10);
	uint64_t scale = 1;
	if (end != text && *end) {
		scale = suffix_scale(*end);
		end++;
	}
	if (end == text || *end || !scale || errno || (unsigned char)(*text - '0') > 9 ||
	    number > UINT64_MAX / scale)
		return error_set(-EINVAL,
				 "%s is '%s', which is not a whole number (K, M or G may follow)",
				 setting_table[s].name, text);
	*value = number * scale;
	return 0;
}

static void warn_unless_known(const char *name)
{
	const char *names[SETTING_COUNT];
	for (int s = 0; s < SETTING_COUNT; s++) {
		names[s] = setting_table[s].name;
		if (strcmp(name, names[s]) == 0)
			return;
	}
	error_warn("nothing reads %s; did you mean %s? `tern info` lists every setting", name,
		   nearest_name(name, names, SETTING_COUNT));
}

extern char **environ;

void setting_warn_unknown(void)
{
	static atomic_flag warned = ATOMIC_FLAG_INIT; /* seq_cst: once for each tern_open() */
	if (!environ || atomic_flag_test_and_set(&warned))
		return;
	for (char **e = environ; *e; e++) {
		char name[128];
		size_t len = strcspn(*e, "=");
		if (strncmp(*e, "TERN_", 5) != 0 || len >= sizeof name)
			continue;
		memcpy(name, *e, len);
		name[len] = '\0';
		warn_unless_known(name);
	}
}
