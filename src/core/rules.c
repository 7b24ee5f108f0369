/* SPDX-License-Identifier: BSD-3-Clause */
/* The rules of the model, checked where they are broken. tern(7) has the table. */
#include "core/rules.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>

#include "base/error.h"
#include "core/scope.h"
#include "endpoint/handler.h"
#include "endpoint/watched.h"

#define DEFER "in a function given to tern_defer()"

const struct rule_text rule_table[RULES] = {
	[RULE_HANDLER] = { -EPERM, "call it " DEFER },
	[RULE_PROGRAM] = { -EPERM, "return, and call it in the program" },
	[RULE_DELIVERY] = { -EDEADLK, "call it in the program, under no hold" },
	[RULE_REPLY_OUTSIDE] = { -EPERM, "send a request instead" },
	[RULE_REPLY_REPLY] = { -EPERM, "send a request instead, " DEFER },
	[RULE_REPLY_OTHER] = { -EPERM, "reply to the message that the handler was given" },
	[RULE_REPLY_TWICE] = { -EALREADY, "send what follows as a request, " DEFER },
	[RULE_HANDLING] = { -EPERM, "call it there, with the message that the handler was given" },
	[RULE_THREAD] = { -EPERM, "give it the endpoint with tern_attach(), or share the endpoint "
				  "(tern_options.shared, TERN_SHARED)" },
	[RULE_FORKED] = { -EPERM,
			  "let the parent call, or start a program of the child's own with exec" },
	[RULE_TURN] = { -EDEADLK,
			"return -EAGAIN, and look in the next turn whether it has happened" },
	[RULE_HOLD] = { -EDEADLK, "release it first" },
	[RULE_WORDS] = { -E2BIG, "put more into a payload" },
	[RULE_PAYLOAD] = { -EMSGSIZE, "send it in parts, or with tern_put()" },
	[RULE_NUMBER] = { -ERANGE, "" },
	[RULE_REGISTERED] = { -ENXIO,
			      "register it with tern_on(), at every rank, before it is sent to" },
	[RULE_RANK] = { -ERANGE, "" },
};

int rule_broken(enum rule r, const char *format, ...)
{
	char done[400];
	va_list args;
	va_start(args, format);
	vsnprintf(done, sizeof done, format, args);
	va_end(args);
	const char *advice = rule_table[r].advice;
	return error_set(rule_table[r].code, "%s%s%s", done, *advice ? "; " : "", advice);
}

/* The message that lies just before the cursor: a whole line, two, or the last piece of one. */
const tern_msg *rules_handled(const struct endpoint *e)
{
	if (e->item)
		return e->item;
	if (e->carrying)
		return e->carrying;
	char *end = e->inlet->cursor;
	bool aligned = (uintptr_t)end % TERN_LINE == 0;
	/* Behind a piece the line before it may be before the ring, in a hole that a look fills. */
	const tern_msg *line = aligned ? message_before(end) : NULL;
	if (line && !(atomic_load_explicit(&line->head, memory_order_relaxed) & TERN_HEAD_PIECE))
		return line;
	return (const tern_msg *)(const void *)(end - TERN_PIECE);
}

unsigned rules_handler(const struct endpoint *e)
{
	uint64_t head = atomic_load_explicit(&rules_handled(e)->head, memory_order_relaxed);
	return (unsigned)(head >> TERN_ID_SHIFT) % TERN_HANDLER_SLOTS;
}

static int rules_broken(struct endpoint *e, enum rule r, const char *what)
{
	bool request = e->inlet->kind == TERN_KIND_REQUEST;
	char label[LABEL_ROOM];
	return rule_broken(r, "%s was called in %s of a %s from rank %u: a %s handler may %s", what,
			   handler_label(e, rules_handler(e), label), request ? "request" : "reply",
			   inlet_source(e->inlet), request ? "request" : "reply",
			   request ? "reply once and poll for replies, and nothing else"
				   : "send nothing and not poll");
}

