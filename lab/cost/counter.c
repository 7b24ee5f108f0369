/* SPDX-License-Identifier: BSD-3-Clause */
/* Counts instructions by stepping through a child process. */
#include "lab/cost/counter.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MARK = 0xcc, REP = 0xf3, REPNE = 0xf2, STEPS_MOST = 4000000 };

struct counter {
	pid_t child;
	int status; /* as of its last stop, or its end */
	struct cost_board *board;
	struct decoder *decoder;
	struct cost_trace *trace;
};

static void trace_grow(void **array, size_t *room, size_t n, size_t size)
{
	if (n < *room)
		return;
	*room = *room ? 2 * *room : 1024;
	*array = realloc(*array, *room * size);
	if (!*array)
		abort(); /* some megabytes */
}

static void trace_add(struct cost_trace *t, struct cost_insn insn)
{
	trace_grow((void **)&t->insn, &t->room, t->n, sizeof *t->insn);
	t->insn[t->n++] = insn;
}

static struct cost_passage *trace_begin(struct cost_trace *t, uint32_t label)
{
	trace_grow((void **)&t->passage, &t->passages_room, t->passages, sizeof *t->passage);
	t->passage[t->passages] = (struct cost_passage){ label, t->n, 0 };
	return &t->passage[t->passages++];
}

void trace_free(struct cost_trace *t)
{
	free(t->insn);
	free(t->passage);
	*t = (struct cost_trace){ 0 };
}

/* -- The child's steps --------------------------------------------------------------------- */

/*
 * Lets it go on, to its next stop; false when it has ended. A signal of its own is passed on, so
 * that steps lead through the handler.
 */
static bool child_resume(struct counter *c, int how)
{
	int signal = 0;
	do {
		if (ptrace(how, c->child, NULL, (void *)(uintptr_t)signal) != 0 ||
		    waitpid(c->child, &c->status, 0) != c->child || !WIFSTOPPED(c->status))
			return false;
		signal = WSTOPSIG(c->status);
	} while (signal != SIGTRAP);
	return true;
}

static bool child_regs(const struct counter *c, struct user_regs_struct *regs)
{
	return ptrace(PTRACE_GETREGS, c->child, NULL, regs) == 0;
}

/* The child is a fork: it has its code where this process has the same. */
static uint8_t byte_at(uintptr_t at)
{
	return *(const uint8_t *)at;
}

/* A string instruction stops after each repetition, and is one instruction nevertheless. */
static bool insn_repeats(uintptr_t at, uintptr_t before)
{
	return at == before && (byte_at(at) == REP || byte_at(at) == REPNE);
}

/* From the mark just passed to the next one. */
static bool step_passage(struct counter *c)
{
	struct cost_passage *p = trace_begin(c->trace, c->board->label);
	uintptr_t before = 0;
	struct user_regs_struct regs;
	for (int steps = 0; steps < STEPS_MOST; steps++) {
		if (!child_regs(c, &regs))
			return false;
		if (byte_at(regs.rip) == MARK)
			return true;
		if (!insn_repeats(regs.rip, before)) {
			enum cost_kind kind = decoder_kind(c->decoder, &regs, &c->board->shared);
			trace_add(c->trace, (struct cost_insn){ regs.rip, (uint8_t)kind });
			p->n++;
		}
		before = regs.rip;
		if (!child_resume(c, PTRACE_SINGLESTEP))
			return false;
	}
	return false;
}

/* Every stop is a mark: those that begin a passage and those that end one take turns. */
static void step_all(struct counter *c)
{
	while (child_resume(c, PTRACE_CONT)) {
		if (c->board->label && !step_passage(c))
			return;
		if (!child_resume(c, PTRACE_CONT)) /* the mark that ends it */
			return;
	}
}

/* -- The child and its parent ----------------------------------------------------------------- */

static void child_run(struct cost_board *board, void (*fn)(struct cost_board *, void *), void *arg)
{
	if (ptrace(PTRACE_TRACEME, 0, NULL, NULL))
		_exit(1);
	raise(SIGSTOP);
	fn(board, arg);
	_exit(0);
}

/* Parent and child take turns: on one core that is several times as fast as between two. */
static void pin(void)
{
	cpu_set_t here;
	CPU_ZERO(&here);
	CPU_SET(sched_getcpu(), &here);
	sched_setaffinity(0, sizeof here, &here);
}

static int parent_refused(char *why, size_t len)
{
	snprintf(why, len,
		 "this machine does not let a process trace its child (ptrace is not allowed: "
		 "a container may need --cap-add=SYS_PTRACE)");
	return -EPERM;
}

static int parent_follow(struct counter *c, char *why, size_t len)
{
	if (waitpid(c->child, &c->status, 0) != c->child || !WIFSTOPPED(c->status))
		return parent_refused(why, len);
	ptrace(PTRACE_SETOPTIONS, c->child, NULL, (void *)(uintptr_t)PTRACE_O_EXITKILL);
	step_all(c);
	bool good = WIFEXITED(c->status) && WEXITSTATUS(c->status) == 0;
	if (WIFSTOPPED(c->status)) {
		kill(c->child, SIGKILL);
		waitpid(c->child, NULL, 0);
	}
	if (c->board->failed)
		snprintf(why, len, "%s", c->board->sentence);
	else if (!good)
		snprintf(why, len, "the operation did not come to its end (status %#x)",
			 (unsigned)c->status);
	return c->board->failed ? c->board->failed : good ? 0 : -EPROTO;
}

int counter_run(void (*fn)(struct cost_board *board, void *arg), void *arg, struct cost_trace *out,
		char *why, size_t len)
{
	struct counter c = { .decoder = decoder_open(), .trace = out };
	*out = (struct cost_trace){ 0 };
	c.board = mmap(NULL, sizeof *c.board, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS,
		       -1, 0);
	if (!c.decoder || c.board == MAP_FAILED) {
		snprintf(why, len, "no memory to count in");
		return -ENOMEM;
	}
	fflush(NULL); /* or the child would print it again */
	cpu_set_t cores;
	sched_getaffinity(0, sizeof cores, &cores);
	pin();
	c.child = fork();
	if (c.child == 0)
		child_run(c.board, fn, arg);
	int rc = c.child < 0 ? parent_refused(why, len) : parent_follow(&c, why, len);
	sched_setaffinity(0, sizeof cores, &cores);
	munmap(c.board, sizeof *c.board);
	decoder_close(c.decoder);
	if (rc)
		trace_free(out);
	return rc;
}