static int rules_message(struct endpoint *e, uint32_t dst, unsigned id, unsigned n, size_t len,
			 bool reply)
{
	if (n > TERN_WORDS_MAX)
		return rule_broken(RULE_WORDS,
				   "a message to handler %u of rank %u was given %u words; "
				   "it carries at most %d",
				   id, dst, n, TERN_WORDS_MAX);
	if (len > TERN_REQUEST_MAX)
		return rule_broken(RULE_PAYLOAD,
				   "a %s to handler %u of rank %u was given %zu bytes of payload; "
				   "it carries at most %d",
				   reply ? "reply" : "request", id, dst, len, TERN_REQUEST_MAX);
	if (id >= TERN_HANDLER_MAX)
		return rule_broken(RULE_NUMBER,
				   "handler %u of rank %u was named; handlers are numbered 0 to %d",
				   id, dst, TERN_HANDLER_MAX - 1);
	if (!e->t->known[id])
		return rule_broken(
			RULE_REGISTERED,
			"handler %u of rank %u was named, but none is registered under that number",
			id, dst);
	return 0;
}

static int rules_refused(const struct endpoint *e, const char *what)
{
	if (e->forked == NO_ENDPOINT)
		return misuse_error(what);
	return rule_broken(
		RULE_FORKED,
		"process %d was forked from that of rank %u and cannot use its parent's endpoint",
		(int)e->forked, e->t->rank);
}

int rules_forked(const struct endpoint *e)
{
	return TERN_LIKELY(!e->forked) ? 0 : rules_refused(e, NULL);
}

int rules_number(const char *what, unsigned id, unsigned most)
{
	return id < most ? 0
			 : error_set(-ERANGE, "%s %u was named; they are numbered 0 to %u", what,
				     id, most - 1);
}

int rules_function(const struct endpoint *e, const char *what, unsigned id, unsigned most,
		   bool has_function)
{
	int rc = rules_forked(e);
	if (!rc)
		rc = rules_number(what, id, most);
	return rc || has_function
		       ? rc
		       : error_set(-EINVAL, "%s %u was registered without a function", what, id);
}

int rules_rank(struct endpoint *e, const char *what)
{
	if (e->main)
		return error_set(
			-ENOTSUP,
			"%s was called at a worker of rank %u: a worker sends requests, puts, gets "
			"and does atomics; call it at the endpoint of the rank",
			what, e->t->rank);
	return rules_forked(e);
}

int rules_destination(struct endpoint *e, uint32_t dst)
{
	int rc = rules_forked(e);
	if (rc)
		return rc;
	if (dst < e->t->size)
		return 0;
	return rule_broken(RULE_RANK, "rank %u was named; this job has ranks 0 to %u", dst,
			   e->t->size - 1);
}

int rules_target(struct endpoint *e, uint32_t dst)
{
	int rc = rules_forked(e);
	if (rc || dst < e->t->size)
		return rc;
	return job_target(&e->group->job, dst) < UINT32_MAX ? 0 : rules_destination(e, dst);
}

/* Not a rank. */
static __attribute__((noinline)) int rules_worker(struct endpoint *e, uint32_t dst, unsigned id,
						  unsigned n, size_t len)
{
	const struct job *j = &e->group->job;
	uint32_t member = job_target(j, dst);
	if (member == UINT32_MAX)
		return rule_broken(RULE_RANK,
				   "a request to handler %u of rank %u was asked for; "
				   "this job has ranks 0 to %u",
				   id, dst, e->t->size - 1);
	return rules_message(e, job_member_rank(j, member), id, n, len, false);
}

int rules_send(struct endpoint *e, uint32_t dst, unsigned id, unsigned n, size_t len)
{
	int rc = rules_program(e, "a request");
	if (!rc && dst >= e->t->size)
		return rules_worker(e, dst, id, n, len);
	return rc ? rc : rules_message(e, dst, id, n, len, false);
}

int rules_post(struct endpoint *e, uint32_t dst, unsigned id, unsigned n)
{
	int rc = in_handler(e) ? 0 : rules_program(e, "tern_post()");
	if (!rc)
		rc = rules_destination(e, dst);
	if (!rc && n > TERN_LINE_WORDS)
		rc = rule_broken(
			RULE_WORDS,
			"a post to handler %u of rank %u was given %u words; it carries at most %d",
			id, dst, n, TERN_LINE_WORDS);
	return rc ? rc : rules_message(e, dst, id, n, 0, false);
}

int rules_reply_to(struct endpoint *e, uint32_t dst, unsigned id, unsigned n)
{
	int rc = rules_program(e, "a message of the reply class");
	if (!rc)
		rc = rules_destination(e, dst);
	return rc ? rc : rules_message(e, dst, id, n, 0, true);
}

/*
 * The program is in no handler. Where `reach` is not 0 it is in none, and what the endpoint says it
 * handles is served by a thread, which may end that at any moment.
 */
static bool handles_nothing(const struct endpoint *e)
{
	return e->t->reach || !in_handler(e);
}

int rules_reply(struct endpoint *e, const tern_msg *m, unsigned id, unsigned n, size_t len)
{
	char label[LABEL_ROOM];
	int rc = rules_forked(e);
	if (rc)
		return rc;
	if (handles_nothing(e))
		return rule_broken(RULE_REPLY_OUTSIDE,
				   "rank %u asked for a reply to handler %u outside a handler: "
				   "only the handler of a request replies, and before it returns",
				   e->t->rank, id);
	if (e->inlet->kind == TERN_KIND_REPLY)
		return rules_broken(e, RULE_REPLY_REPLY, "a reply");
	if (m != rules_handled(e))
		return rule_broken(RULE_REPLY_OTHER,
				   "%s, for a request from rank %u, replied to another message: "
				   "a handler replies to its own request",
				   handler_label(e, rules_handler(e), label),
				   inlet_source(e->inlet));
	if (m != e->t->current && !watched_first(e, m))
		return rule_broken(RULE_REPLY_TWICE,
				   "%s has answered its request from rank %u already: "
				   "a handler replies at most once",
				   handler_label(e, rules_handler(e), label),
				   inlet_source(e->inlet));
	return rules_message(e, inlet_source(e->inlet), id, n, len, true);
}

int rules_handling(struct endpoint *e, const tern_msg *m, const char *what)
{
	int rc = rules_forked(e);
	if (rc)
		return rc;
	if (!handles_nothing(e) && m == rules_handled(e))
		return 0;
	return rule_broken(RULE_HANDLING,
			   "%s is for the handler of that very message, before it returns", what);
}

static int rules_thread(struct endpoint *e, const char *what)
{
	if (!attach_is_mine(e)) {
		if (e->forked)
			return rules_refused(e, what);
		/* Before anything else is read: another thread may be borrowing it. */
		attach_first(e);
	}
	if (TERN_LIKELY(!e->owner.checked || attach_is_mine(e)))
		return 0;
	return rule_broken(RULE_THREAD, "%s was called by a thread that does not have rank %u",
			   what, e->t->rank);
}

int rules_program(struct endpoint *e, const char *what)
{
	int rc = rules_thread(e, what);
	return !rc && in_handler(e) ? rules_broken(e, RULE_HANDLER, what) : rc;
}

int rules_outermost(struct endpoint *e, const char *what)
{
	int rc = rules_thread(e, what);
	return !rc && in_handler(e) ? rules_broken(e, RULE_PROGRAM, what) : rc;
}

int rules_wait(struct endpoint *e, const char *what)
{
	int rc = rules_program(e, what);
	if (!rc && e->turn)
		return rule_broken(RULE_TURN, "%s was called in a turn, where nothing waits", what);
	if (!rc && held(e))
		rc = hold_mend(e);
	if (!rc && held(e))
		return rule_broken(RULE_HOLD,
				   "%s was called under a hold, where nothing is handled", what);
	return rc;
}
